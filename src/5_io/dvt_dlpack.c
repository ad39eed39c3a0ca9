/* DLPack 1.1 in both directions: https://dmlc.github.io/dlpack. A tensor of another library is read
   and written by memcpy only, because a program may define its type by <dlpack/dlpack.h>. */
#include "2_core/dvt_core.h"

/* The sizes and offsets of dlpack.h on machines with 64-bit addresses. */
#define DVTI_DL_AT(type, member, offset) (offsetof(type, member) == (offset))
typedef char dvti_dl_layout
    [sizeof(void *) != 8 ||
             (sizeof(dvt_dl_device) == 8 && sizeof(dvt_dl_dtype) == 4 &&
              sizeof(dvt_dl_tensor) == 48 && DVTI_DL_AT(dvt_dl_tensor, device, 8) &&
              DVTI_DL_AT(dvt_dl_tensor, ndim, 16) && DVTI_DL_AT(dvt_dl_tensor, dtype, 20) &&
              DVTI_DL_AT(dvt_dl_tensor, shape, 24) && DVTI_DL_AT(dvt_dl_tensor, strides, 32) &&
              DVTI_DL_AT(dvt_dl_tensor, byte_offset, 40))
         ? 1
         : -1];
typedef char dvti_dl_managed_layout
    [sizeof(void *) != 8 ||
             (sizeof(dvt_dl_managed) == 64 && DVTI_DL_AT(dvt_dl_managed, manager, 48) &&
              DVTI_DL_AT(dvt_dl_managed, deleter, 56) && sizeof(dvt_dl_versioned) == 80 &&
              DVTI_DL_AT(dvt_dl_versioned, manager, 8) &&
              DVTI_DL_AT(dvt_dl_versioned, deleter, 16) &&
              DVTI_DL_AT(dvt_dl_versioned, flags, 24) && DVTI_DL_AT(dvt_dl_versioned, tensor, 32))
         ? 1
         : -1];
#undef DVTI_DL_AT

/* ---- dtypes ---- */
typedef struct dvti_dl_number {
    uint8_t code, bits;
} dvti_dl_number;

/* In the order of dvt_dtype. */
static const dvti_dl_number dvti_dl_numbers[DVT_DTYPE_COUNT] = {
    {DVT_DL_FLOAT, 32},  {DVT_DL_FLOAT, 64}, {DVT_DL_FLOAT, 16},
    {DVT_DL_BFLOAT, 16}, {DVT_DL_INT, 8},    {DVT_DL_UINT, 8},
    {DVT_DL_INT, 32},    {DVT_DL_INT, 64},   {DVT_DL_BOOL, 8}};

/* Returns "int16", "float32x4", "float8_e4m3fn". */
static const char *dvti_dl_dtype_text(dvt_dl_dtype dtype) {
    static const char *const kinds[] = {"int", "uint", "float", "handle", "bfloat", "complex"};
    static const char *const whole[] = {
        "bool",           "float8_e3m4",     "float8_e4m3",   "float8_e4m3b11fnuz",
        "float8_e4m3fn",  "float8_e4m3fnuz", "float8_e5m2",   "float8_e5m2fnuz",
        "float8_e8m0fnu", "float6_e2m3fn",   "float6_e3m2fn", "float4_e2m1fn"};
    char *buffer = dvti_name_buffer();
    dvti_text text = dvti_text_begin(buffer, DVTI_NAME_SIZE);
    if (dtype.code < DVTI_LENGTH(kinds))
        dvti_text_add(&text, "%s%d", kinds[dtype.code], dtype.bits);
    else if (dtype.code < DVTI_LENGTH(kinds) + DVTI_LENGTH(whole))
        dvti_text_add(&text, "%s", whole[dtype.code - DVTI_LENGTH(kinds)]);
    else
        dvti_text_add(&text, "of kind %d with %d bits", dtype.code, dtype.bits);
    if (dtype.lanes != 1)
        dvti_text_add(&text, "x%d", dtype.lanes);
    return buffer;
}

static bool dvti_dl_dtype(const char *function, dvt_dl_dtype from, dvt_dtype *to) {
    int i;
    for (i = 0; i < DVT_DTYPE_COUNT; i++)
        if (from.code == dvti_dl_numbers[i].code && from.bits == dvti_dl_numbers[i].bits &&
            from.lanes == 1) {
            *to = (dvt_dtype)i;
            return true;
        }
    dvti_fail(DVT_ERR_DTYPE,
              "%s: the tensor is %s; expected bool, uint8, int8, int32, int64, float16, bfloat16, "
              "float32 or float64: convert it in its library",
              function, dvti_dl_dtype_text(from));
    return false;
}

