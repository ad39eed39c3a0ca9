/* Convolution on tensor cores (compute capability 8.0 and above): the products that conv_patch.cu
   describes. float16 and bfloat16 use mma.sync.m16n8k16; float32 that may be rounded to TF32 uses
   m16n8k8. The accumulators are float32.

   A block of WARPS_M x WARPS_N warps computes a tile of BM x BN results; a warp keeps BM / WARPS_M
   x BN / WARPS_N of them in registers. Slices of the operands, BK deep, are fetched into registers
   while the previous slices are multiplied from shared memory. There are two buffers for each
   operand and one barrier per slice.

   The tensor cores are so fast that the gather takes most of the time, so it is kept short.
   Elements are fetched in pairs. The offsets of a tap are computed once per slice for all threads
   (`steps`), one slice ahead, and a window's corner once per thread. A position outside of the
   image or the sum gets a corner so far outside that the padding check rejects it.

   Shared memory: each operand is stored in the order in which it is fetched, and ldmatrix
   transposes where needed. It cannot transpose 32-bit elements, which are read one by one.

     operand   FORWARD   DATA     WEIGHT
     left      [m][k]    [k][m]   [m][k]
     right     [k][n]    [k][n]   [n][k]

   Rows are padded, so that the lanes of a warp read from different banks.

   Variant: the variant of conv_patch.cu, BM, BN, BK, WARPS_M, WARPS_N. */

#define THREADS (32 * WARPS_M * WARPS_N)
#define LEFT_BY_K (OP == DATA)
#define RIGHT_BY_K (OP != WEIGHT)
#define LEFT_ROWS (LEFT_BY_K ? BK : BM)
#define TF32 (D == DVT_F32)
#define LEFT_PITCH (LEFT_BY_K ? BM + 8 : BK + (TF32 ? 4 : 8))
#define RIGHT_ROWS (RIGHT_BY_K ? BK : BN)
#define RIGHT_PITCH (RIGHT_BY_K ? BN + 8 : BK + (TF32 ? 4 : 8))
#define LEFT_PAIRS (BM * BK / 2 / THREADS)
#define RIGHT_PAIRS (BN * BK / 2 / THREADS)
#define STEPS (RIGHT_BY_K ? 2 * BK : BN)
#define TILES_M (BM / WARPS_M / 16)
#define TILES_N (BN / WARPS_N / 8)
/* 16 warps per multiprocessor hide each other's gather latency, which leaves 128 registers per
   thread. Slices of 16 fit into those. Slices of 32, 64-bit positions, and 32-bit elements in the
   largest tile do not. */
#define RESIDENT (WIDE || (TF32 && BM * BN > 8192) ? 1 : 512 / THREADS)
/* Twice this value does not overflow, and no tap moves it back inside. */
#define OUTSIDE (-((I)1 << (8 * (int)sizeof(I) - 2)))

/* The offsets that a tap adds to a corner's position, row and column, and the tap's offset in w. */
struct alignas(4 * sizeof(I)) dvti_step {
    I at, row, column, weight;
};

__device__ inline dvti_step dvti_step_of(const dvti_kconv &p, const dvti_work &b, I tap_number,
                                         I end) {
    const dvti_tap tap = dvti_tap_of(b, tap_number);
    const I row = b.rows.kernel_first + tap.t * b.rows.kernel_step;
    const I column = b.columns.kernel_first + tap.u * b.columns.kernel_step;
    const I filter = (b.group * (I)p.og + tap.channel) * (I)p.cg;
    dvti_step step;
    step.row = tap.t * b.rows.step;
    step.column = tap.u * b.columns.step;
    step.at = (tap.channel * b.rows.extent + step.row) * b.columns.extent + step.column;
    step.row = tap_number < end ? step.row : OUTSIDE;
    step.weight = OP == DATA ? (filter * (I)p.window[0] + row) * (I)p.window[1] + column : 0;
    return step;
}

/* Returns a corner whose `at` is the position of tap (0, 0), which may lie outside of the image. */
__device__ inline dvti_corner dvti_start_of(const dvti_kconv &p, const dvti_work &b, I column,
                                            I end) {
    dvti_corner corner = dvti_corner_of(p, b, column, end);
    corner.at += corner.row * b.columns.extent + corner.column;
    corner.row = corner.inside ? corner.row : OUTSIDE;
    return corner;
}

