/* Shared by the files of dvt_kernel: the object, and the parameters that its source declares. */
#ifndef DVTI_OWN_KERNEL_H
#define DVTI_OWN_KERNEL_H
#include "4_ops/dvt_op.h"

#define DVTI_EXPRESSION_INPUTS 8 /* as dvti_kcustom (3_cuda/kernels/args.h) */
#define DVTI_IDENTIFIER 64       /* bytes of a name, with the final 0 */

/* A parameter of a __global__ function, as far as its text tells. */
typedef struct dvti_parameter {
    bool pointer, constant;
    bool narrow;         /* a scalar of 8 or 16 bits, which no argument has */
    int dtype;           /* of a pointer's elements; -1: any */
    dvt_arg_kind scalar; /* DVT_ARG_NONE: unknown */
    char name[DVTI_IDENTIFIER];
} dvti_parameter;

typedef struct dvti_signature {
    int n; /* -1: unknown */
    dvti_parameter parameter[DVT_KERNEL_ARGS];
} dvti_signature;

struct dvt_kernel {
    dvti_object object;
    char *source;      /* or the expression */
    const char *entry; /* NULL: an expression */
    const char *label; /* "dvt_kernel_launch(saxpy)", for messages and traces */
    uint64_t hash[2];
    dvt_kernel_host_fn host;
    dvt_kernel_element_fn element;
    void *user;
    dvti_signature signature; /* of an expression: the names of its inputs */
    const char *input[DVT_KERNEL_ARGS];
};

/* Reads the parameters of `__global__ void name(...)` from CUDA source. Types that are not written
   plainly are unknown; so is the whole list after macros and preprocessor lines in it. */
DVTI_FN void dvti_signature_read(const char *source, const char *name, dvti_signature *out);
/* Returns the length of the C identifier at the beginning of the text; 0: none, or too long. */
DVTI_FN size_t dvti_identifier(const char *text);
/* Returns a kernel without its names, owned by the innermost scope; NULL with the error set. */
DVTI_FN dvt_kernel *dvti_kernel_begin(const char *function, const char *source, const char *label);
/* Fills the call from the arguments: their number, kinds and contexts, no history. Copies the
   arrays to array[], NULL for scalars, and returns the first one; NULL with the error set. */
DVTI_FN dvt_array *dvti_kernel_arguments(const dvt_kernel *kernel, const dvt_kernel_arg *args,
                                         int64_t n, dvti_custom *custom, dvt_array **array);
/* Checks that the device compiles source, or that a C function stands in. */
DVTI_FN bool dvti_kernel_runs_on(const dvt_kernel *kernel, const dvti_device *device);

#endif
