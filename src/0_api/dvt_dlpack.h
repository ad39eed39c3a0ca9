/* [dvt:dlpack] Arrays shared with other libraries in memory, by DLPack 1.1: NumPy, PyTorch, JAX,
   CuPy and others. A tensor of DLPack is a struct with an address, a layout, and a function that
   gives it up. Nothing is copied unless a comment says so.

   The structs below have the layout of those in <dlpack/dlpack.h>. A program that uses that header
   casts the pointers: dvt_from_dlpack((dvt_dl_managed *)tensor).

   Order of work. On cpu() a tensor is ready when a call returns. Virtual GPUs take no part. On CUDA
   GPUs calls only queue work, so the two sides agree on an order:
   - Before an import, the producer orders its stream: pass dvt_cuda_stream(ctx) to __dlpack__, or
     call dvt_cuda_order_after(stream, ctx).
   - After an export, before the consumer's first use: dvt_cuda_order_before(stream, ctx).
   - Before a consumer gives up an exported tensor that its stream still uses:
     dvt_cuda_order_after(stream, ctx).
   An imported tensor is given up when the queued work that uses it is done.

   Writes by the other library are not seen by a backward pass; see dvt_mark_written. Gradients and
   recorded operations stay on this side. */

/* DLDevice */
typedef struct dvt_dl_device {
    int32_t type; /* dvt_dl_device_type, or a number of another library's device */
    int32_t id;
} dvt_dl_device;

/* DLDeviceType: the devices that can be exchanged. */
typedef enum dvt_dl_device_type {
    DVT_DL_CPU = 1,
    DVT_DL_CUDA = 2,
    DVT_DL_CUDA_HOST = 3,    /* pinned host memory */
    DVT_DL_CUDA_MANAGED = 13 /* memory that CUDA moves between host and GPU */
} dvt_dl_device_type;

/* DLDataType: a number of `bits` bits, or `lanes` of them per element. */
typedef struct dvt_dl_dtype {
    uint8_t code; /* dvt_dl_code, or a number of another kind */
    uint8_t bits;
    uint16_t lanes;
} dvt_dl_dtype;

/* DLDataTypeCode: the kinds of elements that can be exchanged. */
typedef enum dvt_dl_code {
    DVT_DL_INT = 0,
    DVT_DL_UINT = 1,
    DVT_DL_FLOAT = 2,
    DVT_DL_BFLOAT = 4,
    DVT_DL_BOOL = 6
} dvt_dl_code;

/* DLTensor */
typedef struct dvt_dl_tensor {
    void *data;
    dvt_dl_device device;
    int32_t ndim;
    dvt_dl_dtype dtype;
    int64_t *shape;
    int64_t *strides;     /* in elements; NULL: C order */
    uint64_t byte_offset; /* of the first element from `data` */
} dvt_dl_tensor;

/* DLManagedTensor */
typedef struct dvt_dl_managed {
    dvt_dl_tensor tensor;
    void *manager; /* of the producer */
    void (*deleter)(struct dvt_dl_managed *self);
} dvt_dl_managed;

/* The version of DLPack. */
#define DVT_DL_MAJOR 1
#define DVT_DL_MINOR 1
/* Flags: the memory must not be written; it is a copy that nothing else uses. */
#define DVT_DL_READ_ONLY 1
#define DVT_DL_IS_COPIED 2

/* DLManagedTensorVersioned */
typedef struct dvt_dl_versioned {
    uint32_t major, minor;
    void *manager; /* of the producer */
    void (*deleter)(struct dvt_dl_versioned *self);
    uint64_t flags;
    dvt_dl_tensor tensor;
} dvt_dl_versioned;

/* Create an array on the memory of a tensor. CUDA device i becomes gpu(i), host memory cpu(0). Any
   strides and byte_offset are read; an array whose elements overlap is for reading only.
   Copies: never, except tensors with the flag READ_ONLY, within their device.  Waits: for that
   copy.
   Owns: the array takes over the tensor, and calls its deleter once, as dvt_from_memory does. After
   a failure the tensor still belongs to the caller. In Python, a capsule is renamed after success.
   Errors: DTYPE, NO_DEVICE (no such CUDA GPU), UNSUPPORTED (another kind of device), SHAPE (more
   than 8 axes), VALUE (another major version, an address that is NULL or not aligned), RANGE. */
DVT_API dvt_array *dvt_from_dlpack(dvt_dl_managed *tensor);
DVT_API dvt_array *dvt_from_dlpack_versioned(dvt_dl_versioned *tensor);

/* Whether an export may share memory with x. Views with negative strides are copied if needed,
   because many libraries refuse them. So are broadcast views without a version, because only
   versioned tensors have the flag READ_ONLY. */
typedef enum dvt_dl_copy {
    DVT_DL_COPY_IF_NEEDED,
    DVT_DL_COPY_ALWAYS,
    DVT_DL_COPY_NEVER
} dvt_dl_copy;

/* Return x as a tensor. dvt_to_dlpack is for consumers of version 0, and copies if needed. The
   versioned form sets READ_ONLY for broadcast views, and IS_COPIED.
   Copies: as dvt_dl_copy says, within the context.  Waits: no.
   Owns: the caller, who calls tensor->deleter(tensor) once, or gives the tensor to a consumer who
   does. The memory lives until then, also after the end of x, its scope and its thread. Any thread
   may call the deleter.
   Errors: CONTEXT (a virtual GPU: copy to cpu() first), VALUE (COPY_NEVER and a copy is needed). */
DVT_API dvt_dl_managed *dvt_to_dlpack(dvt_array *x);
DVT_API dvt_dl_versioned *dvt_to_dlpack_versioned(dvt_array *x, dvt_dl_copy copy);
