/* Convolution on the CPU: forward, backward data and backward weights, by one of five algorithms
   (dvti_conv_algorithm).

   Each is a matrix product per group with the patches of x. A tap is an element (channel, i, j)
   of the kernel:

     forward           y  (outs x windows) = w (outs x taps) * patches (taps x windows)
     backward weights  dw (outs x taps)    = dy (outs x windows) * patches transposed
     backward data     dx                  = w transposed * dy, added to where each patch came from

   Example: an image of 3 x 4 with a padding of 1, a kernel of 3 x 3, and 3 x 4 windows:

     x               padded input tile        shifted copies, one per kernel column j
                       0 0 0 0 0 0              j = 0     j = 1     j = 2
     a b c d           0 a b c d 0              0 0 0 0   0 0 0 0   0 0 0 0
     e f g h    ->     0 e f g h 0     ->       0 a b c   a b c d   b c d 0
     i j k l           0 i j k l 0              0 e f g   e f g h   f g h 0
                       0 0 0 0 0 0              0 i j k   i j k l   j k l 0
                                                0 0 0 0   0 0 0 0   0 0 0 0

   Through tap (i, j) the 12 windows read the 12 adjacent elements from row i of copy j on.

     weights panel          patches, a row per tap               output tile
     +-----------------+    +------------------------------+     +-------------------------+
   o | w00 w01 .. w22  |  * | 0 0 0 0  0 a b c  0 e f g  00|  =  | o: y itself, or a buffer|
     +-----------------+    | 0 0 0 0  a b c d  e f g h  01|     |    if windows of two    |
     forward: [out][tap]    |  ...                         |     |    images or a          |
     backward data:         | f g h 0  j k l 0  0 0 0 0  22|     |    conversion need one  |
       [tap][out]           +------------------------------+     +-------------------------+

   The algorithms read patches from:

     POINTWISE      x itself: with a kernel of 1 x 1, the image is the patches
     DEPTHWISE      the tile, without a product (cpu_conv_depthwise.c)
     DIRECT         the shifted copies, or im2col panels [tap][column] copied from the tile
     NHWC_WEIGHTS   an NHWC tile (cpu_conv_nhwc.c)
     WINOGRAD       transformed tiles of 6 x 6 (cpu_conv_winograd.c)

   Panels are p->depth taps deep and as wide as a panel of the product's kernel. With a
   stride, the tile groups columns by their remainder modulo the stride. Neighboring windows then
   still read adjacent elements. The kernels get a tile and a table of tap offsets. They know no
   padding, stride or dilation.

   The columns of a task are a block: the windows of some consecutive images, or of some rows of
   one image. The cuts depend only on the shape. Results depend on the cuts only in backward
   weights, which adds the sums of a fixed number of parts. */
#include "3_cpu/cpu_conv.h"

/* ---- the shape ---- */
static void dvti_conv_swap(int64_t *a, int64_t *b) {
    int64_t k = *a;
    *a = *b;
    *b = k;
}

/* Converts backward data with strides of 1 to the convolution of dy with rotated kernels, which
   needs no sums in memory. It pays if dy needs little padding, since padding zeros are multiplied
   too. Measured: 1.4x for 14 x 14 with 3 x 3, 0.55x to 0.94x for an unpadded 5 x 5. */
static void dvti_conv_transpose(dvti_conv *p) {
    int64_t left[2];
    left[0] = (p->kh - 1) * p->dilation[0] - p->padding[0];
    left[1] = (p->kw - 1) * p->dilation[1] - p->padding[1];
    p->transposed = p->op == DVTI_OP_conv2d_data && p->stride[0] == 1 && p->stride[1] == 1 &&
                    left[0] >= 0 && left[1] >= 0 &&
                    (double)p->h * (double)p->w < 1.1 * (double)p->oh * (double)p->ow;
    if (!p->transposed)
        return;
    p->op = DVTI_OP_conv2d;
    p->padding[0] = left[0];
    p->padding[1] = left[1];
    dvti_conv_swap(&p->c, &p->o);
    dvti_conv_swap(&p->h, &p->oh);
    dvti_conv_swap(&p->w, &p->ow);
}

