/* Stable sort of keys with values, for families that need it (kernels/sort.cu). */
#include "3_cuda/dvt_cuda.h"

#define DVTI_CUDA_SORT_TILES 1024 /* at most, so that the scan is short */

DVTI_FN void dvti_cuda_describe_sort(uint64_t variant, dvti_text *text) {
    (void)variant;
    (void)text;
}

static int64_t dvti_cuda_sort_tile(int64_t n) {
    return DVTI_MAX((n - 1) / DVTI_CUDA_SORT_TILES / 1024 + 1, 1) * 1024;
}

DVTI_FN int64_t dvti_cuda_sort_bytes(int64_t n) {
    int64_t bytes;
    return dvti_mul(n, 32, &bytes) ? bytes + DVTI_CUDA_SORT_TILES * 256 * 8 : INT64_MAX;
}

DVTI_FN dvt_status dvti_cuda_sort(dvti_cuda_gpu *gpu, const dvti_launch *launch, void *workspace,
                                  int64_t n, int bits) {
    static const char *const entry[] = {"dvti_sort_count", "dvti_sort_scan", "dvti_sort_scatter"};
    dvti_cuda_program program;
    dvti_cuda_grid grid;
    dvti_ksort args;
    uint64_t *keys = (uint64_t *)workspace;
    dvt_status status = DVT_OK;
    /* An even number of passes, so that the result ends in the first buffer. */
    int pass, passes = 2 * ((bits + 15) / 16), k;
    program = DVTI_CUDA_PROGRAM(sort);
    memset(&args, 0, sizeof args);
    args.n = n;
    args.tile = dvti_cuda_sort_tile(n);
    args.tiles = (n - 1) / args.tile + 1;
    args.counts = (int64_t *)(keys + 4 * n);
    grid.y = grid.z = 1;
    grid.shared = 0;
    for (pass = 0; pass < passes; pass++) {
        args.shift = 8 * pass;
        args.keys = pass % 2 ? keys + 2 * n : keys;
        args.values = (const int64_t *)(args.keys + n);
        args.other_keys = pass % 2 ? keys : keys + 2 * n;
        args.other_values = (int64_t *)(args.other_keys + n);
        for (k = 0; k < 3 && status == DVT_OK; k++) {
            grid.x = k == 1 ? 1 : args.tiles;
            grid.threads = k == 1 ? 1024 : 256;
            status = dvti_cuda_start(gpu, launch, program, entry[k], grid, &args, sizeof args);
        }
    }
    return status;
}

#undef DVTI_CUDA_SORT_TILES
