/* Matrix products on tensor cores, sm_80 and up: out (batch, n, m) = a (batch, n, k) * b (batch, k,
   m).

   Variant: D, the dtype of a, b and out: float16, bfloat16, or float32 whose operands are rounded
   to TF32 (10 bits of mantissa). ROWS, COLS: 128 (LARGE) or 64. A_ALONG_K, B_ALONG_K: the operand
   is contiguous along k, else along rows of a or columns of b. Rows of memory begin at multiples of
   16 bytes; extents are free. The accumulators are float32, as the tensor cores add. Jobs and rows
   of results are in matmul_tiles.cu.

   A block of four warps computes a tile of 128x128 (LARGE) or 64x64 results, a warp a quarter of
   it:

     +---------+---------+
     | warp 0  | warp 1  |    each 64x64 (LARGE) or 32x32, by instructions of 16x8 results
     +---------+---------+    and 32 bytes along k
     | warp 2  | warp 3  |
     +---------+---------+

   Stages are 64 bytes deep along k. Elements outside of the matrices are filled with zeros. 16-bit
   elements arrive by cp.async, in three (LARGE) or four stages. float32 passes through registers,
   where each element is rounded to TF32 once. (Fragments hold each element twice in a block, and
   ptxas rounds by up to four instructions.) One (LARGE) or three slices of k wait in registers, and
   shared memory has two stages. A slice is loaded at least one slice of arithmetic before its use.

   Shared memory is addressed in chunks of 16 bytes. A line is a row of a or a column of b.

     layout     order                  permutation                read by
     along k    [line][4 chunks]       chunk XOR (line / 2) % 4   ldmatrix
     across k   [k][chunks of lines]   chunk XOR k % 8            ldmatrix.trans
     across k   the same, for TF32     chunk XOR 2 (k % 4)        one 32-bit word at a time

   Along k, the 8 lines of one matrix of ldmatrix lie in 8 different chunks of 128 bytes, which are
   all banks. For TF32 there is no transposed form of ldmatrix; the permutation spreads 4 k x 8
   lines over 32 banks.

   Reasons: in published measurements on one GPU, raw mma with ldmatrix reaches 20 % of a GEMM
   library, 16-byte cp.async 75 %, and 64x64 per warp more than 100 %. A warp's 64x64 tile reads 128
   lines for 4096 products; a 32x32 tile reads 64 for 1024. */

#define LARGE (ROWS == 128)
#define LINES ROWS
#define TF32 (D == DVT_F32)
#define STAGES (TF32 ? 2 : LARGE ? 3 : 4)
#define SETS (LARGE ? 1 : 3) /* slices in registers, for TF32 */
#define WARP_LINES (LINES / 2)
#define THREADS 128
#define BYTES ((int)sizeof(dvti_stored<D>::type))
#define CHUNK (16 / BYTES) /* elements */
#define DEPTH (64 / BYTES)
#define STEP (32 / BYTES)           /* along k, of one instruction */
#define SIDE (LINES * 64)           /* bytes of one operand in a stage */
#define ACROSS (LINES * BYTES / 16) /* chunks per k */
#define SHARE (LINES * 4 / THREADS) /* chunks per thread of one operand in a stage */

/* ---- from global to shared memory ---- */
/* The tile's operands, in elements. */
struct dvti_mma_operands {
    int64_t a, b;
};

__device__ inline dvti_mma_operands dvti_mma_batch(const dvti_kmatmul &p, int64_t batch) {
    dvti_mma_operands at = {0, 0};
    for (int axis = (int)p.ndim - 1; axis >= 0; axis--) {
        const int64_t index = batch % p.dim[axis];
        at.a += index * p.a_batch[axis];
        at.b += index * p.b_batch[axis];
        batch /= p.dim[axis];
    }
    return at;
}

/* Returns the offset of a chunk in a stage: of a line and a quarter of the depth, or of a k and a
   group of lines. */
__device__ inline int dvti_mma_along(int line, int chunk) {
    return line * 64 + (chunk ^ line / 2 % 4) * 16;
}

__device__ inline int dvti_mma_across(int k, int chunk) {
    return k * LINES * BYTES + (chunk ^ (BYTES == 2 ? k % 8 : k % 4 * 2)) * 16;
}

#if TF32
/* Loads a chunk, of which `there` elements exist. */
__device__ inline void dvti_mma_load(uint4 &to, const float *from, int there) {
    const unsigned *bits = (const unsigned *)from;
    if (there >= CHUNK)
        to = *(const uint4 *)from;
    else
        to = uint4{there > 0 ? bits[0] : 0, there > 1 ? bits[1] : 0, there > 2 ? bits[2] : 0, 0};
}

