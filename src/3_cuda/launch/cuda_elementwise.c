/* Elementwise operations (kernels/elementwise.cu): the order of axes, the groups of elements, the
   variant.

   Variant, from the lowest bit: 8 op, 2 class, 4 x 4 dtypes (result, operands), 3 log2 of N, 3 log2
   of U, 1 wide, 1 tile, 3 operands read through shared memory (ACROSS), 1 flat. */
#include "3_cuda/dvt_cuda.h"

#define DVTI_EW_ANY 15 /* as in kernels/elementwise.cu, like the next line */
#define DVTI_EW_TILE 32

DVTI_FN void dvti_cuda_describe_elementwise(uint64_t variant, dvti_text *text) {
    static const char *const type[] = {"float", "double", "int64_t"};
    dvti_op op = (dvti_op)(variant & 255);
    int compute = (int)(variant >> 8 & 3), k;
    const char *files = NULL,
               *own = compute == DVTI_F32 ? dvti_cuda_function_text(op, &files) : NULL;
    dvti_text_add(text, "#define T %s\n", type[compute]);
    dvti_text_add(text, "#define IS_INT %d\n", compute == DVTI_I64);
    dvti_text_add(text, "#define F(name) %s\n", compute == DVTI_F32 ? "name##f" : "name");
    dvti_text_add(text, "#define C(value) ((T)(value))\n");
    dvti_text_add(text, "#define DVTI_LARGEST %s\n",
                  compute == DVTI_F32 ? "3.402823466e+38f" : "1.7976931348623157e+308");
    dvti_text_add(text, "#define N_IN %d\n", dvti_op_row_of(op)->operands);
    for (k = 0; k < 4; k++)
        dvti_text_add(text, "#define D%d %d\n", k, (int)(variant >> (10 + 4 * k) & 15));
    dvti_text_add(text, "#define N %d\n", 1 << (variant >> 26 & 7));
    dvti_text_add(text, "#define U %d\n", 1 << (variant >> 29 & 7));
    dvti_text_add(text, "#define WIDE %d\n", (int)(variant >> 32 & 1));
    dvti_text_add(text, "#define TILE %d\n", (int)(variant >> 33 & 1));
    dvti_text_add(text, "#define ACROSS %d\n", (int)(variant >> 34 & 7));
    dvti_text_add(text, "#define FLAT %d\n", (int)(variant >> 37 & 1));
    dvti_text_add(text, "#define CONDITION %d\n", op == DVTI_OP_where);
    dvti_text_add(text, "#define COPIES %d\n", op == DVTI_OP_copy);
    dvti_text_add(text, "#define DOUBLES %d\n",
                  compute == DVTI_F64 || (own && (op == DVTI_OP_pow || op == DVTI_OP_hypot)));
    dvti_text_add(text, "#define TEXT %s\n",
                  own ? own : dvti_cuda_op_text(op, compute == DVTI_I64));
    dvti_cuda_add_row_functions(text);
    if (own)
        dvti_cuda_add_functions(text, files);
}

/* ---- geometry: index 0 is the result, 1 to 3 are the operands ---- */
typedef struct dvti_cuda_ew {
    dvti_kelementwise args; /* strides are those of elements until dvti_cuda_ew_positions */
    int count, ndim;
    int64_t dim[DVT_MAX_DIMS];
    int64_t group; /* elements per position; 0: positions are tiles */
    int across;    /* tiles: bit k - 1 is set when operand k goes through shared memory */
    bool wide;
} dvti_cuda_ew;

static void dvti_cuda_ew_swap(dvti_cuda_ew *ew, int i, int j) {
    int64_t keep = ew->dim[i];
    int k;
    ew->dim[i] = ew->dim[j];
    ew->dim[j] = keep;
    for (k = 0; k < ew->count; k++) {
        keep = ew->args.stride[k][i];
        ew->args.stride[k][i] = ew->args.stride[k][j];
        ew->args.stride[k][j] = keep;
    }
}

/* Returns whether axis i belongs outside of axis j. The result's strides decide, then the
   operands'. */