#if TF32
typedef uint64_t P;
#else
typedef unsigned P;
#endif

/* Packs two elements. */
__device__ inline P dvti_pair(E first, E second) {
    return (P)first | (P)second << 8 * (int)sizeof(E);
}

__device__ inline E dvti_patch_at(const dvti_work &b, const void *image, const dvti_corner &corner,
                                  const dvti_step &step) {
    const bool inside = (U)(corner.row + step.row) < (U)b.rows.extent &&
                        (U)(corner.column + step.column) < (U)b.columns.extent;
    return inside ? dvti_element(image, corner.at + step.at) : (E)0;
}

/* ---- fetching: pairs along the contiguous axis of shared memory ---- */
/* Fetches patches in order of k. A thread's pairs belong to two adjacent columns. */
__device__ inline void dvti_fetch_columns(const dvti_kconv &p, const dvti_work &b,
                                          const dvti_corner *corner, const dvti_step *steps,
                                          P *right) {
    const void *image = OP == DATA ? p.y : p.x;
#pragma unroll
    for (int e = 0; e < RIGHT_PAIRS; e++) {
        const dvti_step step = steps[((int)threadIdx.x + e * THREADS) / (BN / 2)];
        right[e] = dvti_pair(dvti_patch_at(b, image, corner[0], step),
                             dvti_patch_at(b, image, corner[1], step));
    }
}

/* Fetches w in order of m, two k per pair: with one access where the position is even and the
   elements need no rounding. */
__device__ inline void dvti_fetch_filters(const dvti_kconv &p, const dvti_work &b, I k, P *left) {
    const I depth = (I)p.cg * (I)b.kernel.divisor;
    const bool even = !TF32 && (depth & 1) == 0 && ((uint64_t)p.w & 3) == 0;
#pragma unroll
    for (int e = 0; e < LEFT_PAIRS; e++) {
        const int slot = (int)threadIdx.x + e * THREADS;
        const I first = k + slot % (BK / 2) * 2, m = b.m0 + slot / (BK / 2);
        const I at = (b.group * (I)p.og + m) * depth + first;
        const bool one = m < b.m && first < b.end, two = m < b.m && first + 1 < b.end;
        if (even && two)
            left[e] = *(const P *)((const E *)p.w + at);
        else
            left[e] = dvti_pair(one ? dvti_element(p.w, at) : (E)0,
                                two ? dvti_element(p.w, at + 1) : (E)0);
    }
}

/* Fetches w in order of k, two m per pair. */
__device__ inline void dvti_fetch_transposed(const dvti_kconv &p, const dvti_work &b,
                                             const dvti_step *steps, I k, P *left) {
    const I pitch = (I)p.window[0] * (I)p.window[1];
#pragma unroll
    for (int e = 0; e < LEFT_PAIRS; e++) {
        const int slot = (int)threadIdx.x + e * THREADS, depth = slot / (BM / 2);
        const I m = b.m0 + slot % (BM / 2) * 2, at = steps[depth].weight + m * pitch;
        const bool one = k + depth < b.end && m < b.m, two = k + depth < b.end && m + 1 < b.m;
        left[e] = dvti_pair(one ? dvti_element(p.w, at) : (E)0,
                            two ? dvti_element(p.w, at + pitch) : (E)0);
    }
}

/* Fetches both operands of WEIGHT. A thread's pairs belong to two adjacent pixels. */
__device__ inline void dvti_fetch_pixels(const dvti_kconv &p, const dvti_work &b,
                                         const dvti_step *steps, I k, P *left, P *right) {
    const I plane = (I)b.grid.divisor;
    dvti_corner corner[2];
    I y[2];
#pragma unroll
    for (int i = 0; i < 2; i++) {
        const I at = k + (int)threadIdx.x % (BK / 2) * 2 + i, sample = dvti_divide(at, b.grid);
        corner[i] = dvti_start_of(p, b, at, b.end);
        y[i] = (sample * (I)p.o + b.group * (I)p.og) * plane + at - sample * plane;
    }
#pragma unroll
    for (int e = 0; e < LEFT_PAIRS; e++) {
        const I m = b.m0 + ((int)threadIdx.x + e * THREADS) / (BK / 2);
        const bool one = corner[0].inside && m < b.m, two = corner[1].inside && m < b.m;
        left[e] = dvti_pair(one ? dvti_element(p.y, y[0] + m * plane) : (E)0,
                            two ? dvti_element(p.y, y[1] + m * plane) : (E)0);
    }
#pragma unroll
    for (int e = 0; e < RIGHT_PAIRS; e++) {
        const dvti_step step = steps[((int)threadIdx.x + e * THREADS) / (BK / 2)];
        right[e] = dvti_pair(dvti_patch_at(b, p.x, corner[0], step),
                             dvti_patch_at(b, p.x, corner[1], step));
    }
}

