/* [dvt:kernel] CUDA kernels of the program. They use the compiler, the cache on disk, the stream
   order and the error messages of the library's own kernels. On cpu() and virtual GPUs a C function
   takes their place.

       dvt_kernel *saxpy = dvt_kernel_new(
           "extern \"C\" __global__ void saxpy(const float *x, float *y, float a, int64_t n) {\n"
           "    int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;\n"
           "    if (i < n) y[i] += a * x[i];\n"
           "}\n", "saxpy");
       dvt_kernel_launch(saxpy, DVT_SHAPE((n + 255) / 256), DVT_SHAPE(256), 0,
                         DVT_ARGS(DVT_IN(x), DVT_INOUT(y), DVT_FLOAT(2), DVT_INT64(n))); */

#define DVT_KERNEL_ARGS 32 /* largest number of arguments of a kernel */

typedef struct dvt_kernel dvt_kernel; /* a kernel of the program */

/* What an argument is. The zero value is none, and refused. */
typedef enum dvt_arg_kind {
    DVT_ARG_NONE,
    DVT_ARG_IN, /* arrays */
    DVT_ARG_OUT,
    DVT_ARG_INOUT,
    DVT_ARG_INT32, /* scalars */
    DVT_ARG_INT64,
    DVT_ARG_FLOAT,
    DVT_ARG_DOUBLE
} dvt_arg_kind;

/* One argument; make it with the macros below. */
typedef struct dvt_kernel_arg {
    dvt_arg_kind kind;
    dvt_array *array;
    int64_t i;
    double f;
} dvt_kernel_arg;

/* An array that the kernel reads. */
#define DVT_IN(x) dvt_arg_array(DVT_ARG_IN, x)
/* An array that it writes, every element. */
#define DVT_OUT(x) dvt_arg_array(DVT_ARG_OUT, x)
/* An array that it reads and writes, or writes in part. */
#define DVT_INOUT(x) dvt_arg_array(DVT_ARG_INOUT, x)
/* An int or unsigned. */
#define DVT_INT32(value) dvt_arg_int(DVT_ARG_INT32, value)
/* A 64-bit integer: int64_t, long long, size_t. */
#define DVT_INT64(value) dvt_arg_int(DVT_ARG_INT64, value)
/* A float. */
#define DVT_FLOAT(value) dvt_arg_real(DVT_ARG_FLOAT, value)
/* A double. */
#define DVT_DOUBLE(value) dvt_arg_real(DVT_ARG_DOUBLE, value)
/* The arguments of a call, in the kernel's order: pointer and number. */
#define DVT_ARGS(...) DVT_ARGS_OF(__VA_ARGS__)

/* An argument as a C function receives it. */
typedef struct dvt_kernel_value {
    dvt_arg_kind kind;
    dvt_dtype dtype; /* arrays */
    void *data;      /* arrays: the first element, contiguous */
    int64_t size;    /* arrays: elements */
    int64_t i;       /* scalars: the value in both */
    double f;
} dvt_kernel_value;

/* A launch as a C function receives it. */
typedef struct dvt_kernel_call {
    int64_t grid[3], block[3], shared_bytes;
    int n_args;
    dvt_kernel_value arg[DVT_KERNEL_ARGS];
} dvt_kernel_call;

/* Stands in for a kernel on cpu() and on virtual GPUs: computes what all threads of the grid would.
   On a virtual GPU its queue calls it, later and on another thread. It must not call the
   library. */
typedef void (*dvt_kernel_host_fn)(void *user, const dvt_kernel_call *call);
/* Stands in for an expression: returns its value for one element from the inputs' values, in the
   order of their names. Integers reach it as double, exact to 2^53. Not called by two threads at
   once for one launch. */
typedef double (*dvt_kernel_element_fn)(void *user, const double *value);

