/* Convolution and its gradients: kernel conv2d (kernels/conv.cu). Variant: dtype, operation, `how`
   (a tile, directly, or the sum of parts), whether positions have 64 bits. All choices depend on
   shapes alone, not on the GPU, so results have the same bits on every GPU. */
#include "3_cuda/dvt_cuda.h"

/* A block's results and the depth of a slice. `speed`: its throughput relative to the family's
   largest tile. Then the results per thread, or on tensor cores the warps per block: rows and
   columns. */
typedef struct dvti_cuda_conv_tile {
    int rows, columns, depth;
    double speed;
    int down, across;
} dvti_cuda_conv_tile;

typedef enum dvti_cuda_conv_op {
    DVTI_CUDA_CONV_FORWARD,
    DVTI_CUDA_CONV_DATA,
    DVTI_CUDA_CONV_WEIGHT
} dvti_cuda_conv_op;

typedef struct dvti_cuda_conv_plan {
    dvti_kconv args;
    dvti_cuda_conv_op op;
    dvt_dtype dtype;
    int how; /* the number of a tile, or a DVTI_CUDA_CONV_ constant */
    int slice;
    bool wide; /* positions need 64 bits */
    bool mma;
    /* The matrix product: rows x depth times depth x columns, `products` of them (groups and
       phases). The extents are those of the first phase, the largest. */
    int64_t rows, columns, depth, products;
    dvti_cuda_grid grid;
} dvti_cuda_conv_plan;

#define DVTI_CUDA_CONV_TILES 5
static const dvti_cuda_conv_tile dvti_cuda_conv_tiles[DVTI_CUDA_CONV_TILES] = {
    {128, 128, 8, 1.0, 8, 8}, {64, 64, 16, 0.7, 4, 4},  {32, 128, 16, 0.65, 4, 4},
    {16, 256, 16, 0.6, 4, 4}, {32, 32, 32, 0.35, 2, 2},
};

/* Values of `how` that are not the number of a tile. */
enum { DVTI_CUDA_CONV_DIRECT = 14, DVTI_CUDA_CONV_SUM = 15 };

/* Writes the definitions that both families share: dtype, operation, how (a number of `tiles`, or
   more), 64-bit positions. Returns how. */
static int dvti_cuda_conv_describe(uint64_t variant, const dvti_cuda_conv_tile *tiles, int count,
                                   dvti_text *text) {
    int how = (int)(variant >> 8 & 15);
    dvti_text_add(text, "#define FORWARD %d\n#define DATA %d\n#define WEIGHT %d\n",
                  (int)DVTI_CUDA_CONV_FORWARD, (int)DVTI_CUDA_CONV_DATA,
                  (int)DVTI_CUDA_CONV_WEIGHT);
    dvti_text_add(text, "#define D %d\n#define OP %d\n#define WIDE %d\n#define TILED %d\n",
                  (int)(variant & 15), (int)(variant >> 4 & 15), (int)(variant >> 12 & 1),
                  how < count);
    if (how < count)
        dvti_text_add(text, "#define BM %d\n#define BN %d\n#define BK %d\n", tiles[how].rows,
                      tiles[how].columns, tiles[how].depth);
    return how;
}

DVTI_FN void dvti_cuda_describe_conv(uint64_t variant, dvti_text *text) {
    int how = dvti_cuda_conv_describe(variant, dvti_cuda_conv_tiles, DVTI_CUDA_CONV_TILES, text);
    dvti_text_add(text, "#define MMA 0\n#define DIRECT %d\n#define SUM %d\n",
                  how == DVTI_CUDA_CONV_DIRECT, how == DVTI_CUDA_CONV_SUM);
    if (how < DVTI_CUDA_CONV_TILES)
        dvti_text_add(text, "#define TM %d\n#define TN %d\n", dvti_cuda_conv_tiles[how].down,
                      dvti_cuda_conv_tiles[how].across);
    dvti_cuda_add_conv_patch(text);
}

/* ---- tensor cores (kernels/conv_mma.cu) ---- */
#define DVTI_CUDA_CONV_MMA_TILES 3
static const dvti_cuda_conv_tile dvti_cuda_conv_mma_tile[DVTI_CUDA_CONV_MMA_TILES] = {
    {128, 128, 16, 1.0, 2, 4},
    {64, 64, 16, 0.6, 2, 2},
    {32, 128, 16, 0.55, 1, 4},
};