static bool dvti_cuda_ew_outer(const dvti_cuda_ew *ew, int i, int j) {
    int k;
    for (k = 0; k < ew->count; k++) {
        int64_t a = dvti_cuda_distance(ew->args.stride[k][i]),
                b = dvti_cuda_distance(ew->args.stride[k][j]);
        if (a != b)
            return a > b;
    }
    return true;
}

/* Adds axis number `axis` of these strides as the last one. Merges it with the one before if they
   are contiguous in every array. */
static void dvti_cuda_ew_add_axis(dvti_cuda_ew *ew, int64_t dim, const int64_t *const *stride,
                                  int axis) {
    int last = ew->ndim - 1, k;
    bool merge = last >= 0;
    for (k = 0; k < ew->count && merge; k++)
        merge = ew->args.stride[k][last] == stride[k][axis] * dim;
    if (!merge)
        last = ew->ndim++;
    ew->dim[last] = merge ? ew->dim[last] * dim : dim;
    for (k = 0; k < ew->count; k++)
        ew->args.stride[k][last] = stride[k][axis];
}

/* Sorts the axes by the result's memory order, because the order of positions is free. */
static void dvti_cuda_ew_order(dvti_cuda_ew *ew) {
    const int64_t *stride[4];
    int n = ew->ndim, i, j, k;
    bool sorted = true;
    for (i = 1; i < n; i++)
        for (j = i; j > 0 && !dvti_cuda_ew_outer(ew, j - 1, j); j--) {
            dvti_cuda_ew_swap(ew, j - 1, j);
            sorted = false;
        }
    if (sorted)
        return;
    for (k = 0; k < 4; k++)
        stride[k] = ew->args.stride[k];
    ew->ndim = 0; /* axes that are neighbors now may merge */
    for (i = 0; i < n; i++)
        dvti_cuda_ew_add_axis(ew, ew->dim[i], stride, i);
}

/* A scalar takes the dtype of the other value; the first operand of `where` is its condition. */
static void dvti_cuda_ew_arrays(dvti_cuda_ew *ew, const dvti_launch *launch,
                                const int64_t **stride) {
    static const int64_t repeats[DVT_MAX_DIMS] = {0, 0, 0, 0, 0, 0, 0, 0};
    const int scalar = (int)launch->i[0];
    dvti_kelementwise *args = &ew->args;
    int k;
    for (k = 0; k < ew->count; k++) {
        const dvti_view *view = k ? &launch->in[k - 1] : &launch->out[0];
        if (k && k == scalar) { /* a parameter of any dtype */
            const int other = launch->op == DVTI_OP_where ? 4 - k : k == 1 ? 1 : 0;
            args->dtype[k] = (int)launch->in[other].dtype;
            stride[k] = repeats;
        } else {
            args->dtype[k] = (int)view->dtype;
            args->data[k] = view->data;
            stride[k] = view->stride;
        }
        args->bytes[k] = (int)dvt_dtype_size((dvt_dtype)args->dtype[k]);
    }
}

static void dvti_cuda_ew_begin(dvti_cuda_ew *ew, const dvti_launch *launch) {
    static const int64_t one = 0; /* the stride of the axis of a single element */
    const dvti_view *out = &launch->out[0];
    const int64_t *stride[4];
    int k, axis;
    dvti_clear(&ew->args, sizeof ew->args);
    ew->count = 1 + launch->n_in;
    ew->ndim = ew->across = 0;
    ew->group = 1;
    dvti_cuda_ew_arrays(ew, launch, stride);
    for (axis = 0; axis < out->ndim; axis++)
        if (out->dim[axis] != 1)
            dvti_cuda_ew_add_axis(ew, out->dim[axis], stride, axis);
    if (ew->ndim == 0) {
        for (k = 0; k < 4; k++)
            stride[k] = &one;
        dvti_cuda_ew_add_axis(ew, 1, stride, 0);
    }
    dvti_cuda_ew_order(ew);
    for (k = 1; k < ew->count; k++) {
        ew->args.kind[k] = k == launch->i[0] ? DVTI_EW_SCALAR : DVTI_EW_SINGLE;
        for (axis = 0; axis < ew->ndim; axis++)
            if (ew->args.stride[k][axis] != 0)
                ew->args.kind[k] = DVTI_EW_EACH;
    }
}

