/* Limits of the machine, measured in the same run as the kernels that are compared with them. Case
   "fma": 200 million fused multiply-adds, each two operations: 0.4 GFLOP per call, split over the
   threads. Case "copy n=N": copies N floats from one array to another by the fastest of three
   methods. */
#include "runner.h"
#if defined(_OPENMP)
#include <omp.h>
#endif
#if defined(__x86_64__)
#include <immintrin.h>
#endif

#define FLOPS 400000000.0

typedef struct limits {
    int64_t n;
    float *from, *to;
    bool wide; /* fma: vectors of 64 bytes, else of 32 */
    int way;   /* copy: memcpy, plain stores, or non-temporal stores */
} limits;

/* Twelve chains hide the FMA latency on any machine with two FMA units, and fit in 16 registers. */
#define STEP(sum, constraint)                                                                      \
    sum = sum * factor + term;                                                                     \
    __asm__ volatile("" : "+" constraint(sum)) /* or twelve equal chains would be merged */
#define PEAK(name, bytes, constraint, isa)                                                         \
    typedef float name##_v __attribute__((vector_size(bytes)));                                    \
    isa static float name(double flops) {                                                          \
        name##_v a, b, c, d, e, f, g, h, i, j, k, l, factor, term;                                 \
        int64_t turns = (int64_t)(flops / (2.0 * 12 * (bytes / 4)));                               \
        int lane;                                                                                  \
        for (lane = 0; lane < (int)(bytes / 4); lane++) {                                          \
            factor[lane] = 0.999f;                                                                 \
            term[lane] = 1e-3f;                                                                    \
        }                                                                                          \
        a = b = c = d = e = f = g = h = i = j = k = l = term;                                      \
        for (; turns > 0; turns--) {                                                               \
            STEP(a, constraint);                                                                   \
            STEP(b, constraint);                                                                   \
            STEP(c, constraint);                                                                   \
            STEP(d, constraint);                                                                   \
            STEP(e, constraint);                                                                   \
            STEP(f, constraint);                                                                   \
            STEP(g, constraint);                                                                   \
            STEP(h, constraint);                                                                   \
            STEP(i, constraint);                                                                   \
            STEP(j, constraint);                                                                   \
            STEP(k, constraint);                                                                   \
            STEP(l, constraint);                                                                   \
        }                                                                                          \
        a += b + c + d + e + f + g + h + i + j + k + l;                                            \
        return a[0];                                                                               \
    }

#define FAST optimize("O3,fp-contract=fast")
#if defined(__x86_64__)
PEAK(peak_wide, 64, "v", __attribute__((target("avx512f,fma"), FAST)))
PEAK(peak_narrow, 32, "x", __attribute__((target("avx2,fma"), FAST)))
#elif defined(__aarch64__)
PEAK(peak_narrow, 16, "w", __attribute__((FAST)))
#define peak_wide peak_narrow
#endif

static volatile float kept;

static void call_fma(runner_case *c) {
    const limits *l = (const limits *)c->user;
    int threads = 1;
#if defined(_OPENMP)
    threads = omp_get_max_threads();
#endif
#if defined(__x86_64__) || defined(__aarch64__)
#if defined(_OPENMP)
#pragma omp parallel num_threads(threads)
#endif
    kept = l->wide ? peak_wide(FLOPS / threads) : peak_narrow(FLOPS / threads);
#else
    (void)l;
    (void)threads;
#endif
}

/* The C library uses non-temporal stores for large arrays, which some machines execute slower than
   plain stores. */
typedef float moved __attribute__((vector_size(32), aligned(4)));

__attribute__((optimize("O3,no-tree-loop-distribute-patterns"))) static void
copy_by_moves(float *to, const float *from, int64_t n) {
    int64_t i;
    for (i = 0; i + 8 <= n; i += 8)
        *(moved *)(to + i) = *(const moved *)(from + i);
    for (; i < n; i++)
        to[i] = from[i];
}

/* For a large result, non-temporal stores avoid the read before the write. first and end are
   multiples of 16, except for the last end. */
