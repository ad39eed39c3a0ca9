/* CUDA source, compiled by NVRTC and by clang, run, and compared with plain C. clang is a second
   front end and code generator, so the forms that it prefers are covered too. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "compiler.h"
#include "expect.h"
#include "kernels.h"

enum { N = 1000 };

/* Launches a kernel with the parameters of `params`, any structure. */
static int launch(exec *e, const char *kernel, exec_launch l, const void *params) {
    const char *problem = exec_run(e, kernel, l, params);
    return check_that(!problem, "kernel %s: %s", kernel, problem ? problem : "");
}

static const exec_launch blocks = {.grid = (N + 255) / 256, .block = 256};

static void check_add(exec *e) {
    float *a = exec_buffer(4 * N), *b = exec_buffer(4 * N), *c = exec_buffer(4 * N);
    int wrong = 0;
    for (int i = 0; i < N; i++) {
        a[i] = (float)i / 3;
        b[i] = (float)(N - i) / 7;
    }

    struct {
        void *a, *b, *c;
        int n;
    } p = {a, b, c, N};

    if (!launch(e, "add", blocks, &p))
        return;
    for (int i = 0; i < N; i++)
        wrong += c[i] != a[i] + b[i];
    CHECK_INT(wrong, 0);
}

static void check_reduce(exec *e) {
    int *x = exec_buffer(4 * N), *sums = exec_buffer(64), expected = 0, got = 0;
    for (int i = 0; i < N; i++)
        expected += x[i] = i * 7 % 31 - 15;

    struct {
        void *x, *sums;
        int n;
    } p = {x, sums, N};

    if (!launch(e, "reduce", blocks, &p))
        return;
    for (u32 i = 0; i < blocks.grid; i++)
        got += sums[i];
    CHECK_INT(got, expected);
}

static void check_matmul(exec *e) {
    enum { K = 48 };

    float *a = exec_buffer(16 * K * 4), *b = exec_buffer(16 * K * 4), *c = exec_buffer(16 * 16 * 4);
    int wrong = 0;
    for (int i = 0; i < 16 * K; i++) {
        a[i] = (float)(i % 11 - 5);
        b[i] = (float)(i % 13 - 6);
    }

    struct {
        void *a, *b, *c;
        int n;
    } p = {a, b, c, K};

    if (!launch(e, "matmul", (exec_launch){.grid = 1, .block = 16, .block_y = 16}, &p))
        return;
    for (int i = 0; i < 16; i++)
        for (int j = 0; j < 16; j++) {
            float sum = 0;
            for (int k = 0; k < K; k++)
                sum += a[i * K + k] * b[k * 16 + j];
            wrong += c[i * 16 + j] != sum;
        }
    CHECK_INT(wrong, 0);
}

static void check_scan(exec *e) {
    u32 *x = exec_buffer(4 * 200), *y = exec_buffer(4 * 200), sum = 0, wrong = 0;
    for (int i = 0; i < 200; i++)
        x[i] = (u32)check_random();

    struct {
        void *x, *y;
    } p = {x, y};

    if (!launch(e, "scan", (exec_launch){.grid = 1, .block = 200, .dynamic_shared = 1600}, &p))
        return;
    for (int i = 0; i < 200; i++)
        wrong += y[i] != (sum += x[i]);
    CHECK_INT(wrong, 0);
}

static void check_histogram(exec *e) {
    u8 *x = exec_buffer(N);
    int *bins = exec_buffer(1024), *largest = exec_buffer(4), expected[256] = {0}, most = 0;
    memset(bins, 0, 1024);
    *largest = -1;
    for (int i = 0; i < N; i++) {
        x[i] = (u8)(check_random() % 200);
        expected[x[i]]++;
        most = x[i] > most ? x[i] : most;
    }

    struct {
        void *x, *bins, *largest;
        int n;
    } p = {x, bins, largest, N};

    if (launch(e, "histogram", blocks, &p))
        CHECK(!memcmp(bins, expected, 1024) && *largest == most);
}

static int by_value(const void *a, const void *b) {
    int x = *(const int *)a, y = *(const int *)b;
    return (x > y) - (x < y);
}

