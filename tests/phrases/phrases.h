/* The frame of the program that tools/phrases.py writes: runs each row in a scope of its own, and
   compares its result with the stated one. */
#include "devtensor.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *row_name;
static int row_failed, rows_passed, rows_failed;

static void differs(double got, double want, int at) {
    if (!row_failed)
        printf("FAIL %s: element %d is %g, expected %g\n", row_name, at, got, want);
    row_failed = 1;
}

static void compare(const double *got, int n, const double *want, int count) {
    if (count == 0)
        return;
    if (n != count) {
        printf("FAIL %s: %d values, expected %d\n", row_name, n, count);
        row_failed = 1;
        return;
    }
    for (int i = 0; i < n; i++)
        if (!(fabs(got[i] - want[i]) <= 1e-5 * (1 + fabs(want[i]))))
            differs(got[i], want[i], i);
}

static void see_number(double got, const double *want, int count, const char *text) {
    (void)text;
    compare(&got, 1, want, count);
}

static void see_array(dvt_array *x, const double *want, int count, const char *text) {
    double got[64] = {0};
    int n = (int)dvt_size(x);
    (void)text;
    if (n > 64)
        n = 64;
    if (x) /* NULL has set an error, which RUN reports */
        dvt_to_host(dvt_astype(x, DVT_F64), got, n * (int64_t)sizeof *got);
    compare(got, n, want, count);
}

static void see_shape(dvt_shape shape, const double *want, int count, const char *text) {
    double got[DVT_MAX_DIMS];
    (void)text;
    for (int i = 0; i < shape.ndim; i++)
        got[i] = (double)shape.dim[i];
    compare(got, shape.ndim, want, count);
}

static void see_text(const char *got, const double *want, int count, const char *text) {
    (void)want, (void)count;
    if (text && strcmp(got, text) != 0) {
        printf("FAIL %s: \"%s\", expected \"%s\"\n", row_name, got, text);
        row_failed = 1;
    }
}

#define SEE(got, want, count, text)                                                                \
    _Generic((got), dvt_array *: see_array, dvt_shape: see_shape, const char *: see_text,          \
             char *: see_text, default: see_number)(got, want, count, text)

#define FAILS(status)                                                                              \
    do {                                                                                           \
        if (dvt_error_code() != (status)) {                                                        \
            printf("FAIL %s: it does not fail with %s\n", row_name, dvt_status_name(status));      \
            row_failed = 1;                                                                        \
        }                                                                                          \
        dvt_clear_error();                                                                         \
    } while (0)

#define RUN(function, name)                                                                        \
    do {                                                                                           \
        row_name = (name), row_failed = 0;                                                         \
        DVT_SCOPE {                                                                                \
            function();                                                                            \
            dvt_wait_all();                                                                        \
        }                                                                                          \
        end_row();                                                                                 \
        UNDO_##function                                                                            \
    } while (0)

static void end_row(void) {
    if (dvt_error_code() != DVT_OK && !row_failed) {
        printf("FAIL %s: %s\n", row_name, dvt_error());
        row_failed = 1;
    }
    dvt_clear_error();
    rows_passed += !row_failed, rows_failed += row_failed;
}

static int finish(void) {
    printf("%d passed, %d failed, 0 skipped\n", rows_passed, rows_failed);
    return rows_failed != 0;
}
