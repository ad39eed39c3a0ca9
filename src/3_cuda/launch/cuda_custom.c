/* Kernels of the program (dvt_kernel): CUDA source with its own grid, and expressions
   (kernels/custom.cu). A program is found by a hash; its source is only written to be compiled. */
#include "3_cuda/device/dvt_cuda_device.h"

#define DVTI_CUSTOM_STATIC_SHARED 49152 /* more must be asked for */

/* ---- sources ---- */
/* The types that <stdint.h> would define. The lines of the source stay those of the caller. */
static char *dvti_cuda_own_source(const dvti_custom *custom) {
    dvti_text text = dvti_text_begin(NULL, 0);
    char *source = NULL;
    int turn;
    for (turn = 0; turn < 2; turn++) {
        dvti_text_add(&text, "typedef signed char int8_t;\ntypedef short int16_t;\n"
                             "typedef int int32_t;\ntypedef long long int64_t;\n"
                             "typedef unsigned char uint8_t;\ntypedef unsigned short uint16_t;\n"
                             "typedef unsigned int uint32_t;\n"
                             "typedef unsigned long long uint64_t;\n");
        dvti_text_add(&text, "#line 1 \"%s.cu\"\n", custom->entry);
        dvti_text_add(&text, "%s\n", custom->source);
        if (turn == 0) {
            source = (char *)dvti_alloc(text.length + 1);
            if (!source)
                return NULL;
            text = dvti_text_begin(source, text.length + 1);
        }
    }
    return source;
}

static bool dvti_cuda_custom_flat(const dvti_kcustom *p) {
    return p->ndim <= 1;
}

/* Returns whether an offset needs 64 bits. */
static bool dvti_cuda_custom_wide(const dvti_kcustom *p, int inputs) {
    const int64_t limit = (int64_t)1 << 31;
    int k, axis;
    bool wide = p->n >= limit;
    for (k = 0; k < inputs; k++) {
        int64_t reach = 0;
        for (axis = 0; axis < p->ndim; axis++)
            reach += dvti_cuda_distance(p->stride[k][axis]) * p->axis[axis].divisor;
        wide = wide || reach >= limit;
    }
    return wide;
}

/* What a program of an expression depends on, besides the expression. */
typedef struct dvti_cuda_custom_kind {
    uint64_t hash[2];
    int32_t dtype[DVT_KERNEL_ARGS]; /* -1: a scalar */
    int32_t out, compute, inputs, flat, wide, padding;
} dvti_cuda_custom_kind;

static dvti_cuda_custom_kind dvti_cuda_kind_of(const dvti_launch *launch, const dvti_kcustom *p) {
    const dvti_custom *custom = launch->custom;
    dvti_cuda_custom_kind kind;
    int k;
    dvti_clear(&kind, sizeof kind);
    memcpy(kind.hash, custom->hash, sizeof kind.hash);
    for (k = 0; k < custom->call.n_args; k++)
        kind.dtype[k] =
            dvti_arg_is_array(custom->call.arg[k].kind) ? (int)custom->view[k].dtype : -1;
    kind.out = (int)launch->out[0].dtype;
    kind.compute = (int)launch->compute;
    kind.inputs = custom->call.n_args;
    kind.flat = dvti_cuda_custom_flat(p);
    kind.wide = dvti_cuda_custom_wide(p, kind.inputs);
    return kind;
}

typedef struct dvti_cuda_expression {
    const dvti_custom *custom;
    dvti_cuda_custom_kind kind;
} dvti_cuda_expression;

