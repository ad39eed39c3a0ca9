/* Cumulative sums: kernel scan (kernels/scan.cu). */
#include "3_cuda/dvt_cuda.h"

/* Lines that fill a GPU, so that they are not split; positions per chunk where they are. */
#define DVTI_CUDA_SCAN_ROWS 1024
#define DVTI_CUDA_SCAN_COLUMNS 16384
#define DVTI_CUDA_SCAN_ROW_CHUNK 4096
#define DVTI_CUDA_SCAN_COLUMN_CHUNK 256

DVTI_FN void dvti_cuda_describe_scan(uint64_t variant, dvti_text *text) {
    dvti_text_add(text, "#define D %d\n#define OUT %d\n#define COLUMNS %d\n", (int)(variant & 15),
                  (int)(variant >> 4 & 15), (int)(variant >> 8 & 1));
}

DVTI_PLAN_FITS(dvti_kscan)

DVTI_FN int64_t dvti_cuda_plan_scan(const dvti_cuda_gpu *gpu, dvti_launch *launch) {
    const int64_t *dim = launch->out[0].dim;
    dvti_kscan *args = (dvti_kscan *)(void *)&launch->plan;
    bool columns = dim[2] > 1;
    (void)gpu;
    args->in = launch->in[0].data;
    args->out = launch->out[0].data;
    args->n = dim[1];
    args->b = dim[2];
    args->lines = dim[0] * dim[2];
    args->backwards = launch->i[0];
    args->chunk = columns ? DVTI_CUDA_SCAN_COLUMN_CHUNK : DVTI_CUDA_SCAN_ROW_CHUNK;
    if (args->lines >= (columns ? DVTI_CUDA_SCAN_COLUMNS : DVTI_CUDA_SCAN_ROWS))
        args->chunk = DVTI_MAX(args->n, 1);
    args->chunks = (args->n - 1) / args->chunk + 1;
    return args->chunks > 1 ? args->lines * args->chunks * 8 : 0;
}

DVTI_FN dvt_status dvti_cuda_scan(dvti_cuda_gpu *gpu, const dvti_launch *launch) {
    static const char *const entry[] = {"dvti_scan_totals", "dvti_scan_starts", "dvti_scan_apply"};
    dvti_kscan args = *(const dvti_kscan *)(const void *)&launch->plan;
    int each = args.b > 1 ? 1 : 256, k; /* threads per line */
    dvti_cuda_program program;
    dvt_status status = DVT_OK;
    args.before = launch->workspace;
    program = DVTI_CUDA_PROGRAM(scan);
    program.variant = (uint64_t)launch->in[0].dtype | (uint64_t)launch->out[0].dtype << 4 |
                      (uint64_t)(args.b > 1) << 8;
    for (k = args.chunks > 1 ? 0 : 2; k < 3 && status == DVT_OK; k++) {
        int64_t items = args.lines * (k == 1 ? 1 : args.chunks);
        status = dvti_cuda_start(gpu, launch, &program, entry[k],
                                 dvti_cuda_grid_for(gpu, items * each, 256, 1), &args, sizeof args);
    }
    return status;
}

#undef DVTI_CUDA_SCAN_ROWS
#undef DVTI_CUDA_SCAN_COLUMNS
#undef DVTI_CUDA_SCAN_ROW_CHUNK
#undef DVTI_CUDA_SCAN_COLUMN_CHUNK
