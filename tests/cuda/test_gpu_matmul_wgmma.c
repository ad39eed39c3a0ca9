/* Matrix products by wgmma, compute capability 9.0: which products use it, and their results. The
   decision is only visible internally, so this file has a private copy of the library. */
#define DEVTENSOR_STATIC
#define DEVTENSOR_NO_SIMD /* the copy compiles in a quarter of the time */
#include "matmul_tiles.h"

#define WGMMA DVTI_CUDA_FAMILY_matmul_wgmma

static int has_wgmma(void) {
    return dvt_num_gpus() > 0 && dvt_wait(dvt_zeros(DVT_SHAPE(1), DVT_F32, dvt_gpu(0))) == DVT_OK &&
           dvti_cuda_physical_gpus[0].cc == 90 && dvti_cuda()->cuTensorMapEncodeTiled;
}

#define NEEDS_WGMMA                                                                                \
    NEEDS_GPU;                                                                                     \
    if (!has_wgmma())                                                                              \
    SKIP("needs compute capability 9.0 and a driver for CUDA 12")

/* ---- selection ---- */
static product large_product(void) {
    product p = plain_product(DVT_BF16, 4096, 4096, 4096);
    p.cc = 90;
    return p;
}

static int on_wgmma(product q) {
    dvti_cuda_mm plan = plan_of(q);
    CHECK(plan.program.family == WGMMA || plan.program.family == DVTI_CUDA_FAMILY_matmul_mma ||
          plan.program.family == DVTI_CUDA_FAMILY_matmul);
    return plan.program.family == WGMMA;
}

DVT_TEST(gpu_matmul_wgmma_which_products) {
    product q;
    int dtype, cc;
    NEEDS_WGMMA;
    for (dtype = 0; dtype < DVT_DTYPE_COUNT; dtype++)
        for (cc = 80; cc <= 120; cc += 10) {
            q = plain_product((dvt_dtype)dtype, 4096, 4096, 4096);
            q.cc = cc;
            q.tf32 = 1;
            CHECK_INT(on_wgmma(q), cc == 90 && (dtype == DVT_F16 || dtype == DVT_BF16));
        }
    q = large_product(); /* too small to fill the GPU */
    q.n = q.m = 256;
    q.k = 128;
    CHECK(!on_wgmma(q));
    q = large_product(); /* a row */
    q.n = 1;
    CHECK(!on_wgmma(q));
    q = large_product();
    q.k = 0;
    CHECK(!on_wgmma(q));
}

DVT_TEST(gpu_matmul_wgmma_which_layouts) {
    const product good = large_product();
    product q;
    NEEDS_WGMMA;
    q = good; /* transposed */
    q.a_row = q.b_col = 1;
    q.a_k = q.b_k = 4096;
    CHECK(on_wgmma(q));
    q = good; /* any extents, in rows at multiples of 16 bytes */
    q.n = q.m = q.k = 4001;
    CHECK(on_wgmma(q));
    q.a_row = 4004;
    CHECK(!on_wgmma(q));
    q = good;
    q.offset = 8;
    CHECK(on_wgmma(q));
    q.offset = 4;
    CHECK(!on_wgmma(q));
    q = good; /* what a tensor map cannot describe: reversed, repeated and overlapping rows */
    q.a_row = -4096;
    CHECK(!on_wgmma(q));
    q.a_row = 0;
    CHECK(!on_wgmma(q));
    q.a_row = 2048;
    CHECK(!on_wgmma(q));
    q = good; /* batches: each a matrix of its own, a shared one, overlapping ones, many apart */
    q.a_batch = q.b_batch = 4096 * 4096;
    CHECK(on_wgmma(q));
    q.a_batch = 0;
    CHECK(on_wgmma(q));
    q.a_batch = 4096 * 2048;
    CHECK(!on_wgmma(q));
    q.a_batch = 4096 * 4096 + 2048;
    CHECK(!on_wgmma(q));
    q.a_batch = (int64_t)1 << 38;
    CHECK(!on_wgmma(q));
}