/* Returns whether reading operand k along `axis` touches a new sector of 32 bytes per element, and
   reading it along `other` does not. */
static bool dvti_cuda_ew_across(const dvti_cuda_ew *ew, int k, int axis, int other) {
    int64_t size = ew->args.bytes[k];
    int64_t along = dvti_cuda_distance(ew->args.stride[k][axis]);
    int64_t across = dvti_cuda_distance(ew->args.stride[k][other]);
    return ew->args.kind[k] == DVTI_EW_EACH && along * size >= 32 && across && across * size < 32;
}

/* Finds operands whose axis order differs from the result's. Moves the axis along which they are
   contiguous to the last place but one. */
static void dvti_cuda_ew_find_tiles(dvti_cuda_ew *ew) {
    const int64_t least = 16; /* thinner matrices would leave most threads of a tile idle */
    int last = ew->ndim - 1, k, axis, lines = -1;
    if (last == 0)
        return;
    for (k = 1; k < ew->count && ew->dim[last] >= least; k++)
        for (axis = last - 1; axis >= 0 && lines < 0; axis--)
            if (ew->dim[axis] >= least && dvti_cuda_ew_across(ew, k, last, axis))
                lines = axis;
    if (lines < 0)
        return;
    for (; lines + 1 < last; lines++)
        dvti_cuda_ew_swap(ew, lines, lines + 1);
    for (k = 1; k < ew->count; k++)
        if (dvti_cuda_ew_across(ew, k, last, last - 1))
            ew->across |= 1 << (k - 1);
    ew->group = 0;
}

/* Returns the number of elements that one access can move: the last axis is contiguous or repeats
   in every array, and all groups are aligned. Groups of mixed dtypes have four elements; those of
   64 bits take two accesses. */
static int64_t dvti_cuda_ew_most(const dvti_cuda_ew *ew, int64_t most, bool mixed) {
    const unsigned access = mixed ? 32 : 16;
    int last = ew->ndim - 1, k, axis;
    uint64_t multiples = (uint64_t)most; /* n is the greatest power of two that divides all */
    int64_t n;
    for (k = 0; k < ew->count; k++) {
        const int size = dvti_highest_bit((uint64_t)ew->args.bytes[k]); /* log2 */
        multiples |= access >> size; /* every operand has groups of the program's length */
        if (ew->args.kind[k] >= DVTI_EW_SINGLE)
            continue;
        if (ew->args.stride[k][last] != 1 && (k == 0 || ew->args.stride[k][last] != 0))
            return 1;
        if (ew->args.stride[k][last] == 0)
            continue;
        multiples |= ((uintptr_t)ew->args.data[k] & 15) >> size;
        for (axis = 0; axis < last; axis++)
            multiples |= (uint64_t)ew->args.stride[k][axis];
    }
    if (last > 0)
        multiples |= (uint64_t)ew->dim[last];
    n = (int64_t)(multiples & (~multiples + 1));
    return mixed && n < most ? 1 : n;
}

static void dvti_cuda_ew_find_groups(dvti_cuda_ew *ew, int64_t most, bool mixed) {
    int last = ew->ndim - 1, k;
    ew->group = dvti_cuda_ew_most(ew, most, mixed);
    for (k = 1; k < ew->count && last > 0; k++)
        if (ew->args.kind[k] == DVTI_EW_EACH && ew->args.stride[k][last] == 0)
            ew->args.kind[k] = DVTI_EW_GROUP;
}

/* ---- choice of the program ---- */
/* Returns whether the program finds out the dtypes at run time, as rare mixtures do. Every copy has
   its own program, and so has `where` with a condition of bool or of the values' dtype, as in
   relu's gradient. */
static bool dvti_cuda_ew_mixed(const dvti_cuda_ew *ew, dvti_op op) {
    int first = op == DVTI_OP_where ? 2 : 1, k;
    if (op == DVTI_OP_copy)
        return false;
    for (k = first; k < ew->count; k++)
        if (ew->args.dtype[k] != ew->args.dtype[first])
            return true;
    if (op == DVTI_OP_where && ew->args.dtype[1] != DVT_BOOL &&
        ew->args.dtype[1] != ew->args.dtype[first])
        return true;
    return ew->args.dtype[0] != ew->args.dtype[first] && ew->args.dtype[0] != DVT_BOOL;
}

