/* Kernels of the program: the object, the checks of a call, and the launch with a grid. */
#include "4_ops/dvt_own_kernel.h"

/* ---- the object ---- */
/* Texts that launches refer to after the kernel is gone: in queues, in messages about failures, as
   names of loaded functions. They are never freed; a program has few. */
typedef struct dvti_interned {
    struct dvti_interned *next;
    char text[1];
} dvti_interned;

static dvti_interned *dvti_interned_texts;
static dvti_mutex dvti_interned_lock = DVTI_MUTEX_INIT;

static const char *dvti_intern(const char *text) {
    dvti_interned *one;
    dvti_mutex_lock(&dvti_interned_lock);
    for (one = dvti_interned_texts; one && strcmp(one->text, text) != 0; one = one->next)
        ;
    if (!one && (one = (dvti_interned *)dvti_alloc(sizeof *one + strlen(text))) != NULL) {
        memcpy(one->text, text, strlen(text) + 1);
        one->next = dvti_interned_texts;
        dvti_interned_texts = one;
    }
    dvti_mutex_unlock(&dvti_interned_lock);
    return one ? one->text : NULL;
}

static void dvti_kernel_destroy(void *object) {
    dvt_kernel *kernel = (dvt_kernel *)object;
    dvti_free(kernel->source);
    dvti_free(kernel);
}

/* NVRTC 12.0 and 13.0 take the byte 0xFF as the end of the source, without a message. Any other
   byte is allowed in comments and strings. */
static bool dvti_source_valid(const char *function, const char *source) {
    const char *byte = strchr(source, 0xff), *line = source, *at;
    int number = 1;
    if (!byte)
        return true;
    for (at = source; at < byte; at++)
        if (*at == '\n') {
            line = at + 1;
            number++;
        }
    dvti_fail(DVT_ERR_VALUE,
              "%s: byte %lld of the source (line %d, byte %lld) is 0xFF, where NVRTC would end; "
              "expected text, for example UTF-8, which has no such byte: convert the source to "
              "UTF-8, or write \\xff in a string",
              function, (long long)(byte - source), number, (long long)(byte - line));
    return false;
}

DVTI_FN dvt_kernel *dvti_kernel_begin(const char *function, const char *source, const char *label) {
    dvt_kernel *kernel;
    if (!dvti_source_valid(function, source))
        return NULL;
    kernel = (dvt_kernel *)dvti_alloc_zero(sizeof *kernel);
    if (kernel) {
        kernel->source = dvti_strdup(source);
        kernel->label = dvti_intern(label);
        dvti_hash128(source, strlen(source), kernel->hash);
        if (kernel->source && kernel->label &&
            dvti_object_begin(kernel, dvti_kernel_destroy, function))
            return kernel;
        dvti_free(kernel->source);
        dvti_free(kernel);
    }
    dvti_fail_memory(function, (int64_t)(sizeof *kernel + strlen(source)));
    return NULL;
}

DVT_API dvt_kernel *dvt_kernel_new(const char *source, const char *name) {
    static const char *const function = "dvt_kernel_new";
    char label[DVTI_IDENTIFIER + 32];
    const char *entry;
    dvt_kernel *kernel;
    if (!source || !name) {
        dvti_null(function, source ? "name" : "source");
        return NULL;
    }
    if (!*name || dvti_identifier(name) != strlen(name)) {
        dvti_fail(
            DVT_ERR_VALUE,
            "%s: the name is \"%.80s\"; expected a C identifier of at most %d characters: give "
            "the name of the extern \"C\" __global__ function",
            function, name, DVTI_IDENTIFIER - 1);
        return NULL;
    }
    if (strncmp(source, "\xef\xbb\xbf", 3) == 0) /* a byte order mark, which NVRTC refuses */
        source += 3;
    snprintf(label, sizeof label, "dvt_kernel_launch(%s)", name);
    entry = dvti_intern(name);
    if (!entry) {
        dvti_fail_memory(function, (int64_t)strlen(name));
        return NULL;
    }
    kernel = dvti_kernel_begin(function, source, label);
    if (!kernel)
        return NULL;
    kernel->entry = entry;
    dvti_signature_read(source, name, &kernel->signature);
    return kernel;
}

