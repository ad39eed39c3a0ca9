/* Shared by the tutorial programs: block headings, devices and arrays as Python prints them,
   errors, exercises.

   Lines that begin with "~" differ from run to run. The test that compares the output skips
   them. */
#ifndef SHOW_H
#define SHOW_H
#include "devtensor.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Returns the size that the document uses. With TUTORIAL_SHORT=n, as in tests, returns the second
   size divided by n. */
static inline int64_t sized(int64_t own, int64_t in_tests) {
    const char *text = getenv("TUTORIAL_SHORT");
    int64_t shorter = text ? strtol(text, NULL, 10) : 0;
    return shorter < 1 ? own : in_tests > shorter ? in_tests / shorter : 1;
}

static inline void block(const char *number, const char *title) {
    printf("\n### %s. %s\n", number, title);
}

/* Returns a context's name in a library's style; valid for the next seven calls. */
static inline const char *device(dvt_ctx ctx, dvt_print_style style) {
    static char text[8][80];
    static int next;
    char *at = text[next++ % 8];
    dvt_ctx_format(ctx, style, at, sizeof text[0]);
    return at;
}

/* Prints "[gpu(0), gpu(1)]", followed by the text `behind`. */
static inline void show_devices(dvt_ctx_list list, dvt_print_style style, const char *behind) {
    int i;
    printf("[");
    for (i = 0; i < list.n; i++)
        printf("%s%s", i ? ", " : "", device(list.ctx[i], style));
    printf("]%s", behind);
}

static inline const char *python_bool(bool value) {
    return value ? "True" : "False";
}

/* Prints one array in a library's style. */
static inline void show(dvt_array *x, dvt_print_style style) {
    dvt_print_options options;
    char text[4096];
    memset(&options, 0, sizeof options);
    options.style = style;
    options.no_newline = true;
    if (dvt_format(x, &options, text, sizeof text, NULL) == DVT_OK)
        puts(text);
}

/* Prints arrays as IPython prints a tuple of NDArrays: "(\n [1. 2. 3.]\n <NDArray 3 @gpu(0)>, \n
   ...)". */
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

/* Prints the code and message of an expected error, and clears it. */
static inline void show_error(void) {
    printf("%s: %s\n", dvt_status_name(dvt_error_code()),
           dvt_error_code() ? dvt_error() : "no error");
    dvt_clear_error();
}

/* Two documents need GPUs. With fewer than n, the program uses virtual ones. */
static inline void need_gpus(int n) {
    if (dvt_num_gpus() >= n)
        return;
    printf("this document needs %d GPUs: virtual ones stand in\n", n);
    dvt_set_virtual_gpus(n, 0);
}

/* Returns 1, the program's exit status, when an unexpected error is set. */
static inline int finish(void) {
    if (dvt_error_code() != DVT_OK)
        fprintf(stderr, "unexpected: %s (%s)\n", dvt_error(), dvt_error_site());
    return dvt_error_code() != DVT_OK;
}

/* ---- the exercises, which three of the documents share ---- */

/* Virtual GPUs use host memory and the CPU's cores. To show the effects of physical GPUs, the
   exercises give them a model: copies and calls take as long as with PCIe 4, and products run at
   the given rate. Returns false when no model is needed. */
static dvt_virtual_model model_before; /* the program's own */

static inline bool model_begin(dvt_ctx gpu, double flops) {
    dvt_virtual_model model;
    dvt_device_info info;
    model_before = dvt_get_virtual_model();
    if (gpu.type != DVT_DEVICE_GPU || dvt_device_query(gpu, &info) != DVT_OK || !info.is_virtual)
        return false;
    memset(&model, 0, sizeof model);
    model.latency = 20e-6;
    model.bandwidth = 25e9;
    model.launch = 5e-6;
    model.flops = flops;
    dvt_set_virtual_model(&model);
    return true;
}

static inline void model_end(void) {
    dvt_set_virtual_model(&model_before);
}

