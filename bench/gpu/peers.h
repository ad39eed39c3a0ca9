/* The peers in our process: the driver's copies and allocations, cuBLAS and cuBLASLt. They are
   opened at run time and declared here, without headers of CUDA. tests/cuda/headers compares the
   declarations with the toolkit's. */
#ifndef PEERS_H
#define PEERS_H
#include <dlfcn.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CUBLAS_N = 0, CUBLAS_T = 1, CUBLAS_DEFAULT = -1 };

enum { TYPE_F32 = 0, TYPE_F16 = 2, TYPE_BF16 = 14 };

enum { COMPUTE_F32 = 68, COMPUTE_TF32 = 77 };

enum { LT_TRANSPOSE_A = 3, LT_TRANSPOSE_B = 4, LT_WORKSPACE_BYTES = 1 };

#define WORKSPACE_BYTES ((size_t)32 << 20) /* what cuBLAS takes by itself on Hopper */

typedef struct lt_heuristic {
    uint64_t algo[8];
    size_t workspace;
    int state;
    float waves;
    int reserved[4];
} lt_heuristic;

#define DRIVER_TABLE(X)                                                                            \
    X(cuInit, (unsigned flags))                                                                    \
    X(cuDriverGetVersion, (int *version))                                                          \
    X(cuDeviceGet, (int *device, int ordinal))                                                     \
    X(cuDevicePrimaryCtxRetain, (void **context, int device))                                      \
    X(cuCtxPushCurrent_v2, (void *context))                                                        \
    X(cuEventCreate, (void **event, unsigned flags))                                               \
    X(cuEventRecord, (void *event, void *stream))                                                  \
    X(cuEventSynchronize, (void *event))                                                           \
    X(cuMemAlloc_v2, (unsigned long long *address, size_t bytes))                                  \
    X(cuMemFree_v2, (unsigned long long address))                                                  \
    X(cuMemHostAlloc, (void **block, size_t bytes, unsigned flags))                                \
    X(cuMemFreeHost, (void *block))                                                                \
    X(cuMemcpyHtoDAsync_v2, (unsigned long long dst, const void *src, size_t bytes, void *stream)) \
    X(cuMemcpyDtoHAsync_v2, (void *dst, unsigned long long src, size_t bytes, void *stream))       \
    X(cuMemcpyDtoDAsync_v2,                                                                        \
      (unsigned long long dst, unsigned long long src, size_t bytes, void *stream))                \
    X(cuStreamSynchronize, (void *stream))

#define CUBLAS_TABLE(X)                                                                            \
    X(cublasCreate_v2, (void **handle))                                                            \
    X(cublasSetStream_v2, (void *handle, void *stream))                                            \
    X(cublasSetWorkspace_v2, (void *handle, void *workspace, size_t bytes))                        \
    X(cublasGemmEx,                                                                                \
      (void *handle, int transpose_a, int transpose_b, int m, int n, int k, const void *alpha,     \
       const void *a, int type_a, int lda, const void *b, int type_b, int ldb, const void *beta,   \
       void *c, int type_c, int ldc, int compute, int algorithm))

#define CUBLASLT_TABLE(X)                                                                          \
    X(cublasLtCreate, (void **handle))                                                             \
    X(cublasLtMatmulDescCreate, (void **desc, int compute, int scale_type))                        \
    X(cublasLtMatmulDescSetAttribute,                                                              \
      (void *desc, int attribute, const void *value, size_t bytes))                                \
    X(cublasLtMatrixLayoutCreate,                                                                  \
      (void **layout, int type, uint64_t rows, uint64_t columns, int64_t ld))                      \
    X(cublasLtMatmulPreferenceCreate, (void **preference))                                         \
    X(cublasLtMatmulPreferenceSetAttribute,                                                        \
      (void *preference, int attribute, const void *value, size_t bytes))                          \
    X(cublasLtMatmulAlgoGetHeuristic,                                                              \
      (void *handle, void *desc, void *a, void *b, void *c, void *d, void *preference, int wanted, \
       lt_heuristic *found, int *count))                                                           \
    X(cublasLtMatmul,                                                                              \
      (void *handle, void *desc, const void *alpha, const void *a, void *layout_a, const void *b,  \
       void *layout_b, const void *beta, const void *c, void *layout_c, void *d, void *layout_d,   \
       const void *algo, void *workspace, size_t bytes, void *stream))