/* Returns whether programs for any dtypes move groups of these, as dvti_mixed in
   kernels/elementwise.cu. */
static bool dvti_cuda_ew_grouped(const dvti_cuda_ew *ew, int compute) {
    dvt_dtype out = (dvt_dtype)ew->args.dtype[0];
    int k;
    for (k = 1; k < ew->count; k++) {
        dvt_dtype d = (dvt_dtype)ew->args.dtype[k];
        if (compute == DVTI_I64   ? dvt_dtype_is_float(d)
            : compute == DVTI_F32 ? d == DVT_F64 || d == DVT_I64
                                  : d != DVT_BOOL && ew->args.bytes[k] < 4)
            return false;
    }
    return out == DVT_BOOL || (compute == DVTI_I64   ? out == DVT_I64 || out == DVT_I32
                               : compute == DVTI_F32 ? dvt_dtype_is_float(out) && out != DVT_F64
                                                     : out == DVT_F64 || out == DVT_F32);
}

/* Returns whether the operation has only a few instructions. */
static bool dvti_cuda_ew_short(dvti_op op) {
    return dvti_op_row_of(op)->cost == DVTI_COST_QUICK;
}

/* Returns how many positions a thread loads before the first use. One load of 16 bytes in flight
   per thread does not fill the memory's queues at 24 warps per multiprocessor, two do. More, and
   two of long operations, would mostly make programs longer. */
static int64_t dvti_cuda_ew_each(const dvti_launch *launch, const dvti_cuda_ew *ew, bool mixed) {
    if (ew->group == 0)
        return 4;
    if (mixed)
        return 1;
    if (dvti_cuda_ew_short(launch->op))
        return 4;
    return launch->compute == DVTI_F32 && dvti_op_row_of(launch->op)->cost != DVTI_COST_LONG ? 2
                                                                                             : 1;
}

/* Returns whether positions, or offsets in any array, need 64 bits. */
static bool dvti_cuda_ew_wide(const dvti_cuda_ew *ew) {
    const int64_t limit = (int64_t)1 << 30;
    int64_t positions = 1;
    int k, axis;
    bool wide = false;
    for (axis = 0; axis < ew->ndim; axis++)
        positions *= ew->dim[axis];
    for (k = 0; k < ew->count; k++) {
        int64_t reach = 0;
        for (axis = 0; axis < ew->ndim; axis++)
            reach += dvti_cuda_distance(ew->args.stride[k][axis]) * ew->dim[axis];
        wide = wide || reach >= limit;
    }
    return wide || positions >= limit;
}

/* Limits clip's bound for an integer array to the range of its dtype, and truncates it, because the
   elements are integers. */
static int64_t dvti_cuda_ew_bound(double bound, dvt_dtype dtype) {
    int bits = 8 * (int)dvt_dtype_size(dtype) - (dtype == DVT_U8 || dtype == DVT_BOOL ? 0 : 1);
    double high = ldexp(1, bits), low = dtype == DVT_U8 || dtype == DVT_BOOL ? 0 : -high;
    if (bound >= high)
        return (int64_t)(((uint64_t)1 << bits) - 1);
    return bound <= low ? (int64_t)low : (int64_t)bound;
}

/* ---- the launch ---- */
/* Turns extents and strides of elements into those of tiles. */
static void dvti_cuda_ew_tile(dvti_cuda_ew *ew) {
    dvti_kelementwise *args = &ew->args;
    int last = ew->ndim - 1, k, axis;
    args->rows = ew->dim[last - 1];
    args->columns = ew->dim[last];
    for (k = 0; k < ew->count; k++) {
        args->row_step[k] = args->stride[k][last - 1];
        args->column_step[k] = args->stride[k][last];
    }
    for (axis = last - 1; axis <= last; axis++) {
        ew->dim[axis] = (ew->dim[axis] - 1) / DVTI_EW_TILE + 1;
        for (k = 0; k < ew->count; k++)
            args->stride[k][axis] *= DVTI_EW_TILE;
    }
}

