// Kernels that both NVRTC and clang compile; check_cuda.c knows their results. They include no
// header.

typedef unsigned u32;
typedef unsigned long long u64;

#define INDEX (blockIdx.x * blockDim.x + threadIdx.x)

extern "C" __global__ void add(const float *a, const float *b, float *c, int n) {
    int i = INDEX;
    if (i < n)
        c[i] = a[i] + b[i];
}

// Computes one sum per block: by shuffles within a warp, by shared memory between warps.
extern "C" __global__ void reduce(const int *x, int *sums, int n) {
    __shared__ int partial[32];
    int i = INDEX, v = i < n ? x[i] : 0;
    for (int lanes = 16; lanes; lanes >>= 1)
        v += __shfl_down_sync(0xffffffffu, v, lanes);
    if (threadIdx.x % 32 == 0)
        partial[threadIdx.x / 32] = v;
    __syncthreads();
    if (threadIdx.x < 32) {
        v = threadIdx.x < blockDim.x / 32 ? partial[threadIdx.x] : 0;
        for (int lanes = 16; lanes; lanes >>= 1)
            v += __shfl_xor_sync(0xffffffffu, v, lanes);
        if (threadIdx.x == 0)
            sums[blockIdx.x] = v;
    }
}

extern "C" __global__ void matmul(const float *a, const float *b, float *c, int n) {
    __shared__ float ta[16][16], tb[16][16];
    int row = threadIdx.y, column = threadIdx.x;
    float sum = 0;
    for (int base = 0; base < n; base += 16) {
        ta[row][column] = a[row * n + base + column];
        tb[row][column] = b[(base + row) * 16 + column];
        __syncthreads();
        for (int k = 0; k < 16; k++)
            sum += ta[row][k] * tb[k][column];
        __syncthreads();
    }
    c[row * 16 + column] = sum;
}

// Computes inclusive sums in dynamic shared memory with double buffering.
extern __shared__ u32 buffer[];
extern "C" __global__ void scan(const u32 *x, u32 *y) {
    u32 n = blockDim.x, t = threadIdx.x, in = 0;
    buffer[t] = x[t];
    for (u32 step = 1; step < n; step *= 2) {
        __syncthreads();
        buffer[(1 - in) * n + t] = buffer[in * n + t] + (t >= step ? buffer[in * n + t - step] : 0);
        in = 1 - in;
    }
    y[t] = buffer[in * n + t];
}

extern "C" __global__ void histogram(const unsigned char *x, int *bins, int *largest, int n) {
    int i = INDEX;
    if (i < n) {
        atomicAdd(&bins[x[i]], 1);
        atomicMax(largest, (int)x[i]);
    }
}

// Sorts 16 numbers per thread in a local array that does not fit in registers.
extern "C" __global__ void sort(const int *x, int *y) {
    int mine[16], t = threadIdx.x;
    for (int i = 0; i < 16; i++)
        mine[i] = x[16 * t + i];
    for (int i = 1; i < 16; i++) {
        int v = mine[i], j = i;
        for (; j > 0 && mine[j - 1] > v; j--)
            mine[j] = mine[j - 1];
        mine[j] = v;
    }
    for (int i = 0; i < 16; i++)
        y[16 * t + i] = mine[i];
}

struct shape {
    int dims[4];
    long long strides[4];
    float scale;
    unsigned char flags[3];
};

extern "C" __global__ void strided(const float *x, float *y, shape s, int n) {
    int i = INDEX;
    if (i >= n)
        return;
    long long at = 0;
    int rest = i;
    for (int d = 3; d >= 0; d--) {
        at += (rest % s.dims[d]) * s.strides[d];
        rest /= s.dims[d];
    }
    y[i] = x[at] * s.scale + s.flags[i % 3];
}

__constant__ u64 table[4] = {1, 0x100000001ull, 10, 0xffffffffffffffffull};

static __device__ __noinline__ u64 ackermann(u64 m, u64 n) {
    return m == 0 ? n + 1 : n == 0 ? ackermann(m - 1, 1) : ackermann(m - 1, ackermann(m, n - 1));
}

// A mix of integer operations, selected by a switch.
extern "C" __global__ void integers(const u64 *x, u64 *y, int n) {
    int i = INDEX;
    if (i >= n)
        return;
    u64 a = x[2 * i], b = x[2 * i + 1], r;
    long long sa = (long long)a, sb = (long long)b;
    switch (i % 12) {
    case 0: r = a / (b | 1); break;
    case 1: r = a % (b | 1); break;
    case 2: r = (u64)(sa / (sb | 1)); break;
    case 3: r = (u64)(sa % (sb | 1)); break;
    case 4: r = (u64)(((unsigned __int128)a * b) >> 64); break;
    case 5: r = a * table[i % 4] + b; break;
    case 6: r = (u64)(long long)(signed char)a + (u64)(short)b; break;
    case 7: r = (a << (b & 63)) | (a >> (63 - (b & 63))); break;
    case 8: r = (u32)a / ((u32)b | 1) + ((u64)((u32)a % 1000u) << 32); break;
    case 9: r = (u64)__popc((u32)a) + ((u64)__clz((u32)b | 1) << 32); break;
    case 10: r = ackermann(2, a % 4); break;
    default: r = (u64)((int)a / 7) ^ (u64)((int)b % 13);
    }
    y[i] = r;
}

// A counter-based generator: ten rounds of 32 x 32-bit multiplications.
extern "C" __global__ void philox(u32 key0, u32 key1, u32 *y, int n) {
    int i = INDEX;
    if (i >= n)
        return;
    u32 c0 = i, c1 = 0, c2 = 0, c3 = 0, k0 = key0, k1 = key1;
    for (int round = 0; round < 10; round++) {
        u64 p = (u64)c0 * 0xD2511F53u, q = (u64)c2 * 0xCD9E8D57u;
        u32 n0 = (u32)(q >> 32) ^ c1 ^ k0, n2 = (u32)(p >> 32) ^ c3 ^ k1;
        c1 = (u32)q;
        c3 = (u32)p;
        c0 = n0;
        c2 = n2;
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    y[4 * i] = c0;
    y[4 * i + 1] = c1;
    y[4 * i + 2] = c2;
    y[4 * i + 3] = c3;
}

extern "C" __global__ void doubles(const double *x, double *y, int n) {
    int i = INDEX;
    if (i >= n)
        return;
    double v = x[i];
    y[4 * i] = v * v - 1 / v;
    y[4 * i + 1] = (double)(float)v;
    y[4 * i + 2] = (double)(int)v + (double)(long long)(v * 1e6);
    y[4 * i + 3] = v > 0 ? v : v < -1 ? -v : 0;
}

// Matches lanes of the same parity.
extern "C" __global__ void vote(const int *x, u32 *y) {
    y[threadIdx.x] = __ballot_sync(0xffffffffu, x[threadIdx.x] & 1);
}

// Computes a maximum by compare-and-swap: every thread retries until it has stored or lost.
extern "C" __global__ void maximum(const int *x, int *largest, int n) {
    int i = INDEX;
    if (i >= n)
        return;
    int seen = *largest;
    while (seen < x[i]) {
        int before = atomicCAS(largest, seen, x[i]);
        if (before == seen)
            break;
        seen = before;
    }
}