static void check_sort(exec *e) {
    int *x = exec_buffer(64 * 64), *y = exec_buffer(64 * 64), expected[16], wrong = 0;
    for (int i = 0; i < 1024; i++)
        x[i] = (int)check_random();

    struct {
        void *x, *y;
    } p = {x, y};

    if (!launch(e, "sort", THREADS(64), &p))
        return;
    for (int t = 0; t < 64; t++) {
        memcpy(expected, x + 16 * t, 64);
        qsort(expected, 16, 4, by_value);
        wrong += memcmp(expected, y + 16 * t, 64) != 0;
    }
    CHECK_INT(wrong, 0);
}

static void check_strided(exec *e) {
    struct shape {
        int dims[4];
        long long strides[4];
        float scale;
        unsigned char flags[3];
    };

    struct {
        void *x, *y;
        struct shape s;
        int n;
    } p;

    float *x = exec_buffer(4 * 120), *y = exec_buffer(4 * 120);
    int wrong = 0, at = 0;
    memset(&p, 0, sizeof p);
    p.x = x;
    p.y = y;
    p.s = (struct shape){{2, 3, 4, 5}, {1, 2, 6, 24}, 0.5f, {1, 2, 200}}; /* the axes reversed */
    p.n = 120;
    for (int i = 0; i < 120; i++)
        x[i] = (float)i;
    if (!launch(e, "strided", THREADS(128), &p))
        return;
    for (int i = 0; i < 2; i++)
        for (int j = 0; j < 3; j++)
            for (int k = 0; k < 4; k++)
                for (int l = 0; l < 5; l++, at++)
                    wrong += y[at] != x[i + 2 * j + 6 * k + 24 * l] * 0.5f + p.s.flags[at % 3];
    CHECK_INT(wrong, 0);
    const sim_kernel *kernel = exec_kernel(e, "strided");
    CHECK(kernel && kernel->params == 4 && kernel->param[2].size == sizeof(struct shape) &&
          kernel->param[2].offset == 16 && kernel->param[3].offset == 16 + sizeof(struct shape));
}

static u64 integer_case(int i, u64 a, u64 b) {
    static const u64 table[] = {1, 0x100000001u, 10, ~0ull};
    s64 sa = (s64)a, sb = (s64)b;
    switch (i % 12) {
    case 0:
        return a / (b | 1);
    case 1:
        return a % (b | 1);
    case 2:
        return (u64)(sa / (sb | 1));
    case 3:
        return (u64)(sa % (sb | 1));
    case 4:
        return (u64)(((u128)a * b) >> 64);
    case 5:
        return a * table[i % 4] + b;
    case 6:
        return (u64)(s64)(s8)a + (u64)(s64)(s16)b;
    case 7:
        return a << (b & 63) | a >> (63 - (b & 63));
    case 8:
        return (u32)a / ((u32)b | 1) + ((u64)((u32)a % 1000) << 32);
    case 9:
        return (u64)__builtin_popcount((u32)a) + ((u64)__builtin_clz((u32)b | 1) << 32);
    case 10:
        return 2 * (a % 4) + 3; /* Ackermann's function of 2 and n */
    default:
        return (u64)(s64)((s32)a / 7) ^ (u64)(s64)((s32)b % 13);
    }
}

static void check_integers(exec *e) {
    u64 *x = exec_buffer(16 * N), *y = exec_buffer(8 * N);
    int wrong = 0;
    for (int i = 0; i < 2 * N; i++)
        x[i] = integers(64, 0, 0) >> 1; /* INT64_MIN / -1 would raise SIGFPE on the host */

    struct {
        void *x, *y;
        int n;
    } p = {x, y, N};

    if (!launch(e, "integers", blocks, &p))
        return;
    for (int i = 0; i < N; i++)
        if (y[i] != integer_case(i, x[2 * i], x[2 * i + 1]) && !wrong++)
            check_that(0, "integers, case %d of %llx and %llx: %llx", i % 12,
                       (unsigned long long)x[2 * i], (unsigned long long)x[2 * i + 1],
                       (unsigned long long)y[i]);
    CHECK_INT(wrong, 0);
}