DVT_TEST(gpu_matmul_wgmma_needs_its_driver) {
    dvti_cuda_driver *driver = &dvti_cuda_the_state.driver, before;
    NEEDS_WGMMA;
    before = *driver;
    driver->cuTensorMapEncodeTiled = NULL;
    CHECK(!on_wgmma(large_product()));
    *driver = before;
    CHECK(on_wgmma(large_product()));
}

DVT_TEST(gpu_matmul_wgmma_tiles_and_split_k) {
    product q = large_product();
    dvti_cuda_mm plan;
    NEEDS_WGMMA;
    plan = plan_of(q);
    CHECK_INT(plan.args.jobs, 32 * 16);
    CHECK_INT(plan.args.splits, 1);
    q.n = 1280; /* 100 tiles of 128x128 for 100 multiprocessors */
    q.m = 1280;
    plan = plan_of(q);
    CHECK_INT(plan.args.jobs, 100);
    q = plain_product(DVT_BF16, 512, 1 << 16, 512);
    q.cc = 90;
    plan = plan_of(q);
    CHECK(plan.program.family == WGMMA && plan.args.splits > 1);
    CHECK_INT(plan.args.chunk % 64, 0);
    CHECK(plan.args.splits * plan.args.chunk >= q.k);
    /* the kernel's stages, results and barriers fit into the 227 KiB of a block */
    CHECK(plan.shared <= 232448);
}

/* ---- results ---- */
/* Integers, whose sums are exact: the result is the sum, rounded once. Rows begin at multiples of
   `group` elements. */
static void check_integers_in(int64_t n, int64_t k, int64_t m, dvt_dtype dtype, int layout,
                              int group) {
    DVT_SCOPE {
        double *a = (double *)malloc(sizeof(double) * (size_t)(n * k));
        double *b = (double *)malloc(sizeof(double) * (size_t)(k * m)), *got;
        dvt_array *out;
        const int64_t each = step_of_rows(n, k, m);
        int64_t i, j, p, wrong = 0;
        for (i = 0; i < n * k; i++)
            a[i] = floor(dvt_test_random(-8, 9));
        for (i = 0; i < k * m; i++)
            b[i] = floor(dvt_test_random(-8, 9));
        out = dvt_matmul(on_gpu(a, n, k, dtype, layout & 1, group),
                         on_gpu(b, k, m, dtype, layout >> 1, group));
        got = (double *)calloc((size_t)(n * m), sizeof(double));
        CHECK_INT(dvt_to_host(dvt_as_in_dtype(dvt_copyto(out, dvt_cpu()), DVT_F64), got, n * m * 8),
                  DVT_OK);
        for (i = n - 1; i >= 0; i -= each)
            for (j = 0; j < m; j++) {
                double sum = 0;
                for (p = 0; p < k; p++)
                    sum += a[i * k + p] * b[p * m + j];
                /* few sums need rounding, which takes an operation */
                wrong += got[i * m + j] != sum && (fabs(sum) <= (dtype == DVT_F16 ? 2048 : 256) ||
                                                   got[i * m + j] != stored(sum, dtype, 0));
            }
        dvt_test_check(wrong == 0, __FILE__, __LINE__, "%s, layout %d: %lld elements are wrong",
                       dvt_dtype_name(dtype), layout, (long long)wrong);
        free(a);
        free(b);
        free(got);
    }
}

static void check_integers(int64_t n, int64_t k, int64_t m, dvt_dtype dtype, int layout) {
    check_integers_in(n, k, m, dtype, layout, 8);
}

static int few(void) { /* multiprocessors, as of the simulated GPU */
    return dvti_cuda_physical_gpus[0].processors <= 4;
}