__device__ inline unsigned dvti_mma_round(unsigned v) {
    asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(v) : "f"(__uint_as_float(v)));
    return v;
}
#else
/* Copies a chunk, of which `there` elements exist. */
__device__ inline void dvti_mma_copy(unsigned to, const void *from, int there) {
    const int bytes = there <= 0 ? 0 : there < CHUNK ? there * BYTES : 16;
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(bytes)
                 : "memory");
}

__device__ inline void dvti_mma_copy(unsigned to, const void *from) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to), "l"(from) : "memory");
}
#endif

/* This thread's first chunk of every stage, and the distance to the next one: in lines along k,
   else in k. */
template <bool ALONG_K> struct dvti_mma_share {
    static const int OUTER_STEP = THREADS / (ALONG_K ? 4 : ACROSS);
    static __device__ inline int outer() { return (int)threadIdx.x / (ALONG_K ? 4 : ACROSS); }
    static __device__ inline int chunk() { return (int)threadIdx.x % (ALONG_K ? 4 : ACROSS); }
};

template <bool ALONG_K> __device__ inline unsigned dvti_mma_spot(unsigned stage, int i) {
    typedef dvti_mma_share<ALONG_K> share;
    const int outer = share::outer() + i * share::OUTER_STEP;
    return stage + (ALONG_K ? dvti_mma_along(outer, share::chunk())
                            : dvti_mma_across(outer, share::chunk()));
}

/* Moves DEPTH of k of a tile's lines into a stage, or for TF32 into registers. `depth` of k (or
   more) and `lines` lines exist; `whole`: DEPTH and LINES of them. `from` is the thread's first
   element; `any` is a valid address for elements that do not exist. */
template <bool ALONG_K>
__device__ inline void dvti_mma_fetch(unsigned stage, uint4 (&held)[SHARE],
                                      const dvti_mm_element *from, int64_t stride, bool whole,
                                      int lines, int64_t depth, const void *any) {
    typedef dvti_mma_share<ALONG_K> share;
    const int64_t next = share::OUTER_STEP * stride;
    if (whole) {
#pragma unroll
        for (int i = 0; i < SHARE; i++)
#if TF32
            held[i] = *(const uint4 *)(from + i * next);
#else
            dvti_mma_copy(dvti_mma_spot<ALONG_K>(stage, i), from + i * next);
#endif
        return;
    }
    const int left = depth < DEPTH ? (int)depth : DEPTH;
    const int inner = (ALONG_K ? left : lines) - share::chunk() * CHUNK;
#pragma unroll
    for (int i = 0; i < SHARE; i++) {
        const int outer = share::outer() + i * share::OUTER_STEP;
        const int there = outer < (ALONG_K ? lines : left) ? inner : 0;
#if TF32
        dvti_mma_load(held[i], from + i * next, there);
#else
        dvti_mma_copy(dvti_mma_spot<ALONG_K>(stage, i), there > 0 ? from + i * next : any, there);
#endif
    }
}

#if TF32
/* Rounds what dvti_mma_fetch has loaded, and stores it into a stage. */
template <bool ALONG_K>
__device__ inline void dvti_mma_store(unsigned stage, const uint4 (&held)[SHARE]) {
#pragma unroll
    for (int i = 0; i < SHARE; i++)
        asm volatile("st.shared.v4.b32 [%0], {%1, %2, %3, %4};" ::"r"(
                         dvti_mma_spot<ALONG_K>(stage, i)),
                     "r"(dvti_mma_round(held[i].x)), "r"(dvti_mma_round(held[i].y)),
                     "r"(dvti_mma_round(held[i].z)), "r"(dvti_mma_round(held[i].w))
                     : "memory");
}
#endif

/* ---- from shared memory to fragments ---- */
__device__ inline void dvti_mma_ldmatrix(unsigned at, unsigned (&to)[4]) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                 : "r"(at)
                 : "memory");
}

__device__ inline void dvti_mma_ldmatrix_trans(unsigned at, unsigned (&to)[4]) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                 : "r"(at)
                 : "memory");
}

__device__ inline unsigned dvti_mma_word(unsigned at) {
    unsigned v;
    asm volatile("ld.shared.b32 %0, [%1];" : "=r"(v) : "r"(at) : "memory");
    return v;
}

/* Loads 16 lines from first + line, 32 bytes of k from step `step`, as four matrices of 8 lines x
   16 bytes. `first` is the warp's first line. The order of the four matrices, where k 0 and k 1 are
   the first and second 16 bytes:

              a                  b
     to[0]    lines 0-7,  k 0    lines 0-7,  k 0
     to[1]    lines 8-15, k 0    lines 0-7,  k 1
     to[2]    lines 0-7,  k 1    lines 8-15, k 0
     to[3]    lines 8-15, k 1    lines 8-15, k 1 */
