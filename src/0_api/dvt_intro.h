/* devtensor: NumPy-like arrays on cpu() and gpu(i), gradients, small networks and training, in one file.

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

   What it does not do: move data by itself between contexts; abort; print behind your back (the logger's warnings
   and errors can be silenced); download anything; depend on more than libc, threads and dlopen; sparse or complex
   arrays; more than 8 dimensions.

   Contents, to search for: [dvt:config] switches - [dvt:status] errors, logging, allocator - [dvt:types] dtypes, shapes -
   [dvt:scope] who owns what - [dvt:context] devices - [dvt:array] arrays and copies - [dvt:ops] arithmetic -
   [dvt:random] - [dvt:autograd] - [dvt:io] printing and files - [dvt:gpu] kept memory, kernels, streams - [dvt:nn]
   networks - [dvt:train] training, data.

   Threads. Any thread may call any function. Different arrays may be used at the same time; one array may be read by many
   threads at once, and written by one while no other uses it. Errors, scopes, the default context, recording and train
   mode belong to the calling thread. Nothing may be called from a signal handler. */
/* The implementation needs POSIX, which a strict -std=c99 hides unless asked for before the first system header. */
#if (defined(DEVTENSOR_IMPLEMENTATION) || defined(DEVTENSOR_STATIC) || defined(DVTI_FN)) &&        \
    !defined(_WIN32) && !defined(_GNU_SOURCE)
#define _GNU_SOURCE 1
#endif
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