static void check_loaded(dvt_dtype dtype, int wide, int layout) {
    int variant = (int)dtype | wide << 4 | !(layout & 1) << 5 | (layout >> 1) << 6;
    dvt_test_check(loaded(WGMMA, variant), __FILE__, __LINE__,
                   "no product used variant %x of wgmma", variant);
}

/* Tiles of 128x128 in each layout: ragged rows, columns and k, of which the last stage is mostly
   outside; rows end in NaN. Then random values. */
DVT_TEST(gpu_matmul_wgmma_every_layout) {
    int layout;
    NEEDS_WGMMA;
    for (layout = 0; layout < 4; layout++) {
        check_integers(few() ? 200 : 1280, 65, few() ? 251 : 1275, DVT_BF16, layout);
        check_loaded(DVT_BF16, 0, layout);
    }
    check_mma(few() ? 250 : 1280, 40, few() ? 130 : 1275, DVT_BF16, 1);
}

/* Tiles of 128x256: nearly one for each multiprocessor, then more tiles than blocks, and more
   stages than the ring has. */
DVT_TEST(gpu_matmul_wgmma_wide_tiles) {
    int layout;
    NEEDS_WGMMA;
    for (layout = 1; layout < 3; layout++) {
        int64_t rows = 128 * (dvti_cuda_physical_gpus[0].processors / 12);
        check_integers(few() ? 300 : rows, 130, few() ? 251 : 3070, DVT_F16, layout);
        check_loaded(DVT_F16, 1, layout);
    }
    check_integers(few() ? 260 : 2000, few() ? 330 : 130, few() ? 780 : 5000, DVT_F16, 2);
}

/* Few tiles and a long k: partial sums in float32, which another kernel adds. */
DVT_TEST(gpu_matmul_wgmma_splits) {
    product q;
    NEEDS_WGMMA;
    q = few() ? plain_product(DVT_BF16, 120, 2000, 128) : plain_product(DVT_BF16, 500, 8000, 504);
    q.cc = 90;
    q.processors = dvti_cuda_physical_gpus[0].processors;
    CHECK(on_wgmma(q) && plan_of(q).args.splits > 1);
    check_integers(q.n, q.k, q.m, DVT_BF16, 0);
}

static dvt_array *random_on_gpu(dvt_shape shape, dvt_dtype dtype) {
    return dvt_copyto(random_on_cpu(shape, dtype, -1, 1), dvt_gpu(0));
}

static void same_bits(dvt_array *got, dvt_array *want, const char *what) {
    same_on_gpu(got, dvt_copyto(want, dvt_cpu()), 0, 0, what, __FILE__, __LINE__);
}

/* Bias, relu and relu's mask give the bits of operations of their own. */
DVT_TEST(gpu_matmul_wgmma_epilogue) {
    const int64_t rows = 250, depth = 40, units = 230, scale = 6;
    NEEDS_WGMMA;
    DVT_SCOPE {
        int64_t n = few() ? rows : rows * scale, m = few() ? units : units * scale;
        dvt_array *x = random_on_gpu(DVT_SHAPE(n, depth), DVT_BF16);
        dvt_array *w = random_on_gpu(DVT_SHAPE(m, depth), DVT_BF16);
        dvt_array *bias = random_on_gpu(DVT_SHAPE(m), DVT_BF16), *dense = NULL, *gradient;
        same_bits(dvt_linear(x, w, bias), dvt_add(dvt_matmul(x, dvt_t(w)), bias), "bias");
        check_loaded(DVT_BF16, 0, 2);
        CHECK_INT(dvt_attach_grad(x, DVT_GRAD_WRITE), DVT_OK);
        DVT_RECORD {
            dense = dvt_linear(dvt_relu(x), w, NULL);
        }
        gradient = random_on_gpu(DVT_SHAPE(n, m), DVT_BF16);
        CHECK_INT(dvt_backward_from(&dense, &gradient, 1, DVT_FREE_GRAPH), DVT_OK);
        same_bits(dvt_grad(x), dvt_where_scalar(dvt_relu(x), dvt_matmul(gradient, w), 0), "mask");
    }
}

