/* Sorting of rows, and the first k: kernel sort (kernels/order.cu, and kernels/sort.cu for rows too
   long for one block). */
#include "3_cuda/dvt_cuda.h"

#define DVTI_CUDA_ORDER_PLACES 2048                      /* per block, as in order.cu */
#define DVTI_CUDA_ORDER_FEW (DVTI_CUDA_ORDER_PLACES / 4) /* each round keeps at most a quarter */

DVTI_FN void dvti_cuda_describe_order(uint64_t variant, dvti_text *text) {
    dvti_text_add(text, "#define D %d\n#define INDICES %d\n", (int)(variant & 15),
                  (int)(variant >> 4 & 1));
}

typedef enum dvti_cuda_order_algorithm {
    DVTI_CUDA_ORDER_BLOCK, /* a block sorts some rows */
    DVTI_CUDA_ORDER_ROUNDS,
    DVTI_CUDA_ORDER_SORT
} dvti_cuda_order_algorithm;

/* Contents of launch->plan. */
typedef struct dvti_cuda_order_plan {
    dvti_cuda_order_algorithm algorithm;
    int64_t second; /* ROUNDS: bytes of the workspace before the second buffer */
} dvti_cuda_order_plan;

/* Returns how many of m candidates per row remain after a round. */
static int64_t dvti_cuda_order_kept(int64_t m, int64_t k) {
    int64_t last = (m - 1) % DVTI_CUDA_ORDER_PLACES + 1;
    return (m - 1) / DVTI_CUDA_ORDER_PLACES * k + DVTI_MIN(last, k);
}

static int dvti_cuda_order_bits(dvt_dtype dtype) {
    return dtype == DVT_BOOL ? 1 : 8 * (int)dvt_dtype_size(dtype);
}

DVTI_PLAN_FITS(dvti_cuda_order_plan)

/* Rounds write their candidates (keys, positions) alternately to two workspace buffers. */
DVTI_FN int64_t dvti_cuda_plan_order(const dvti_cuda_gpu *gpu, dvti_launch *launch) {
    dvti_cuda_order_plan *plan = (dvti_cuda_order_plan *)(void *)&launch->plan;
    int64_t rows = launch->in[0].dim[0], n = launch->in[0].dim[1], k = launch->out[0].dim[1], once;
    (void)gpu;
    plan->algorithm = n <= DVTI_CUDA_ORDER_PLACES ? DVTI_CUDA_ORDER_BLOCK
                      : launch->op == DVTI_OP_topk && k <= DVTI_CUDA_ORDER_FEW
                          ? DVTI_CUDA_ORDER_ROUNDS
                          : DVTI_CUDA_ORDER_SORT;
    if (plan->algorithm == DVTI_CUDA_ORDER_BLOCK)
        return 0;
    if (plan->algorithm == DVTI_CUDA_ORDER_SORT)
        return dvti_cuda_sort_bytes(dvti_cuda_view_size(&launch->in[0]),
                                    dvti_cuda_order_bits(launch->in[0].dtype));
    once = dvti_cuda_order_kept(n, k);
    plan->second = rows * once * 16;
    return plan->second + rows * dvti_cuda_order_kept(once, k) * 16;
}

static dvt_status dvti_cuda_order_start(dvti_cuda_gpu *gpu, const dvti_launch *launch,
                                        const dvti_korder *args, const char *entry,
                                        int64_t threads) {
    dvti_cuda_program program;
    program = DVTI_CUDA_PROGRAM(order);
    program.variant = (uint64_t)launch->in[0].dtype | (uint64_t)(launch->op != DVTI_OP_sort) << 4;
    return dvti_cuda_start(gpu, launch, &program, entry, dvti_cuda_grid_for(gpu, threads, 256, 1),
                           args, sizeof *args);
}

