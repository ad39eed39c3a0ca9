/* What the tutorial programs share: block headings, pairs and tuples as Python shows them, errors, timings.

   Lines that begin with "~" hold timings: they differ from run to run, and the test that compares the rest leaves them out. */
#ifndef SHOW_H
#define SHOW_H
#include "devtensor.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The tests of the simulated GPU make the long exercises that many times shorter. */
#ifndef SHARE
#define SHARE 1
#endif

static inline void block(const char *number, const char *title) {
    printf("\n### %s. %s\n", number, title);
}

static inline void show_contexts(dvt_ctx_list list) {
    char text[256];
    dvt_ctx_list_format(list, text, sizeof text);
    puts(text);
}

static inline const char *truth(bool value) {
    return value ? "True" : "False";
}

/* One array in another library's style. */
static inline void show(dvt_array *x, dvt_print_style style) {
    dvt_print_options options;
    char text[4096];
    memset(&options, 0, sizeof options);
    options.style = style;
    options.no_newline = true;
    if (dvt_format(x, &options, text, sizeof text, NULL) == DVT_OK)
        puts(text);
}

/* Arrays as IPython shows a tuple of NDArrays: "(\n [1. 2. 3.]\n <NDArray 3 @gpu(0)>, \n ...)". */
static inline void show_tuple(dvt_array *const *arrays, int n) {
    int i;
    printf("(");
    for (i = 0; i < n; i++) {
        dvt_print_options options;
        char text[4096];
        const char *at;
        memset(&options, 0, sizeof options);
        options.no_newline = true;
        if (dvt_format(arrays[i], &options, text, sizeof text, NULL) != DVT_OK)
            return;
        printf("%s\n ", i ? ", " : "");
        for (at = text; *at; at++) {
            putchar(*at);
            if (*at == '\n')
                putchar(' ');
        }
    }
    puts(")");
}

/* Where a program expects an error: prints its code and sentence, and forgets it. */
static inline void show_error(void) {
    printf("%s: %s\n", dvt_status_name(dvt_error_code()),
           dvt_error_code() ? dvt_error() : "no error");
    dvt_clear_error();
}

/* The tutorials' gpu(i) on a machine without GPUs: another context on the same hardware, so that copies are copies and mixing
   contexts is an error there too. */
static inline dvt_ctx gpu_or_stand_in(int i) {
    return dvt_num_gpus() > i ? dvt_gpu(i) : dvt_cpu_id(i + 1);
}

/* Programs end with 1 when an error that nobody expected is left. */
static inline int finish(void) {
    if (dvt_error_code() != DVT_OK)
        fprintf(stderr, "unexpected: %s (%s)\n", dvt_error(), dvt_error_site());
    return dvt_error_code() != DVT_OK;
}

/* ---- the exercises, which three of the documents share ---- */

/* Seconds of one product of two n x n matrices, the best of a few. */
static inline double product_seconds(int64_t n, dvt_ctx ctx, int repeats) {
    double best = INFINITY;
    int i;
    for (i = 0; i < repeats; i++)
        DVT_SCOPE {
            dvt_array *a = dvt_uniform(-1, 1, DVT_SHAPE(n, n), DVT_F32, ctx);
            dvt_array *b = dvt_uniform(-1, 1, DVT_SHAPE(n, n), DVT_F32, ctx);
            double start, seconds;
            dvt_wait(a);
            dvt_wait(b);
            start = dvt_seconds();
            dvt_wait(dvt_matmul(a, b));
            seconds = dvt_seconds() - start;
            best = seconds < best ? seconds : best;
        }
    return best;
}

/* "Try a larger computation task ... What about a task with a small amount of calculations?" */
static inline void exercise_large_and_small(dvt_ctx gpu) {
    static const int64_t sizes[] = {4, 64, SHARE > 1 ? 128 : 512};
    int i;
    for (i = 0; i < 3; i++)
        printf("~ %4lld x %-4lld product: %-7s %9.6f s   %-7s %9.6f s\n", (long long)sizes[i],
               (long long)sizes[i], dvt_ctx_name(dvt_cpu()),
               product_seconds(sizes[i], dvt_cpu(), 3), dvt_ctx_name(gpu),
               product_seconds(sizes[i], gpu, 3));
}

/* "Try the speed of passing data between CPU and GPU." */
static inline void exercise_transfer(dvt_ctx gpu) {
    static const int64_t mib[] = {1, SHARE > 1 ? 2 : 16};
    int i;
    for (i = 0; i < 2; i++)
        DVT_SCOPE {
            dvt_array *x = dvt_uniform(0, 1, DVT_SHAPE(mib[i] << 18), DVT_F32, dvt_cpu()), *y;
            double start = dvt_seconds(), up, down;
            y = dvt_copyto(x, gpu);
            dvt_wait(y);
            up = dvt_seconds() - start;
            start = dvt_seconds();
            dvt_wait(dvt_copyto(y, dvt_cpu()));
            down = dvt_seconds() - start;
            printf("~ %3lld MiB: to %s %.2f GB/s, back %.2f GB/s\n", (long long)mib[i],
                   dvt_ctx_name(gpu), (double)(mib[i] << 20) / up * 1e-9,
                   (double)(mib[i] << 20) / down * 1e-9);
        }
}

