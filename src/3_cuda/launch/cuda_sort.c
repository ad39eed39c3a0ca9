/* Stable sort of keys with values, for families that need it (kernels/sort.cu). */
#include "3_cuda/dvt_cuda.h"

#define DVTI_CUDA_SORT_TILES 1024 /* at most, so that the scan is short */

DVTI_FN void dvti_cuda_describe_sort(uint64_t variant, dvti_text *text) {
    dvti_text_add(text, "#define WIDE %d\n", (int)variant);
}

static int64_t dvti_cuda_sort_tile(int64_t n) {
    return DVTI_MAX((n - 1) / DVTI_CUDA_SORT_TILES / 1024 + 1, 1) * 1024;
}

static bool dvti_cuda_sort_wide(int64_t n, int bits) {
    return bits > 32 || n > INT32_MAX;
}

DVTI_FN int64_t dvti_cuda_sort_bytes(int64_t n, int bits) {
    int64_t word = dvti_cuda_sort_wide(n, bits) ? 8 : 4, bytes;
    return dvti_mul(n, 4 * word, &bytes) ? bytes + DVTI_CUDA_SORT_TILES * 256 * word : INT64_MAX;
}

DVTI_FN dvti_cuda_sorting dvti_cuda_sort_begin(void *workspace, int64_t n, int bits) {
    dvti_cuda_sorting sorting;
    int64_t bytes;
    dvti_clear(&sorting, sizeof sorting);
    sorting.n = n;
    sorting.wide = dvti_cuda_sort_wide(n, bits);
    bytes = n * (sorting.wide ? 8 : 4);
    sorting.counts = workspace;
    sorting.keys = (char *)workspace + DVTI_CUDA_SORT_TILES * 256 * (sorting.wide ? 8 : 4);
    sorting.values = (char *)sorting.keys + bytes;
    sorting.other_keys = (char *)sorting.values + bytes;
    sorting.other_values = (char *)sorting.other_keys + bytes;
    return sorting;
}

static dvt_status dvti_cuda_sort_pass(dvti_cuda_gpu *gpu, const dvti_launch *launch,
                                      const dvti_cuda_sorting *sorting, int shift) {
    static const char *const entry[] = {"dvti_sort_count", "dvti_sort_scan", "dvti_sort_scatter"};
    dvti_cuda_program program;
    dvti_cuda_grid grid;
    dvti_ksort args;
    dvt_status status = DVT_OK;
    int k;
    program = DVTI_CUDA_PROGRAM(sort);
    program.variant = sorting->wide;
    dvti_clear(&args, sizeof args);
    args.keys = sorting->keys;
    args.values = sorting->sorted ? sorting->values : NULL;
    args.other_keys = sorting->other_keys;
    args.other_values = sorting->other_values;
    args.counts = sorting->counts;
    args.n = sorting->n;
    args.tile = dvti_cuda_sort_tile(sorting->n);
    args.tiles = (sorting->n - 1) / args.tile + 1;
    args.shift = shift;
    grid.y = grid.z = 1;
    grid.shared = 0;
    for (k = 0; k < 3 && status == DVT_OK; k++) {
        grid.x = k == 1 ? 1 : args.tiles;
        grid.threads = k == 1 ? 1024 : 256;
        status = dvti_cuda_start(gpu, launch, &program, entry[k], grid, &args, sizeof args);
    }
    return status;
}

DVTI_FN dvt_status dvti_cuda_sort(dvti_cuda_gpu *gpu, const dvti_launch *launch,
                                  dvti_cuda_sorting *sorting, int bits) {
    dvt_status status = DVT_OK;
    int shift;
    for (shift = 0; shift < bits && status == DVT_OK; shift += 8) {
        void *keys = sorting->keys, *values = sorting->values;
        status = dvti_cuda_sort_pass(gpu, launch, sorting, shift);
        sorting->keys = sorting->other_keys;
        sorting->values = sorting->other_values;
        sorting->other_keys = keys;
        sorting->other_values = values;
        sorting->sorted = true;
    }
    return status;
}

#undef DVTI_CUDA_SORT_TILES
