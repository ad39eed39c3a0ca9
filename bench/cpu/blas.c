/* Products of BLAS-like libraries: blas LIBRARY KIND, where KIND is cblas, dnnl or xsmm. */
#include "runner.h"
#include <dlfcn.h>

typedef void (*cblas_fn)(int order, int ta, int tb, int m, int n, int k, float alpha,
                         const float *a, int lda, const float *b, int ldb, float beta, float *c,
                         int ldc);
typedef int (*dnnl_fn)(char ta, char tb, int64_t m, int64_t n, int64_t k, float alpha,
                       const float *a, int64_t lda, const float *b, int64_t ldb, float beta,
                       float *c, int64_t ldc);
typedef void (*fortran_fn)(const char *ta, const char *tb, const int *m, const int *n, const int *k,
                           const float *alpha, const float *a, const int *lda, const float *b,
                           const int *ldb, const float *beta, float *c, const int *ldc);

static cblas_fn cblas;
static dnnl_fn dnnl;
static fortran_fn xsmm;

typedef struct product {
    int m, n, k, ta, tb;
    float *a, *b, *c;
} product;

static void call(runner_case *c) {
    product *p = (product *)c->user;
    int lda = p->ta ? p->m : p->k, ldb = p->tb ? p->k : p->n;
    const float one = 1, zero = 0;
    if (cblas)
        cblas(101, p->ta ? 112 : 111, p->tb ? 112 : 111, p->m, p->n, p->k, 1, p->a, lda, p->b, ldb,
              0, p->c, p->n);
    else if (dnnl)
        dnnl(p->ta ? 'T' : 'N', p->tb ? 'T' : 'N', p->m, p->n, p->k, 1, p->a, lda, p->b, ldb, 0,
             p->c, p->n);
    else /* column-major: the transposed product */
        xsmm(p->tb ? "T" : "N", p->ta ? "T" : "N", &p->n, &p->m, &p->k, &one, p->b, &ldb, p->a,
             &lda, &zero, p->c, &p->n);
}

static const float *output(runner_case *c, int64_t *count) {
    product *p = (product *)c->user;
    *count = (int64_t)p->m * p->n;
    return p->c;
}

static void end(runner_case *c) {
    product *p = (product *)c->user;
    free(p->a);
    free(p->b);
    free(p->c);
    free(p);
}

static float *input(int64_t n, uint32_t seed) {
    float *block = input_alloc(n);
    if (block)
        input_fill(block, n, seed, -1, 1);
    return block;
}

static const char *find(const char *op, const char *arguments, runner_case *c) {
    product *p;
    if (strcmp(op, "mm") != 0)
        return "only products";
    p = (product *)calloc(1, sizeof *p);
    if (!p)
        return "no memory";
    p->m = (int)argument(arguments, "m", 0);
    p->n = (int)argument(arguments, "n", 0);
    p->k = (int)argument(arguments, "k", 0);
    p->ta = (int)argument(arguments, "ta", 0);
    p->tb = (int)argument(arguments, "tb", 0);
    p->a = input((int64_t)p->m * p->k, 1);
    p->b = input((int64_t)p->k * p->n, 2);
    p->c = input((int64_t)p->m * p->n, 3);
    c->user = p;
    c->call = call;
    c->output = output;
    c->end = end;
    if (!p->a || !p->b || !p->c) {
        end(c);
        memset(c, 0, sizeof *c);
        return "no memory";
    }
    return NULL;
}

/* Looks up a function; ISO C has no cast from an object pointer to one. */
static void symbol(void *library, const char *name, void *to) {
    void *at = dlsym(library, name);
    memcpy(to, &at, sizeof at);
}

int main(int argc, char **argv) {
    void *library = argc == 3 ? dlopen(argv[1], RTLD_NOW | RTLD_GLOBAL) : NULL;
    if (!library) {
        fprintf(stderr, "usage: blas LIBRARY cblas|dnnl|xsmm; %s\n", argc == 3 ? dlerror() : "");
        return 2;
    }
    if (strcmp(argv[2], "cblas") == 0)
        symbol(library, dlsym(library, "cblas_sgemm") ? "cblas_sgemm" : "scipy_cblas_sgemm",
               &cblas);
    else if (strcmp(argv[2], "dnnl") == 0)
        symbol(library, "dnnl_sgemm", &dnnl);
    else
        symbol(library, "libxsmm_sgemm", &xsmm);
    if (!cblas && !dnnl && !xsmm) {
        fprintf(stderr, "%s has no such function\n", argv[1]);
        return 2;
    }
    return runner_main(find);
}
