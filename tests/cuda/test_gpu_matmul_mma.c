/* Matrix products on tensor cores: which products use them, and their results. The decision is only
   visible internally, so this file has a private copy of the library. The harness counts its
   checks, but cannot read its arrays. Here compute capability 9.0 has no wgmma, which
   test_gpu_matmul_wgmma.c tests. */
#define DEVTENSOR_STATIC
#define DEVTENSOR_NO_SIMD /* the copy compiles in a quarter of the time */
#include "matmul_tiles.h"

static int on_tensor_cores(product q) {
    return plan_of(q).program.family == DVTI_CUDA_FAMILY_matmul_mma;
}

DVT_TEST(gpu_matmul_mma_which_dtypes) {
    int dtype;
    for (dtype = 0; dtype < DVT_DTYPE_COUNT; dtype++) {
        product q = plain_product((dvt_dtype)dtype, 64, 64, 64);
        CHECK_INT(on_tensor_cores(q), dtype == DVT_F16 || dtype == DVT_BF16);
        q.tf32 = 1;
        CHECK_INT(on_tensor_cores(q), dtype == DVT_F16 || dtype == DVT_BF16 || dtype == DVT_F32);
        q.cc = 75;
        CHECK(!on_tensor_cores(q));
    }
}

DVT_TEST(gpu_matmul_mma_which_layouts) {
    product good = plain_product(DVT_F16, 64, 64, 64), q;
    CHECK(on_tensor_cores(good));
    q = good; /* rows of 65 elements */
    q.a_row = 65;
    CHECK(!on_tensor_cores(q));
    q = good; /* a begins one element later; eight are 16 bytes */
    q.offset = 1;
    CHECK(!on_tensor_cores(q));
    q.offset = 8;
    CHECK(on_tensor_cores(q));
    q = good; /* transposed */
    q.a_row = q.b_col = 1;
    q.a_k = q.b_k = 64;
    CHECK(on_tensor_cores(q));
    q = good; /* every second element */
    q.b_col = 2;
    q.b_k = 128;
    CHECK(!on_tensor_cores(q));
    q = good; /* reversed */
    q.a_row = -64;
    CHECK(on_tensor_cores(q));
    q.a_k = -1;
    CHECK(!on_tensor_cores(q));
    q = good; /* any extents are allowed */
    q.n = q.m = q.k = 61;
    CHECK(on_tensor_cores(q));
    q = good; /* a single row is limited by memory bandwidth */
    q.n = 1;
    CHECK(!on_tensor_cores(q));
    q = good; /* batches */
    q.a_batch = 64 * 64;
    CHECK(on_tensor_cores(q));
    q.a_batch = 64 * 64 + 1;
    CHECK(!on_tensor_cores(q));
    q.a_batch = 64 * 64;
    q.b_batch = 4;
    CHECK(!on_tensor_cores(q));
}

DVT_TEST(gpu_matmul_mma_tiles_and_split_k) {
    dvti_cuda_mm plan = plan_of(plain_product(DVT_BF16, 4096, 4096, 4096));
    CHECK_INT(plan.args.jobs, 32 * 32);
    CHECK_INT(plan.args.splits, 1);
    plan = plan_of(plain_product(DVT_BF16, 64, 1 << 16, 64));
    CHECK(plan.args.splits > 1);
    CHECK_INT(plan.args.chunk % 64, 0);
    CHECK(plan.args.splits * plan.args.chunk >= 1 << 16);
    CHECK((plan.args.splits - 1) * plan.args.chunk < 1 << 16);
    CHECK_INT(plan_of(plain_product(DVT_BF16, 64, 64, 64)).args.splits, 1);
}

/* ---- results ---- */
#define MMA DVTI_CUDA_FAMILY_matmul_mma

