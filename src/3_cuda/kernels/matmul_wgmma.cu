/* Matrix products by warpgroups, compute capability 9.0 (sm_90a) alone:
   out (batch, n, m) = a (batch, n, k) * b (batch, k, m).

   Variant: D: float16, bfloat16, or float32 as TF32 numbers. ROWS = 128, COLS = 256 or 128.
   A_ALONG_K, B_ALONG_K: the operand is contiguous along k, else along rows of a or columns of b;
   TF32 is along k. MULTIPLY, SUMS: the instruction wgmma and its accumulators, which are float32.
   PARTS: TF32 numbers per element of an operand, 1 or 2. Jobs and rows of results are in
   matmul_tiles.cu.

   A block computes one tile of ROWS x COLS after another, as many blocks as the GPU has
   multiprocessors. Its three warpgroups:

     warps 0-3     rows 0-63 of the tile      products by wgmma, results
     warps 4-7     rows 64-127
     warps 8-11    one thread copies by TMA, up to STAGES stages ahead, also into the next tile

   A stage holds 128 bytes of k of the tile's lines (rows of a, columns of b), in boxes of 64 lines
   and 8 KiB; then the same of the second parts. Two mbarriers belong to it:

     full     the copies have arrived                    TMA  ->  warps 0-7
     empty    the products that read it are complete     warps 0-7, one arrival each  ->  warp 8

   TMA fills with zeros what is outside of the matrices, so extents are free. It permutes chunks of
   16 bytes within 1024 bytes (swizzle of 128 bytes), which wgmma reads without bank conflicts:

     layout     box                          next product      next 64 lines
     along k    [line][8 chunks of k]        32 bytes          8 KiB
     across k   [k][8 chunks of lines]       2048 bytes        8 KiB

   Two parts give about float32's accuracy: x = high + low, where high is x rounded to TF32 and low
   the rounded rest. Of the four products of parts, low * low is less than float32's rounding and
   left out. Tensor cores may truncate sums, so the sums of a stage begin at 0 and are added to
   others in float32, rounded to nearest. (Splitting: Markidis et al., IPDPSW 2018. Promotion:
   Ootomo and Yokota, IJHPCA 2022.)

   Reasons: in published measurements on one H100, mma.sync reaches 60 % of a GEMM library, wgmma
   with tiles of 128x128 and a ring of TMA 70 %, 128x256 with two consuming warpgroups 85 %, and a
   persistent grid 92 %. A multiprocessor has 168 registers for each thread of twelve warps; the
   copying warpgroup gives most of its own to the others. */

#define DEPTH (128 / (int)sizeof(dvti_mm_element))
#define BOX 8192 /* bytes */
#define PART ((ROWS + COLS) / 64 * BOX)
#define STAGE (PARTS * PART)
#define STAGES (192 * 1024 / STAGE)
#define WARPS 8              /* that multiply */
#define ROWS_BYTES (16 * 64 * 4) /* of shared memory for a warp's results */

alignas(1024) extern __shared__ unsigned char dvti_wgmma_shared[];

struct alignas(64) dvti_wgmma_args {
    dvti_kwgmma of;
};
static_assert(sizeof(dvti_wgmma_args) == sizeof(dvti_kwgmma), "the host's padding");

/* The place in the ring, and the parity of its phase. */
struct dvti_wgmma_ring {
    int stage;
    unsigned parity;
    __device__ inline void next() {
        if (++stage == STAGES) {
            stage = 0;
            parity ^= 1;
        }
    }
};

/* Returns the address of the ring's `full`, or `empty`, barrier. */
__device__ inline unsigned dvti_wgmma_barrier(unsigned shared, int stage, bool empty) {
    return shared + STAGES * STAGE + WARPS * ROWS_BYTES + (empty * STAGES + stage) * 8;
}

__device__ inline void dvti_wgmma_wait(unsigned barrier, unsigned parity) {
    unsigned done;
    do
        asm volatile("{\n.reg .pred p;\n"
                     "mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\n"
                     "selp.u32 %0, 1, 0, p;\n}"
                     : "=r"(done)
                     : "r"(barrier), "r"(parity)
                     : "memory");
    while (!done);
}

/* ---- the copying thread ---- */
template <bool ALONG_K>
__device__ inline void dvti_wgmma_box(unsigned to, const void *map, int line, int k, int batch,
                                      unsigned barrier) {
    asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes "
                 "[%0], [%1, {%2, %3, %4}], [%5];" ::"r"(to),
                 "l"(map), "r"(ALONG_K ? k : line), "r"(ALONG_K ? line : k), "r"(batch),
                 "r"(barrier)
                 : "memory");
}

