// float16 and matrix instructions through the toolkit's headers, as used in kernels of neural
// networks.
#include <cuda_fp16.h>
#include <cuda_bf16.h>

extern "C" __global__ void float16(const unsigned short *x, const unsigned short *y,
                                  unsigned short *r, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    __half a = __ushort_as_half(x[i]), b = __ushort_as_half(y[i]);
    __nv_bfloat16 c = __ushort_as_bfloat16(x[i]), d = __ushort_as_bfloat16(y[i]);
    r[i] = __half_as_ushort(__hadd(a, b));
    r[n + i] = __half_as_ushort(__hmul(a, b));
    r[2 * n + i] = __half_as_ushort(__hfma(a, b, a));
    r[3 * n + i] = __half_as_ushort(__float2half_rn(__half2float(a) * 3.0f));
    r[4 * n + i] = __bfloat16_as_ushort(__hadd(c, d));
    r[5 * n + i] = __bfloat16_as_ushort(__hmul(c, d));
    r[6 * n + i] = __bfloat16_as_ushort(__float2bfloat16_rn(__bfloat162float(c) / 3.0f));
    __half2 pair = __hfma2(make_half2(a, b), make_half2(b, b), make_half2(a, a));
    r[7 * n + i] = __half_as_ushort(__low2half(pair));
    r[8 * n + i] = __half_as_ushort(__high2half(pair));
    r[9 * n + i] = __hlt(a, b) | __hgt(c, d) << 1 | (__hmax(c, d) == c) << 2;
}

// One 16 x 8 tile of a float16 product: the tensor-core instruction with its loads, as kernels
// write them.
extern "C" __global__ void tile(const __half *a, const __half *b, float *c) {
    __shared__ __align__(16) __half sa[16 * 16], sb[16 * 8];
    unsigned lane = threadIdx.x, to = (unsigned)__cvta_generic_to_shared(sa + 8 * lane);
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to), "l"(a + 8 * lane));
    if (lane < 16) {
        to = (unsigned)__cvta_generic_to_shared(sb + 8 * lane);
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to), "l"(b + 8 * lane));
    }
    asm volatile("cp.async.commit_group;\n cp.async.wait_group 0;");
    __syncwarp();
    unsigned ra[4], rb[2];
    unsigned from = (unsigned)__cvta_generic_to_shared(sa + lane % 16 * 16 + lane / 16 * 8);
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(ra[0]), "=r"(ra[1]), "=r"(ra[2]), "=r"(ra[3])
                 : "r"(from));
    from = (unsigned)__cvta_generic_to_shared(sb + lane % 16 * 8);
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0, %1}, [%2];"
                 : "=r"(rb[0]), "=r"(rb[1])
                 : "r"(from));
    float d[4] = {0, 0, 0, 0};
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, "
                 "{%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                 : "r"(ra[0]), "r"(ra[1]), "r"(ra[2]), "r"(ra[3]), "r"(rb[0]), "r"(rb[1]));
    int g = lane / 4, t = lane % 4;
    for (int i = 0; i < 4; i++)
        c[(g + 8 * (i / 2)) * 8 + 2 * t + i % 2] = d[i];
}