/* Each batch gives the bits of its own product. a (2, n, k) or shared, b (2, k, m). */
DVT_TEST(gpu_matmul_wgmma_batches) {
    int shared, i;
    NEEDS_WGMMA;
    for (shared = 0; shared < 2; shared++)
        DVT_SCOPE {
            int64_t n = few() ? 140 : 1280, m = few() ? 250 : 2560;
            dvt_array *a = random_on_gpu(DVT_SHAPE(shared ? 1 : 2, n, 72), DVT_BF16), *out;
            dvt_array *b = random_on_gpu(DVT_SHAPE(2, 72, m), DVT_BF16);
            out = dvt_matmul(a, b);
            for (i = 0; i < 2; i++)
                same_bits(dvt_copy(dvt_index(out, i)),
                          dvt_matmul(dvt_index(a, shared ? 0 : i), dvt_index(b, i)), "a batch");
        }
}

static dvti_cu_result DVTI_CUDA_CALL no_map(void *map, int dtype, unsigned rank, void *data,
                                            const uint64_t *dim, const uint64_t *stride,
                                            const unsigned *box, const unsigned *step,
                                            int interleave, int swizzle, int promotion, int fill) {
    (void)map, (void)dtype, (void)rank, (void)data, (void)dim, (void)stride, (void)box;
    (void)step, (void)interleave, (void)swizzle, (void)promotion, (void)fill;
    return DVTI_CU_INVALID_VALUE;
}

DVT_TEST(gpu_matmul_wgmma_reports_a_refused_map) {
    dvti_cuda_driver *driver = &dvti_cuda_the_state.driver, before;
    NEEDS_WGMMA;
    before = *driver;
    driver->cuTensorMapEncodeTiled = no_map;
    DVT_SCOPE {
        int64_t n = few() ? 256 : 1280;
        dvt_array *x = dvt_ones(DVT_SHAPE(n, n), DVT_BF16, dvt_gpu(0));
        CHECK(dvt_matmul(x, x) == NULL);
        CHECK(strstr(dvt_error(), "cuTensorMapEncodeTiled") != NULL);
        dvt_clear_error();
    }
    *driver = before;
}

/* ---- copies of the operands ---- */
static product packed_product(dvt_dtype dtype, int tf32) {
    product q = plain_product(dtype, 4096, 4096, 4096);
    q.cc = 90;
    q.tf32 = tf32;
    q.memory = (int64_t)1 << 37;
    return q;
}

/* Returns the parts per element of copied operands; -1: another kernel, or no copies. */
static int parts_of(product q) {
    dvti_cuda_mm plan = plan_of(q);
    return plan.program.family == WGMMA && plan.parts ? plan.parts : -1;
}

DVT_TEST(gpu_matmul_wgmma_which_copies) {
    product q;
    NEEDS_WGMMA;
    CHECK_INT(parts_of(packed_product(DVT_F32, 0)), -1);
    CHECK_INT(parts_of(packed_product(DVT_F32, 1)), 1);
    CHECK_INT(parts_of(packed_product(DVT_F32, 2)), 2);
    CHECK_INT(parts_of(packed_product(DVT_F64, 2)), -1);
    CHECK_INT(parts_of(packed_product(DVT_I32, 2)), -1);
    CHECK_INT(parts_of(packed_product(DVT_F16, 0)), -1); /* a tensor map describes the operands */
    q = packed_product(DVT_F16, 0);
    q.a_row = 4099;
    CHECK_INT(parts_of(q), 1);
    q = packed_product(DVT_BF16, 0);
    q.offset = 1;
    CHECK_INT(parts_of(q), 1);
    q = packed_product(DVT_F32, 2); /* the copies would take longer than the product */
    q.m = 8;
    CHECK_INT(parts_of(q), -1);
    q = packed_product(DVT_F32, 2);
    q.n = q.m = q.k = 256;
    CHECK_INT(parts_of(q), -1);
    q = packed_product(DVT_F32, 2);
    q.cc = 100;
    CHECK_INT(parts_of(q), -1);
    q = packed_product(DVT_F32, 2); /* 256 MiB of copies need 4 GiB of memory */
    q.memory = (int64_t)1 << 32;
    CHECK_INT(parts_of(q), 2);
    q.memory -= 16;
    CHECK_INT(parts_of(q), -1);
    q = packed_product(DVT_F32, 2); /* repeated operands, whose copies would have 2^65 bytes */
    q.n = q.k = (int64_t)1 << 30;
    q.a_row = q.a_k = 0;
    CHECK_INT(parts_of(q), -1);
}