__device__ inline void dvti_wgmma_copy(const dvti_kwgmma &of, unsigned shared) {
    const dvti_kmatmul &p = of.p;
    dvti_wgmma_ring at = {0, 1}; /* as if a phase were complete: all stages are empty */
    for (int64_t job = blockIdx.x; job < p.jobs; job += gridDim.x) {
        const dvti_mm_job tile = dvti_mm_locate(p, job);
        const int a_batch = p.a_batch[0] ? (int)tile.batch : 0,
                  b_batch = p.b_batch[0] ? (int)tile.batch : 0;
        for (int k = (int)tile.k; k < tile.k_end; k += DEPTH, at.next()) {
            const unsigned stage = shared + at.stage * STAGE,
                           full = dvti_wgmma_barrier(shared, at.stage, false);
            dvti_wgmma_wait(dvti_wgmma_barrier(shared, at.stage, true), at.parity);
            asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(full),
                         "r"(STAGE)
                         : "memory");
#pragma unroll
            for (int i = 0; i < PARTS * (ROWS + COLS) / 64; i++) {
                const int part = i / ((ROWS + COLS) / 64), box = i % ((ROWS + COLS) / 64);
                if (box < ROWS / 64)
                    dvti_wgmma_box<A_ALONG_K>(stage + i * BOX, of.a, (int)tile.row + box * 64, k,
                                              a_batch * PARTS + part, full);
                else
                    dvti_wgmma_box<B_ALONG_K>(stage + i * BOX, of.b,
                                              (int)tile.col + box * 64 - ROWS, k,
                                              b_batch * PARTS + part, full);
            }
        }
    }
}

/* ---- the multiplying warps ---- */
/* Returns the descriptor of a matrix in shared memory, in units of 16 bytes. From bit 0 on: the
   address. From bit 16 on: the distance of the next 64 lines, which is read only across k. From bit
   32 on: that of the next 8 lines along k, or of the next 8 of k across it. From bit 62 on: the
   swizzle of 128 bytes. */
__device__ inline uint64_t dvti_wgmma_matrix(unsigned at) {
    return (uint64_t)1 << 62 | (uint64_t)(1024 / 16) << 32 | BOX / 16 << 16 | at / 16;
}

/* Adds the products of one part of a with one of b. `adds` false: the sums begin with them. */
__device__ inline void dvti_wgmma_parts(unsigned a_at, unsigned b_at, bool adds,
                                        float (&sum)[COLS / 2]) {
    const uint64_t a = dvti_wgmma_matrix(a_at), b = dvti_wgmma_matrix(b_at);
#pragma unroll
    for (int step = 0; step < 4; step++)
        asm volatile("{\n.reg .pred p;\n" MULTIPLY "}"
                     : SUMS
                     : "l"(a + step * (A_ALONG_K ? 32 : 2048) / 16),
                       "l"(b + step * (B_ALONG_K ? 32 : 2048) / 16), "r"((int)(adds || step)));
}

/* Adds the products of a stage, the smallest first. */
__device__ inline void dvti_wgmma_stage(unsigned stage, int group, bool adds,
                                        float (&sum)[COLS / 2]) {
    const unsigned a = stage + group * BOX, b = stage + ROWS / 64 * BOX;
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
    if constexpr (PARTS == 2) {
        dvti_wgmma_parts(a + PART, b, adds, sum);
        dvti_wgmma_parts(a, b + PART, true, sum);
    }
    dvti_wgmma_parts(a, b, adds || PARTS == 2, sum);
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}

/* Stores the 16 rows of a warp, 64 columns at a time, through its part of shared memory. In a
   fragment, eight lanes hold 2 of 8 columns of 8 rows. Groups of 8 columns are permuted, so that
   those of 4 rows lie in different banks. */
__device__ inline void dvti_wgmma_put(const dvti_kmatmul &p, const dvti_mm_job &at, int warp,
                                      const float (&sum)[COLS / 2]) {
    const int lane = (int)threadIdx.x % 32;
    float *rows = (float *)(dvti_wgmma_shared + STAGES * STAGE + warp * ROWS_BYTES);
#pragma unroll
    for (int c = 0; c < COLS; c += 64) {
#pragma unroll
        for (int j = 0; j < 8; j++) {
            const float *v = &sum[c / 2 + j * 4];
            float *to = rows + lane / 4 * 64 + (j ^ lane / 4 % 4) * 8 + lane % 4 * 2;
            *(float2 *)to = make_float2(v[0], v[1]);
            *(float2 *)(to + 8 * 64) = make_float2(v[2], v[3]);
        }
        __syncwarp();
#pragma unroll 1
        for (int line = lane / 16; line < 16; line += 2) {
            const int64_t row = at.row + warp * 16 + line, col = at.col + c + lane % 16 * 4;
            if (row < p.n && col < p.m)
                dvti_mm_put_four(p, at.out + row * p.m + col, col,
                                 *(const float4 *)(rows + line * 64 +
                                                   (lane % 16 * 4 ^ line % 4 * 8)));
        }
        __syncwarp();
    }
}