DVTI_FN void dvti_cuda_describe_conv_mma(uint64_t variant, dvti_text *text) {
    const dvti_cuda_conv_tile *tiles = dvti_cuda_conv_mma_tile;
    int how = dvti_cuda_conv_describe(variant, tiles, DVTI_CUDA_CONV_MMA_TILES, text);
    dvti_text_add(text, "#define MMA 1\n#define WARPS_M %d\n#define WARPS_N %d\n", tiles[how].down,
                  tiles[how].across);
    dvti_cuda_add_conv_patch(text);
}

/* Returns the tiles of the tensor cores. Returns NULL, and leaves `count` unchanged, where this GPU
   has none or may not use them. */
static const dvti_cuda_conv_tile *dvti_cuda_conv_mma_tiles(const dvti_cuda_gpu *gpu,
                                                           const dvti_launch *launch, int *count) {
    dvt_dtype dtype = launch->out[0].dtype;
    bool tf32 = dtype == DVT_F32 && (launch->i[7] & 1);
    if (dvti_cuda_physical_of(gpu)->cc < 80 || (dtype != DVT_F16 && dtype != DVT_BF16 && !tf32))
        return NULL;
    *count = DVTI_CUDA_CONV_MMA_TILES;
    return dvti_cuda_conv_mma_tile;
}

#undef DVTI_CUDA_CONV_MMA_TILES

