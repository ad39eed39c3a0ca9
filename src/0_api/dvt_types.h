/* [dvt:types] dtypes, shapes, axes, contexts: small values, passed by value. */

#define DVT_MAX_DIMS 8
#define DVT_MAX_GPUS 16
#define DVT_MAX_CONTEXTS 32

/* float32 is the default: the zero of this enum. */
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

#define DVT_DTYPE_COUNT 9

/* "float32", "bfloat16", "bool"; "?" for a number that is no dtype. */
DVT_API const char *dvt_dtype_name(dvt_dtype dtype);
/* Finds a dtype by that name. Errors: NAME. */
DVT_API dvt_status dvt_dtype_parse(const char *name, dvt_dtype *out);
/* Bytes of one element; 0 for a number that is no dtype. */
DVT_API int64_t dvt_dtype_size(dvt_dtype dtype);
DVT_API bool dvt_dtype_is_float(dvt_dtype dtype);
DVT_API bool dvt_dtype_is_int(dvt_dtype dtype);
/* The dtype of a result computed from two: the array API standard's table; an integer (or bool)
   with a float gives that float, float16 with bfloat16 gives float32, uint8 with int8 gives int32
   (there is no int16). */
DVT_API dvt_dtype dvt_promote(dvt_dtype a, dvt_dtype b);

/* Extents, outermost first. ndim 0 is a scalar; an extent of 0 makes an empty array. */
typedef struct dvt_shape {
    int ndim;
    int64_t dim[DVT_MAX_DIMS];
} dvt_shape;

/* Axes of a reduction; negative ones count from the end. The zero value means all axes.
   keepdims leaves the reduced axes in the result, with extent 1. */
typedef struct dvt_axes {
    int n; /* 0: all axes */
    int axis[DVT_MAX_DIMS];
    bool keepdims;
} dvt_axes;

/* The same number of axes, and the same extents. */
DVT_API bool dvt_shape_equal(dvt_shape a, dvt_shape b);
/* The product of the extents; -1 when it does not fit in an int64_t or an extent is negative. */
DVT_API int64_t dvt_shape_size(dvt_shape shape);

/* DVT_SHAPE(2, 3): one to eight extents. DVT_SCALAR: no extents. */
#define DVT_SHAPE(...) DVT_CALL_8(dvt_shape_make, 0, __VA_ARGS__)
#define DVT_SCALAR dvt_shape_make(0, 0, 0, 0, 0, 0, 0, 0, 0)
/* DVT_AXES(0, -1): one to eight axes. DVT_ALL: every axis. */
#define DVT_AXES(...) DVT_CALL_8(dvt_axes_make, 0, __VA_ARGS__)
#define DVT_ALL dvt_axes_make(0, 0, 0, 0, 0, 0, 0, 0, 0)
/* The same axes, which a reduction leaves with extent 1: DVT_KEEPDIMS(1), dvt_keepdims(DVT_ALL). */
#define DVT_KEEPDIMS(...) dvt_keepdims(DVT_AXES(__VA_ARGS__))
DVT_API dvt_axes dvt_keepdims(dvt_axes axes);

typedef enum dvt_device_type {
    DVT_DEVICE_DEFAULT = 0, /* "the current default context": the zero value */
    DVT_DEVICE_CPU = 1,
    DVT_DEVICE_GPU = 2,
    DVT_DEVICE_TPU = 3 /* a name only: no build has TPUs, see dvt_num_tpus */
} dvt_device_type;

/* Where an array lives: cpu() is all cores and main memory, gpu(i) one GPU and its memory. */
typedef struct dvt_ctx {
    dvt_device_type type;
    int id;
} dvt_ctx;

typedef struct dvt_ctx_list {
    int n;
    dvt_ctx ctx[DVT_MAX_CONTEXTS];
} dvt_ctx_list;

/* The objects of the library. All are counted by reference and owned by scopes (see [dvt:scope]).
 */
typedef struct dvt_array dvt_array;
typedef struct dvt_block dvt_block;
typedef struct dvt_param dvt_param;
typedef struct dvt_params dvt_params;
typedef struct dvt_trainer dvt_trainer;
typedef struct dvt_dataset dvt_dataset;
typedef struct dvt_transform dvt_transform;
typedef struct dvt_loader dvt_loader;
typedef struct dvt_metric dvt_metric;
typedef struct dvt_progress dvt_progress;
typedef struct dvt_curve dvt_curve;
typedef struct dvt_array_list dvt_array_list;