__device__ inline void dvti_wgmma_release(unsigned shared, int stage) {
    if (threadIdx.x % 32 == 0)
        asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(
                         dvti_wgmma_barrier(shared, stage, true))
                     : "memory");
}

/* Computes the sums of a tile. The next stage is multiplied while this one ends. */
__device__ inline void dvti_wgmma_sum(const dvti_mm_job &tile, unsigned shared, int warp,
                                      dvti_wgmma_ring &at, float (&sum)[COLS / 2]) {
    int before = -1; /* the stage whose products may be incomplete */
    for (int64_t k = tile.k; k < tile.k_end; k += DEPTH, at.next()) {
        dvti_wgmma_wait(dvti_wgmma_barrier(shared, at.stage, false), at.parity);
        dvti_wgmma_stage(shared + at.stage * STAGE, warp / 4, before >= 0, sum);
        asm volatile("wgmma.wait_group.sync.aligned 1;" ::: "memory");
        if (before >= 0)
            dvti_wgmma_release(shared, before);
        before = at.stage;
    }
    asm volatile("wgmma.wait_group.sync.aligned 0;" : SUMS::"memory");
    dvti_wgmma_release(shared, before);
}

/* The same, with the sums of each stage added in float32. Meanwhile tensor cores may compute the
   other warpgroup's products. */
__device__ inline void dvti_wgmma_promote(const dvti_mm_job &tile, unsigned shared, int warp,
                                          dvti_wgmma_ring &at, float (&total)[COLS / 2]) {
    float sum[COLS / 2] = {};
#pragma unroll
    for (int i = 0; i < COLS / 2; i++)
        total[i] = 0;
    for (int64_t k = tile.k; k < tile.k_end; k += DEPTH, at.next()) {
        dvti_wgmma_wait(dvti_wgmma_barrier(shared, at.stage, false), at.parity);
        dvti_wgmma_stage(shared + at.stage * STAGE, warp / 4, false, sum);
        asm volatile("wgmma.wait_group.sync.aligned 0;" : SUMS::"memory");
        dvti_wgmma_release(shared, at.stage);
#pragma unroll
        for (int i = 0; i < COLS / 2; i++)
            total[i] = __fadd_rn(total[i], sum[i]);
    }
}

__device__ inline void dvti_wgmma_multiply(const dvti_kmatmul &p, unsigned shared, int warp) {
    dvti_wgmma_ring at = {0, 0};
    float sum[COLS / 2] = {};
    for (int64_t job = blockIdx.x; job < p.jobs; job += gridDim.x) {
        const dvti_mm_job tile = dvti_mm_locate(p, job);
        if constexpr (PARTS == 2)
            dvti_wgmma_promote(tile, shared, warp, at, sum);
        else
            dvti_wgmma_sum(tile, shared, warp, at, sum);
        dvti_wgmma_put(p, tile, warp, sum);
    }
}

extern "C" __global__ void __launch_bounds__(WARPS * 32 + 128, 1)
    dvti_matmul_wgmma(const __grid_constant__ dvti_wgmma_args args) {
    const unsigned shared = (unsigned)__cvta_generic_to_shared(dvti_wgmma_shared);
    const int warp = (int)threadIdx.x / 32;
    if (PARTS == 2 && *args.of.p.special)
        return;
    if (threadIdx.x == 0) {
        for (int i = 0; i < 2 * STAGES; i++)
            asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(
                             dvti_wgmma_barrier(shared, i, false)),
                         "r"(i < STAGES ? 1 : WARPS)
                         : "memory");
        asm volatile("fence.mbarrier_init.release.cluster;\nfence.proxy.async;" ::: "memory");
    }
    __syncthreads();
    if (warp < WARPS) {
        asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
        dvti_wgmma_multiply(args.of.p, shared, warp);
    } else {
        asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
        if (threadIdx.x == WARPS * 32)
            dvti_wgmma_copy(args.of, shared);
    }
}