static int has_tensor_cores(void) {
    if (dvt_num_gpus() == 0 || dvt_wait(dvt_zeros(DVT_SHAPE(1), DVT_F32, dvt_gpu(0))) != DVT_OK)
        return 0;
    dvti_cuda_the_state.driver.cuTensorMapEncodeTiled = NULL;
    return dvti_cuda_physical_gpus[0].cc >= 80;
}

#define NEEDS_TENSOR_CORES                                                                         \
    NEEDS_GPU;                                                                                     \
    if (!has_tensor_cores())                                                                       \
    SKIP("needs compute capability 8.0")

static void check_dtype(dvt_dtype dtype) {
    /* around the tile of 64, the stage of 32 or 16 along k, and more stages than the pipeline
       holds */
    static const int64_t n[] = {2, 64, 65, 17}, k[] = {1, 32, 33, 200}, m[] = {3, 63, 64, 70};
    int i, layout;
    for (layout = 0; layout < 4; layout++) {
        /* by default float16 and bfloat16, which differ in one instruction, share the layouts */
        bool even = layout % 3 == 0, small = IN_FULL || dtype != DVT_BF16 || even;
        bool large = IN_FULL || dtype == DVT_F32 || even == (dtype == DVT_F16);
        int variant = (int)dtype | !(layout & 1) << 5 | (layout >> 1) << 6;
        if (small) {
            for (i = 0; i < COUNT_OF(n); i++)
                check_mma(n[i], k[(i + layout) % COUNT_OF(k)], m[(i + 2 * layout) % COUNT_OF(m)],
                          dtype, layout);
            check_mma(40, 64, 48, dtype, layout);
            CHECK(loaded(MMA, variant) || loaded(MMA, variant | 1 << 4));
        }
        if (!large)
            continue;
        /* the large tile, which needs more of them on a GPU with many multiprocessors */
        if (dvti_cuda_physical_gpus[0].processors <= 4)
            check_mma(256, 80, 252, dtype, layout);
        else
            check_mma(1536, 200, 1532, dtype, layout);
        CHECK(loaded(MMA, variant | 1 << 4));
    }
    check_mma(7, 2000, 9, dtype, 0); /* split along k */
    check_mma(3, 0, 5, dtype, 0);
}

/* The 128 x 128 tile of the other kernel, read 16 bytes at a time, in every layout. */
DVT_TEST(gpu_matmul_large_tile_in_every_layout) {
    const int64_t many = 8; /* multiprocessors from which a larger product is needed */
    bool before;
    int layout, lies;
    NEEDS_TENSOR_CORES; /* and cp.async, which copies this tile */
    before = dvt_allow_tf32(false);
    for (layout = 0; layout < 4; layout++) {
        bool few = dvti_cuda_physical_gpus[0].processors <= many;
        check_mma(few ? 392 : 1304, few ? 20 : 72, few ? 380 : 1200, DVT_F32, layout);
        lies = DVTI_MM_WIDE | (layout & 1 ? 0 : DVTI_MM_ALONG_K);
        lies |= (DVTI_MM_WIDE | (layout >> 1 ? DVTI_MM_ALONG_K : 0)) << 2;
        CHECK(loaded(DVTI_CUDA_FAMILY_matmul,
                     (int)dvti_cuda_mm_variant(DVT_F32, DVTI_MM_LARGE, false, lies)));
    }
    dvt_allow_tf32(before);
}

DVT_TEST(gpu_matmul_mma_float16) {
    NEEDS_TENSOR_CORES;
    check_dtype(DVT_F16);
}

DVT_TEST(gpu_matmul_mma_bfloat16) {
    NEEDS_TENSOR_CORES;
    check_dtype(DVT_BF16);
}

DVT_TEST(gpu_matmul_mma_tf32) {
    bool before;
    NEEDS_TENSOR_CORES;
    before = dvt_allow_tf32(true);
    check_dtype(DVT_F32);
    CHECK_INT(dvt_allow_tf32(before), true);
}