#define MEMBER(name, arguments) int(*name) arguments;

static struct driver {
    DRIVER_TABLE(MEMBER)
    int (*elapsed)(float *milliseconds, void *begin, void *end);
} driver;

static struct cublas {
    CUBLAS_TABLE(MEMBER)
    void *handle;
} cublas;

static struct cublaslt {
    CUBLASLT_TABLE(MEMBER)
    void *handle, *preference;
} cublaslt;

static unsigned long long peer_workspace;

static bool peer_symbol(void *library, const char *name, void *member) {
    void *symbol = dlsym(library, name);
    memcpy(member, &symbol, sizeof symbol);
    if (!symbol)
        fprintf(stderr, "peers: no %s\n", name);
    return symbol != NULL;
}

/* Opens the first library of a list of names that ends in NULL. */
static void *peer_library(const char *const *names) {
    void *library = NULL;
    for (; *names && !library; names++)
        library = dlopen(*names, RTLD_NOW | RTLD_LOCAL);
    return library;
}

#define RESOLVE(name, arguments) ok = ok && peer_symbol(library, #name, &into->name);

/* Makes the primary context of GPU 0 current; devtensor computes in it, too. */
static bool driver_open(void) {
    static const char *const names[] = {"libcuda.so.1", "/usr/local/nvidia/lib64/libcuda.so.1",
                                        NULL};
    struct driver *into = &driver;
    const char *path = getenv("DEVTENSOR_CUDA_PATH");
    void *library = path ? dlopen(path, RTLD_NOW) : peer_library(names), *context = NULL;
    bool ok = library != NULL;
    int device = 0;
    DRIVER_TABLE(RESOLVE)
    if (ok && !dlsym(library, "cuEventElapsedTime_v2"))
        ok = peer_symbol(library, "cuEventElapsedTime", &into->elapsed);
    else if (ok)
        ok = peer_symbol(library, "cuEventElapsedTime_v2", &into->elapsed);
    return ok && driver.cuInit(0) == 0 && driver.cuDeviceGet(&device, 0) == 0 &&
           driver.cuDevicePrimaryCtxRetain(&context, device) == 0 &&
           driver.cuCtxPushCurrent_v2(context) == 0;
}

#define NEWEST_CUBLAS 13

/* Opens a library in BENCH_CUBLAS_PATH, a directory, or where the loader finds it. The version of
   the driver comes first, then older ones, then newer ones, which may not start. */
static void *cublas_library(const char *name) {
    static const char *const places[] = {"", "/usr/local/cuda/lib64/", NULL};
    const char *folder = getenv("BENCH_CUBLAS_PATH");
    void *library = NULL;
    char path[600];
    int version = 0, tried, i;
    if (driver.cuDriverGetVersion(&version) != 0 || version / 1000 > NEWEST_CUBLAS)
        version = NEWEST_CUBLAS * 1000;
    for (tried = 0; tried <= NEWEST_CUBLAS - 11 && !library; tried++) {
        int older = version / 1000 - tried; /* below 11: a newer one instead */
        int major = older >= 11 ? older : version / 1000 + 11 - older;
        for (i = folder ? -1 : 0; !library && (folder ? i < 0 : places[i] != NULL); i++) {
            snprintf(path, sizeof path, "%s%s%s.so.%d", folder ? folder : places[i],
                     folder ? "/" : "", name, major);
            library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
        }
    }
    return library;
}

static bool cublas_open(void *stream) {
    struct cublas *into = &cublas;
    void *library = cublas_library("libcublas");
    bool ok = library != NULL;
    CUBLAS_TABLE(RESOLVE)
    if (ok && !peer_workspace)
        ok = driver.cuMemAlloc_v2(&peer_workspace, WORKSPACE_BYTES) == 0;
    return ok && cublas.cublasCreate_v2(&cublas.handle) == 0 &&
           cublas.cublasSetStream_v2(cublas.handle, stream) == 0 &&
           cublas.cublasSetWorkspace_v2(cublas.handle, (void *)(uintptr_t)peer_workspace,
                                        WORKSPACE_BYTES) == 0;
}