/* ---- extents ---- */
static int64_t dvti_cuda_conv_common(int64_t a, int64_t b) {
    while (b) {
        int64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

static int64_t dvti_cuda_conv_blocks(int64_t extent, int64_t each) {
    return extent > 0 ? (extent - 1) / each + 1 : 0;
}

/* ---- shapes ---- */
static void dvti_cuda_conv_shapes(dvti_cuda_conv_plan *plan, const dvti_launch *launch) {
    bool data = plan->op == DVTI_CUDA_CONV_DATA, weight = plan->op == DVTI_CUDA_CONV_WEIGHT;
    const dvti_view *x = data ? &launch->out[0] : &launch->in[0];
    const dvti_view *w = weight ? &launch->out[0] : &launch->in[1];
    const dvti_view *y = data ? &launch->in[0] : weight ? &launch->in[1] : &launch->out[0];
    dvti_kconv *args = &plan->args;
    /* Then nothing limits the extents of y: their product could overflow, and is not needed. */
    bool empty;
    int axis;
    args->x = data ? NULL : x->data;
    args->w = weight ? NULL : w->data;
    args->y = plan->op == DVTI_CUDA_CONV_FORWARD ? NULL : y->data;
    args->bias = launch->n_in == 3 ? launch->in[2].data : NULL;
    args->relu = launch->epilogue.activation == DVTI_RELU;
    args->out = launch->out[0].data;
    args->size = dvti_cuda_view_size(&launch->out[0]);
    args->n = x->dim[0];
    args->c = x->dim[1];
    args->o = w->dim[0];
    args->cg = w->dim[1];
    args->groups = launch->i[6];
    args->og = args->o / args->groups;
    empty = args->n == 0 || args->o == 0;
    for (axis = 0; axis < 2; axis++) {
        args->image[axis] = x->dim[2 + axis];
        args->window[axis] = w->dim[2 + axis];
        args->pixels[axis] = empty ? 1 : y->dim[2 + axis];
        args->stride[axis] = launch->i[axis];
        args->padding[axis] = launch->i[2 + axis];
        args->dilation[axis] = launch->i[4 + axis];
        args->common[axis] = dvti_cuda_conv_common(args->stride[axis], args->dilation[axis]);
        args->phases[axis] = data ? DVTI_MIN(args->stride[axis], args->image[axis]) : 1;
    }
    args->kernel = dvti_cuda_divisor(args->window[0] * args->window[1]);
    args->kernel_width = dvti_cuda_divisor(args->window[1]);
    args->grid = dvti_cuda_divisor(data ? args->image[0] * args->image[1]
                                        : args->pixels[0] * args->pixels[1]);
    args->grid_width = dvti_cuda_divisor(data ? args->image[1] : args->pixels[1]);
    args->out_channels = dvti_cuda_divisor(launch->out[0].dim[1]);
    args->out_height = dvti_cuda_divisor(launch->out[0].dim[2]);
    args->out_width = dvti_cuda_divisor(launch->out[0].dim[3]);
}

/* Returns false when all sums of positions in a kernel are below 2^31. */
static bool dvti_cuda_conv_is_wide(const dvti_launch *launch) {
    const int64_t most = (int64_t)1 << 29;
    int i;
    for (i = 0; i < 6; i++)
        if (launch->i[i] >= most)
            return true;
    for (i = 0; i < launch->n_in; i++)
        if (dvti_cuda_view_size(&launch->in[i]) >= most)
            return true;
    return dvti_cuda_view_size(&launch->out[0]) >= most;
}

static void dvti_cuda_conv_product(dvti_cuda_conv_plan *plan) {
    const dvti_kconv *args = &plan->args;
    int64_t taps = args->window[0] * args->window[1], pixels = args->pixels[0] * args->pixels[1];
    int axis;
    plan->products = args->groups * args->phases[0] * args->phases[1];
    plan->rows = plan->op == DVTI_CUDA_CONV_DATA ? args->cg : args->og;
    plan->columns = plan->op == DVTI_CUDA_CONV_WEIGHT ? args->cg * taps : args->n * pixels;
    plan->depth = plan->op == DVTI_CUDA_CONV_WEIGHT ? args->n * pixels : args->cg * taps;
    if (plan->op != DVTI_CUDA_CONV_DATA)
        return;
    plan->columns = args->n;
    plan->depth = args->og;
    for (axis = 0; axis < 2; axis++) {
        plan->columns *= dvti_cuda_conv_blocks(args->image[axis], args->phases[axis]);
        plan->depth *=
            dvti_cuda_conv_blocks(args->window[axis], args->stride[axis] / args->common[axis]);
    }
}

/* ---- choices ---- */
/* The number of blocks that a launch aims at: two per multiprocessor of a large GPU. */
#define DVTI_CUDA_CONV_BLOCKS 264
/* The smallest useful depth of a part. */
#define DVTI_CUDA_CONV_PART 256
/* The accuracy of the costs of tiles. */
#define DVTI_CUDA_CONV_ABOUT 1.1

static int64_t dvti_cuda_conv_parts(int64_t blocks, int64_t depth) {
    return DVTI_MAX(
        DVTI_MIN(DVTI_CUDA_CONV_BLOCKS / DVTI_MAX(blocks, 1), depth / DVTI_CUDA_CONV_PART), 1);
}

/* Returns whether a thread's registers and a block's shared memory suffice for the tile. With
   float64 a thread has registers for 4 x 4 results at most, and slices in shared memory must be
   square. In WEIGHT a column is a tap, and a thread keeps all of its taps: too many in the widest
   tile. */
static bool dvti_cuda_conv_fits(const dvti_cuda_conv_plan *plan, const dvti_cuda_conv_tile *tile) {
    if (plan->dtype == DVT_F64 && (tile->rows != tile->columns || tile->rows > 64))
        return false;
    return plan->op != DVTI_CUDA_CONV_WEIGHT || tile->columns <= 128;
}

typedef struct dvti_cuda_conv_tiling {
    int64_t rows, columns, parts; /* of tiles; of the depth */
    double computed;              /* results, with those outside */
    double cost;
} dvti_cuda_conv_tiling;

/* Tiles that overhang waste rows and columns, small tiles have less throughput, and few tiles leave
   multiprocessors idle. */
static dvti_cuda_conv_tiling dvti_cuda_conv_tile_by(const dvti_cuda_conv_plan *plan,
                                                    const dvti_cuda_conv_tile *tile) {
    dvti_cuda_conv_tiling t;
    double blocks;
    t.rows = dvti_cuda_conv_blocks(plan->rows, tile->rows);
    t.columns = dvti_cuda_conv_blocks(plan->columns, tile->columns);
    blocks = (double)t.rows * (double)t.columns * (double)plan->products;
    t.parts =
        blocks < DVTI_CUDA_CONV_BLOCKS ? dvti_cuda_conv_parts((int64_t)blocks, plan->depth) : 1;
    t.computed = blocks * tile->rows * tile->columns;
    t.cost = t.computed / tile->speed / DVTI_MIN(blocks * (double)t.parts, DVTI_CUDA_CONV_BLOCKS);
    return t;
}

/* Chooses the tile that computes the fewest results of those with about the lowest cost: 16 filters
   take 16 x 256 rather than half of 32 x 128. Also, fewer tiles mean fewer programs to compile. */
static void dvti_cuda_conv_choose_tile(dvti_cuda_conv_plan *plan, const dvti_cuda_conv_tile *tiles,
                                       int count) {
    dvti_cuda_conv_tiling t[DVTI_CUDA_CONV_TILES];
    double least = 0, computed = 0;
    int k;
    for (k = 0; k < count; k++) {
        t[k] = dvti_cuda_conv_tile_by(plan, &tiles[k]);
        if (!plan->mma && !dvti_cuda_conv_fits(plan, &tiles[k]))
            t[k].cost = 0;
        else if (least == 0 || t[k].cost < least)
            least = t[k].cost;
    }
    for (k = 0; k < count; k++) {
        if (t[k].cost == 0 || t[k].cost > DVTI_CUDA_CONV_ABOUT * least)
            continue;
        if (computed > 0 && (t[k].computed > computed ||
                             (t[k].computed == computed && t[k].cost >= t[plan->how].cost)))
            continue;
        computed = t[k].computed;
        plan->how = k;
    }
    plan->slice = tiles[plan->how].depth;
    plan->args.row_tiles = t[plan->how].rows;
    plan->args.column_tiles = t[plan->how].columns;
    plan->args.parts = t[plan->how].parts;
}

/* Rounds the depth of a part up to full slices. */
static void dvti_cuda_conv_cut(dvti_cuda_conv_plan *plan, int64_t slice) {
    dvti_kconv *args = &plan->args;
    args->depth = dvti_cuda_conv_blocks(dvti_cuda_conv_blocks(plan->depth, args->parts), slice);
    args->depth = DVTI_MAX(args->depth, 1) * slice;
    args->parts = DVTI_MAX(dvti_cuda_conv_blocks(plan->depth, args->depth), 1);
}

#define DVTI_CUDA_CONV_TAPS 9 /* TAPS of the kernel */

/* Returns whether direct sums are faster: one or two rows with enough results for one thread each,
   or few weights. */
static bool dvti_cuda_conv_is_direct(const dvti_cuda_conv_plan *plan) {
    if (plan->op == DVTI_CUDA_CONV_WEIGHT)
        return plan->rows * plan->columns <= 64;
    return plan->rows <= 2 && (plan->args.size >= 16384 || plan->depth <= 512);
}

static void dvti_cuda_conv_plan_direct(const dvti_cuda_gpu *gpu, dvti_cuda_conv_plan *plan) {
    dvti_kconv *args = &plan->args;
    plan->how = DVTI_CUDA_CONV_DIRECT;
    if (plan->op != DVTI_CUDA_CONV_WEIGHT) {
        plan->grid = dvti_cuda_grid_for(gpu, args->size, plan->grid.threads, 1);
        return;
    }
    plan->grid.x =
        args->o * args->cg * dvti_cuda_conv_blocks(args->kernel.divisor, DVTI_CUDA_CONV_TAPS);
    args->parts = dvti_cuda_conv_parts(plan->grid.x, plan->depth / 8);
    dvti_cuda_conv_cut(plan, plan->grid.threads);
    plan->grid.x *= args->parts;
}

static void dvti_cuda_conv_plan_of(const dvti_cuda_gpu *gpu, const dvti_launch *launch,
                                   dvti_cuda_conv_plan *plan) {
    dvti_kconv *args = &plan->args;
    const dvti_cuda_conv_tile *tiles;
    int count = DVTI_CUDA_CONV_TILES;
    dvti_clear(plan, sizeof *plan);
    plan->op = launch->op == DVTI_OP_conv2d_data     ? DVTI_CUDA_CONV_DATA
               : launch->op == DVTI_OP_conv2d_weight ? DVTI_CUDA_CONV_WEIGHT
                                                     : DVTI_CUDA_CONV_FORWARD;
    plan->dtype = launch->out[0].dtype;
    plan->wide = dvti_cuda_conv_is_wide(launch);
    dvti_cuda_conv_shapes(plan, launch);
    dvti_cuda_conv_product(plan);
    args->parts = 1;
    plan->grid.y = plan->grid.z = 1;
    plan->grid.threads = 256;
    if (dvti_cuda_conv_is_direct(plan)) {
        dvti_cuda_conv_plan_direct(gpu, plan);
        return;
    }
    tiles = dvti_cuda_conv_mma_tiles(gpu, launch, &count);
    plan->mma = tiles != NULL;
    dvti_cuda_conv_choose_tile(plan, tiles ? tiles : dvti_cuda_conv_tiles, count);
    if (tiles)
        plan->grid.threads = 32 * tiles[plan->how].down * tiles[plan->how].across;
    dvti_cuda_conv_cut(plan, plan->slice);
    plan->grid.x = args->row_tiles * args->column_tiles * args->parts * plan->products;
}

#undef DVTI_CUDA_CONV_BLOCKS
#undef DVTI_CUDA_CONV_PART
#undef DVTI_CUDA_CONV_ABOUT
#undef DVTI_CUDA_CONV_TAPS

/* ---- launches ---- */
DVTI_PLAN_FITS(dvti_cuda_conv_plan)

/* Returns the dtype of sums. */
static dvt_dtype dvti_cuda_conv_sums(const dvti_cuda_conv_plan *plan) {
    return plan->dtype == DVT_F64 ? DVT_F64 : DVT_F32;
}

DVTI_FN int64_t dvti_cuda_plan_conv(const dvti_cuda_gpu *gpu, dvti_launch *launch) {
    dvti_cuda_conv_plan *plan = (dvti_cuda_conv_plan *)(void *)&launch->plan;
    dvti_cuda_conv_plan_of(gpu, launch, plan);
    if (plan->args.parts == 1)
        return 0;
    if (plan->op == DVTI_CUDA_CONV_WEIGHT)
        return dvti_cuda_plan_part_sums(gpu, launch, dvti_cuda_conv_sums(plan), plan->args.parts);
    return plan->args.parts * plan->args.size * dvt_dtype_size(dvti_cuda_conv_sums(plan));
}

static dvti_cuda_program dvti_cuda_conv_program(const dvti_cuda_conv_plan *plan) {
    dvti_cuda_program program;
    program = plan->mma ? DVTI_CUDA_PROGRAM(conv_mma) : DVTI_CUDA_PROGRAM(conv);
    program.variant = (uint64_t)plan->dtype | (uint64_t)plan->op << 4 | (uint64_t)plan->how << 8 |
                      (uint64_t)plan->wide << 12;
    return program;
}

DVTI_FN dvt_status dvti_cuda_conv(dvti_cuda_gpu *gpu, const dvti_launch *launch) {
    const dvti_cuda_conv_plan *planned = (const dvti_cuda_conv_plan *)(const void *)&launch->plan;
    dvti_cuda_program program = dvti_cuda_conv_program(planned);
    dvti_cuda_conv_plan plan;
    dvt_status status;
    if (planned->args.parts == 1)
        return dvti_cuda_start(gpu, launch, &program, "dvti_conv", planned->grid, &planned->args,
                               sizeof planned->args);
    plan = *planned;
    plan.args.partial = launch->workspace;
    status = dvti_cuda_start(gpu, launch, &program, "dvti_conv", plan.grid, &plan.args,
                             sizeof plan.args);
    if (status != DVT_OK)
        return status;
    /* A gradient of weights has few results and up to 264 parts: too few threads for SUM. Training
       has the program already, because gradients of biases are such sums. */
    if (plan.op == DVTI_CUDA_CONV_WEIGHT)
        return dvti_cuda_part_sums(gpu, launch, dvti_cuda_conv_sums(&plan), plan.args.parts);
    /* Both others share one program of SUM, with 64-bit positions. The sum is limited by memory, so
       they cost no time. */
    plan.mma = false;
    plan.how = DVTI_CUDA_CONV_SUM;
    plan.op = DVTI_CUDA_CONV_FORWARD;
    plan.wide = true;
    program = dvti_cuda_conv_program(&plan);
    return dvti_cuda_start(gpu, launch, &program, "dvti_conv",
                           dvti_cuda_grid_for(gpu, plan.args.size, 256, 1), &plan.args,
                           sizeof plan.args);
}

#undef DVTI_CUDA_CONV_TILES