/* Sorts again by row, where the row is not a part of the key. */
static dvt_status dvti_cuda_order_by_row(dvti_cuda_gpu *gpu, const dvti_launch *launch,
                                         dvti_korder *args, dvti_cuda_sorting *sorting,
                                         int row_bits) {
    dvt_status status;
    args->keys = sorting->keys;
    args->values = sorting->values;
    args->whole = 0;
    status = dvti_cuda_order_start(gpu, launch, args, "dvti_order_by_row", args->rows * args->n);
    return status == DVT_OK ? dvti_cuda_sort(gpu, launch, sorting, row_bits) : status;
}

static dvt_status dvti_cuda_order_rows(dvti_cuda_gpu *gpu, const dvti_launch *launch,
                                       dvti_korder *args) {
    int64_t total = args->rows * args->n;
    int bits = dvti_cuda_order_bits(launch->in[0].dtype), row_bits = 0;
    dvti_cuda_sorting sorting;
    dvt_status status;
    sorting = dvti_cuda_sort_begin(launch->workspace, total, bits);
    while ((args->rows - 1) >> row_bits > 0)
        row_bits++;
    args->above = row_bits > 0 && bits + row_bits <= (sorting.wide ? 64 : 32);
    args->whole = 1;
    args->wide = sorting.wide;
    args->keys = sorting.keys;
    status = dvti_cuda_order_start(gpu, launch, args, "dvti_order_keys", total);
    if (status == DVT_OK)
        status = dvti_cuda_sort(gpu, launch, &sorting, args->above ? bits + row_bits : bits);
    if (status == DVT_OK && row_bits > 0 && !args->above)
        status = dvti_cuda_order_by_row(gpu, launch, args, &sorting, row_bits);
    args->keys = sorting.keys;
    args->values = sorting.values;
    return status == DVT_OK
               ? dvti_cuda_order_start(gpu, launch, args, "dvti_order_finish", args->rows * args->k)
               : status;
}

/* Runs the rounds. The one that leaves k candidates writes their numbers to the result. */
static dvt_status dvti_cuda_order_rounds(dvti_cuda_gpu *gpu, const dvti_launch *launch,
                                         dvti_korder *args, int64_t second) {
    int64_t round = 0;
    dvt_status status = DVT_OK;
    for (args->m = args->n; status == DVT_OK && round >= 0; args->m = args->kept) {
        args->tiles = (args->m - 1) / DVTI_CUDA_ORDER_PLACES + 1;
        args->kept = dvti_cuda_order_kept(args->m, args->k);
        args->other_keys = (uint64_t *)((char *)launch->workspace + (round % 2 ? second : 0));
        args->other_values = args->tiles == 1
                                 ? (int64_t *)args->out
                                 : (int64_t *)args->other_keys + args->rows * args->kept;
        status = dvti_cuda_order_start(gpu, launch, args, "dvti_order_first",
                                       args->rows * args->tiles * 256);
        args->keys = args->other_keys;
        args->values = args->other_values;
        round = args->tiles == 1 ? -1 : round + 1;
    }
    return status;
}

DVTI_FN dvt_status dvti_cuda_order(dvti_cuda_gpu *gpu, const dvti_launch *launch) {
    const dvti_cuda_order_plan *plan = (const dvti_cuda_order_plan *)(const void *)&launch->plan;
    dvti_korder args;
    dvti_clear(&args, sizeof args);
    args.in = launch->in[0].data;
    args.out = launch->out[0].data;
    args.rows = launch->in[0].dim[0];
    args.n = launch->in[0].dim[1];
    args.k = launch->out[0].dim[1];
    args.descending = launch->i[0];
    if (plan->algorithm == DVTI_CUDA_ORDER_ROUNDS)
        return dvti_cuda_order_rounds(gpu, launch, &args, plan->second);
    if (plan->algorithm == DVTI_CUDA_ORDER_SORT)
        return dvti_cuda_order_rows(gpu, launch, &args);
    args.width = dvti_cuda_power(args.n);
    args.groups = (args.rows - 1) / (DVTI_CUDA_ORDER_PLACES / args.width) + 1;
    return dvti_cuda_order_start(gpu, launch, &args, "dvti_order_block", args.groups * 256);
}

#undef DVTI_CUDA_ORDER_PLACES
#undef DVTI_CUDA_ORDER_FEW