/* "Measure the time to compute 1000 products of 100 x 100 matrices and log the Frobenius norm one result at a time versus
   keeping a log on the GPU and transferring only the final result." */
static inline void exercise_thousand_products(dvt_ctx gpu, int n) {
    double one_by_one, kept, sum_one = 0, sum_kept = 0, start;
    dvt_stats before, after;
    int i;
    DVT_SCOPE {
        dvt_array *a = dvt_uniform(-1, 1, DVT_SHAPE(100, 100), DVT_F32, gpu);
        dvt_array *b = dvt_uniform(-1, 1, DVT_SHAPE(100, 100), DVT_F32, gpu);
        dvt_array *log = dvt_zeros(DVT_SHAPE(n), DVT_F32, gpu);
        before = dvt_get_stats();
        start = dvt_seconds();
        for (i = 0; i < n; i++)
            DVT_SCOPE {
                sum_one += dvt_item(dvt_norm(dvt_matmul(a, b), DVT_ALL, false));
            }
        one_by_one = dvt_seconds() - start;
        after = dvt_get_stats();
        printf("one at a time: %g value read per product\n",
               (double)(after.implicit_reads - before.implicit_reads) / n);
        before = after;
        start = dvt_seconds();
        for (i = 0; i < n; i++)
            DVT_SCOPE {
                dvt_copy_into(dvt_index(log, i), dvt_norm(dvt_matmul(a, b), DVT_ALL, false));
            }
        sum_kept = dvt_item(dvt_sum(log, DVT_ALL, false));
        kept = dvt_seconds() - start;
        after = dvt_get_stats();
        printf("kept on the device: %lld values read\n",
               (long long)(after.implicit_reads - before.implicit_reads));
        printf("same norms: %s\n", truth(fabs(sum_one - sum_kept) <= 1e-4 * fabs(sum_one)));
        printf("~ %d products of 100 x 100 on %s: %.4f s one at a time, %.4f s with the log on the "
               "device\n",
               n, dvt_ctx_name(gpu), one_by_one, kept);
    }
}

/* "Two matrix products on two GPUs at the same time versus in sequence on one." */
static inline void exercise_two_devices(dvt_ctx gpu0, dvt_ctx gpu1, int64_t n) {
    DVT_SCOPE {
        dvt_array *a[2], *b[2], *c[2];
        double together, sequence, start;
        int i;
        for (i = 0; i < 2; i++) {
            dvt_ctx ctx = i ? gpu1 : gpu0;
            a[i] = dvt_uniform(-1, 1, DVT_SHAPE(n, n), DVT_F32, ctx);
            b[i] = dvt_uniform(-1, 1, DVT_SHAPE(n, n), DVT_F32, ctx);
            dvt_wait(dvt_matmul(a[i], b[i]));
        }
        start = dvt_seconds();
        for (i = 0; i < 2; i++)
            c[i] = dvt_matmul(a[i], b[i]);
        dvt_wait(c[0]);
        dvt_wait(c[1]);
        together = dvt_seconds() - start;
        start = dvt_seconds();
        for (i = 0; i < 2; i++)
            dvt_wait(dvt_matmul(a[0], b[0]));
        sequence = dvt_seconds() - start;
        printf(
            "~ two %lld x %lld products: %.4f s on %s and %s, %.4f s one after the other on %s\n",
            (long long)n, (long long)n, together, dvt_ctx_name(gpu0), dvt_ctx_name(gpu1), sequence,
            dvt_ctx_name(gpu0));
    }
}

/* "How should we read and write model parameters on the GPU?" */
static inline void exercise_parameters(dvt_block *net, dvt_block *same, dvt_ctx gpu,
                                       const char *file) {
    dvt_array *before, *after;
    dvt_status saved = dvt_save_parameters(net, file),
               loaded = dvt_load_parameters(same, file, DVT_CONTEXTS(gpu), NULL);
    before = dvt_param_data(dvt_params_at(dvt_collect_params(net, NULL), 0), gpu);
    after = dvt_param_data(dvt_params_at(dvt_collect_params(same, NULL), 0), gpu);
    printf("saved %s, loaded onto %s %s, equal %s\n", truth(saved == DVT_OK),
           dvt_ctx_name(dvt_ctx_of(after)), truth(loaded == DVT_OK),
           truth(dvt_item(dvt_all(dvt_equal(before, after), DVT_ALL, false)) == 1));
    remove(file);
}

#endif