/* `variant` is the address of a dvti_cuda_expression, whose text no number could hold; 0: none. */
DVTI_FN void dvti_cuda_describe_custom(uint64_t variant, dvti_text *text) {
    static const char *const type[] = {"float", "double", "int64_t"};
    const dvti_cuda_expression *e = (const dvti_cuda_expression *)(uintptr_t)variant;
    int k;
    if (!e)
        return;
    dvti_text_add(text, "typedef %s T;\ntypedef %s I;\n#define DVTI_OUT %d\n#define DVTI_N_IN %d\n",
                  type[e->kind.compute], e->kind.wide ? "int64_t" : "int", e->kind.out,
                  e->kind.inputs);
    dvti_text_add(text, "#define DVTI_FLAT %s\n#define DVTI_VALUE dvti_expression(",
                  e->kind.flat ? "true" : "false");
    for (k = 0; k < e->kind.inputs; k++)
        if (e->kind.dtype[k] < 0)
            dvti_text_add(text, "%s(T)p.%s[%d]", k ? ", " : "",
                          e->kind.compute == DVTI_I64 ? "i" : "f", k);
        else
            dvti_text_add(text,
                          "%sdvti_widen<%d, T>(((const dvti_stored<%d>::type *)p.in[%d])[at[%d]])",
                          k ? ", " : "", e->kind.dtype[k], e->kind.dtype[k], k, k);
    dvti_text_add(text, ")\n__device__ inline T dvti_expression(");
    for (k = 0; k < e->kind.inputs; k++)
        dvti_text_add(text, "%sconst T %s", k ? ", " : "", e->custom->input[k]);
    dvti_text_add(text, ") {\n    return (T)(\n#line 1 \"expression\"\n%s\n", e->custom->source);
    dvti_text_add(text, "#line 1 \"variant\"\n    );\n}\n");
}

/* ---- the launch ---- */
static dvt_status dvti_cuda_custom_failed(dvti_cuda_gpu *gpu, const dvti_launch *launch,
                                          const char *call, dvti_cu_result result) {
    const dvt_kernel_call *c = &launch->custom->call;
    if (result != DVTI_CU_INVALID_VALUE && result != DVTI_CU_OUT_OF_RESOURCES)
        return dvti_cuda_failed(gpu, launch->name, call, result);
    return dvti_fail(
        DVT_ERR_RANGE,
        "%s: %s does not take a block of %lld threads with %lld bytes of dynamic shared "
        "memory for this kernel; expected what its registers and shared memory allow: "
        "use smaller blocks or less memory. Or the arguments do not match the function's "
        "parameters: compare their number and types",
        launch->name, dvt_ctx_name(gpu->ctx), (long long)(c->block[0] * c->block[1] * c->block[2]),
        (long long)c->shared_bytes);
}

/* Finds the function; writes the source first if it is not loaded. `e` is NULL for a kernel with an
   entry of its own. */
static dvt_status dvti_cuda_custom_function(dvti_cuda_gpu *gpu, const dvti_launch *launch,
                                            const dvti_cuda_expression *e,
                                            dvti_cu_function *function) {
    dvti_cuda_program program = DVTI_CUDA_PROGRAM(custom);
    const char *entry = e ? "dvti_custom" : launch->custom->entry;
    uint64_t hash[2];
    char *source;
    dvt_status status;
    memcpy(hash, launch->custom->hash, sizeof hash);
    if (e)
        dvti_hash128(&e->kind, sizeof e->kind, hash);
    program.variant = hash[0];
    program.more = hash[1];
    if (dvti_cuda_loaded_function(gpu->physical, &program, entry, function))
        return DVT_OK;
    if (e) {
        dvti_cuda_program text = DVTI_CUDA_PROGRAM(custom);
        text.variant = (uint64_t)(uintptr_t)e;
        source = dvti_cuda_source(text);
    } else
        source = dvti_cuda_own_source(launch->custom);
    if (!source)
        return dvti_fail_memory(launch->name, 1 << 16);
    program.source = source;
    status = dvti_cuda_find_function(gpu, launch->name, &program, entry, function);
    dvti_free(source);
    return status;
}

/* Removes axes of extent 1 and merges those that are contiguous in every input. */
static void dvti_cuda_custom_axes(const dvti_launch *launch, dvti_kcustom *p) {
    const dvti_custom *custom = launch->custom;
    const dvti_view *out = &launch->out[0];
    int64_t extent[DVT_MAX_DIMS];
    int axis, k, last = -1;
    for (axis = 0; axis < out->ndim; axis++) {
        bool merges = last >= 0;
        if (out->dim[axis] == 1)
            continue;
        for (k = 0; k < custom->call.n_args; k++)
            if (p->in[k] && merges)
                merges = p->stride[k][last] == custom->view[k].stride[axis] * out->dim[axis];
        if (!merges)
            extent[++last] = 1;
        extent[last] *= out->dim[axis];
        for (k = 0; k < custom->call.n_args; k++)
            if (p->in[k])
                p->stride[k][last] = custom->view[k].stride[axis];
    }
    p->ndim = last + 1;
    for (axis = 0; axis <= last; axis++)
        p->axis[axis] = dvti_cuda_divisor(extent[axis]);
}