static void check_philox(exec *e) {
    u32 *y = exec_buffer(16 * N), wrong = 0;

    struct {
        u32 key0, key1;
        void *y;
        int n;
    } p = {0x12345678, 0x9abcdef0, y, N};

    if (!launch(e, "philox", blocks, &p))
        return;
    for (u32 i = 0; i < N; i++) {
        u32 c[4] = {i, 0, 0, 0}, k[2] = {p.key0, p.key1};
        for (int round = 0; round < 10; round++) {
            u64 left = c[0] * (u64)0xD2511F53u, right = c[2] * (u64)0xCD9E8D57u;
            u32 next[4] = {(u32)(right >> 32) ^ c[1] ^ k[0], (u32)right,
                           (u32)(left >> 32) ^ c[3] ^ k[1], (u32)left};
            memcpy(c, next, 16);
            k[0] += 0x9E3779B9u;
            k[1] += 0xBB67AE85u;
        }
        wrong += memcmp(c, y + 4 * i, 16) != 0;
    }
    CHECK_INT(wrong, 0);
}

static void check_doubles(exec *e) {
    double *x = exec_buffer(8 * N), *y = exec_buffer(32 * N);
    int wrong = 0;
    for (int i = 0; i < N; i++)
        x[i] = ((double)(check_random() >> 11) * 0x1p-53 - 0.5) * 1000;

    struct {
        void *x, *y;
        int n;
    } p = {x, y, N};

    if (!launch(e, "doubles", blocks, &p))
        return;
    for (int i = 0; i < N; i++) {
        double v = x[i];
        wrong += fabs(y[4 * i] - (v * v - 1 / v)) > 1e-15 * (v * v + fabs(1 / v));
        wrong += y[4 * i + 1] != (double)(float)v;
        wrong += y[4 * i + 2] != (double)(int)v + (double)(long long)(v * 1e6);
        wrong += y[4 * i + 3] != (v > 0 ? v : v < -1 ? -v : 0);
    }
    CHECK_INT(wrong, 0);
}

static void check_vote(exec *e) {
    int *x = exec_buffer(256);
    u32 *y = exec_buffer(256), expected[2] = {0, 0}, wrong = 0;
    for (int i = 0; i < 64; i++) {
        x[i] = (int)(check_random() % 100);
        expected[i / 32] |= (u32)(x[i] & 1) << i % 32;
    }

    struct {
        void *x, *y;
    } p = {x, y};

    if (!launch(e, "vote", THREADS(64), &p))
        return;
    for (int i = 0; i < 64; i++)
        wrong += y[i] != expected[i / 32];
    CHECK_INT(wrong, 0);
}

static void check_maximum(exec *e) {
    int *x = exec_buffer(4 * N), *largest = exec_buffer(4), most = -1;
    *largest = -1;
    for (int i = 0; i < N; i++) {
        x[i] = (int)(check_random() % 1000000);
        most = x[i] > most ? x[i] : most;
    }

    struct {
        void *x, *largest;
        int n;
    } p = {x, largest, N};

    if (launch(e, "maximum", blocks, &p))
        CHECK_INT(*largest, most);
}

static void check_kernels(exec *e) {
    static void (*const checks[])(exec *) = {
        check_add,     check_reduce,   check_matmul, check_scan,    check_histogram, check_sort,
        check_strided, check_integers, check_philox, check_doubles, check_vote,      check_maximum};
    for (size_t i = 0; i < COUNT(checks); i++)
        checks[i](e);
    exec_close(e);
    exec_forget();
}

int main(void) {
    if (nvrtc_is_real()) {
        static const char *const archs[] = {"sm_75", "sm_80", "sm_90", "sm_120"};
        static const char *const wide[] = {"--device-int128", NULL};
        static const char *const debug[] = {"--device-int128", "--device-debug", NULL};
        char *source = read_source("kernels.cu");
        for (size_t i = 0; source && i < COUNT(archs); i++) {
            exec *e = nvrtc_module(source, archs[i], wide);
            if (e)
                check_kernels(e);
        }
        exec *e = source ? nvrtc_module(source, "sm_80", debug) : NULL;
        if (e)
            check_kernels(e);
        free(source);
    } else {
        check_skip("kernels by NVRTC", "no NVRTC: set CUDA_HOME or SIMNVRTC_REAL");
    }
    exec *e = clang_module("kernels.cu");
    if (e)
        check_kernels(e);
    else
        check_skip("kernels by clang", "no clang that compiles CUDA");
    return check_end();
}
