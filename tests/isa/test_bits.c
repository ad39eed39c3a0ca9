/* Checks that operations give the same bits on every ISA target and for any number of threads:
   products, convolutions with gradients, operations along axes, functions, random numbers. */
#include "bits.h"
#include "matmul_forms.h"

typedef uint64_t (*family)(uint64_t hash);

/* Returns numbers that every machine computes alike: of all sizes between 2^-span and 2^span, or
   between -1 and 1. */
static dvt_array *numbers(dvt_shape shape, dvt_dtype dtype, int span) {
    static double values[40000];
    static uint32_t state;
    int64_t n = 1, i;
    dvt_array *wide;
    for (i = 0; i < shape.ndim; i++)
        n *= shape.dim[i];
    state = (uint32_t)n;
    for (i = 0; i < n; i++) {
        state = state * 1664525u + 1013904223u;
        values[i] = ((int)(state >> 8) - 8388608) / 8388608.;
        if (span)
            values[i] = ldexp(values[i], (int)(state >> 3 & 1023) % (2 * span + 1) - span);
    }
    wide = dvt_from_host(values, shape, DVT_F64, dvt_cpu());
    return dvt_astype(wide, dtype);
}

static uint64_t with(uint64_t hash, dvt_array *x) {
    dvt_array *whole = dvt_contiguous(x);
    CHECK(whole != NULL);
    return whole ? bits_add(hash, dvt_dtype_of(whole), dvt_size(whole), dvt_data(whole)) : 0;
}

static uint64_t products(uint64_t hash) {
    static const int64_t shapes[][3] = {{37, 53, 91},  {1, 300, 70},   {150, 1, 99}, {128, 64, 150},
                                        {9, 200, 130}, {200, 10, 170}, {16, 16, 16}, {61, 5, 3}};
    static const dvt_dtype dtypes[] = {DVT_F32, DVT_F64, DVT_F16, DVT_BF16};
    int s, d, form;
    for (s = 0; s < 8; s++)
        for (d = 0; d < 4; d++)
            for (form = 0; form < 4; form++) {
                const int64_t n = shapes[s][0], m = shapes[s][1], k = shapes[s][2];
                dvt_array *a = numbers(form & 1 ? DVT_SHAPE(k, n) : DVT_SHAPE(n, k), dtypes[d], 0);
                dvt_array *b = numbers(form & 2 ? DVT_SHAPE(m, k) : DVT_SHAPE(k, m), dtypes[d], 0);
                hash = with(hash, matmul_t(a, b, form & 1, (form & 2) != 0));
            }
    return hash;
}

/* Computes forward and both gradients. */
static uint64_t convolved(uint64_t hash, dvt_shape of_x, dvt_shape of_w,
                          const dvt_conv2d_options *p) {
    dvt_array *x = numbers(of_x, DVT_F32, 0), *w = numbers(of_w, DVT_F32, 0), *y = NULL;
    dvt_array *squares = NULL;
    CHECK(dvt_attach_grad(x, DVT_GRAD_WRITE) == DVT_OK);
    CHECK(dvt_attach_grad(w, DVT_GRAD_WRITE) == DVT_OK);
    DVT_RECORD {
        y = dvt_conv2d(x, w, NULL, p);
        squares = dvt_square(y);
    }
    CHECK(dvt_backward(squares) == DVT_OK);
    return with(with(with(hash, y), dvt_grad(x)), dvt_grad(w));
}

static uint64_t convolutions(uint64_t hash) {
    dvt_conv2d_options p;
    memset(&p, 0, sizeof p);
    hash = convolved(hash, DVT_SHAPE(4, 1, 28, 28), DVT_SHAPE(6, 1, 5, 5), &p);
    hash = convolved(hash, DVT_SHAPE(3, 6, 12, 12), DVT_SHAPE(16, 6, 3, 3), &p);
    hash = convolved(hash, DVT_SHAPE(2, 20, 9, 11), DVT_SHAPE(30, 20, 1, 1), &p);
    p.padding[0] = p.padding[1] = 1;
    hash = convolved(hash, DVT_SHAPE(2, 40, 14, 14), DVT_SHAPE(33, 40, 3, 3), &p);
    p.groups = 6;
    hash = convolved(hash, DVT_SHAPE(2, 6, 15, 17), DVT_SHAPE(6, 1, 3, 3), &p);
    p.groups = 2;
    p.stride[0] = p.stride[1] = 2;
    p.dilation[0] = p.dilation[1] = 2;
    return convolved(hash, DVT_SHAPE(2, 6, 17, 19), DVT_SHAPE(8, 3, 3, 3), &p);
}

