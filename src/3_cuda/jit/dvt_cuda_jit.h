/* Shared by the files of this directory. The steps from a program to a function:

     text      its source, from a family and a variant             dvt_cuda_text.c
     key       a hash of the source, the options and the architecture
     image     loadable code, from another GPU of this process, from the disk cache, or from NVRTC
                                         dvt_cuda_jit.c, dvt_cuda_cache.c, dvt_cuda_compile.c
     module    the image in a context                              dvt_cuda_jit.c
     function  of a module, found again by every launch            dvt_cuda_loaded.c */
#ifndef DVTI_CUDA_JIT_H
#define DVTI_CUDA_JIT_H
#include "3_cuda/dvt_cuda.h"

typedef struct dvti_cuda_key {
    uint64_t word[2];
} dvti_cuda_key;

/* The input of cuModuleLoadDataEx: a CUBIN, or PTX with its final 0. */
typedef struct dvti_cuda_image {
    char *bytes; /* to be freed */
    size_t size;
} dvti_cuda_image;

typedef struct dvti_cuda_loaded {
    dvti_cuda_program program;
    dvti_cu_module module;
    const char *entry; /* never freed */
    dvti_cu_function function;
    const struct dvti_cuda_loaded *next; /* of the same hash */
} dvti_cuda_loaded;

/* Returns a loaded function of the program; entry NULL: any. NULL if there is none. */
DVTI_FN const dvti_cuda_loaded *dvti_cuda_find(dvti_cuda_physical *physical,
                                               const dvti_cuda_program *program, const char *entry);
/* Adds a function, for which physical->lock is held. Takes over its memory. */
DVTI_FN void dvti_cuda_loaded_add(dvti_cuda_physical *physical, dvti_cuda_loaded *one);
/* Returns the key for a compute capability. It excludes NVRTC's version, so that a warm cache needs
   no NVRTC. */
DVTI_FN dvti_cuda_key dvti_cuda_key_of(int cc, dvti_cuda_family family, const char *source);
DVTI_FN bool dvti_cuda_fuses(dvti_cuda_family family);
/* Returns whether the family's programs need the instructions of one compute capability alone
   (sm_90a). Their images run nowhere else. */
DVTI_FN bool dvti_cuda_exact(dvti_cuda_family family);
/* Compiles for a compute capability. A source of the family `custom` that does not compile is an
   error of the caller: VALUE. */
DVTI_FN dvt_status dvti_cuda_compile(int cc, dvti_cuda_family family, const char *function,
                                     const char *source, dvti_cuda_image *image);

/* ---- the disk cache: its failures are not errors ---- */
/* Returns false when the entry is missing or not trusted. */
DVTI_FN bool dvti_cuda_cache_read(dvti_cuda_key key, dvti_cuda_image *image);
/* Writes the entry, or replaces it. */
DVTI_FN void dvti_cuda_cache_write(dvti_cuda_key key, const dvti_cuda_image *image);

#endif