DVT_TEST(gpu_matmul_wgmma_copies_need_a_depth) {
    static const int dtypes[][2] = {{DVT_F32, 1}, {DVT_F32, 2}, {DVT_BF16, 0}};
    int i, k;
    NEEDS_WGMMA;
    for (i = 0; i < COUNT_OF(dtypes); i++)
        for (k = 0; k < 64; k += k < 60 ? 20 : 3) {
            product q = packed_product((dvt_dtype)dtypes[i][0], dtypes[i][1]);
            q.n = q.m = 1 << 14;
            q.k = k;
            q.a_row = k + 1;
            q.b_k = (1 << 14) + 1;
            CHECK_INT(parts_of(q), -1);
        }
    DVT_SCOPE {
        bool before = dvt_allow_tf32x3(true);
        dvt_array *none = dvt_zeros(DVT_SHAPE(400, 0), DVT_F32, dvt_gpu(0));
        dvt_array *x = dvt_matmul(none, dvt_t(none));
        CHECK(dvt_item(dvt_max(x, DVT_ALL)) == 0 && dvt_item(dvt_min(x, DVT_ALL)) == 0);
        dvt_allow_tf32x3(before);
    }
}

/* Returns every `step`-th row on cpu(), as float64. A large product is compared in some rows: sums
   on cpu() in this copy of the library, which has no SIMD, would take minutes. */
static dvt_array *rows_of(dvt_array *x, int64_t step) {
    dvt_array *rows = dvt_slice(dvt_copyto(x, dvt_cpu()), -2, 0, DVT_END, few() ? 1 : step);
    return dvt_astype(rows, DVT_F64);
}

/* Compares a product with sums in float64. `far` is the bound in units of float32 relative to the
   sum of the products' magnitudes. */
static void check_float32(dvt_array *product_of, dvt_array *a, dvt_array *b, double far,
                          int parts) {
    DVT_SCOPE {
        const int variant = (int)DVT_F32 | 1 << 5 | 1 << 6 | 1 << 7 | (parts == 2) << 8;
        dvt_array *x = rows_of(a, 35), *y = rows_of(b, 1), *out = rows_of(product_of, 35);
        dvt_array *distance, *bound;
        CHECK(dvt_size(out) > 0);
        distance = dvt_abs(dvt_sub(out, dvt_matmul(x, y)));
        bound = dvt_mul_scalar(dvt_matmul(dvt_abs(x), dvt_abs(y)), far * 0x1p-24);
        CHECK(dvt_item(dvt_sum(dvt_greater(distance, bound), DVT_ALL)) == 0);
        dvt_test_check(loaded(WGMMA, variant) || loaded(WGMMA, variant | 1 << 4), __FILE__,
                       __LINE__, "no product used %d parts", parts);
    }
}

/* Ragged extents; operands that are transposed, reversed, or have several batch axes, of which one
   is shared. */