template <bool ALONG_K, bool IS_B>
__device__ inline void dvti_mma_fragment(unsigned stage, int first, int line, int step,
                                         unsigned (&to)[4]) {
    const int lane = (int)threadIdx.x % 32, matrix = lane / 8;
    const int next_line = IS_B ? matrix / 2 : matrix % 2, next_k = IS_B ? matrix % 2 : matrix / 2;
    if constexpr (ALONG_K)
        dvti_mma_ldmatrix(
            stage + dvti_mma_along(first + line + lane % 8 + next_line * 8, step * 2 + next_k), to);
    else if constexpr (BYTES == 2)
        dvti_mma_ldmatrix_trans(stage + dvti_mma_across(step * STEP + lane % 8 + next_k * 8,
                                                        (first + line) / 8 + next_line),
                                to);
    else {
        /* This is dvti_mma_across with the lane-dependent terms separated, so that four addresses
           serve all lines of a warp. */
        const int lane_terms = lane / 16 ^ lane % 4 * 2;
        stage += first * 4 + lane / 4 % 4 * 4 + (step * STEP + lane % 4) * LINES * 4;
#pragma unroll
        for (int i = 0; i < 4; i++) {
            const int chunk = line / 4 + (IS_B ? i / 2 : i % 2) * 2;
            to[i] = dvti_mma_word(stage + (IS_B ? i % 2 : i / 2) * 4 * LINES * 4 +
                                  (chunk / 8 * 8 + (chunk % 8 ^ lane_terms)) * 16);
        }
    }
}

#if D == DVT_F32
#define DVTI_MMA "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32"
#elif D == DVT_BF16
#define DVTI_MMA "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32"
#else
#define DVTI_MMA "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"
#endif

