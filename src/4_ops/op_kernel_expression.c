/* Kernels of one expression over arrays that broadcast. */
#include "4_ops/dvt_own_kernel.h"

/* Reads "x, y" into the kernel's names. */
static bool dvti_inputs_read(dvt_kernel *kernel, const char *inputs) {
    dvti_signature *s = &kernel->signature;
    const char *at = inputs;
    int k;
    for (s->n = 0; s->n < DVTI_EXPRESSION_INPUTS; s->n++) {
        size_t n;
        at += strspn(at, " \t\n");
        n = dvti_identifier(at);
        if (!n)
            return false;
        memcpy(s->parameter[s->n].name, at, n);
        kernel->input[s->n] = s->parameter[s->n].name;
        if (strcmp(kernel->input[s->n], "T") == 0)
            return false;
        for (k = 0; k < s->n; k++)
            if (strcmp(kernel->input[k], kernel->input[s->n]) == 0)
                return false;
        at += n;
        at += strspn(at, " \t\n");
        if (!*at) {
            s->n++;
            return true;
        }
        if (*at++ != ',')
            return false;
    }
    return false;
}

DVT_API dvt_kernel *dvt_kernel_expression(const char *inputs, const char *expression) {
    static const char *const function = "dvt_kernel_expression";
    char label[96];
    uint64_t of_inputs[2];
    dvt_kernel *kernel;
    if (!inputs || !expression) {
        dvti_null(function, inputs ? "expression" : "inputs");
        return NULL;
    }
    snprintf(label, sizeof label, "dvt_kernel_apply(%.60s)", expression);
    kernel = dvti_kernel_begin(function, expression, label);
    if (!kernel)
        return NULL;
    if (!dvti_inputs_read(kernel, inputs)) {
        dvti_fail(DVT_ERR_VALUE,
                  "%s: the inputs are \"%.80s\"; expected 1 to %d different C identifiers, but not "
                  "T, with commas between them, such as \"x, y\"",
                  function, inputs, DVTI_EXPRESSION_INPUTS);
        dvt_discard(kernel);
        return NULL;
    }
    dvti_hash128(inputs, strlen(inputs), of_inputs);
    kernel->hash[0] ^= of_inputs[1];
    kernel->hash[1] += of_inputs[0];
    return kernel;
}

/* Computes shape and dtype of the result. */
static bool dvti_expression_result(const dvt_kernel *kernel, const dvt_kernel_arg *args,
                                   dvt_array *const *array, dvt_shape *shape, dvt_dtype *dtype) {
    const int n = kernel->signature.n;
    bool any = false;
    int k;
    for (k = 0; k < n; k++) {
        if (!array[k])
            continue;
        if (any && !dvti_broadcast(kernel->label, shape, &array[k]->shape, shape))
            return false;
        if (!any)
            *shape = array[k]->shape;
        *dtype = any ? dvt_promote(*dtype, array[k]->dtype) : array[k]->dtype;
        any = true;
    }
    for (k = 0; k < n; k++)
        if (args[k].kind == DVT_ARG_FLOAT || args[k].kind == DVT_ARG_DOUBLE)
            *dtype = dvti_with_scalar(*dtype, args[k].f);
        else if (!array[k] && *dtype == DVT_BOOL && args[k].i != 0 && args[k].i != 1)
            *dtype = DVT_I64;
    return true;
}

static bool dvti_expression_ok(const dvt_kernel *kernel, const dvt_kernel_arg *args, int64_t n) {
    int k;
    if (kernel->signature.n != n) {
        dvti_fail(
            DVT_ERR_VALUE,
            "%s: %lld arguments are given, and the expression has %d inputs; give one for each "
            "name, in their order",
            kernel->label, (long long)n, kernel->signature.n);
        return false;
    }
    for (k = 0; k < (int)n; k++)
        if (args[k].kind == DVT_ARG_OUT || args[k].kind == DVT_ARG_INOUT) {
            dvti_fail(DVT_ERR_VALUE,
                      "%s: %s is to be written, and an expression makes its result; use DVT_IN",
                      kernel->label, kernel->input[k]);
            return false;
        }
    return true;
}

DVT_API dvt_array *dvt_kernel_apply(dvt_kernel *kernel, const dvt_kernel_arg *args, int64_t n) {
    dvt_array *array[DVT_KERNEL_ARGS], *first, *out;
    dvti_launch launch;
    dvti_custom custom;
    dvt_shape shape = DVT_SCALAR;
    dvt_dtype dtype = DVT_F32;
    int k;
    if (!kernel) {
        dvti_null("dvt_kernel_apply", "kernel");
        return NULL;
    }
    if (kernel->entry) {
        dvti_fail(
            DVT_ERR_VALUE,
            "dvt_kernel_apply: %s has a grid; expected a kernel of dvt_kernel_expression: use "
            "dvt_kernel_launch",
            kernel->entry);
        return NULL;
    }
    memset(&custom, 0, sizeof custom);
    first = dvti_kernel_arguments(kernel, args, n, &custom, array);
    if (!first || !dvti_expression_ok(kernel, args, n) ||
        !dvti_expression_result(kernel, args, array, &shape, &dtype) ||
        !dvti_kernel_runs_on(kernel, first->storage->device))
        return NULL;
    out = dvti_array_new(kernel->label, shape, dtype, first->storage->ctx);
    if (!out || !dvti_has_elements(&shape))
        return out;
    dvti_launch_begin(&launch, kernel->label, dvti_kernel_custom(), DVTI_OP_custom);
    launch.custom = &custom;
    launch.compute = dvti_class_of(dtype);
    for (k = 0; k < (int)n; k++) {
        if (!array[k])
            continue;
        dvti_view_broadcast_into(&custom.view[k], array[k], &shape);
        if (launch.n_in < DVTI_MAX_IN)
            launch.in[launch.n_in++] = custom.view[k];
    }
    dvti_view_into(&launch.out[0], out);
    launch.n_out = 1;
    return dvti_run(out->storage->device, &launch) == DVT_OK ? out : NULL;
}