static void check_copies(int parts, double far) {
    const int64_t n = few() ? 261 : 1051, k = few() ? 135 : 301, m = few() ? 270 : 1053;
    DVT_SCOPE {
        dvt_array *a = random_on_gpu(DVT_SHAPE(2, 2, n, k), DVT_F32);
        dvt_array *b = random_on_gpu(DVT_SHAPE(2, 1, k, m), DVT_F32);
        dvt_array *transposed = dvt_t(random_on_gpu(DVT_SHAPE(k, n), DVT_F32));
        dvt_array *reversed = dvt_slice(dvt_index(dvt_index(a, 0), 1), 0, n - 1, -n - 1, -1);
        dvt_array *one = dvt_index(dvt_index(b, 1), 0);
        dvt_array *other = dvt_t(random_on_gpu(DVT_SHAPE(m, k), DVT_F32));
        check_float32(dvt_matmul(transposed, one), transposed, one, far, parts);
        check_float32(dvt_matmul(reversed, other), reversed, other, far, parts);
        check_float32(dvt_matmul(a, b), a, b, far, parts);
    }
}

DVT_TEST(gpu_matmul_wgmma_tf32) {
    bool before;
    NEEDS_WGMMA;
    before = dvt_allow_tf32(true);
    check_copies(1, 0x1p14); /* both operands are rounded to 11 bits */
    dvt_allow_tf32(before);
}

/* The parts lose 2^-22 of a product, the sums are promoted. */
DVT_TEST(gpu_matmul_wgmma_float32) {
    bool before;
    NEEDS_WGMMA;
    before = dvt_allow_tf32x3(true);
    check_copies(2, 8);
    dvt_allow_tf32x3(before);
}

/* Returns the largest error of a product, relative to the sum of the magnitudes. */
static double error_of(dvt_array *a, dvt_array *b, dvt_array *exact, dvt_array *size) {
    dvt_array *out = rows_of(dvt_matmul(a, b), 49);
    return dvt_item(dvt_max(dvt_div(dvt_abs(dvt_sub(out, exact)), size), DVT_ALL));
}

/* The errors are at most twice those of fused multiply-adds in float32. */
DVT_TEST(gpu_matmul_wgmma_float32_errors) {
    NEEDS_WGMMA;
    DVT_SCOPE {
        const int64_t n = few() ? 260 : 1030, k = few() ? 330 : 600;
        dvt_array *a = random_on_gpu(DVT_SHAPE(n, k), DVT_F32);
        dvt_array *b = random_on_gpu(DVT_SHAPE(k, n), DVT_F32);
        dvt_array *x = rows_of(a, 49), *y = rows_of(b, 1);
        dvt_array *exact = dvt_matmul(x, y), *size = dvt_matmul(dvt_abs(x), dvt_abs(y));
        double parts, fused = error_of(a, b, exact, size);
        dvt_allow_tf32x3(true);
        parts = error_of(a, b, exact, size);
        dvt_allow_tf32x3(false);
        dvt_test_check(parts <= 2 * fused && parts != fused, __FILE__, __LINE__,
                       "two parts: %g, fused multiply-adds: %g", parts, fused);
    }
}

/* Operands that two TF32 numbers cannot hold: the whole product is float32's, with its bits. */
DVT_TEST(gpu_matmul_wgmma_float32_special) {
    static const float special[] = {-INFINITY, NAN, 0x1p60f};
    int i;
    NEEDS_WGMMA;
    for (i = -1; i < COUNT_OF(special); i++)
        DVT_SCOPE {
            const int64_t n = few() ? 260 : 1030, k = few() ? 130 : 170;
            dvt_array *a = random_on_gpu(DVT_SHAPE(n, k), DVT_F32), *fused;
            dvt_array *b = random_on_gpu(DVT_SHAPE(k, n), DVT_F32), *out;
            if (i >= 0)
                dvt_fill(dvt_slice(dvt_slice(i % 2 ? a : b, 0, 5, 6, 1), 1, 69, 70, 1), special[i]);
            fused = dvt_matmul(a, b);
            dvt_allow_tf32x3(true);
            out = dvt_matmul(a, b);
            dvt_allow_tf32x3(false);
            if (i >= 0)
                same_bits(out, fused, "a product with a special value");
            else
                CHECK(!dvt_array_equal(out, fused,
                                       DVT_NAN_EQUALS)); /* else this test would prove nothing */
        }
}