static void dvti_conv_read(dvti_conv *p, const dvti_launch *launch) {
    bool data = launch->op == DVTI_OP_conv2d_data, weight = launch->op == DVTI_OP_conv2d_weight;
    const dvti_view *x = data ? &launch->out[0] : &launch->in[0];
    const dvti_view *w = weight ? &launch->out[0] : &launch->in[1];
    const dvti_view *y = data ? &launch->in[0] : weight ? &launch->in[1] : &launch->out[0];
    int axis;
    memset(p, 0, sizeof *p);
    p->launch = launch;
    p->op = launch->op;
    p->dtype = launch->out[0].dtype;
    p->size = dvt_dtype_size(p->dtype);
    p->element = p->dtype == DVT_F64 ? (int64_t)sizeof(double) : (int64_t)sizeof(float);
    p->n = x->dim[0];
    p->c = x->dim[1];
    p->h = x->dim[2];
    p->w = x->dim[3];
    p->o = w->dim[0];
    p->kh = w->dim[2];
    p->kw = w->dim[3];
    p->oh = y->dim[2];
    p->ow = y->dim[3];
    for (axis = 0; axis < 2; axis++) {
        p->stride[axis] = launch->i[axis];
        p->padding[axis] = launch->i[2 + axis];
        p->dilation[axis] = launch->i[4 + axis];
    }
    p->groups = launch->i[6];
    p->relu = launch->epilogue.activation == DVTI_RELU;
}

/* Returns whether the fast algorithms support the launch. Operands must be floats and not empty.
   The tile of a row of windows (backward data: of an image) must be at most 32 MiB, or not much
   larger than an image. This keeps sizes from overflowing, and memory in proportion. */
static bool dvti_conv_fits(const dvti_conv *p) {
    const bool forward = p->op == DVTI_OP_conv2d;
    const double image = (double)p->c * (double)p->h * (double)p->w;
    double rows, cols;
    if (!dvt_dtype_is_float(p->dtype) || !p->n || !p->c || !p->o || !p->h || !p->w || !p->oh ||
        !p->ow)
        return false;
    rows = (double)(p->kh - 1) * (double)p->dilation[0] + 1;
    rows += p->op == DVTI_OP_conv2d_data ? (double)(p->oh - 1) * (double)p->stride[0] : 0;
    cols = (double)(p->ow - 1 + p->kw) * (double)DVTI_MAX(p->stride[1], p->dilation[1]);
    return rows * cols * (forward ? (double)p->c / (double)p->groups : 1.) <
               DVTI_MAX(8388608., 4 * image) &&
           (forward || (double)p->kh * (double)p->kw <= DVTI_CONV_KERNEL);
}

/* ---- the choice of the algorithm ---- */
/* Returns whether the windows of an image fill vectors of 8, or there are few output channels.
   Otherwise several images share an im2col panel: 1.2x faster for 512 to 2048 channels of 7 x 7. */
static bool dvti_conv_fills_vectors(const dvti_conv *p) {
    return p->og <= 40 || (double)p->pixels >= 0.9 * (double)dvti_conv_up(p->pixels, 8);
}

/* Returns the algorithm for backward weights. The costs are in vectors per 16 windows and tap,
   measured on a Zen 4. DEPTHWISE computes six output channels at a time, with unaligned loads. For
   im2col, copying patches and transposing dy cost as much as 11 output channels. For NHWC, the
   transposed tile costs as much as 4. DEPTHWISE is 2.2x faster than im2col for 1 to 6 channels with
   5 x 5. NHWC is 1.4x faster for 64 to 64 channels with 3 x 3. It needs 40 adjacent elements in a
   kernel row, and 64 windows that fit in L2. */
