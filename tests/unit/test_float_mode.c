/* Tests that results do not depend on the caller's floating-point mode: rounding, flushing of
   subnormal numbers, exceptions that trap. Every mode gives the same bits, on one thread and on
   several, on cpu() and on virtual GPUs created in that mode. The caller's mode remains
   unchanged. */
#include "dvt_test.h"
#include <fenv.h>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

/* ---- modes ---- */
typedef struct float_mode {
    const char *name;
    int rounding;        /* argument of fesetround */
    unsigned set, clear; /* bits of the control register, where it is known */
} float_mode;

static const float_mode float_modes[] = {
    {"to nearest", FE_TONEAREST, 0, 0},
    {"upward", FE_UPWARD, 0, 0},
    {"downward", FE_DOWNWARD, 0, 0},
    {"toward zero", FE_TOWARDZERO, 0, 0},
#if defined(__x86_64__)
    {"FTZ and DAZ", FE_TONEAREST, 0x8040, 0},
    {"exceptions trap", FE_TONEAREST, 0, 0x0f80},
    {"upward, FTZ and DAZ, exceptions trap", FE_UPWARD, 0x8040, 0x0f80},
#elif defined(__aarch64__)
    {"FZ", FE_TONEAREST, 1u << 24, 0},  {"FZ and DN, upward", FE_UPWARD, 3u << 24, 0},
#endif
};

#if defined(__x86_64__)
static unsigned control(void) {
    return _mm_getcsr() & 0xffc0;
}

static void set_control(unsigned value) {
    _mm_setcsr(value);
}
#elif defined(__aarch64__)
static unsigned control(void) {
    unsigned long value;
    __asm__ volatile("mrs %0, fpcr" : "=r"(value));
    return (unsigned)value;
}

static void set_control(unsigned value) {
    __asm__ volatile("msr fpcr, %0" : : "r"((unsigned long)value));
}
#else
static unsigned control(void) {
    return (unsigned)fegetround();
}

static void set_control(unsigned value) {
    fesetround((int)value);
}
#endif

static void enter(const float_mode *mode) {
    fesetround(mode->rounding);
    set_control((control() | mode->set) & ~mode->clear);
}

/* ---- the computation: the bits of all results in a row ---- */
#define BITS 4096

typedef struct all_bits {
    uint64_t at[BITS];
    int n;
} all_bits;

static void add_bytes(all_bits *bits, const void *bytes, size_t n) {
    uint64_t hash = 14695981039346656037u, word;
    size_t i;
    for (i = 0; i < n; i += sizeof word) {
        word = 0;
        memcpy(&word, (const char *)bytes + i, n - i < sizeof word ? n - i : sizeof word);
        hash = (hash ^ word) * 1099511628211u;
        hash ^= hash >> 29;
    }
    if (bits->n < BITS)
        bits->at[bits->n++] = hash;
}

static void add_array(all_bits *bits, dvt_array *x) {
    size_t size = x ? (size_t)dvt_nbytes(x) : 0;
    void *bytes = malloc(size + 1);
    if (x && bytes && dvt_to_host(x, bytes, (int64_t)size) == DVT_OK)
        add_bytes(bits, bytes, size);
    free(bytes);
}

static void add_text(all_bits *bits, dvt_array *x) {
    char text[2000];
    size_t length = 0;
    if (dvt_format(x, NULL, text, sizeof text, &length) == DVT_OK)
        add_bytes(bits, text, length < sizeof text ? length : sizeof text - 1);
}