/* Durations of two ways to compute the same: wall-clock time and, where the GPU is modeled, the
   model's time. */
typedef struct times {
    double wall, modeled;
} times;

static inline times times_begin(void) {
    times t;
    t.wall = dvt_seconds();
    t.modeled = dvt_virtual_seconds();
    return t;
}

static inline times times_end(times t) {
    t.wall = dvt_seconds() - t.wall;
    t.modeled = dvt_virtual_seconds() - t.modeled;
    return t;
}

static inline void show_times(const char *one, times a, const char *other, times b, bool modeled) {
    printf("~ %s %.4f s, %s %.4f s: %.1f times as long\n", one, a.wall, other, b.wall,
           a.wall / b.wall);
    if (modeled)
        printf("~ by the model of the GPU alone %.4f s and %.4f s: %.1f times as long\n", a.modeled,
               b.modeled, a.modeled / b.modeled);
    model_end();
}

/* Returns the seconds of one product of two n x n matrices, the best of a few runs. */
static inline double product_seconds(int64_t n, dvt_ctx ctx, int repeats) {
    double best = INFINITY;
    int i;
    for (i = 0; i < repeats; i++) {
        DVT_SCOPED;
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
    int64_t sizes[3];
    int i;
    sizes[0] = 4;
    sizes[1] = 64;
    sizes[2] = sized(2048, 512);
    for (i = 0; i < 3; i++)
        printf("~ %4lld x %-4lld product: %-7s %9.6f s   %-7s %9.6f s\n", (long long)sizes[i],
               (long long)sizes[i], dvt_ctx_name(dvt_cpu()),
               product_seconds(sizes[i], dvt_cpu(), 3), dvt_ctx_name(gpu),
               product_seconds(sizes[i], gpu, 3));
}

static inline void show_speed(int64_t mib, const char *way, times took, bool modeled) {
    double gigabytes = (double)(mib << 20) * 1e-9;
    printf("~ %3lld MiB %s: %.2f GB/s", (long long)mib, way, gigabytes / took.wall);
    if (modeled)
        printf(", by the model of the GPU alone %.2f GB/s", gigabytes / took.modeled);
    puts("");
}

/* "Try the speed of passing data between CPU and GPU." */
static inline void exercise_transfer(dvt_ctx gpu) {
    int64_t mib[3];
    bool modeled;
    int i;
    mib[0] = mib[1] = 1; /* the first copy also allocates the memory for the others */
    mib[2] = sized(64, 16);
    modeled = model_begin(gpu, 0);
    for (i = 0; i < 3; i++) {
        DVT_SCOPED;
        dvt_array *x = dvt_uniform(0, 1, DVT_SHAPE(mib[i] << 18), DVT_F32, dvt_cpu()), *y;
        times up = times_begin(), down;
        y = dvt_copyto(x, gpu);
        dvt_wait(y);
        up = times_end(up);
        down = times_begin();
        dvt_wait(dvt_copyto(y, dvt_cpu()));
        down = times_end(down);
        show_speed(mib[i], "to the GPU", up, modeled);
        show_speed(mib[i], "back", down, modeled);
    }
    model_end();
}

/* Computes n products and their norms. The norms are read one at a time, or written to a log on the
   device that is read once. */
static inline double log_norms(dvt_array *a, dvt_array *b, int n, bool on_device, times *took) {
    int64_t reads = dvt_get_stats().implicit_reads;
    double sum = 0;
    int i;
    DVT_SCOPED;
    dvt_array *log = dvt_zeros(DVT_SHAPE(n), DVT_F32, dvt_ctx_of(a));
    dvt_wait(log);
    *took = times_begin();
    for (i = 0; i < n; i++) {
        DVT_SCOPED;
        dvt_array *norm = dvt_norm(dvt_matmul(a, b), DVT_ALL);
        if (on_device)
            dvt_copy_into(dvt_index(log, i), norm);
        else
            sum += dvt_item(norm);
    }
    if (on_device)
        sum = dvt_item(dvt_sum(log, DVT_ALL));
    *took = times_end(*took);
    reads = dvt_get_stats().implicit_reads - reads;
    if (on_device)
        printf("kept on the device: values read: %lld\n", (long long)reads);
    else
        printf("one at a time: values read per product: %g\n", (double)reads / n);
    return sum;
}

/* Times 1000 products of 100 x 100 matrices and their Frobenius norms. The norms are transferred
   one at a time, or kept in a log on the GPU of which only the final result is transferred. */
static inline void exercise_thousand_products(dvt_ctx gpu) {
    double sum_one, sum_kept;
    times one, kept;
    int n = (int)sized(1000, 1000);
    bool modeled;
    DVT_SCOPED;
    dvt_array *a = dvt_uniform(-1, 1, DVT_SHAPE(100, 100), DVT_F32, gpu);
    dvt_array *b = dvt_uniform(-1, 1, DVT_SHAPE(100, 100), DVT_F32, gpu);
    modeled = model_begin(gpu, 10e12);
    sum_one = log_norms(a, b, n, false, &one);
    sum_kept = log_norms(a, b, n, true, &kept);
    printf("same norms: %s\n", python_bool(fabs(sum_one - sum_kept) <= 1e-4 * fabs(sum_one)));
    printf("~ %d products of 100 x 100 on %s:\n", n, dvt_ctx_name(gpu));
    show_times("one at a time", one, "with the log on the device", kept, modeled);
}

/* Computes two products, on two devices or on one. */
static inline times two_products(dvt_ctx first, dvt_ctx second, int64_t n) {
    dvt_array *a[2], *b[2], *c[2];
    times took;
    int i;
    DVT_SCOPED;
    for (i = 0; i < 2; i++) {
        a[i] = dvt_uniform(-1, 1, DVT_SHAPE(n, n), DVT_F32, i ? second : first);
        b[i] = dvt_uniform(-1, 1, DVT_SHAPE(n, n), DVT_F32, i ? second : first);
        dvt_wait(dvt_matmul(a[i], b[i]));
    }
    took = times_begin();
    for (i = 0; i < 2; i++)
        c[i] = dvt_matmul(a[i], b[i]);
    dvt_wait(c[0]);
    dvt_wait(c[1]);
    return times_end(took);
}

/* "Two matrix products on two GPUs at the same time versus in sequence on one." The modeled GPU is
   slow. Both products then finish within the modeled time even where this machine has only one core
   for them. */
static inline void exercise_two_devices(dvt_ctx gpu0, dvt_ctx gpu1) {
    int64_t n = sized(512, 384);
    bool modeled = model_begin(gpu0, 2e9);
    times sequence = two_products(gpu0, gpu0, n), together = two_products(gpu0, gpu1, n);
    printf("~ two %lld x %lld products on %s, or on %s and %s:\n", (long long)n, (long long)n,
           dvt_ctx_name(gpu0), dvt_ctx_name(gpu0), dvt_ctx_name(gpu1));
    show_times("one after the other", sequence, "at the same time", together, modeled);
}

/* "How should we read and write model parameters on the GPU?" */
static inline void exercise_parameters(dvt_block *net, dvt_block *same, dvt_ctx gpu,
                                       const char *file) {
    dvt_array *before, *after;
    dvt_status saved = dvt_block_save(net, file),
               loaded = dvt_block_load(same, file, DVT_CONTEXTS(gpu));
    before = dvt_param_data(dvt_params_at(dvt_block_collect_params(net, NULL), 0), gpu);
    after = dvt_param_data(dvt_params_at(dvt_block_collect_params(same, NULL), 0), gpu);
    printf("saved %s, loaded onto %s %s, equal %s\n", python_bool(saved == DVT_OK),
           dvt_ctx_name(dvt_ctx_of(after)), python_bool(loaded == DVT_OK),
           python_bool(dvt_item(dvt_all(dvt_equal(before, after), DVT_ALL)) == 1));
    remove(file);
}

#endif