template <int PAIRS, int WIDTH, int PITCH>
__device__ inline void dvti_put_pairs(E (*slice)[PITCH], const P *pairs) {
#pragma unroll
    for (int e = 0; e < PAIRS; e++) {
        const int slot = (int)threadIdx.x + e * THREADS;
        *(P *)&slice[slot / (WIDTH / 2)][slot % (WIDTH / 2) * 2] = pairs[e];
    }
}

/* ---- multiplying ---- */
#if !TF32
/* Loads four 8 x 8 matrices. Lane 8 i + r gives the address of row r of matrix i. TRANSPOSE
   transposes. */
template <bool TRANSPOSE> __device__ inline void dvti_matrices(const E *row, unsigned (&out)[4]) {
    const unsigned at = (unsigned)__cvta_generic_to_shared(row);
    if constexpr (TRANSPOSE)
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                     : "=r"(out[0]), "=r"(out[1]), "=r"(out[2]), "=r"(out[3])
                     : "r"(at)
                     : "memory");
    else
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                     : "=r"(out[0]), "=r"(out[1]), "=r"(out[2]), "=r"(out[3])
                     : "r"(at)
                     : "memory");
}

__device__ inline void dvti_mma(float (&sum)[4], const unsigned (&a)[4], unsigned b0, unsigned b1) {
#if D == DVT_F16
    asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
        "{%8, %9}, {%0, %1, %2, %3};"
        : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
#else
    asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
        "{%8, %9}, {%0, %1, %2, %3};"
        : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
#endif
}

/* Adds the product of two slices to this warp's accumulators. m, n: the warp's first row and column
   in the tile. */