static dvti_conv_algorithm dvti_conv_weights_algorithm(const dvti_conv *p) {
    const int64_t reach = (p->ow - 1) * p->stride[1] + (p->kw - 1) * p->dilation[1] + 1;
    const double rows = (double)reach * (double)((p->kh - 1) * p->dilation[0] + 1);
    const int64_t side = (p->dilation[1] == 1 ? p->kw : 1) * p->cg;
    const double lanes =
        1.45 * (double)dvti_conv_up(p->ow, 16) / (double)p->ow * (double)dvti_conv_up(p->og, 6);
    const double im2col = (double)dvti_conv_up(p->og, 16) + 11;
    const double nhwc = (double)p->og * (double)dvti_conv_up(side, 8) / (double)side + 4;
    if (p->og == 1 || lanes < im2col)
        return DVTI_CONV_DEPTHWISE;
    return nhwc < im2col && side >= 40 && rows * DVTI_CONV_COLUMNS <= DVTI_CONV_TILE
               ? DVTI_CONV_NHWC_WEIGHTS
               : DVTI_CONV_DIRECT;
}

/* Returns whether SHIFT_ADD pays for backward data. Windows must nearly fill the rows of the tile,
   dy with its gaps must fit in L2, and products need 4 rows. */
static bool dvti_conv_is_shift_add(const dvti_conv *p) {
    const int64_t step = p->tile.row_step * p->tile.pitch;
    return (double)p->ow >= 0.7 * (double)step && p->cg >= 4 &&
           (double)p->og * (double)p->u.direct.dy_row <= DVTI_CONV_TILE / 2;
}

/* Chooses the algorithm, and where DIRECT has its patches. The speedups are on one thread of a Zen
   5, over the algorithm that the shape would use otherwise. Dtypes other than float32 always use
   im2col, unless Winograd is allowed and suitable. */
static void dvti_conv_choose(dvti_conv *p) {
    const bool forward = p->op == DVTI_OP_conv2d;
    p->algorithm = DVTI_CONV_DIRECT;
    if (dvti_conv_winograd_fits(p)) {
        p->algorithm = DVTI_CONV_WINOGRAD;
        return;
    }
    if (p->dtype == DVT_F32) {
        if (p->op == DVTI_OP_conv2d_weight)
            p->algorithm = dvti_conv_weights_algorithm(p);
        else if (forward && p->cg == 1 && p->og == 1) /* a product of one row fills no register */
            p->algorithm = DVTI_CONV_DEPTHWISE;
        else if (forward && p->kernel == 1 && dvti_conv_fills_vectors(p)) /* copies nothing: 1.9x */
            p->algorithm = DVTI_CONV_POINTWISE;
    }
    dvti_conv_tile_shape(p);
    if (p->algorithm != DVTI_CONV_DIRECT)
        return;
    p->u.direct.patches = DVTI_CONV_IM2COL;
    if (p->dtype == DVT_F32 && forward && dvti_conv_fills_vectors(p)) /* LeNet 1.2x to 1.9x */
        p->u.direct.patches = DVTI_CONV_SHIFTED;
    if (p->op != DVTI_OP_conv2d_data)
        return;
    p->u.direct.dy_row = dvti_conv_up((p->oh - 1) * p->tile.row_step * p->tile.pitch + p->ow, 16);
    if (p->dtype == DVT_F32 && dvti_conv_is_shift_add(p)) /* 6 to 16 channels, 3 x 3: 2.1x */
        p->u.direct.patches = DVTI_CONV_SHIFT_ADD;
    else
        p->tile.in_place = false;
}