__device__ inline void dvti_mma_add(float (&sum)[4], const unsigned (&a)[4], unsigned b0,
                                    unsigned b1) {
    asm volatile(DVTI_MMA " {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

__device__ inline void dvti_mma_stage(unsigned a, unsigned b, int row, int col,
                                      float (&sum)[WARP_LINES / 16][WARP_LINES / 8][4]) {
#pragma unroll
    for (int step = 0; step < 2; step++) {
        unsigned x[WARP_LINES / 16][4], y[WARP_LINES / 16][4];
#pragma unroll
        for (int i = 0; i < WARP_LINES / 16; i++)
            dvti_mma_fragment<A_ALONG_K, false>(a, row, i * 16, step, x[i]);
#pragma unroll
        for (int j = 0; j < WARP_LINES / 16; j++)
            dvti_mma_fragment<B_ALONG_K, true>(b, col, j * 16, step, y[j]);
#pragma unroll
        for (int i = 0; i < WARP_LINES / 16; i++)
#pragma unroll
            for (int j = 0; j < WARP_LINES / 8; j++)
                dvti_mma_add(sum[i][j], x[i], y[j / 2][j % 2 * 2], y[j / 2][j % 2 * 2 + 1]);
    }
}

/* ---- results ---- */
/* Stores the results through shared memory, the upper half of the tile's rows, then the lower, so
   that whole rows are written. In a fragment eight lanes hold 16 columns of 8 rows. The pitch is 8
   words longer than a row, so that the pairs of 4 rows lie in different banks. */
#define PITCH (LINES + 8)

__device__ inline void dvti_mma_put(const dvti_kmatmul &p, const dvti_mm_job &at, float *rows,
                                    int warp,
                                    const float (&sum)[WARP_LINES / 16][WARP_LINES / 8][4]) {
    const int lane = (int)threadIdx.x % 32;
#pragma unroll 1
    for (int half = 0; half < 2; half++) {
        __syncthreads(); /* all threads have read the previous content */
        if (warp / 2 == half) {
            float *mine = rows + lane / 4 * PITCH + warp % 2 * WARP_LINES + lane % 4 * 2;
#pragma unroll
            for (int i = 0; i < WARP_LINES / 16; i++)
#pragma unroll
                for (int j = 0; j < WARP_LINES / 8; j++) {
                    *(float2 *)(mine + i * 16 * PITCH + j * 8) =
                        make_float2(sum[i][j][0], sum[i][j][1]);
                    *(float2 *)(mine + (i * 16 + 8) * PITCH + j * 8) =
                        make_float2(sum[i][j][2], sum[i][j][3]);
                }
        }
        __syncthreads();
#pragma unroll 2
        for (int id = (int)threadIdx.x; id < WARP_LINES * LINES / 4; id += THREADS) {
            const int line = id / (LINES / 4), c = id % (LINES / 4) * 4;
            const int64_t row = at.row + half * WARP_LINES + line, col = at.col + c;
            if (row < p.n && col < p.m)
                dvti_mm_put_four(p, at.out + row * p.m + col, col,
                                  *(const float4 *)(rows + line * PITCH + c));
        }
    }
}

extern "C" __global__ void __launch_bounds__(THREADS, LARGE ? 2 : 3)
    dvti_matmul_mma(const dvti_kmatmul p) {
    constexpr int OPERANDS = STAGES * 2 * SIDE, RESULTS = WARP_LINES * PITCH * 4;
    alignas(128) __shared__ unsigned char tiles[OPERANDS > RESULTS ? OPERANDS : RESULTS];
    const int64_t job = (int64_t)blockIdx.y * gridDim.x + blockIdx.x;
    const int warp = (int)threadIdx.x / 32, row = warp / 2 * WARP_LINES,
              col = warp % 2 * WARP_LINES;
    const unsigned shared = (unsigned)__cvta_generic_to_shared(tiles);
    if (job >= p.jobs)
        return;
    const dvti_mm_job at = dvti_mm_locate(p, job);
    const dvti_mma_operands from = dvti_mma_batch(p, at.batch);
    const int64_t a_stride = A_ALONG_K ? p.a_row : p.a_k, b_stride = B_ALONG_K ? p.b_col : p.b_k;
    const int64_t a_step = A_ALONG_K ? DEPTH : DEPTH * p.a_k,
                  b_step = B_ALONG_K ? DEPTH : DEPTH * p.b_k;
    const int rows = p.n - at.row < LINES ? (int)(p.n - at.row) : LINES;
    const int cols = p.m - at.col < LINES ? (int)(p.m - at.col) : LINES;
    typedef dvti_mma_share<A_ALONG_K> a_share;
    typedef dvti_mma_share<B_ALONG_K> b_share;
    const dvti_mm_element *a = (const dvti_mm_element *)p.a + from.a + at.row * p.a_row +
                                at.k * p.a_k + a_share::outer() * a_stride +
                                a_share::chunk() * CHUNK;
    const dvti_mm_element *b = (const dvti_mm_element *)p.b + from.b + at.col * p.b_col +
                                at.k * p.b_k + b_share::outer() * b_stride +
                                b_share::chunk() * CHUNK;
    int64_t to_fetch = at.k_end - at.k, to_compute = to_fetch; /* along k */
    float sum[WARP_LINES / 16][WARP_LINES / 8][4] = {};
    auto fetch = [&](unsigned stage, uint4(&held)[2][SHARE]) {
        if (to_fetch <= 0)
            return;
        const bool whole = to_fetch >= DEPTH;
        dvti_mma_fetch<A_ALONG_K>(stage, held[0], a, a_stride, whole && rows == LINES, rows,
                                  to_fetch, p.a);
        dvti_mma_fetch<B_ALONG_K>(stage + SIDE, held[1], b, b_stride, whole && cols == LINES, cols,
                                  to_fetch, p.b);
        a += a_step;
        b += b_step;
        to_fetch -= DEPTH;
    };
#if TF32
    unsigned stage = shared;
    uint4 held[SETS][2][SHARE];
#pragma unroll
    for (int set = 0; set < SETS; set++)
        fetch(0, held[set]);
    while (to_compute > 0)
#pragma unroll
        for (int set = 0; set < SETS && to_compute > 0; set++) {
            dvti_mma_store<A_ALONG_K>(stage, held[set][0]);
            dvti_mma_store<B_ALONG_K>(stage + SIDE, held[set][1]);
            fetch(0, held[set]);
            __syncthreads(); /* a thread that is one slice ahead writes the other stage */
            dvti_mma_stage(stage, stage + SIDE, row, col, sum);
            to_compute -= DEPTH;
            stage = shared + (stage == shared ? 2 * SIDE : 0);
        }
#else
    uint4 none[2][SHARE];
    int filled = 0, used = 0; /* stages */
    for (int iteration = 0; to_compute > 0; iteration++) {
        if (iteration >= STAGES - 1) {
            asm volatile("cp.async.wait_group %0;" ::"n"(STAGES - 2) : "memory");
            __syncthreads(); /* all have read the stage to be filled */
        }
        fetch(shared + filled * 2 * SIDE, none);
        filled = filled + 1 == STAGES ? 0 : filled + 1;
        asm volatile("cp.async.commit_group;" ::
                         : "memory"); /* also when empty: the wait counts one group per iteration */
        if (iteration >= STAGES - 1) {
            const unsigned stage = shared + used * 2 * SIDE;
            dvti_mma_stage(stage, stage + SIDE, row, col, sum);
            to_compute -= DEPTH;
            used = used + 1 == STAGES ? 0 : used + 1;
        }
    }
#endif
    dvti_mma_put(p, at, (float *)tiles, warp, sum);
}