/* Returns numbers of all magnitudes, including subnormal ones, made of integers. */
static dvt_array *numbers(int64_t rows, int64_t columns, dvt_dtype dtype, dvt_ctx ctx) {
    const int64_t n = rows * columns;
    const size_t size = (size_t)(n * dvt_dtype_size(dtype));
    unsigned char *bytes = (unsigned char *)malloc(size);
    dvt_array *x;
    int64_t i;
    for (i = 0; i < n; i++) {
        uint32_t mix = (uint32_t)i * 2654435761u;
        if (dtype == DVT_F64) {
            uint64_t wide =
                (uint64_t)(i % 7 ? 0x3f0 + mix % 32 : 0) << 52 | (uint64_t)mix << 15 | mix;
            memcpy(bytes + 8 * i, &wide, 8);
        } else {
            uint32_t word = (i % 7 ? 0x70 + mix % 16 : 0) << 23 | (mix >> 9);
            memcpy(bytes + 4 * i, &word, 4);
        }
    }
    x = dvt_from_host(bytes, DVT_SHAPE(rows, columns), dtype, ctx);
    free(bytes);
    return x;
}

static void compute_arrays(all_bits *bits, dvt_ctx ctx, int64_t rows, dvt_dtype dtype) {
    dvt_array *a = numbers(rows, 48, dtype, ctx), *b = numbers(48, rows, dtype, ctx), *c;
    c = dvt_reshape(b, DVT_SHAPE(rows, 48));
    add_array(bits, dvt_add(a, c));
    add_array(bits, dvt_div(a, dvt_add_scalar(c, 0.1)));
    add_array(bits, dvt_mul_scalar(a, 1e-3));
    add_array(bits, dvt_exp(a));
    add_array(bits, dvt_sin(a));
    add_array(bits, dvt_log(a));
    add_array(bits, dvt_sqrt(a));
    add_array(bits, dvt_tanh(a));
    add_array(bits, dvt_equal_scalar(a, 0));
    add_array(bits, dvt_sum(a, DVT_AXES(0)));
    add_array(bits, dvt_sum(a, DVT_ALL));
    add_array(bits, dvt_var(a, DVT_AXES(1), 1));
    add_array(bits, dvt_logsumexp(a, DVT_AXES(1)));
    add_array(bits, dvt_softmax(a, -1));
    add_array(bits, dvt_cumsum(a, 0));
    add_array(bits, dvt_matmul(a, b));
    add_array(bits, dvt_astype(a, DVT_F16));
    add_array(bits, dvt_astype(a, DVT_BF16));
    add_array(bits, dvt_astype(a, dtype == DVT_F64 ? DVT_F32 : DVT_F64));
    add_array(bits, dvt_astype(dvt_mul_scalar(a, 1000), DVT_I32));
    add_array(bits, dvt_copy(dvt_swapaxes(a, 0, 1)));
}

static void compute_numbers(all_bits *bits, dvt_ctx ctx) {
    dvt_seed(7);
    add_array(bits, dvt_uniform(-0.1, 0.3, DVT_SHAPE(20001), DVT_F32, ctx));
    add_array(bits, dvt_normal(0.1, 0.3, DVT_SHAPE(20001), DVT_F32, ctx));
    add_array(bits, dvt_normal(0.1, 0.3, DVT_SHAPE(20001), DVT_F64, ctx));
    add_array(bits, dvt_uniform(-0.1, 0.3, DVT_SHAPE(101), DVT_F16, ctx));
    add_array(bits, dvt_linspace(0.1, 0.7, 8, DVT_F64, ctx));
    add_array(bits, dvt_arange(0, 1, 0.1, DVT_F64, ctx));
    add_array(bits, dvt_full(DVT_SHAPE(3), 0.1, DVT_F32, ctx));
    add_array(bits, dvt_full(DVT_SHAPE(3), 1e-310, DVT_BOOL, ctx));
    add_array(bits, dvt_add_scalar(dvt_ones(DVT_SHAPE(2), DVT_I32, ctx), 1e-310));
    add_array(bits, dvt_var(dvt_arange(0, 7, 1, DVT_F64, ctx), DVT_ALL, 0.1));
    add_text(bits, dvt_linspace(0.1, 1e9, 7, DVT_F64, ctx));
    add_text(bits, dvt_linspace(0.1, 0.7, 7, DVT_F32, ctx));
}