/* ---- devices ---- */
static const char *dvti_dl_device_text(dvt_dl_device device) {
    static const char *const names[] = {NULL,      "CPU",
                                        "CUDA",    "pinned CUDA host memory",
                                        "OpenCL",  NULL,
                                        NULL,      "Vulkan",
                                        "Metal",   "VPI",
                                        "ROCm",    "ROCm host memory",
                                        "ExtDev",  "CUDA managed memory",
                                        "OneAPI",  "WebGPU",
                                        "Hexagon", "MAIA",
                                        "Trainium"};
    char *buffer = dvti_name_buffer();
    const char *name =
        device.type >= 0 && device.type < DVTI_LENGTH(names) ? names[device.type] : NULL;
    if (name)
        snprintf(buffer, DVTI_NAME_SIZE, "%s, device %d", name, (int)device.id);
    else
        snprintf(buffer, DVTI_NAME_SIZE, "a device of kind %d, number %d", (int)device.type,
                 (int)device.id);
    return buffer;
}

/* Returns the kind of memory of a context, and the device's number in its kind. */
static int dvti_dl_memory(dvt_ctx ctx, int32_t *id) {
    const dvti_backend_kind *kind;
    dvti_device *open;
    int64_t limit;
    int index = 0;
    *id = 0;
    if (dvti_is_host_memory(ctx))
        return DVT_DL_CPU;
    if (!dvti_device_look(ctx, &open, &kind, &index, &limit))
        return 0;
    if (open)
        dvti_device_end(open);
    *id = index;
    return kind->memory;
}

static bool dvti_dl_ctx(const char *function, dvt_dl_device device, dvt_ctx *ctx) {
    bool cuda = device.type == DVT_DL_CUDA || device.type == DVT_DL_CUDA_MANAGED;
    int n = cuda ? dvt_num_gpus() : 0, i;
    int32_t id;
    *ctx = dvt_cpu();
    if (device.type == DVT_DL_CPU || device.type == DVT_DL_CUDA_HOST)
        return true;
    for (i = 0; i < n; i++)
        if (dvti_dl_memory(dvt_gpu(i), &id) == DVT_DL_CUDA && id == device.id) {
            *ctx = dvt_gpu(i);
            return true;
        }
    if (cuda)
        dvti_fail(DVT_ERR_NO_DEVICE,
                  "%s: the tensor is on %s, which is no gpu(i) here; see dvt_print_devices, or "
                  "copy the tensor to host memory in its library",
                  function, dvti_dl_device_text(device));
    else
        dvti_fail(DVT_ERR_UNSUPPORTED,
                  "%s: the tensor is on %s; expected CPU or CUDA: copy it to host memory in its "
                  "library",
                  function, dvti_dl_device_text(device));
    return false;
}

/* ---- import ---- */
/* Reads a tensor into *memory, of which release and user stay as they are. The shape is copied; the
   strides remain the tensor's. */
static bool dvti_dl_read(const char *function, const dvt_dl_tensor *tensor, dvti_memory *memory,
                         dvt_ctx *ctx) {
    memset(&memory->shape, 0, sizeof memory->shape);
    if (!dvti_dl_ctx(function, tensor->device, ctx) ||
        !dvti_dl_dtype(function, tensor->dtype, &memory->dtype))
        return false;
    if (tensor->ndim < 0 || tensor->ndim > DVT_MAX_DIMS) {
        dvti_fail(DVT_ERR_SHAPE,
                  "%s: the tensor has %d axes; expected 0 to %d: reshape it in its library",
                  function, (int)tensor->ndim, DVT_MAX_DIMS);
        return false;
    }
    if (tensor->ndim > 0 && !tensor->shape) {
        dvti_fail(DVT_ERR_VALUE,
                  "%s: the tensor has %d axes and no shape; its producer must set it", function,
                  (int)tensor->ndim);
        return false;
    }
    memory->shape.ndim = tensor->ndim;
    if (tensor->ndim > 0)
        memcpy(memory->shape.dim, tensor->shape, (size_t)tensor->ndim * sizeof *tensor->shape);
    memory->stride = tensor->strides;
    memory->data = tensor->data;
    if (tensor->data && tensor->byte_offset <= UINTPTR_MAX - (uintptr_t)tensor->data)
        memory->data = (char *)tensor->data + (size_t)tensor->byte_offset;
    else if (tensor->data || dvt_shape_size(memory->shape) > 0) {
        dvti_fail(DVT_ERR_VALUE,
                  "%s: the tensor has elements at %s; its producer must set data and byte_offset",
                  function, tensor->data ? "an offset beyond the address space" : "NULL");
        return false;
    }
    return true;
}

/* Copies memory that must not be written. A failure does not reach the producer's deleter. The end
   of the scope waits for the copy. */