#if defined(__x86_64__)
__attribute__((target("avx"))) static void copy_around(float *to, const float *from, int64_t n) {
    int64_t i;
    for (i = 0; i + 8 <= n; i += 8) {
        __builtin_prefetch(from + i + 256);
        _mm256_stream_ps(to + i, _mm256_loadu_ps(from + i));
    }
    for (; i < n; i++)
        to[i] = from[i];
    _mm_sfence();
}

#define COPIES (__builtin_cpu_supports("avx") ? 3 : 2)
#else
#define copy_around copy_by_moves
#define COPIES 2
#endif

static void copy_part(const limits *l, int64_t first, int64_t end) {
    if (l->way == 2)
        copy_around(l->to + first, l->from + first, end - first);
    else if (l->way == 1)
        copy_by_moves(l->to + first, l->from + first, end - first);
    else
        memcpy(l->to + first, l->from + first, (size_t)(end - first) * sizeof(float));
}

static void call_copy(runner_case *c) {
    const limits *l = (const limits *)c->user;
#if defined(_OPENMP)
#pragma omp parallel
    {
        int64_t threads = omp_get_num_threads(), me = omp_get_thread_num();
        int64_t begin = l->n * me / threads / 16 * 16, end = l->n * (me + 1) / threads / 16 * 16;
        copy_part(l, begin, me + 1 == threads ? l->n : end);
    }
#else
    copy_part(l, 0, l->n);
#endif
}

/* Chooses the fastest method on this machine. */
static void choose_copy(runner_case *c) {
    limits *l = (limits *)c->user;
    double best[3] = {1e9, 1e9, 1e9}, begin;
    int i, ways = COPIES, fastest = 0;
    for (i = 0; i < 3 * ways; i++) {
        l->way = i % ways;
        begin = runner_now();
        call_copy(c);
        begin = runner_now() - begin;
        best[l->way] = begin < best[l->way] ? begin : best[l->way];
    }
    for (i = 1; i < ways; i++)
        fastest = best[i] < best[fastest] ? i : fastest;
    l->way = fastest;
}

static const float *output(runner_case *c, int64_t *count) {
    const limits *l = (const limits *)c->user;
    *count = l->to ? l->n : 0;
    return l->to;
}

static void end(runner_case *c) {
    limits *l = (limits *)c->user;
    free(l->from);
    free(l->to);
    free(l);
}

/* Tells whether the processor has the wider vectors and they are not slower. */
static bool wide_is_faster(void) {
#if defined(__x86_64__)
    double begin, wide, narrow;
    if (!__builtin_cpu_supports("avx512f") || runner_narrow())
        return false;
    begin = runner_now();
    kept = peak_wide(FLOPS / 8);
    wide = runner_now() - begin;
    begin = runner_now();
    kept = peak_narrow(FLOPS / 8);
    narrow = runner_now() - begin;
    return wide <= narrow;
#else
    return false;
#endif
}

static const char *find(const char *op, const char *arguments, runner_case *c) {
    limits *l = (limits *)calloc(1, sizeof *l);
    if (!l)
        return "no memory";
    c->user = l;
    c->end = end;
    if (strcmp(op, "fma") == 0) {
#if defined(__x86_64__)
        if (!__builtin_cpu_supports("fma")) {
            end(c);
            memset(c, 0, sizeof *c);
            return "no such case: the processor has no fma";
        }
#elif !defined(__aarch64__)
        end(c);
        memset(c, 0, sizeof *c);
        return "no such case: not written for this processor";
#endif
        l->wide = wide_is_faster();
        c->call = call_fma;
        return NULL;
    }
    l->n = argument(arguments, "n", 0);
    if (strcmp(op, "copy") == 0 && l->n > 0) {
        l->from = input_alloc(l->n);
        l->to = input_alloc(l->n);
        if (l->from && l->to) {
            input_fill(l->from, l->n, 1, -1, 1);
            choose_copy(c);
            c->call = call_copy;
            c->output = output;
            return NULL;
        }
    }
    end(c);
    memset(c, 0, sizeof *c);
    return "no such case";
}

int main(void) {
    return runner_main(find);
}