DVT_API dvt_status dvt_kernel_set_host(dvt_kernel *kernel, dvt_kernel_host_fn function,
                                       void *user) {
    if (!kernel)
        return dvti_null("dvt_kernel_set_host", "kernel");
    if (!kernel->entry)
        return dvti_fail(DVT_ERR_VALUE,
                         "dvt_kernel_set_host: the kernel is an expression; expected "
                         "one of dvt_kernel_new: use dvt_kernel_set_element");
    kernel->host = function;
    kernel->user = user;
    return DVT_OK;
}

DVT_API dvt_status dvt_kernel_set_element(dvt_kernel *kernel, dvt_kernel_element_fn function,
                                          void *user) {
    if (!kernel)
        return dvti_null("dvt_kernel_set_element", "kernel");
    if (kernel->entry)
        return dvti_fail(DVT_ERR_VALUE,
                         "dvt_kernel_set_element: %s has a grid; expected a kernel of "
                         "dvt_kernel_expression: use dvt_kernel_set_host",
                         kernel->entry);
    kernel->element = function;
    kernel->user = user;
    return DVT_OK;
}

/* ---- arguments ---- */
DVT_API dvt_kernel_arg dvt_arg_array(dvt_arg_kind kind, dvt_array *array) {
    dvt_kernel_arg arg;
    memset(&arg, 0, sizeof arg);
    arg.kind = kind;
    arg.array = array;
    return arg;
}

DVT_API dvt_kernel_arg dvt_arg_int(dvt_arg_kind kind, int64_t value) {
    dvt_kernel_arg arg = dvt_arg_array(kind, NULL);
    arg.i = value;
    arg.f = (double)value;
    return arg;
}

/* An integer has no value outside of int64_t's range; `i` is then its nearest end. */
DVT_API dvt_kernel_arg dvt_arg_real(dvt_arg_kind kind, double value) {
    dvt_kernel_arg arg = dvt_arg_array(kind, NULL);
    arg.f = value;
    if (value >= 9223372036854775808.0)
        arg.i = INT64_MAX;
    else if (value > -9223372036854775808.0)
        arg.i = (int64_t)value;
    else if (value <= -9223372036854775808.0)
        arg.i = INT64_MIN;
    return arg;
}

static const char *dvti_arg_text(dvt_arg_kind kind) {
    static const char *const text[] = {"none",      "DVT_IN",    "DVT_OUT",   "DVT_INOUT",
                                       "DVT_INT32", "DVT_INT64", "DVT_FLOAT", "DVT_DOUBLE"};
    return text[kind];
}

/* Returns what messages call argument number k. */
static const char *dvti_arg_name(const dvt_kernel *kernel, int k) {
    char *buffer;
    if (kernel->signature.n > k && kernel->signature.parameter[k].name[0])
        return kernel->signature.parameter[k].name;
    buffer = dvti_name_buffer();
    snprintf(buffer, DVTI_NAME_SIZE, "argument %d", k + 1);
    return buffer;
}

static bool dvti_arg_valid(const dvt_kernel *kernel, const dvt_kernel_arg *arg, int k) {
    if (arg->kind <= DVT_ARG_NONE || arg->kind > DVT_ARG_DOUBLE) {
        dvti_fail(
            DVT_ERR_VALUE,
            "%s: argument %d has the kind %d; expected one made by DVT_IN, DVT_OUT, DVT_INOUT, "
            "DVT_INT32, DVT_INT64, DVT_FLOAT or DVT_DOUBLE",
            kernel->label, k + 1, (int)arg->kind);
        return false;
    }
    if (arg->kind == DVT_ARG_INT32 && (arg->i < INT32_MIN || arg->i > UINT32_MAX)) {
        dvti_fail(DVT_ERR_RANGE,
                  "%s: %s is %lld, which fits in neither int32_t nor uint32_t; declare it int64_t, "
                  "and use "
                  "DVT_INT64",
                  kernel->label, dvti_arg_name(kernel, k), (long long)arg->i);
        return false;
    }
    if (!dvti_arg_is_array(arg->kind))
        return true;
    if (!arg->array) {
        dvti_null(kernel->label, dvti_arg_name(kernel, k));
        return false;
    }
    if (arg->kind != DVT_ARG_IN && !dvti_writable(kernel->label, arg->array))
        return false;
    if (dvt_is_recording() && dvt_has_history(arg->array)) {
        dvti_fail(
            DVT_ERR_GRAD,
            "%s: %s (%s) belongs to a recorded computation, and kernels of the program have "
            "no gradients; expected arrays without a history: give dvt_detach(%s), or call it "
            "inside DVT_PAUSE",
            kernel->label, dvti_arg_name(kernel, k), dvti_describe(arg->array),
            dvti_arg_name(kernel, k));
        return false;
    }
    return true;
}