DVTI_FN bool dvti_conv_plan(dvti_conv *p, const dvti_launch *launch,
                            const dvti_gemm_blocks *blocks) {
    dvti_conv_read(p, launch);
    p->depth = DVTI_MIN(DVTI_CONV_DEPTH, blocks->depth);
    p->tile_most = blocks->l2.bytes / 2 / p->element;
    dvti_conv_transpose(p);
    if (!dvti_conv_fits(p))
        return false;
    p->cg = p->c / p->groups;
    p->og = p->o / p->groups;
    p->kernel = p->kh * p->kw;
    p->taps = p->cg * p->kernel;
    p->pixels = p->oh * p->ow;
    dvti_conv_choose(p);
    if (p->algorithm == DVTI_CONV_WINOGRAD)
        dvti_conv_winograd_plan(p);
    else
        dvti_conv_cut(p);
    return true;
}

/* ---- the kernel ---- */
DVTI_FN bool dvti_cpu_conv2d_supports(dvti_op op, dvt_dtype dtype, dvti_feature feature) {
    return feature == DVTI_CAN_RUN ||
           (feature == DVTI_CAN_EPILOGUE && op == DVTI_OP_conv2d && dtype == DVT_F32);
}

DVTI_PLAN_FITS(dvti_conv)

DVTI_FN int64_t dvti_cpu_conv2d_plan(dvti_launch *launch, int threads) {
    dvti_conv *p = (dvti_conv *)(void *)&launch->plan;
    const dvti_simd *simd = dvti_simd_now();
    dvti_gemm_blocks blocks;
    if (simd)
        blocks = dvti_gemm_blocks_now(simd, launch->out[0].dtype == DVT_F64 ? 8 : 4);
    if (!simd || !dvti_conv_plan(p, launch, &blocks)) {
        p->algorithm = DVTI_CONV_ORACLE;
        return 0;
    }
    p->simd = simd;
    p->gemm =
        p->dtype == DVT_F64 ? dvti_simd_products_of(simd)->f64 : dvti_simd_products_of(simd)->f32;
    p->kernels = dvti_simd_conv_of(simd);
    if (p->algorithm == DVTI_CONV_DIRECT && p->op != DVTI_OP_conv2d_weight)
        p->u.direct.panel_row = p->gemm->width + DVTI_CONV_SLACK;
    p->areas = dvti_task_areas(p->tasks, dvti_conv_work(p), dvti_cpu_threads(threads));
    if (p->algorithm == DVTI_CONV_WINOGRAD)
        dvti_conv_winograd_share(p, p->areas);
    else
        dvti_conv_share(p, p->areas);
    return p->shared + p->area * p->areas;
}

static dvti_task_fn dvti_conv_task(const dvti_conv *p) {
    if (p->algorithm == DVTI_CONV_WINOGRAD)
        return dvti_conv_winograd_task;
    if (p->op == DVTI_OP_conv2d)
        return dvti_conv_forward;
    return p->op == DVTI_OP_conv2d_data ? dvti_conv_data : dvti_conv_weights;
}

static void dvti_conv_execute(dvti_conv *p) {
    char *workspace = (char *)p->launch->workspace;
    dvti_conv_pack(p, workspace);
    dvti_run_tasks(p->tasks, dvti_conv_work(p), workspace + p->shared, p->areas, p->area,
                   dvti_conv_task(p), p);
    if (p->op == DVTI_OP_conv2d_weight)
        dvti_parallel_for(p->o, (double)(p->parts * p->taps),
                          p->algorithm == DVTI_CONV_NHWC_WEIGHTS ? dvti_conv_nhwc_add_parts
                                                                 : dvti_conv_add_parts,
                          p);
}

DVTI_FN void dvti_cpu_conv2d(const dvti_launch *launch) {
    dvti_conv *p = (dvti_conv *)dvti_cpu_plan_at(launch);
    if (p->algorithm == DVTI_CONV_ORACLE) {
        dvti_ref_conv2d(launch);
        dvti_epilogue_whole(launch);
        return;
    }
    p->launch = launch;
    dvti_conv_execute(p);
    if (p->relu && p->algorithm == DVTI_CONV_WINOGRAD)
        dvti_epilogue_whole(launch);
}
