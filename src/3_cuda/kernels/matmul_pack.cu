/* Copies the operands of a product for matmul_wgmma.cu: contiguous along k, in lines that begin at
   multiples of 16 bytes. So operands of any strides use tensor maps. Elements past the end of a
   line are not written; no map reads them.

   float32 is rounded to TF32, to nearest, as mma.sync's operands are. PARTS = 2: matrix i becomes
   2 i, the rounded elements, and 2 i + 1, the rounded rests. Elements that are not finite, or of at
   least 2^60, set `special`: a rest of infinity is NaN, and products of parts could overflow where
   the product does not. */

#define LINES 64 /* of a tile */
#define TILE 32  /* of k */
#define TILE_ROWS 8 /* of threads; each moves LINES / TILE_ROWS elements */

#if D == DVT_F32
typedef float dvti_pack_element;

__device__ inline float dvti_pack_round(float v) {
    unsigned bits;
    asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(bits) : "f"(v));
    return __uint_as_float(bits);
}

__device__ inline bool dvti_pack_special(float v) { return !(fabsf(v) < 0x1p60f); }
#else
typedef unsigned short dvti_pack_element;

__device__ inline unsigned short dvti_pack_round(unsigned short v) { return v; }
#endif

/* Returns where matrix `i` of an operand begins. */
__device__ inline int64_t dvti_pack_matrix(const dvti_kpack &p, int side, int64_t i) {
    int64_t at = 0;
    for (int axis = (int)p.ndim - 1; axis >= 0 && i > 0; axis--) {
        const int64_t next = dvti_quotient(i, p.dim[axis]);
        at += (i - next * p.dim[axis]) * p.batch[side][axis];
        i = next;
    }
    return at;
}

/* A job is a tile of 64 lines and 32 of k. It is read along the memory of `from`, and written along
   k. */
extern "C" __global__ void __launch_bounds__(TILE * TILE_ROWS)
    dvti_matmul_pack(const dvti_kpack p) {
    __shared__ dvti_pack_element tile[LINES][TILE + 1];
    const int x = (int)threadIdx.x % TILE, y = (int)threadIdx.x / TILE;
    const int64_t across = dvti_quotient(p.k + TILE - 1, (int64_t)TILE);
    for (int64_t job = blockIdx.x; job < p.jobs[0] + p.jobs[1]; job += gridDim.x) {
        const int side = job >= p.jobs[0];
        const int64_t own = job - side * p.jobs[0], lines = p.lines[side];
        const int64_t band = dvti_quotient(own, across), k = (own - band * across) * TILE;
        const int64_t bands = dvti_quotient(lines + LINES - 1, (int64_t)LINES);
        const int64_t matrix = dvti_quotient(band, bands), line = (band - matrix * bands) * LINES;
        const int line_end = lines - line < LINES ? (int)(lines - line) : LINES,
                  k_end = p.k - k < TILE ? (int)(p.k - k) : TILE;
        const bool along_k = p.k_stride[side] == 1;
        const int64_t line_step = p.line_stride[side], k_step = p.k_stride[side];
        const int64_t step = TILE_ROWS * (along_k ? line_step : k_step);
        const int64_t turn = along_k ? step : TILE * (line_step - k_step) + step;
        const dvti_pack_element *from = (const dvti_pack_element *)p.from[side] +
                                        dvti_pack_matrix(p, side, matrix) +
                                        (line + (along_k ? y : x)) * line_step +
                                        (k + (along_k ? x : y)) * k_step;
#pragma unroll
        for (int i = 0; i < LINES; i += TILE_ROWS) {
            const int to_line = along_k ? y + i : x + i / TILE * TILE;
            const int to_k = along_k ? x : y + i % TILE;
            if (to_line < line_end && to_k < k_end)
                tile[to_line][to_k] = *from;
            from += (i + TILE_ROWS) % TILE ? step : turn;
        }
        __syncthreads();
        dvti_pack_element *to = (dvti_pack_element *)p.to[side] +
                                (matrix * PARTS * lines + line + y) * p.pitch + k + x;
        const int64_t down = TILE_ROWS * p.pitch, rest = lines * p.pitch;
#pragma unroll
        for (int i = y; i < LINES; i += TILE_ROWS, to += down)
            if (i < line_end && x < k_end) {
                const dvti_pack_element v = tile[i][x], high = dvti_pack_round(v);
                *to = high;
#if PARTS == 2
                to[rest] = dvti_pack_round(__fsub_rn(v, high));
                if (dvti_pack_special(v))
                    *p.special = 1;
#else
                (void)rest;
#endif
            }
        __syncthreads();
    }
}
