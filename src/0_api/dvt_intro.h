/* devtensor: NumPy-like arrays on cpu() and gpu(i), gradients, small networks and training, in one
   file.

   Quick start. In one C or C++ file:

       #define DEVTENSOR_IMPLEMENTATION
       #include "devtensor.h"
       int main(void) {
           dvt_ctx dev = dvt_try_gpu(0);
           dvt_array *x = dvt_ones(DVT_SHAPE(2, 3), DVT_F32, dev);
           dvt_print(dvt_exp(dvt_add_scalar(x, 2)));
           return dvt_error_code() != DVT_OK;
       }

   and in every other file the include alone. Compile with: cc app.c -lm -ldl -lpthread

   What it does not do: move data between contexts by itself; abort; print unasked, except for the
   logger's warnings and errors, which can be silenced; download anything; need more than libc,
   threads and dlopen; sparse or complex arrays; more than 8 dimensions.

   Contents. Search for the tags:
     [dvt:config]   switches and environment variables
     [dvt:status]   errors, logging, the allocator
     [dvt:types]    dtypes, shapes, axes, contexts
     [dvt:scope]    ownership of objects
     [dvt:context]  devices
     [dvt:array]    arrays, views and copies
     [dvt:ops]      operations
     [dvt:random]   random numbers
     [dvt:autograd] gradients
     [dvt:io]       printing and files
     [dvt:dlpack]   arrays shared with other libraries
     [dvt:gpu]      device memory, compiled kernels, streams
     [dvt:nn]       networks
     [dvt:sequence] recurrent layers, attention
     [dvt:loss]     losses
     [dvt:train]    training and data
     [dvt:checkpoint] the state of a run in a file
     [dvt:report]   traces, tables and images of runs
     [dvt:macros]   what the macros of the other sections expand to

   Names. Functions of arrays have no prefix of their own: dvt_add. Names of functions of other
   objects begin with the type: dvt_block_, dvt_param_, dvt_trainer_, dvt_dataset_, dvt_loader_.
   dvt_nn_ functions create blocks, dvt_loss_ functions compute losses. dvt_init_, dvt_optimizer_
   and dvt_schedule_ functions return structs. NAME_with takes all options of NAME in a struct whose
   zeros are the defaults. NAME_ works in place. dvt_as_in_NAME returns its argument if nothing has
   to be converted. The order of arguments is: inputs, options, contexts, outputs.

   Threads. Any thread may call any function. Several threads may use different arrays at the same
   time. Several threads may read one array at the same time. A thread may write an array only while
   no other thread uses it. Errors, scopes, the default context, recording and train mode belong to
   the calling thread. Signal handlers must not call the library. */
/* The implementation needs POSIX, which a strict -std=c99 hides unless the first system header is
   preceded by this macro. */
#if (defined(DEVTENSOR_IMPLEMENTATION) || defined(DEVTENSOR_STATIC) || defined(DVTI_FN)) &&        \
    !defined(_WIN32) && !defined(_GNU_SOURCE)
#define _GNU_SOURCE 1
#endif
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
