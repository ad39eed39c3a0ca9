/* [dvt:types] dtypes, shapes, axes, contexts: small structs, passed by value. */

#define DVT_MAX_DIMS 8      /* largest number of axes of an array */
#define DVT_MAX_GPUS 16     /* largest number of GPUs, real and virtual */
#define DVT_MAX_CONTEXTS 32 /* largest number of contexts in a list */

/* Element types. float32 is the default: the zero of this enum. */
typedef enum dvt_dtype {
    DVT_F32,
    DVT_F64,
    DVT_F16,
    DVT_BF16,
    DVT_I8,
    DVT_U8,
    DVT_I32,
    DVT_I64,
    DVT_BOOL
} dvt_dtype;

#define DVT_DTYPE_COUNT 9 /* number of dtypes */

/* Returns "float32", "bfloat16", "bool"; "?" for an invalid dtype. Owns: the library; constant. */
DVT_API const char *dvt_dtype_name(dvt_dtype dtype);
/* Finds a dtype by the name that dvt_dtype_name returns. Errors: NAME; *out is then unchanged. */
DVT_API dvt_status dvt_dtype_parse(const char *name, dvt_dtype *out);
/* Returns the bytes of one element; 0 for an invalid dtype. */
DVT_API int64_t dvt_dtype_size(dvt_dtype dtype);
/* Return whether the dtype is a float (16 to 64 bits), and whether it is an integer (not bool). */
DVT_API bool dvt_dtype_is_float(dvt_dtype dtype);
DVT_API bool dvt_dtype_is_int(dvt_dtype dtype);
/* Returns the dtype of a result computed from two dtypes, by the array API standard's table. An
   integer (or bool) with a float gives that float. float16 with bfloat16 gives float32. uint8 with
   int8 gives int32, because there is no int16. */
DVT_API dvt_dtype dvt_promote(dvt_dtype a, dvt_dtype b);

/* The shape of an array: extents, outermost axis first. ndim 0 is a scalar. An extent of 0 makes an
   empty array. */
typedef struct dvt_shape {
    int ndim;
    int64_t dim[DVT_MAX_DIMS];
} dvt_shape;

/* Axes of a reduction. Negative axes count from the end. The zero value means all axes. keepdims
   keeps the reduced axes in the result, with extent 1. */
typedef struct dvt_axes {
    int n; /* 0: all axes */
    int axis[DVT_MAX_DIMS];
    bool keepdims;
} dvt_axes;

/* Returns whether both shapes have the same number of axes and the same extents. */
DVT_API bool dvt_shape_equal(dvt_shape a, dvt_shape b);
/* Returns the product of the extents; -1 if it does not fit in int64_t or an extent is negative. */
DVT_API int64_t dvt_shape_size(dvt_shape shape);

/* Makes a shape of one to eight extents: DVT_SHAPE(2, 3). */
#define DVT_SHAPE(...) DVT_CALL_8(dvt_shape_make, 0, __VA_ARGS__)
/* The shape without axes. */
#define DVT_SCALAR dvt_shape_make(0, 0, 0, 0, 0, 0, 0, 0, 0)
/* Names one to eight axes: DVT_AXES(0, -1). */
#define DVT_AXES(...) DVT_CALL_8(dvt_axes_make, 0, __VA_ARGS__)
/* Means every axis. */
#define DVT_ALL dvt_axes_make(0, 0, 0, 0, 0, 0, 0, 0, 0)
/* Return the same axes with keepdims set: DVT_KEEPDIMS(1), dvt_keepdims(DVT_ALL). */
#define DVT_KEEPDIMS(...) dvt_keepdims(DVT_AXES(__VA_ARGS__))
DVT_API dvt_axes dvt_keepdims(dvt_axes axes);

/* Kinds of devices. */
typedef enum dvt_device_type {
    DVT_DEVICE_DEFAULT = 0, /* "the current default context": the zero value */
    DVT_DEVICE_CPU = 1,
    DVT_DEVICE_GPU = 2,
    DVT_DEVICE_TPU = 3, /* a name only: no build has TPUs, see dvt_num_tpus */
    DVT_DEVICE_META = 4 /* arrays without values, while dvt_block_infer_shapes runs */
} dvt_device_type;

/* The device of an array. cpu() is all cores and host memory, gpu(i) one GPU and its memory. */
typedef struct dvt_ctx {
    dvt_device_type type;
    int id;
} dvt_ctx;

/* A list of contexts, for example those of a network. */
typedef struct dvt_ctx_list {
    int n;
    dvt_ctx ctx[DVT_MAX_CONTEXTS];
} dvt_ctx_list;

/* The objects of the library. Each has a reference count and belongs to a scope (see
   [dvt:scope]). */
typedef struct dvt_array dvt_array;           /* an array on a context */
typedef struct dvt_block dvt_block;           /* a network or one of its layers */
typedef struct dvt_param dvt_param;           /* a parameter of a block, on several contexts */
typedef struct dvt_params dvt_params;         /* a collection of parameters */
typedef struct dvt_trainer dvt_trainer;       /* an optimizer with its parameters and state */
typedef struct dvt_dataset dvt_dataset;       /* samples: pairs of arrays */
typedef struct dvt_transform dvt_transform;   /* a function of one sample */
typedef struct dvt_loader dvt_loader;         /* batches of a dataset */
typedef struct dvt_metric dvt_metric;         /* a figure of merit over batches */
typedef struct dvt_progress dvt_progress;     /* a progress display */
typedef struct dvt_curve dvt_curve;           /* a plot of series of points */
typedef struct dvt_array_list dvt_array_list; /* arrays of a file, with names and metadata */