DVTI_FN dvt_array *dvti_kernel_arguments(const dvt_kernel *kernel, const dvt_kernel_arg *args,
                                         int64_t n, dvti_custom *custom, dvt_array **array) {
    dvt_array *present[DVT_KERNEL_ARGS];
    const char *name[DVT_KERNEL_ARGS];
    char number[DVT_KERNEL_ARGS][24]; /* more names than dvti_name_buffer holds at once */
    int n_arrays = 0, k;
    if (!args || n < 1 || n > DVT_KERNEL_ARGS) {
        if (!args)
            dvti_null(kernel->label, "args");
        else
            dvti_fail(DVT_ERR_RANGE, "%s: %lld arguments; expected 1 to %d: DVT_ARGS(...)",
                      kernel->label, (long long)n, DVT_KERNEL_ARGS);
        return NULL;
    }
    for (k = 0; k < (int)n; k++) {
        dvt_kernel_value *value = &custom->call.arg[k];
        if (!dvti_arg_valid(kernel, &args[k], k))
            return NULL;
        value->kind = args[k].kind;
        value->i = args[k].i;
        value->f = args[k].kind == DVT_ARG_FLOAT ? (double)(float)args[k].f : args[k].f;
        array[k] = dvti_arg_is_array(args[k].kind) ? args[k].array : NULL;
        if (array[k]) {
            name[n_arrays] = number[k];
            snprintf(number[k], sizeof number[k], "argument %d", k + 1);
            if (kernel->signature.n > k && kernel->signature.parameter[k].name[0])
                name[n_arrays] = kernel->signature.parameter[k].name;
            present[n_arrays++] = array[k];
        }
    }
    if (n_arrays == 0) {
        dvti_fail(DVT_ERR_VALUE,
                  "%s: no argument is an array, so it has no context; expected at least one",
                  kernel->label);
        return NULL;
    }
    if (!dvti_check_named(kernel->label, present, n_arrays, name))
        return NULL;
    custom->call.n_args = (int)n;
    custom->source = kernel->source;
    custom->entry = kernel->entry;
    custom->input = kernel->input;
    memcpy(custom->hash, kernel->hash, sizeof custom->hash);
    custom->host = kernel->host;
    custom->element = kernel->element;
    custom->user = kernel->user;
    return present[0];
}

DVTI_FN bool dvti_kernel_runs_on(const dvt_kernel *kernel, const dvti_device *device) {
    if (kernel->host || kernel->element ||
        dvti_supports(device, dvti_kernel_custom(), DVTI_OP_custom, DVT_F32, DVTI_CAN_SOURCE))
        return true;
    dvti_fail(
        DVT_ERR_UNSUPPORTED,
        "%s: %s does not run CUDA source, and no C function stands in; expected arrays on an "
        "NVIDIA GPU: copy them there, or call dvt_kernel_set_%s(kernel, function, user) first",
        kernel->label, dvt_ctx_name(device->ctx), kernel->entry ? "host" : "element");
    return false;
}

/* ---- a call compared with the source ---- */
static const char *dvti_scalar_type(dvt_arg_kind kind) {
    return kind == DVT_ARG_INT32   ? "32-bit integer"
           : kind == DVT_ARG_INT64 ? "64-bit integer"
           : kind == DVT_ARG_FLOAT ? "float"
                                   : "double";
}

