/* SLEEF's functions of one result in loops over arrays, at 1 ulp, in the widest vectors of the
   processor; threads by OpenMP. */
#include "runner.h"
#include <dlfcn.h>

typedef float v16 __attribute__((vector_size(64)));
typedef float v8 __attribute__((vector_size(32)));
typedef v16 (*f16)(v16);
typedef v8 (*f8)(v8);

typedef struct loop {
    int64_t n;
    float *x, *y;
    void *function;
    bool sigmoid;
} loop;

static void *library;

#if defined(__x86_64__)
/* The arrays are padded to whole vectors. */
__attribute__((target("avx512f"))) static void call_16(runner_case *c) {
    const loop *l = (const loop *)c->user;
    f16 f;
    int64_t i;
    memcpy(&f, &l->function, sizeof f);
#if defined(_OPENMP)
#pragma omp parallel for if (l->n > 4096)
#endif
    for (i = 0; i < l->n; i += 16) {
        v16 x = *(const v16 *)(l->x + i);
        *(v16 *)(l->y + i) = l->sigmoid ? 1 / (1 + f(-x)) : f(x);
    }
}

__attribute__((target("avx2"))) static void call_8(runner_case *c) {
    const loop *l = (const loop *)c->user;
    f8 f;
    int64_t i;
    memcpy(&f, &l->function, sizeof f);
#if defined(_OPENMP)
#pragma omp parallel for if (l->n > 4096)
#endif
    for (i = 0; i < l->n; i += 8) {
        v8 x = *(const v8 *)(l->x + i);
        *(v8 *)(l->y + i) = l->sigmoid ? 1 / (1 + f(-x)) : f(x);
    }
}
#endif

static const float *output(runner_case *c, int64_t *count) {
    const loop *l = (const loop *)c->user;
    *count = l->n;
    return l->y;
}

static void end(runner_case *c) {
    loop *l = (loop *)c->user;
    free(l->x);
    free(l->y);
    free(l);
}

static const struct {
    const char *op, *sleef;
    float low, high;
} functions[] = {{"exp", "exp", -4, 4},   {"log", "log", 0.01f, 10}, {"tanh", "tanh", -4, 4},
                 {"sin", "sin", -10, 10}, {"sigmoid", "exp", -8, 8}, {"erf", "erf", -3, 3}};

#if defined(__x86_64__)
/* Sleef_expf16_u10avx512f is the function for AVX-512; Sleef_expf8_u10 dispatches to those for
   AVX. */
static void *function_of(const char *name, bool wide) {
    static const char *const forms[2][2] = {{"Sleef_%sf8_u10avx2", "Sleef_%sf8_u10"},
                                            {"Sleef_%sf16_u10avx512f", "Sleef_%sf16_u10"}};
    char symbol[64];
    void *at = NULL;
    int i;
    for (i = 0; i < 2 && !at; i++) {
        snprintf(symbol, sizeof symbol, forms[wide][i], name);
        at = dlsym(library, symbol);
    }
    return at;
}
#endif

static const char *find(const char *op, const char *arguments, runner_case *c) {
    loop *l = (loop *)calloc(1, sizeof *l);
    size_t i;
    if (!l)
        return "no memory";
    c->user = l;
    c->end = end;
    c->output = output;
    l->n = argument(arguments, "n", 0);
    for (i = 0; i < sizeof functions / sizeof functions[0] && l->n > 0; i++) {
        if (strcmp(op, functions[i].op) != 0)
            continue;
        l->x = input_alloc(l->n);
        l->y = input_alloc(l->n);
        if (!l->x || !l->y)
            break;
        input_fill(l->x, l->n, 1, functions[i].low, functions[i].high);
        l->sigmoid = op[1] == 'i' && op[2] == 'g';
#if defined(__x86_64__)
        {
            bool wide = __builtin_cpu_supports("avx512f") && !runner_narrow();
            l->function = function_of(functions[i].sleef, wide);
            c->call = wide ? call_16 : call_8;
        }
#endif
        if (l->function)
            return NULL;
    }
    end(c);
    memset(c, 0, sizeof *c);
    return "no such case";
}

int main(void) {
    library = dlopen("libsleef.so.3", RTLD_NOW);
    if (!library) {
        fprintf(stderr, "%s\n", dlerror());
        return 2;
    }
    return runner_main(find);
}