static bool cublaslt_open(void) {
    struct cublaslt *into = &cublaslt;
    void *library = cublas_library("libcublasLt");
    size_t bytes = WORKSPACE_BYTES;
    bool ok = library != NULL;
    CUBLASLT_TABLE(RESOLVE)
    if (ok && !peer_workspace)
        ok = driver.cuMemAlloc_v2(&peer_workspace, WORKSPACE_BYTES) == 0;
    return ok && cublaslt.cublasLtCreate(&cublaslt.handle) == 0 &&
           cublaslt.cublasLtMatmulPreferenceCreate(&cublaslt.preference) == 0 &&
           cublaslt.cublasLtMatmulPreferenceSetAttribute(cublaslt.preference, LT_WORKSPACE_BYTES,
                                                         &bytes, sizeof bytes) == 0;
}

#undef MEMBER
#undef RESOLVE

/* A product of row-major matrices: c (m, n) = op(a) op(b). Both libraries are column-major, so they
   compute the transpose of c from b and a, in that order. */
typedef struct product {
    int m, n, k, type, compute;
    bool ta, tb;
    unsigned long long a, b, c;
    void *desc, *layout_a, *layout_b, *layout_c;
    lt_heuristic algorithm;
} product;

static const float one = 1, zero = 0;

/* The two products return the library's code. */
static int product_cublas(product *p) {
    return cublas.cublasGemmEx(cublas.handle, p->tb ? CUBLAS_T : CUBLAS_N,
                               p->ta ? CUBLAS_T : CUBLAS_N, p->n, p->m, p->k, &one,
                               (void *)(uintptr_t)p->b, p->type, p->tb ? p->k : p->n,
                               (void *)(uintptr_t)p->a, p->type, p->ta ? p->m : p->k, &zero,
                               (void *)(uintptr_t)p->c, p->type, p->n, p->compute, CUBLAS_DEFAULT);
}

/* Prepares a product for cuBLASLt, with the first algorithm that it proposes. */
static bool product_describe(product *p) {
    int ta = p->tb ? CUBLAS_T : CUBLAS_N, tb = p->ta ? CUBLAS_T : CUBLAS_N, count = 0;
    uint64_t m = (uint64_t)p->m, n = (uint64_t)p->n, k = (uint64_t)p->k;
    return cublaslt.cublasLtMatmulDescCreate(&p->desc, p->compute, TYPE_F32) == 0 &&
           cublaslt.cublasLtMatmulDescSetAttribute(p->desc, LT_TRANSPOSE_A, &ta, sizeof ta) == 0 &&
           cublaslt.cublasLtMatmulDescSetAttribute(p->desc, LT_TRANSPOSE_B, &tb, sizeof tb) == 0 &&
           cublaslt.cublasLtMatrixLayoutCreate(&p->layout_b, p->type, p->tb ? k : n, p->tb ? n : k,
                                               p->tb ? p->k : p->n) == 0 &&
           cublaslt.cublasLtMatrixLayoutCreate(&p->layout_a, p->type, p->ta ? m : k, p->ta ? k : m,
                                               p->ta ? p->m : p->k) == 0 &&
           cublaslt.cublasLtMatrixLayoutCreate(&p->layout_c, p->type, n, m, p->n) == 0 &&
           cublaslt.cublasLtMatmulAlgoGetHeuristic(
               cublaslt.handle, p->desc, p->layout_b, p->layout_a, p->layout_c, p->layout_c,
               cublaslt.preference, 1, &p->algorithm, &count) == 0 &&
           count == 1;
}

static int product_cublaslt(product *p, void *stream) {
    return cublaslt.cublasLtMatmul(cublaslt.handle, p->desc, &one, (void *)(uintptr_t)p->b,
                                   p->layout_b, (void *)(uintptr_t)p->a, p->layout_a, &zero,
                                   (void *)(uintptr_t)p->c, p->layout_c, (void *)(uintptr_t)p->c,
                                   p->layout_c, p->algorithm.algo,
                                   (void *)(uintptr_t)peer_workspace, WORKSPACE_BYTES, stream);
}

#endif