static void dvti_cuda_ew_positions(dvti_cuda_ew *ew) {
    dvti_kelementwise *args = &ew->args;
    int last = ew->ndim - 1, k, axis;
    if (ew->group == 0)
        dvti_cuda_ew_tile(ew);
    if (ew->group > 1) {
        if (last == 0)
            args->tail = ew->dim[0] & (ew->group - 1);
        ew->dim[last] >>= dvti_highest_bit((uint64_t)ew->group);
        for (k = 0; k < ew->count; k++)
            args->stride[k][last] *= ew->group;
    }
    args->ndim = ew->ndim;
    args->n = 1;
    for (axis = 0; axis <= last; axis++) {
        args->n *= ew->dim[axis];
        if (axis > 0 || ew->group == 0) /* the kernel divides by these alone */
            args->axis[axis] = dvti_cuda_divisor(ew->dim[axis]);
    }
}

static void dvti_cuda_ew_parameters(dvti_cuda_ew *ew, const dvti_launch *launch) {
    dvti_kelementwise *args = &ew->args;
    args->f = launch->f[0];
    args->i = launch->i[1];
    args->f_low = launch->f[1];
    args->f_high = launch->f[2];
    if (launch->op == DVTI_OP_clip && launch->compute == DVTI_I64) {
        args->i_low = dvti_cuda_ew_bound(launch->f[1], (dvt_dtype)args->dtype[0]);
        args->i_high = dvti_cuda_ew_bound(launch->f[2], (dvt_dtype)args->dtype[0]);
    }
}

DVTI_FN dvt_status dvti_cuda_elementwise(dvti_cuda_gpu *gpu, const dvti_launch *launch) {
    dvti_cuda_ew ew;
    dvti_cuda_program program;
    dvti_cuda_grid grid;
    bool mixed, brief = dvti_cuda_ew_short(launch->op);
    int64_t each;
    int k;
    dvti_cuda_ew_begin(&ew, launch);
    mixed = dvti_cuda_ew_mixed(&ew, launch->op);
    ew.wide = dvti_cuda_ew_wide(&ew);
    dvti_cuda_ew_find_tiles(&ew);
    if (ew.group && !mixed)
        dvti_cuda_ew_find_groups(&ew, brief ? 16 : 4, false);
    else if (ew.group && brief && dvti_cuda_ew_grouped(&ew, (int)launch->compute))
        dvti_cuda_ew_find_groups(&ew, 4, true); /* others would be long programs */
    dvti_cuda_ew_positions(&ew);
    dvti_cuda_ew_parameters(&ew, launch);
    each = dvti_cuda_ew_each(launch, &ew, mixed);
    program = DVTI_CUDA_PROGRAM(elementwise);
    program.variant = (uint64_t)launch->op | (uint64_t)launch->compute << 8;
    for (k = 0; k < 4; k++)
        program.variant |= (uint64_t)(mixed ? DVTI_EW_ANY : ew.args.dtype[k < ew.count ? k : 1])
                           << (10 + 4 * k);
    program.variant |= (uint64_t)dvti_highest_bit((uint64_t)DVTI_MAX(ew.group, 1)) << 26;
    program.variant |= (uint64_t)dvti_highest_bit((uint64_t)each) << 29 | (uint64_t)ew.wide << 32;
    program.variant |= (uint64_t)(ew.group == 0) << 33 | (uint64_t)ew.across << 34;
    program.variant |= (uint64_t)(ew.ndim == 1) << 37;
    grid = dvti_cuda_grid_for(gpu, DVTI_MAX(ew.args.n, 1), 256, each);
    if (ew.group == 0) /* one block per tile */
        grid = dvti_cuda_grid_for(gpu, ew.args.n * 256, 256, 1);
    return dvti_cuda_start(gpu, launch, &program,
                           ew.group ? "dvti_elementwise" : "dvti_elementwise_tile", grid, &ew.args,
                           sizeof ew.args);
}

#undef DVTI_EW_ANY
#undef DVTI_EW_TILE