/* Few tiles and a long k. The bias gives the bits of an operation of its own. */
DVT_TEST(gpu_matmul_wgmma_float32_splits) {
    dvti_cuda_physical *physical = &dvti_cuda_physical_gpus[0];
    NEEDS_WGMMA;
    DVT_SCOPE {
        const int before = physical->processors;
        const int64_t n = few() ? 260 : 710, k = 600;
        dvt_array *x = random_on_gpu(DVT_SHAPE(n, k), DVT_F32), *product_of;
        dvt_array *w = random_on_gpu(DVT_SHAPE(n, k), DVT_F32);
        dvt_array *bias = random_on_gpu(DVT_SHAPE(n), DVT_F32);
        product q = packed_product(DVT_F32, 2);
        physical->processors = few() ? 8 : before; /* more than tiles */
        q.n = q.m = n;
        q.k = q.a_row = q.b_col = k;
        q.b_k = 1;
        q.processors = physical->processors;
        CHECK_INT(parts_of(q), 2);
        CHECK(plan_of(q).args.splits > 1);
        dvt_allow_tf32x3(true);
        product_of = dvt_matmul(x, dvt_t(w));
        check_float32(dvt_slice(product_of, 1, 130, 146, 1), x, dvt_t(dvt_slice(w, 0, 130, 146, 1)),
                      8, 2);
        same_bits(dvt_linear(x, w, bias), dvt_add(product_of, bias), "bias");
        dvt_allow_tf32x3(false);
        physical->processors = before;
    }
}

/* Without memory for the copies, other kernels compute the product. */
DVT_TEST(gpu_matmul_wgmma_copies_without_memory) {
    NEEDS_WGMMA;
    DVT_SCOPE {
        const int64_t n = few() ? 520 : 1030, k = few() ? 130 : 170;
        dvt_array *a = random_on_gpu(DVT_SHAPE(n, k), DVT_F32), *fused;
        dvt_array *b = random_on_gpu(DVT_SHAPE(k, n), DVT_F32);
        dvt_memory_stats stats;
        fused = dvt_copyto(dvt_matmul(a, b), dvt_cpu());
        dvt_allow_tf32x3(true);
        CHECK(!dvt_array_equal(dvt_copyto(dvt_matmul(a, b), dvt_cpu()), fused, DVT_NAN_EQUALS));
        /* the result fits, the copies do not */
        CHECK_INT(dvt_memory_query(dvt_gpu(0), &stats), DVT_OK);
        CHECK_INT(dvt_set_memory_limit(stats.used + 4 * n * n + 4096, dvt_gpu(0)), DVT_OK);
        same_bits(dvt_matmul(a, b), fused, "a product without copies");
        CHECK_INT(dvt_error_code(), DVT_OK);
        dvt_set_memory_limit(0, dvt_gpu(0));
        dvt_allow_tf32x3(false);
    }
}

/* 16-bit floats whose rows begin anywhere. */
DVT_TEST(gpu_matmul_wgmma_unaligned) {
    NEEDS_WGMMA; /* only an open GPU tells whether it has few multiprocessors */
    check_integers_in(few() ? 200 : 1201, 65, few() ? 251 : 1203, DVT_BF16, 0, 1);
    CHECK(loaded(WGMMA, DVT_BF16 | 1 << 5 | 1 << 6 | 1 << 7) ||
          loaded(WGMMA, DVT_BF16 | 1 << 4 | 1 << 5 | 1 << 6 | 1 << 7));
}
