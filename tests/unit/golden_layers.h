/* Compares results and gradients of layers with tests/golden/layers_torch.txt, on dvt_test_ctx(),
   and errors with parts of their sentences. */
#ifndef GOLDEN_LAYERS_H
#define GOLDEN_LAYERS_H
#include "dvt_golden.h"

#define GOLDEN_INPUTS 3
/* The form of gradient_check.h: the same function serves both. */
typedef dvt_array *(*golden_fn)(dvt_array *const *x, const void *user);

/* Returns numbers from -2 to 2 in steps of 1/16, those of make_layers_torch.py. */
static inline dvt_array *golden_wave(dvt_shape shape, int seed, dvt_dtype dtype, dvt_ctx ctx) {
    int64_t n = dvt_shape_size(shape), i;
    double *values = (double *)malloc(sizeof(double) * (size_t)(n + 1));
    dvt_array *x;
    for (i = 0; i < n; i++)
        values[i] = (double)((i * 37 + seed * 11) % 64 - 32) / 16;
    x = dvt_from_host(values, shape, DVT_F64, dvt_cpu());
    free(values);
    return dvt_as_in_ctx(dvt_as_in_dtype(x, dtype), ctx);
}

/* Checks x against the line "name.part". */
static inline void golden_check(dvt_array *x, const char *name, const char *part, double tolerance,
                                const char *test) {
    static char line[1 << 16];
    char key[80];
    FILE *file = golden_open(test, "layers_torch.txt");
    double *values = NULL;
    int64_t n = 0;
    size_t length;
    if (!CHECK(file != NULL))
        return;
    snprintf(key, sizeof key, "%s.%s ", name, part);
    length = strlen(key);
    while (!values && fgets(line, sizeof line, file))
        if (strncmp(line, key, length) == 0) {
            char *at = line + length;
            values = (double *)malloc(sizeof line);
            for (; *at && *at != '\n'; at += *at == ' ')
                values[n++] = strtod(at, &at);
        }
    fclose(file);
    if (dvt_test_check(values != NULL, test, 0, "there is no line %s", key) &&
        !dvt_test_equal(x, values, n, tolerance, test, 0))
        dvt_test_check(0, test, 0, "(that was %s)", key);
    free(values);
}

/* Runs a case: input k is wave(shape[k], k + 1), the head gradient wave(shape of y, 7). */
static inline void golden_run(const char *name, golden_fn compute, const dvt_shape *shape, int n,
                              dvt_dtype dtype, dvt_ctx ctx, double tolerance, const char *test) {
    DVT_SCOPE {
        dvt_array *x[GOLDEN_INPUTS] = {NULL, NULL, NULL}, *y = NULL, *head;
        char part[8];
        int k;
        for (k = 0; k < n; k++) {
            x[k] = golden_wave(shape[k], k + 1, dtype, ctx);
            dvt_attach_grad(x[k], DVT_GRAD_WRITE);
        }
        DVT_RECORD {
            y = compute(x, NULL);
        }
        golden_check(y, name, "y", tolerance, test);
        if (y) {
            CHECK_INT(dvt_dtype_of(y), dtype);
            head = golden_wave(dvt_shape_of(y), 7, dtype, ctx);
            CHECK_INT(dvt_backward_from(&y, &head, 1, DVT_FREE_GRAPH), DVT_OK);
            for (k = 0; k < n; k++) {
                snprintf(part, sizeof part, "d%d", k);
                golden_check(dvt_grad(x[k]), name, part, tolerance, test);
            }
        }
    }
}

/* Runs a case in float64 and float32 on dvt_test_ctx(), and in float32 on a virtual GPU. */
static inline void golden_case(const char *name, golden_fn compute, const dvt_shape *shape, int n,
                               const char *test) {
    if (dvt_test_ctx().type == DVT_DEVICE_CPU)
        golden_run(name, compute, shape, n, DVT_F64, dvt_cpu(), 1e-12, test);
    golden_run(name, compute, shape, n, DVT_F32, dvt_test_ctx(), 2e-5, test);
    if (!dvt_test_on_gpus()) {
        CHECK_INT(dvt_set_virtual_gpus(1, 0), DVT_OK);
        golden_run(name, compute, shape, n, DVT_F32, dvt_gpu(0), 2e-5, test);
        CHECK_INT(dvt_set_virtual_gpus(0, 0), DVT_OK);
    }
}

/* GOLDEN("elu", compute_elu, DVT_SHAPE(4, 17)); */
#define GOLDEN(name, compute, ...)                                                                 \
    do {                                                                                           \
        const dvt_shape golden_shapes_[] = {__VA_ARGS__};                                          \
        golden_case(name, compute, golden_shapes_,                                                 \
                    (int)(sizeof golden_shapes_ / sizeof golden_shapes_[0]), __FILE__);            \
    } while (0)

/* Checks that the call returns NULL with that status and a sentence that contains `words`. */
#define CHECK_SAYS(expression, status, words)                                                      \
    do {                                                                                           \
        dvt_clear_error();                                                                         \
        CHECK((expression) == NULL);                                                               \
        CHECK_INT(dvt_error_code(), status);                                                       \
        dvt_test_check(strstr(dvt_error(), words) != NULL, __FILE__, __LINE__,                     \
                       "\"%s\" is not in: %s", words, dvt_error());                                \
        dvt_clear_error();                                                                         \
    } while (0)

#endif
