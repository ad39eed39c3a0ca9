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
/* Integers, whose sums are exact: the result is the sum, rounded once. */
static void check_integers(int64_t n, int64_t k, int64_t m, dvt_dtype dtype, int layout) {
    DVT_SCOPE {
        double *a = (double *)malloc(sizeof(double) * (size_t)(n * k));
        double *b = (double *)malloc(sizeof(double) * (size_t)(k * m)), *got;
        dvt_array *out;
        int64_t i, j, p, wrong = 0, each = n * m > 1000000 ? 37 : 1;
        for (i = 0; i < n * k; i++)
            a[i] = floor(dvt_test_random(-8, 9));
        for (i = 0; i < k * m; i++)
            b[i] = floor(dvt_test_random(-8, 9));
        out = dvt_matmul(on_gpu(a, n, k, dtype, layout & 1, 8),
                         on_gpu(b, k, m, dtype, layout >> 1, 8));
        got = (double *)calloc((size_t)(n * m), sizeof(double));
        CHECK_INT(dvt_to_host(dvt_as_in_dtype(dvt_copyto(out, dvt_cpu()), DVT_F64), got, n * m * 8),
                  DVT_OK);
        for (i = 0; i < n; i += each)
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
