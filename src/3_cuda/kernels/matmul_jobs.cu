/* The jobs of a matrix product: one tile of one matrix in one split of k. Tiles are ordered in
   bands of 8 tile rows, so that concurrent blocks share rows and columns in L2. Outside of them are
   splits of k, and outside of those matrices. */

struct dvti_mm_job {
    int64_t batch, row, col; /* row and column in tiles */
    int64_t k, k_end;
    int64_t out; /* the first element of the matrix, of partial when k is split, else of out */
};

__device__ inline dvti_mm_job dvti_mm_find(const dvti_kmatmul &p, int64_t job) {
    dvti_mm_job at;
    const int64_t tiles = p.row_tiles * p.col_tiles, piece = dvti_quotient(job, tiles),
                  tile = job - piece * tiles;
    const int64_t band = dvti_quotient(tile, 8 * p.col_tiles), rest = tile - band * 8 * p.col_tiles,
                  rows = p.row_tiles - band * 8 < 8 ? p.row_tiles - band * 8 : 8;
    at.batch = dvti_quotient(piece, p.splits);
    at.col = dvti_quotient(rest, rows);
    at.row = band * 8 + rest - at.col * rows;
    const int64_t split = piece - at.batch * p.splits;
    at.k = split * p.chunk;
    at.k_end = at.k + p.chunk < p.k ? at.k + p.chunk : p.k;
    at.out = (split * p.batches + at.batch) * p.n * p.m;
    return at;
}