__device__ inline void dvti_multiply(const E (*left)[LEFT_PITCH], const E (*right)[RIGHT_PITCH],
                                     int m, int n, float (&sums)[TILES_M][TILES_N][4]) {
    const int lane = (int)threadIdx.x % 32, row = lane % 8, low = lane / 8 % 2 * 8,
              high = lane / 16 * 8;
#pragma unroll
    for (int k = 0; k < BK; k += 16) {
        unsigned a[TILES_M][4];
#pragma unroll
        for (int i = 0; i < TILES_M; i++) {
            if constexpr (LEFT_BY_K)
                dvti_matrices<true>(&left[k + high + row][m + i * 16 + low], a[i]);
            else
                dvti_matrices<false>(&left[m + i * 16 + low + row][k + high], a[i]);
        }
#pragma unroll
        for (int j = 0; j < TILES_N; j += 2) {
            unsigned b[4];
            if constexpr (RIGHT_BY_K)
                dvti_matrices<true>(&right[k + low + row][n + j * 8 + high], b);
            else
                dvti_matrices<false>(&right[n + j * 8 + high + row][k + low], b);
#pragma unroll
            for (int i = 0; i < TILES_M; i++) {
                dvti_mma(sums[i][j], a[i], b[0], b[1]);
                dvti_mma(sums[i][j + 1], a[i], b[2], b[3]);
            }
        }
    }
}
#else
__device__ inline void dvti_mma(float (&sum)[4], const unsigned (&a)[4], unsigned b0, unsigned b1) {
    asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
        "{%8, %9}, {%0, %1, %2, %3};"
        : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

__device__ inline void dvti_multiply(const E (*left)[LEFT_PITCH], const E (*right)[RIGHT_PITCH],
                                     int m, int n, float (&sums)[TILES_M][TILES_N][4]) {
    const int lane = (int)threadIdx.x % 32, line = lane / 4, depth = lane % 4;
#pragma unroll
    for (int k = 0; k < BK; k += 8) {
        unsigned a[TILES_M][4];
#pragma unroll
        for (int i = 0; i < 4 * TILES_M; i++) {
            const int row = m + i / 4 * 16 + i % 2 * 8 + line, at = k + i % 4 / 2 * 4 + depth;
            a[i / 4][i % 4] = LEFT_BY_K ? left[at][row] : left[row][at];
        }
#pragma unroll
        for (int j = 0; j < TILES_N; j++) {
            const int column = n + j * 8 + line, at = k + depth;
            const unsigned low = RIGHT_BY_K ? right[at][column] : right[column][at];
            const unsigned high = RIGHT_BY_K ? right[at + 4][column] : right[column][at + 4];
#pragma unroll
            for (int i = 0; i < TILES_M; i++)
                dvti_mma(sums[i][j], a[i], low, high);
        }
    }
}
#endif

extern "C" __global__ void __launch_bounds__(THREADS, RESIDENT) dvti_conv(const dvti_kconv p) {
    alignas(16) __shared__ E left_slices[2][LEFT_ROWS][LEFT_PITCH];
    alignas(16) __shared__ E right_slices[2][RIGHT_ROWS][RIGHT_PITCH];
    __shared__ dvti_step steps[STEPS]; /* by k, of two slices; WEIGHT: by the tile's columns */
    const int thread = (int)threadIdx.x, warp = thread / 32, lane = thread % 32;
    const int m = warp / WARPS_N * (BM / WARPS_M), n = warp % WARPS_N * (BN / WARPS_N);
    const dvti_work b = dvti_work_of(p);
    float sums[TILES_M][TILES_N][4] = {};
    P left[LEFT_PAIRS], right[RIGHT_PAIRS];
    dvti_corner corner[2];
    if (b.n0 >= b.n) /* a phase with fewer pixels than the first; the whole block returns */
        return;
    const auto fetch = [&](I k, int stage) {
        if constexpr (OP == WEIGHT)
            dvti_fetch_pixels(p, b, steps, k, left, right);
        else {
            dvti_fetch_columns(p, b, corner, steps + stage * BK, right);
            if constexpr (OP == DATA)
                dvti_fetch_transposed(p, b, steps + stage * BK, k, left);
            else
                dvti_fetch_filters(p, b, k, left);
        }
    };
    const auto put = [&](int stage) {
        dvti_put_pairs<LEFT_PAIRS, LEFT_BY_K ? BM : BK>(left_slices[stage], left);
        dvti_put_pairs<RIGHT_PAIRS, RIGHT_BY_K ? BN : BK>(right_slices[stage], right);
    };
#pragma unroll
    for (int i = 0; i < 2; i++)
        corner[i] = dvti_start_of(p, b, b.n0 + thread % (BN / 2) * 2 + i, b.n);
    for (int i = thread; i < STEPS; i += THREADS)
        steps[i] = OP == WEIGHT ? dvti_step_of(p, b, b.n0 + i, b.n)
                                : dvti_step_of(p, b, b.begin + i, b.end);
    __syncthreads();
    if (b.begin < b.end) {
        fetch(b.begin, 0);
        put(0);
    }
    __syncthreads();
    int stage = 0;
    for (I k = b.begin; k < b.end; k += BK, stage ^= 1) {
        const bool more = k + BK < b.end;
        if (more)
            fetch(k + BK, stage ^ 1);
        if (OP != WEIGHT && thread < BK)
            steps[stage * BK + thread] = dvti_step_of(p, b, k + 2 * BK + thread, b.end);
        dvti_multiply(left_slices[stage], right_slices[stage], m, n, sums);
        if (more)
            put(stage ^ 1);
        __syncthreads();
    }
#pragma unroll
    for (int j = 0; j < 2 * TILES_N; j++) {
        const I column = b.n0 + n + j / 2 * 8 + lane % 4 * 2 + j % 2;
        if (column >= b.n)
            continue;
        I pitch;
        const I first = dvti_place(p, b, column, pitch);
#pragma unroll
        for (int i = 0; i < 2 * TILES_M; i++) {
            const I row = b.m0 + m + i / 2 * 16 + i % 2 * 8 + lane / 4;
            if (row < b.m)
                dvti_put(p, b.part, first + row * pitch, b.group * b.m + row,
                         sums[i / 2][j / 2][i % 2 * 2 + j % 2]);
        }
    }
}