static bool dvti_pointer_agrees(const dvt_kernel *kernel, const dvt_kernel_arg *arg, int k) {
    const dvti_parameter *p = &kernel->signature.parameter[k];
    if (p->constant && arg->kind != DVT_ARG_IN)
        dvti_fail(
            DVT_ERR_VALUE,
            "%s: %s points to const in the source, and the call says %s; use DVT_IN, or remove "
            "const",
            kernel->label, dvti_arg_name(kernel, k), dvti_arg_text(arg->kind));
    else if (p->dtype >= 0 && p->dtype != (int)arg->array->dtype)
        dvti_fail(
            DVT_ERR_DTYPE,
            "%s: %s points to %s in the source, and the array is %s; convert with dvt_astype, "
            "or change the source",
            kernel->label, dvti_arg_name(kernel, k), dvt_dtype_name((dvt_dtype)p->dtype),
            dvti_describe(arg->array));
    else
        return true;
    return false;
}

static bool dvti_kernel_agrees(const dvt_kernel *kernel, const dvt_kernel_arg *args, int n) {
    const dvti_signature *s = &kernel->signature;
    int k;
    if (s->n < 0)
        return true;
    if (s->n != n) {
        dvti_fail(DVT_ERR_VALUE,
                  "%s: %d arguments are given, and the source declares %d; give one for each "
                  "parameter, in their order",
                  kernel->label, n, s->n);
        return false;
    }
    for (k = 0; k < n; k++) {
        const dvti_parameter *p = &s->parameter[k];
        const bool is_array = dvti_arg_is_array(args[k].kind);
        if (p->pointer && is_array && dvti_pointer_agrees(kernel, &args[k], k))
            continue;
        if (p->pointer && is_array)
            return false;
        if (p->narrow) {
            dvti_fail(DVT_ERR_VALUE,
                      "%s: %s has 8 or 16 bits in the source, and arguments have 32 or 64; declare "
                      "it int there, and use DVT_INT32",
                      kernel->label, dvti_arg_name(kernel, k));
            return false;
        }
        if (p->pointer == is_array && (!p->scalar || p->scalar == args[k].kind))
            continue;
        if (!p->pointer && !p->scalar)
            continue; /* a type that only the compiler knows */
        dvti_fail(DVT_ERR_VALUE, "%s: %s is a %s in the source, and the call says %s; use %s",
                  kernel->label, dvti_arg_name(kernel, k),
                  p->pointer ? "pointer" : dvti_scalar_type(p->scalar), dvti_arg_text(args[k].kind),
                  p->pointer ? "DVT_IN, DVT_OUT or DVT_INOUT" : dvti_arg_text(p->scalar));
        return false;
    }
    return true;
}

/* ---- the launch ---- */
/* Reads one to three extents, x first. */
static bool dvti_grid_read(const dvt_kernel *kernel, const char *what, dvt_shape shape,
                           const int64_t most[3], int64_t least, int64_t out[3]) {
    int axis;
    bool ok = shape.ndim >= 1 && shape.ndim <= 3;
    for (axis = 0; axis < 3; axis++) {
        out[axis] = axis < shape.ndim ? shape.dim[axis] : 1;
        ok = ok && out[axis] >= least && out[axis] <= most[axis];
    }
    if (ok)
        return true;
    dvti_fail(
        DVT_ERR_RANGE,
        "%s: the %s is %s; expected one to three extents, x first, from %lld to %lld, %lld and "
        "%lld: use DVT_SHAPE(x), DVT_SHAPE(x, y) or DVT_SHAPE(x, y, z)",
        kernel->label, what, dvti_shape_text(shape), (long long)least, (long long)most[0],
        (long long)most[1], (long long)most[2]);
    return false;
}

#define DVTI_MOST_THREADS 1024 /* of every GPU of compute capability 7.5 and newer */
#define DVTI_MOST_SHARED 232448