static uint64_t along_axes(uint64_t hash) {
    static const int64_t shapes[][2] = {{7, 13}, {200, 10}, {3, 3000}, {90, 257}, {1, 30011}};
    static const dvt_dtype dtypes[] = {DVT_F32, DVT_F64, DVT_BF16};
    int s, d, axis;
    for (s = 0; s < 5; s++)
        for (d = 0; d < 3; d++)
            for (axis = 0; axis < 2; axis++) {
                dvt_array *x = numbers(DVT_SHAPE(shapes[s][0], shapes[s][1]), dtypes[d], 3);
                hash = with(hash, dvt_sum(x, DVT_AXES(axis)));
                hash = with(hash, dvt_mean(x, DVT_ALL));
                hash = with(hash, dvt_var(x, DVT_AXES(axis), 0));
                hash = with(hash, dvt_prod(x, DVT_AXES(axis)));
                hash = with(hash, dvt_norm(x, DVT_AXES(axis)));
                hash = with(hash, dvt_max(x, DVT_AXES(axis)));
                hash = with(hash, dvt_argmax(x, DVT_AXES(axis)));
                hash = with(hash, dvt_cumsum(x, axis));
                hash = with(hash, dvt_sort(x, axis, DVT_ASCENDING));
                hash = with(hash, dvt_logsumexp(x, DVT_AXES(axis)));
                hash = with(hash, dvt_softmax(x, axis));
                hash = with(hash, dvt_log_softmax(x, axis));
            }
    return hash;
}

static uint64_t functions(uint64_t hash) {
    static dvt_array *(*const all[])(dvt_array *) = {
        dvt_exp,  dvt_exp2, dvt_expm1, dvt_log,   dvt_log2,     dvt_log10,  dvt_log1p, dvt_sinh,
        dvt_cosh, dvt_tanh, dvt_sin,   dvt_cos,   dvt_tan,      dvt_asin,   dvt_acos,  dvt_atan,
        dvt_erf,  dvt_gelu, dvt_sqrt,  dvt_rsqrt, dvt_softplus, dvt_sigmoid};
    static const int spans[] = {2, 40, 110};
    static const double exponents[] = {-1, 0, 0.5, 1, 2, 3, -0.5};
    size_t k;
    int s, wide;
    for (wide = 0; wide < 2; wide++)
        for (s = 0; s < 3; s++) {
            const dvt_dtype dtype = wide ? DVT_F64 : DVT_F32;
            dvt_array *x = numbers(DVT_SHAPE(20003), dtype, spans[s]);
            dvt_array *other = numbers(DVT_SHAPE(20003), dtype, 3);
            for (k = 0; k < sizeof all / sizeof *all; k++)
                hash = with(hash, all[k](x));
            hash = with(hash, dvt_pow(dvt_abs(x), other));
            hash = with(hash, dvt_pow(dvt_abs(x), dvt_round(other)));
            for (k = 0; k < sizeof exponents / sizeof *exponents; k++)
                hash = with(hash, dvt_pow_scalar(dvt_abs(x), exponents[k]));
            hash = with(hash, dvt_atan2(x, other));
            hash = with(hash, dvt_hypot(x, other));
        }
    return hash;
}

static uint64_t random_numbers(uint64_t hash) {
    dvt_seed(7);
    hash = with(hash, dvt_uniform(-1, 2, DVT_SHAPE(30011), DVT_F32, dvt_cpu()));
    hash = with(hash, dvt_normal(1, 2, DVT_SHAPE(30011), DVT_F32, dvt_cpu()));
    return with(hash, dvt_normal(0, 1, DVT_SHAPE(3001), DVT_BF16, dvt_cpu()));
}

static void check_family(const char *name, family of) {
    uint64_t first = 0, hash = 0;
    bool have_first = false;
    int threads;
    /* A machine that is not emulated has compared the bits of 1, 2 and 3 threads. */
    for (threads = EMULATED ? 3 : 1; threads <= 3; threads++)
        FOR_EACH_TARGET({
            CHECK(dvt_set_cpu_isa(target->name) == DVT_OK &&
                  dvt_set_num_threads(threads) == DVT_OK);
            DVT_SCOPE {
                hash = of(BITS_BEGIN);
            }
            first = have_first ? first : hash;
            have_first = true;
            dvt_test_check(hash == first, __FILE__, __LINE__, "%s, %d threads: other bits of %s",
                           target->name, threads, name);
        });
    CHECK(dvt_set_num_threads(0) == DVT_OK && dvt_set_cpu_isa(NULL) == DVT_OK);
    bits_report(name, first);
}

DVT_TEST(bits_of_operations_are_the_same_everywhere) {
    check_family("products", products);
    check_family("convolutions", convolutions);
    check_family("along axes", along_axes);
    check_family("functions", functions);
    check_family("random numbers", random_numbers);
}