static dvt_array *dvti_dl_copied(const char *function, const dvti_memory *memory, dvt_ctx ctx) {
    dvt_scope_guard scope = dvt_scope_begin();
    dvti_memory lent = *memory;
    dvt_array *x, *copy;
    lent.release = NULL;
    x = dvti_array_over(function, &lent, ctx);
    copy = x ? dvti_array_new(function, x->shape, x->dtype, ctx) : NULL;
    if (copy && dvti_copy_elements(function, copy, x) != DVT_OK)
        copy = NULL;
    dvt_keep(copy);
    dvt_scope_end(&scope);
    if (copy)
        memory->release(memory->user);
    return copy;
}

static void dvti_dl_release(void *user) {
    dvt_dl_managed managed;
    memcpy(&managed, user, sizeof managed);
    if (managed.deleter)
        managed.deleter((dvt_dl_managed *)user);
}

static void dvti_dl_release_versioned(void *user) {
    dvt_dl_versioned managed;
    memcpy(&managed, user, sizeof managed);
    if (managed.deleter)
        managed.deleter((dvt_dl_versioned *)user);
}

DVT_API dvt_array *dvt_from_dlpack(dvt_dl_managed *tensor) {
    dvt_dl_managed managed;
    dvti_memory memory;
    dvt_ctx ctx;
    if (!tensor) {
        dvti_null("dvt_from_dlpack", "tensor");
        return NULL;
    }
    memcpy(&managed, tensor, sizeof managed);
    memory.release = dvti_dl_release;
    memory.user = tensor;
    if (!dvti_dl_read("dvt_from_dlpack", &managed.tensor, &memory, &ctx))
        return NULL;
    return dvti_array_over("dvt_from_dlpack", &memory, ctx);
}

/* Another major version may have another layout behind the deleter. */
DVT_API dvt_array *dvt_from_dlpack_versioned(dvt_dl_versioned *tensor) {
    static const char function[] = "dvt_from_dlpack_versioned";
    dvt_dl_versioned managed;
    dvti_memory memory;
    uint32_t version[2];
    dvt_ctx ctx;
    if (!tensor) {
        dvti_null(function, "tensor");
        return NULL;
    }
    memcpy(version, tensor, sizeof version);
    if (version[0] != DVT_DL_MAJOR) {
        dvti_fail(DVT_ERR_VALUE,
                  "%s: the tensor has DLPack version %lu.%lu; expected %d: ask its producer for "
                  "max_version (%d, %d)",
                  function, (unsigned long)version[0], (unsigned long)version[1], DVT_DL_MAJOR,
                  DVT_DL_MAJOR, DVT_DL_MINOR);
        return NULL;
    }
    memcpy(&managed, tensor, sizeof managed);
    memory.release = dvti_dl_release_versioned;
    memory.user = tensor;
    if (!dvti_dl_read(function, &managed.tensor, &memory, &ctx))
        return NULL;
    return managed.flags & DVT_DL_READ_ONLY ? dvti_dl_copied(function, &memory, ctx)
                                            : dvti_array_over(function, &memory, ctx);
}

/* ---- export ---- */
/* An exported tensor with what it points to. `tensor` is first: both have one address. */
typedef struct dvti_dl_export {
    union {
        dvt_dl_managed plain;
        dvt_dl_versioned versioned;
    } tensor;

    dvti_storage *storage;
    int64_t shape[DVT_MAX_DIMS], stride[DVT_MAX_DIMS];
} dvti_dl_export;

static void dvti_dl_export_end(void *tensor) {
    dvti_dl_export *out = (dvti_dl_export *)tensor;
    if (!out)
        return;
    dvti_storage_release(out->storage);
    dvti_free(out);
}

static void dvti_dl_delete(dvt_dl_managed *self) {
    dvti_dl_export_end(self);
}

static void dvti_dl_delete_versioned(dvt_dl_versioned *self) {
    dvti_dl_export_end(self);
}

/* Describes x in *tensor. Strides of extents below 2 are those of C order, because some libraries
   compare all of them. Returns false with the error set. */
static bool dvti_dl_describe(dvti_dl_export *out, dvt_dl_tensor *tensor, dvt_array *x) {
    bool empty = !dvti_has_elements(&x->shape);
    int i;
    memset(tensor, 0, sizeof *tensor);
    dvti_strides_c(x->shape, out->stride);
    for (i = 0; i < x->shape.ndim; i++) {
        out->shape[i] = x->shape.dim[i];
        if (x->shape.dim[i] > 1 && !empty)
            out->stride[i] = x->stride[i];
    }
    tensor->device.type = dvti_dl_memory(x->storage->ctx, &tensor->device.id);
    tensor->ndim = x->shape.ndim;
    tensor->dtype.code = dvti_dl_numbers[x->dtype].code;
    tensor->dtype.bits = dvti_dl_numbers[x->dtype].bits;
    tensor->dtype.lanes = 1;
    tensor->shape = out->shape;
    tensor->strides = out->stride;
    if (empty)
        return true;
    dvti_pinned_settle(x->storage);
    dvti_atomic_store(&x->storage->shown, 1);
    tensor->data = tensor->device.type == DVT_DL_CPU ? dvti_view_of(x).data
                                                     : (void *)(uintptr_t)dvt_cuda_address(x);
    return tensor->data != NULL;
}