static dvt_status dvti_cuda_custom_expression(dvti_cuda_gpu *gpu, const dvti_launch *launch) {
    const dvt_kernel_call *call = &launch->custom->call;
    dvti_cuda_expression e;
    dvti_cu_function function;
    dvti_cuda_grid grid;
    dvti_kcustom p;
    dvt_status status;
    int k;
    dvti_clear(&p, sizeof p);
    p.out = launch->out[0].data;
    p.n = dvti_cuda_view_size(&launch->out[0]);
    for (k = 0; k < call->n_args; k++) {
        p.in[k] = dvti_arg_is_array(call->arg[k].kind) ? launch->custom->view[k].data : NULL;
        p.f[k] = call->arg[k].f;
        p.i[k] = call->arg[k].i;
    }
    dvti_cuda_custom_axes(launch, &p);
    e.custom = launch->custom;
    e.kind = dvti_cuda_kind_of(launch, &p);
    status = dvti_cuda_custom_function(gpu, launch, &e, &function);
    if (status != DVT_OK)
        return status;
    grid = dvti_cuda_grid_for(gpu, p.n, 256, 1);
    return dvti_cuda_start_function(gpu, launch, function, grid, &p, sizeof p);
}

/* Appends a parameter, aligned to its size as CUDA does. */
static void dvti_cuda_push(char *buffer, size_t *length, const void *value, size_t size) {
    *length = (*length + size - 1) / size * size;
    memcpy(buffer + *length, value, size);
    *length += size;
}

static size_t dvti_cuda_pack(const dvt_kernel_call *call, char *buffer) {
    size_t length = 0;
    int k;
    for (k = 0; k < call->n_args; k++) {
        const dvt_kernel_value *value = &call->arg[k];
        const int32_t i32 = (int32_t)value->i;
        const float f32 = (float)value->f;
        if (value->kind == DVT_ARG_INT32)
            dvti_cuda_push(buffer, &length, &i32, sizeof i32);
        else if (value->kind == DVT_ARG_INT64)
            dvti_cuda_push(buffer, &length, &value->i, sizeof value->i);
        else if (value->kind == DVT_ARG_FLOAT)
            dvti_cuda_push(buffer, &length, &f32, sizeof f32);
        else if (value->kind == DVT_ARG_DOUBLE)
            dvti_cuda_push(buffer, &length, &value->f, sizeof value->f);
        else
            dvti_cuda_push(buffer, &length, &value->data, sizeof value->data);
    }
    return length;
}

DVTI_FN dvt_status dvti_cuda_custom(dvti_cuda_gpu *gpu, const dvti_launch *launch) {
    const dvti_cuda_driver *cu = dvti_cuda();
    const dvt_kernel_call *call = &launch->custom->call;
    char buffer[DVT_KERNEL_ARGS * 8];
    dvti_cu_function function;
    dvti_cu_result result = DVTI_CU_OK;
    void *extra[5];
    size_t bytes;
    dvt_status status;
    if (!launch->custom->entry)
        return dvti_cuda_custom_expression(gpu, launch);
    status = dvti_cuda_custom_function(gpu, launch, NULL, &function);
    if (status != DVT_OK)
        return status;
    if (call->shared_bytes > DVTI_CUSTOM_STATIC_SHARED)
        result = cu->cuFuncSetAttribute(function, DVTI_CU_FUNC_SHARED, (int)call->shared_bytes);
    if (result != DVTI_CU_OK)
        return dvti_cuda_custom_failed(gpu, launch, "cuFuncSetAttribute", result);
    bytes = dvti_cuda_pack(call, buffer);
    extra[0] = DVTI_CU_PARAM_POINTER;
    extra[1] = buffer;
    extra[2] = DVTI_CU_PARAM_SIZE;
    extra[3] = &bytes;
    extra[4] = DVTI_CU_PARAM_END;
    result = cu->cuLaunchKernel(function, (unsigned)call->grid[0], (unsigned)call->grid[1],
                                (unsigned)call->grid[2], (unsigned)call->block[0],
                                (unsigned)call->block[1], (unsigned)call->block[2],
                                (unsigned)call->shared_bytes, gpu->compute, NULL, extra);
    return dvti_cuda_custom_failed(gpu, launch, "cuLaunchKernel", result);
}

#undef DVTI_CUSTOM_STATIC_SHARED