/* Makes a kernel of CUDA C++ source, which has an extern "C" __global__ function of that name. Both
   texts are copied. Nothing is compiled before the first launch on a GPU; each architecture is
   compiled once, and the cache on disk keeps it. NVRTC sees no headers of the toolkit. The types
   int8_t to uint64_t are defined, and CUDA's own functions need no header. <stdint.h>, <limits.h>,
   <float.h>, <math.h>, <stddef.h> and <stdbool.h> may be included, for macros such as INT32_MAX,
   FLT_MAX, INFINITY and M_PI. Comments and strings may have any byte but 0xFF, so also UTF-8. The
   source is trusted as the program is: a wrong address in it ends the GPU's context.
   Owns: the innermost scope. Errors: NULL_ARGUMENT, VALUE (the name is no C identifier; the source
   has a byte 0xFF, where NVRTC would end). */
DVT_API dvt_kernel *dvt_kernel_new(const char *source, const char *name);
/* Makes a kernel of one C++ expression over named inputs: dvt_kernel_expression("x, y", "x * x +
   y"). At most 8 names. On a GPU it is one fused kernel. T is the type that it computes in: float
   for float32 and 16-bit floats, double for float64, int64_t for integers and bool.
   Owns: the innermost scope. Errors: NULL_ARGUMENT, VALUE (names; a byte 0xFF in the
   expression). */
DVT_API dvt_kernel *dvt_kernel_expression(const char *inputs, const char *expression);
/* Set the C function that stands in on cpu() and virtual GPUs, for the two forms; NULL: none.
   `user` is passed to it, and must live until the launched work is done. Errors: VALUE (the other
   form), NULL_ARGUMENT. */
DVT_API dvt_status dvt_kernel_set_host(dvt_kernel *kernel, dvt_kernel_host_fn function, void *user);
DVT_API dvt_status dvt_kernel_set_element(dvt_kernel *kernel, dvt_kernel_element_fn function,
                                          void *user);
/* Launches a kernel on the context of its arrays. grid and block have one to three extents, x
   first. A grid with an extent of 0 computes nothing. A block has at most 1024 threads, and 64 in
   z; grids have at most 2^31 - 1 blocks in x and 65535 in y and z. shared_bytes: dynamic shared
   memory, at most what the GPU has (48 KiB on every GPU). The arguments follow the function's
   parameters: their number, and types that are written plainly (`const float *`, `int`, ...), are
   compared with the source. Scalars have 32 or 64 bits, so a char, short or bool is refused.
   Arrays are contiguous, and at least one is given. Written arrays count as overwritten: see
   dvt_mark_written. Nothing is recorded, so a kernel refuses arrays with a history while recording.
   Copies: never.  Waits: no, but a first launch compiles.
   Errors: NULL_ARGUMENT, CONTEXT, VALUE (arguments, not contiguous, the source does not compile),
   RANGE (grid, block, shared_bytes), DTYPE, GRAD, UNSUPPORTED (no C function stands in),
   NO_COMPILER. */
DVT_API dvt_status dvt_kernel_launch(dvt_kernel *kernel, dvt_shape grid, dvt_shape block,
                                     int64_t shared_bytes, const dvt_kernel_arg *args, int64_t n);
/* Computes the expression for each element: an argument for each name, DVT_IN or a scalar, at least
   one array. Strides are free.
   Shapes: the inputs broadcast.  Dtype: promoted as by dvt_add; scalars count as in
   dvt_add_scalar.
   Copies: never between contexts.  Waits: no, but a first launch compiles. Not recorded, as above.
   Errors: as dvt_kernel_launch, SHAPE. */
DVT_API dvt_array *dvt_kernel_apply(dvt_kernel *kernel, const dvt_kernel_arg *args, int64_t n);
/* Make an argument, for the macros above. */
DVT_API dvt_kernel_arg dvt_arg_array(dvt_arg_kind kind, dvt_array *array);
DVT_API dvt_kernel_arg dvt_arg_int(dvt_arg_kind kind, int64_t value);
DVT_API dvt_kernel_arg dvt_arg_real(dvt_arg_kind kind, double value);
