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

   What it does not do: move data by itself between contexts; abort; print without being asked (the
   logger's warnings and errors can be silenced); download anything; depend on more than libc,
   threads and dlopen; sparse or complex arrays; more than 8 dimensions.

   Contents, to search for:
     [dvt:config]   switches and environment variables
     [dvt:status]   errors, logging, the allocator
     [dvt:types]    dtypes, shapes, axes, contexts
     [dvt:scope]    who owns what
     [dvt:context]  devices
     [dvt:array]    arrays, views and copies
     [dvt:ops]      operations
     [dvt:random]   random numbers
     [dvt:autograd] gradients
     [dvt:io]       printing and files
     [dvt:gpu]      device memory, compiled kernels, streams
     [dvt:nn]       networks
     [dvt:train]    training and data
     [dvt:macros]   what the macros of the other sections expand to

   Names. dvt_add works on arrays. A function of another object begins with its type: dvt_block_,
   dvt_param_, dvt_trainer_, dvt_dataset_, dvt_loader_. Blocks are made by dvt_nn_, losses computed
   by dvt_loss_, values made by dvt_init_, dvt_optimizer_ and dvt_schedule_. NAME_with takes every
   choice of NAME in a struct whose zeros are the defaults; NAME_ works in place; dvt_as_in_NAME
   returns its argument where that is already so. Arguments come in this order: what the call works
   on, choices, contexts, results.

   Threads. Any thread may call any function. Different arrays may be used at the same time. One
   array may be read by many threads at once, or written by one while no other uses it. Errors,
   scopes, the default context, recording and train mode belong to the calling thread. Nothing may
   be called from a signal handler. */
/* The implementation needs POSIX, which a strict -std=c99 hides unless asked for before the first
   system header. */
#if (defined(DEVTENSOR_IMPLEMENTATION) || defined(DEVTENSOR_STATIC) || defined(DVTI_FN)) &&        \
    !defined(_WIN32) && !defined(_GNU_SOURCE)
#define _GNU_SOURCE 1
#endif
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