/* Checks the arguments, and sets *copies to whether x has to be copied. Returns false with the
   error set if it cannot be exported. */
static bool dvti_dl_exportable(const char *function, dvt_array *x, dvt_dl_copy copy, bool versioned,
                               bool *copies) {
    bool negative = false;
    int32_t id;
    int i;
    if (!x) {
        dvti_null(function, "x");
        return false;
    }
    if (!dvti_has_values(function, x))
        return false;
    if ((int)copy < DVT_DL_COPY_IF_NEEDED || copy > DVT_DL_COPY_NEVER) {
        dvti_fail(DVT_ERR_VALUE, "%s: copy is %d; expected a value of dvt_dl_copy", function,
                  (int)copy);
        return false;
    }
    if (!dvti_dl_memory(x->storage->ctx, &id)) {
        dvti_fail(DVT_ERR_CONTEXT,
                  "%s: x is %s; other libraries cannot use the memory of a virtual GPU: export "
                  "dvt_copyto(x, dvt_cpu())",
                  function, dvti_describe(x));
        return false;
    }
    for (i = 0; i < x->shape.ndim && dvti_has_elements(&x->shape); i++)
        negative = negative || (x->stride[i] < 0 && x->shape.dim[i] > 1);
    *copies = copy == DVT_DL_COPY_ALWAYS || negative || (x->broadcast && !versioned);
    if (*copies && copy == DVT_DL_COPY_NEVER) {
        dvti_fail(DVT_ERR_VALUE,
                  "%s: x (%s) has negative strides, which many libraries refuse; export a copy, or "
                  "reverse it in the other library",
                  function, dvti_describe(x));
        return false;
    }
    return true;
}

/* Returns a record that keeps the memory of x, or of a copy, and describes it in *tensor. NULL with
   the error set. */
static dvti_dl_export *dvti_dl_export_new(const char *function, dvt_array *x, bool copies,
                                          dvt_dl_tensor *tensor) {
    dvti_dl_export *out = (dvti_dl_export *)dvti_alloc_zero(sizeof *out);
    dvt_scope_guard scope;
    dvt_array *from = x;
    if (!out) {
        dvti_fail_memory(function, (int64_t)sizeof *out);
        return NULL;
    }
    scope = dvt_scope_begin();
    if (copies) {
        from = dvti_array_new(function, x->shape, x->dtype, x->storage->ctx);
        if (from && dvti_copy_elements(function, from, x) != DVT_OK)
            from = NULL;
    }
    if (from && dvti_dl_describe(out, tensor, from)) {
        dvti_storage_own(from->storage);
        out->storage = from->storage;
    } else {
        dvti_free(out);
        out = NULL;
    }
    dvt_scope_end(&scope);
    return out;
}

DVT_API dvt_dl_managed *dvt_to_dlpack(dvt_array *x) {
    static const char function[] = "dvt_to_dlpack";
    dvt_dl_managed managed;
    dvti_dl_export *out;
    bool copies;
    if (!dvti_dl_exportable(function, x, DVT_DL_COPY_IF_NEEDED, false, &copies))
        return NULL;
    memset(&managed, 0, sizeof managed);
    out = dvti_dl_export_new(function, x, copies, &managed.tensor);
    if (!out)
        return NULL;
    managed.manager = out;
    managed.deleter = dvti_dl_delete;
    memcpy(out, &managed, sizeof managed);
    return (dvt_dl_managed *)out;
}

DVT_API dvt_dl_versioned *dvt_to_dlpack_versioned(dvt_array *x, dvt_dl_copy copy) {
    static const char function[] = "dvt_to_dlpack_versioned";
    dvt_dl_versioned managed;
    dvti_dl_export *out;
    bool copies;
    if (!dvti_dl_exportable(function, x, copy, true, &copies))
        return NULL;
    memset(&managed, 0, sizeof managed);
    out = dvti_dl_export_new(function, x, copies, &managed.tensor);
    if (!out)
        return NULL;
    managed.major = DVT_DL_MAJOR;
    managed.minor = DVT_DL_MINOR;
    managed.manager = out;
    managed.deleter = dvti_dl_delete_versioned;
    managed.flags = copies ? DVT_DL_IS_COPIED : x->broadcast ? DVT_DL_READ_ONLY : 0;
    memcpy(out, &managed, sizeof managed);
    return (dvt_dl_versioned *)out;
}