#if !defined(DEVTENSOR_NO_NN)
static void compute_training(all_bits *bits, dvt_ctx ctx) {
    dvt_array *x = numbers(40, 48, DVT_F32, ctx), *y, *loss = NULL, *w;
    dvt_block *net = dvt_nn_dense(5, DVT_IDENTITY);
    dvt_optimizer optimizer = dvt_optimizer_adam(0.1);
    dvt_metric *metric = dvt_metric_mean_loss();
    dvt_trainer *trainer;
    char text[400];
    double value;
    int i;
    optimizer.schedule = dvt_schedule_cosine(10, 0.01);
    dvt_seed(3);
    dvt_block_initialize(net, dvt_init_xavier(), DVT_CONTEXTS(ctx));
    dvt_block_forward(net, x);
    w = dvt_param_data(dvt_block_param(net, "weight"), ctx);
    y = dvt_ones(DVT_SHAPE(40, 5), DVT_F32, ctx);
    trainer = dvt_trainer_new(dvt_block_collect_params(net, NULL), optimizer);
    for (i = 0; i < 3; i++) {
        DVT_RECORD {
            loss = dvt_loss_huber(
                dvt_pow_scalar(
                    dvt_add_scalar(dvt_square(dvt_dropout(dvt_block_forward(net, x), 0.3)), 0.1),
                    2.3),
                y, 0.7);
        }
        dvt_backward(loss);
        value = dvt_trainer_clip_global_norm(trainer, 0.1);
        add_bytes(bits, &value, sizeof value);
        dvt_trainer_step(trainer, 40);
        dvt_metric_update(metric, NULL, loss);
        add_array(bits, w);
    }
    value = dvt_metric_get(metric);
    add_bytes(bits, &value, sizeof value);
    value = dvt_trainer_learning_rate(trainer);
    add_bytes(bits, &value, sizeof value);
    dvt_block_format(dvt_nn_dropout(0.3), text, sizeof text);
    add_bytes(bits, text, strlen(text));
}
#endif

static void compute_all(all_bits *bits) {
    int gpu;
    bits->n = 0;
    dvt_set_virtual_gpus(1, 0);
    for (gpu = 0; gpu < 2; gpu++)
        DVT_SCOPE {
            dvt_ctx ctx = gpu ? dvt_gpu(0) : dvt_cpu();
            compute_arrays(bits, ctx, 3, DVT_F32);
            compute_arrays(bits, ctx, 3, DVT_F64);
            compute_arrays(bits, ctx, 250, DVT_F32);
            compute_arrays(bits, ctx, 200, DVT_F64);
            compute_numbers(bits, ctx);
#if !defined(DEVTENSOR_NO_NN)
            compute_training(bits, ctx);
#endif
        }
    dvt_set_virtual_gpus(0, 0);
}

DVT_TEST(results_do_not_depend_on_the_floating_point_mode) {
    static all_bits expected, got;
    const int before = dvt_num_threads();
    const unsigned plain = control();
    int i, threads, k;
    compute_all(&expected);
    CHECK(expected.n > 100 && expected.n < BITS);
    for (threads = 1; threads <= 3; threads += 2)
        for (i = 0; i < (int)(sizeof float_modes / sizeof float_modes[0]); i++) {
            unsigned inside, after;
            /* Starts new workers, which inherit the mode of the thread that starts them. */
            dvt_set_num_threads(threads);
            enter(&float_modes[i]);
            inside = control();
            compute_all(&got);
            after = control();
            fesetround(FE_TONEAREST);
            set_control(plain);
            dvt_test_check(after == inside, __FILE__, __LINE__, "%s: the mode was %x, and is %x",
                           float_modes[i].name, inside, after);
            CHECK_INT(got.n, expected.n);
            for (k = 0; k < got.n && got.at[k] == expected.at[k]; k++) {
            }
            dvt_test_check(k == got.n, __FILE__, __LINE__,
                           "%s, %d threads: bits of result %d of %d differ", float_modes[i].name,
                           threads, k, got.n);
        }
    dvt_set_num_threads(before);
}