/* 1 + 2^-12 rounds to 1 in TF32, and must do so only when TF32 is allowed. */
DVT_TEST(gpu_matmul_mma_tf32_only_on_request) {
    bool before;
    NEEDS_TENSOR_CORES;
    before = dvt_allow_tf32(false);
    DVT_SCOPE {
        dvt_array *a = dvt_full(DVT_SHAPE(16, 16), 1 + 1.0 / 4096, DVT_F32, dvt_gpu(0));
        dvt_array *one = dvt_ones(DVT_SHAPE(16, 16), DVT_F32, dvt_gpu(0)),
                  *exact = dvt_matmul(a, one), *rounded;
        CHECK(!dvt_allow_tf32(true));
        rounded = dvt_matmul(a, one);
        CHECK(dvt_allow_tf32(false));
        CHECK(dvt_item(dvt_index(dvt_index(exact, 3), 5)) == 16 + 16.0 / 4096);
        CHECK(dvt_item(dvt_index(dvt_index(rounded, 3), 5)) == 16);
    }
    dvt_allow_tf32(before);
}

/* Batches, and one matrix broadcast over a batch. */
DVT_TEST(gpu_matmul_mma_batches) {
    NEEDS_TENSOR_CORES;
    DVT_SCOPE {
        dvt_array *a = dvt_full(DVT_SHAPE(3, 10, 16), 2, DVT_BF16, dvt_cpu()), *b, *out;
        int i;
        for (i = 0; i < 3; i++)
            CHECK(dvt_fill(dvt_index(a, i), i + 1) != NULL);
        a = dvt_copyto(a, dvt_gpu(0));
        b = dvt_ones(DVT_SHAPE(16, 8), DVT_BF16, dvt_gpu(0));
        for (i = 0; i < 2; i++) {
            /* a (3, 10, 16) with b for all; then b's transpose with a's */
            out = i ? matmul_t(b, a, true, true) : dvt_matmul(a, b);
            CHECK(dvt_item(dvt_index(dvt_index(dvt_index(out, 0), 7), 9 - 2 * !i)) == 16);
            CHECK(dvt_item(dvt_index(dvt_index(dvt_index(out, 1), 0), 0)) == 32);
            CHECK(dvt_item(dvt_index(dvt_index(dvt_index(out, 2), 4), 7)) == 48);
        }
    }
}

/* NaN and infinities propagate; values past the ends of rows (NaN here) do not. */
DVT_TEST(gpu_matmul_mma_nan) {
    static const double strange[] = {(double)NAN, (double)INFINITY, -(double)INFINITY};
    int i, j, t;
    static const dvt_dtype dtypes[] = {DVT_F16, DVT_BF16, DVT_F32};
    bool before;
    NEEDS_TENSOR_CORES;
    before = dvt_allow_tf32(true);
    for (t = 0; t < 3; t++)
        for (i = 0; i < 3; i++)
            DVT_SCOPE {
                double a[5 * 11], b[11 * 6], got[5 * 6];
                int group = dtypes[t] == DVT_F32 ? 4 : 8;
                for (j = 0; j < 5 * 11; j++)
                    a[j] = 1;
                for (j = 0; j < 11 * 6; j++)
                    b[j] = 1;
                a[4 * 11 + 10] = strange[i];
                CHECK_INT(
                    dvt_to_host(dvt_as_in_dtype(
                                    dvt_copyto(dvt_matmul(on_gpu(a, 5, 11, dtypes[t], 0, group),
                                                          on_gpu(b, 11, 6, dtypes[t], 1, group)),
                                               dvt_cpu()),
                                    DVT_F64),
                                got, (int64_t)sizeof got),
                    DVT_OK);
                for (j = 0; j < 5 * 6; j++)
                    CHECK(j < 24 ? got[j] == 11 : i == 0 ? got[j] != got[j] : got[j] == strange[i]);
            }
    dvt_allow_tf32(before);
}