static bool dvti_grid_ok(const dvt_kernel *kernel, dvt_shape grid, dvt_shape block,
                         int64_t shared_bytes, dvt_kernel_call *call) {
    static const int64_t most_blocks[3] = {INT32_MAX, 65535, 65535};
    static const int64_t most_threads[3] = {DVTI_MOST_THREADS, DVTI_MOST_THREADS, 64};
    int64_t threads;
    if (!dvti_grid_read(kernel, "grid", grid, most_blocks, 0, call->grid) ||
        !dvti_grid_read(kernel, "block", block, most_threads, 1, call->block))
        return false;
    threads = call->block[0] * call->block[1] * call->block[2];
    call->shared_bytes = shared_bytes;
    if (threads > DVTI_MOST_THREADS)
        dvti_fail(
            DVT_ERR_RANGE,
            "%s: the block %s has %lld threads; expected at most %d: use more, smaller blocks",
            kernel->label, dvti_shape_text(block), (long long)threads, DVTI_MOST_THREADS);
    else if (shared_bytes < 0 || shared_bytes > DVTI_MOST_SHARED)
        dvti_fail(DVT_ERR_RANGE,
                  "%s: %lld bytes of dynamic shared memory; expected 0 to %d, and no more than the "
                  "GPU has",
                  kernel->label, (long long)shared_bytes, DVTI_MOST_SHARED);
    else
        return true;
    return false;
}

#undef DVTI_MOST_THREADS
#undef DVTI_MOST_SHARED

static bool dvti_kernel_contiguous(const dvt_kernel *kernel, dvt_array *const *array, int n) {
    int k;
    for (k = 0; k < n; k++)
        if (array[k] && !dvt_is_contiguous(array[k])) {
            dvti_fail(DVT_ERR_VALUE,
                      "%s: %s (%s) is not contiguous, and the kernel gets an address without "
                      "strides; give dvt_contiguous of what it reads, and copy what it wrote with "
                      "dvt_copy_into",
                      kernel->label, dvti_arg_name(kernel, k), dvti_describe(array[k]));
            return false;
        }
    return true;
}

/* Puts an array into the call as one axis, and into the launch for traces and models. */
static void dvti_kernel_place(dvti_launch *launch, dvti_custom *custom, int k, dvt_array *x) {
    dvt_kernel_value *value = &custom->call.arg[k];
    dvti_view *view = &custom->view[k];
    dvti_view_into(view, x);
    value->dtype = x->dtype;
    value->data = view->data;
    value->size = dvt_size(x);
    view->ndim = 1;
    view->dim[0] = value->size;
    view->stride[0] = 1;
    if (value->kind != DVT_ARG_OUT && launch->n_in < DVTI_MAX_IN)
        dvti_view_into(&launch->in[launch->n_in++], x);
    if (value->kind != DVT_ARG_IN && launch->n_out < DVTI_MAX_OUT)
        dvti_view_into(&launch->out[launch->n_out++], x);
}

DVT_API dvt_status dvt_kernel_launch(dvt_kernel *kernel, dvt_shape grid, dvt_shape block,
                                     int64_t shared_bytes, const dvt_kernel_arg *args, int64_t n) {
    dvt_array *array[DVT_KERNEL_ARGS], *first;
    dvti_launch launch;
    dvti_custom custom;
    dvt_status status;
    int k;
    if (!kernel)
        return dvti_null("dvt_kernel_launch", "kernel");
    if (!kernel->entry)
        return dvti_fail(DVT_ERR_VALUE,
                         "dvt_kernel_launch: the kernel is an expression, which has no "
                         "grid; expected one of dvt_kernel_new: use "
                         "dvt_kernel_apply");
    memset(&custom, 0, sizeof custom);
    first = dvti_kernel_arguments(kernel, args, n, &custom, array);
    if (!first || !dvti_kernel_agrees(kernel, args, (int)n) ||
        !dvti_kernel_contiguous(kernel, array, (int)n) ||
        !dvti_grid_ok(kernel, grid, block, shared_bytes, &custom.call) ||
        !dvti_kernel_runs_on(kernel, first->storage->device))
        return dvti_failure();
    if (custom.call.grid[0] == 0 || custom.call.grid[1] == 0 || custom.call.grid[2] == 0)
        return DVT_OK;
    dvti_launch_begin(&launch, kernel->label, dvti_kernel_custom(), DVTI_OP_custom);
    launch.custom = &custom;
    for (k = 0; k < (int)n; k++)
        if (array[k])
            dvti_kernel_place(&launch, &custom, k, array[k]);
    status = dvti_run(first->storage->device, &launch);
    for (k = 0; k < (int)n && status == DVT_OK; k++)
        if (array[k] && args[k].kind != DVT_ARG_IN)
            dvti_written(array[k]);
    return status;
}
