/* Tests of device names of other libraries, which are parsed and printed; of TPUs, which do not
   exist here; and of print styles. */
#include "dvt_test.h"

/* Checks that the previous call left this error, whose text the caller has checked. */
static void failed_with(dvt_status status) {
    CHECK_INT(dvt_error_code(), status);
    dvt_clear_error();
}

/* ---- names ---- */
DVT_TEST(context_text_parse) {
    static const struct {
        const char *name, *is;
    } good[] = {{"cuda", "gpu(0)"},
                {"cuda:1", "gpu(1)"},
                {"gpu:0", "gpu(0)"},
                {"gpu:15", "gpu(15)"},
                {"cpu:0", "cpu(0)"},
                {"cpu:3", "cpu(3)"},
                {"tpu", "tpu(0)"},
                {"tpu(2)", "tpu(2)"},
                {"tpu:1", "tpu(1)"},
                {"xla:1", "tpu(1)"},
                {"/GPU:0", "gpu(0)"},
                {"GPU:1", "gpu(1)"},
                {"/gpu:1", "gpu(1)"},
                {"/CPU:0", "cpu(0)"},
                {"/cpu", "cpu(0)"},
                {"/device:GPU:0", "gpu(0)"},
                {"/device:TPU:3", "tpu(3)"},
                {"/physical_device:CPU:0", "cpu(0)"},
                {"/job:localhost/replica:0/task:0/device:CPU:0", "cpu(0)"},
                {"/job:localhost/replica:0/task:0/device:GPU:12", "gpu(12)"},
                {"TFRT_CPU_0", "cpu(0)"},
                {"TPU_1", "tpu(1)"},
                {"TPU_0(process=0,(0,0,0,0))", "tpu(0)"},
                {"CpuDevice(id=0)", "cpu(0)"},
                {"CudaDevice(id=0)", "gpu(0)"},
                {"CudaDevice(id=7)", "gpu(7)"},
                {"TpuDevice(id=2, process_index=0, coords=(0,1,0), core_on_chip=0)", "tpu(2)"},
                {"device(type='cpu')", "cpu(0)"},
                {"device(type='cuda')", "gpu(0)"},
                {"device(type='cuda', index=1)", "gpu(1)"},
                {"cuda:2147483647", "gpu(2147483647)"}};

    static const char *const bad[] = {"mps",
                                      "xpu:0",
                                      "cuda:",
                                      "cuda:-1",
                                      "cuda:x",
                                      "cuda:1 ",
                                      "cuda:2147483648",
                                      "cuda:99999999999999999999",
                                      "cuda1",
                                      "GPU0",
                                      "/job:localhostGPU:0",
                                      "/",
                                      "/GPU:",
                                      "/GPU:0/",
                                      "/device:",
                                      "/device:FPGA:0",
                                      "/job:worker/replica:0/task:0/device:GPU:0",
                                      "/job:localhost/replica:1/task:0/device:GPU:0",
                                      "device(type='cuda', index=1",
                                      "device(type='cuda', index=)",
                                      "device(type='mps')",
                                      "device(type=cuda)",
                                      "CudaDevice(id=)",
                                      "CudaDevice(id=0",
                                      "CudaDevice(id=0, x)",
                                      "CpuTFRT_CPU_0",
                                      "TFRT_CPU_",
                                      "TFRT_CPU_0(",
                                      "TPU_0(1"};
    dvt_ctx ctx;
    size_t i;
    for (i = 0; i < sizeof good / sizeof good[0]; i++) {
        CHECK_INT(dvt_ctx_parse(good[i].name, &ctx), DVT_OK);
        CHECK_STR(dvt_ctx_name(ctx), good[i].is);
    }
    for (i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        ctx = dvt_gpu(5);
        CHECK_INT(dvt_ctx_parse(bad[i], &ctx), DVT_ERR_NAME);
        CHECK(strstr(dvt_error(), bad[i]) && strstr(dvt_error(), "cuda:1"));
        dvt_clear_error();
        CHECK(dvt_ctx_equal(ctx, dvt_gpu(5)));
    }
}

static const char *named(dvt_ctx ctx, dvt_print_style style) {
    static char text[80];
    size_t length = dvt_ctx_format(ctx, style, text, sizeof text);
    CHECK_INT(length, strlen(text));
    return text;
}

DVT_TEST(context_text_format) {
    dvt_ctx zero = {DVT_DEVICE_DEFAULT, 0}, again;
    char small[7];
    int style, i;
    CHECK_STR(named(dvt_gpu(1), DVT_PRINT_MXNET), "gpu(1)");
    CHECK_STR(named(dvt_gpu(1), DVT_PRINT_NP), "gpu(1)");
    CHECK_STR(named(dvt_gpu(1), DVT_PRINT_STR), "gpu(1)");
    CHECK_STR(named(dvt_gpu(1), DVT_PRINT_JAX), "CudaDevice(id=1)");
    CHECK_STR(named(zero, DVT_PRINT_JAX), "CpuDevice(id=0)");
    CHECK_STR(named(dvt_gpu(1), DVT_PRINT_TORCH), "device(type='cuda', index=1)");
    CHECK_STR(named(dvt_gpu(0), DVT_PRINT_TORCH), "device(type='cuda', index=0)");
    CHECK_STR(named(dvt_cpu(), DVT_PRINT_TORCH), "device(type='cpu')");
    CHECK_STR(named(dvt_cpu_id(2), DVT_PRINT_TORCH), "device(type='cpu', index=2)");
    CHECK_STR(named(dvt_cpu(), DVT_PRINT_TF), "/job:localhost/replica:0/task:0/device:CPU:0");
    CHECK_STR(named(dvt_gpu(3), DVT_PRINT_TF), "/job:localhost/replica:0/task:0/device:GPU:3");
    CHECK_STR(named(dvt_gpu(3), DVT_PRINT_DEFAULT), "gpu(3)");
    for (style = DVT_PRINT_MXNET; style <= DVT_PRINT_DEFAULT; style++)
        for (i = 0; i < 9; i++) {
            dvt_ctx ctx = i < 3   ? dvt_cpu_id(i * 11)
                          : i < 6 ? dvt_gpu(i % 3 * 11)
                                  : dvt_tpu(i % 3 * 11);
            CHECK_INT(dvt_ctx_parse(named(ctx, (dvt_print_style)style), &again), DVT_OK);
            CHECK(dvt_ctx_equal(ctx, again));
        }
    CHECK_INT(dvt_ctx_format(dvt_gpu(1), DVT_PRINT_JAX, small, sizeof small), 16);
    CHECK_STR(small, "CudaDe");
    CHECK_INT(dvt_ctx_format(dvt_gpu(1), DVT_PRINT_JAX, NULL, 0), 16);
    CHECK_INT(dvt_ctx_format(dvt_gpu(1), (dvt_print_style)7, small, sizeof small), 0);
    CHECK_STR(small, "");
    failed_with(DVT_ERR_RANGE);
}

/* ---- TPUs ---- */
DVT_TEST(context_text_tpu) {
    CHECK_STR(dvt_ctx_name(dvt_tpu(0)), "tpu(0)");
    CHECK(!dvt_ctx_equal(dvt_tpu(0), dvt_gpu(0)) && !dvt_ctx_equal(dvt_tpu(0), dvt_cpu()));
    CHECK_INT(dvt_num_tpus(), 0);
    CHECK_INT(dvt_set_virtual_gpus(2, 0), DVT_OK);
    CHECK_STR(dvt_ctx_name(dvt_try_tpu_gpu(1)), "gpu(1)");
    CHECK_STR(dvt_ctx_name(dvt_try_tpu_gpu(10)), "cpu(0)");
    CHECK_STR(dvt_ctx_name(dvt_try_tpu_gpu(-1)), "cpu(0)");
    CHECK_INT(dvt_set_virtual_gpus(0, 0), DVT_OK);
    DVT_SCOPE {
        dvt_device_info info;
        dvt_array *x = dvt_ones(DVT_SHAPE(2), DVT_F32, dvt_cpu());
        CHECK(dvt_ones(DVT_SHAPE(2), DVT_F32, dvt_tpu(1)) == NULL);
        CHECK(strstr(dvt_error(), "dvt_ones: tpu(1) does not exist") &&
              strstr(dvt_error(), "no TPU backend") &&
              strstr(dvt_error(), "use dvt_try_tpu_gpu(1)"));
        failed_with(DVT_ERR_NO_DEVICE);
        CHECK(dvt_copyto(x, dvt_tpu(0)) == NULL);
        failed_with(DVT_ERR_NO_DEVICE);
        CHECK(dvt_as_in_ctx(x, dvt_tpu(0)) == NULL);
        failed_with(DVT_ERR_NO_DEVICE);
        CHECK_ERROR(dvt_device_query(dvt_tpu(0), &info), DVT_ERR_NO_DEVICE);
        DVT_WITH_CTX(dvt_tpu(0)) {
            CHECK(dvt_uniform(0, 1, DVT_SHAPE(2), DVT_F32, dvt_default_ctx()) == NULL);
        }
        failed_with(DVT_ERR_NO_DEVICE);
    }
}

/* ---- styles ---- */
static const char *shown(dvt_array *x, const dvt_print_options *options) {
    static char text[512];
    text[0] = 0;
    CHECK_INT(dvt_format(x, options, text, sizeof text, NULL), DVT_OK);
    return text;
}

DVT_TEST(context_text_chosen_style) {
    dvt_print_options options;
    memset(&options, 0, sizeof options);
    DVT_SCOPE {
        dvt_array *x = dvt_ones(DVT_SHAPE(1, 2), DVT_F32, dvt_cpu());
        CHECK_STR(shown(x, NULL), "[[1. 1.]]\n<NDArray 1x2 @cpu(0)>\n");
        CHECK_INT(dvt_set_print_style(DVT_PRINT_NP), DVT_PRINT_DEFAULT);
        CHECK_STR(shown(x, NULL), "array([[1., 1.]])\n");
        CHECK_STR(shown(x, &options), "[[1. 1.]]\n<NDArray 1x2 @cpu(0)>\n");
        options.style = DVT_PRINT_DEFAULT;
        options.no_newline = true;
        CHECK_STR(shown(x, &options), "array([[1., 1.]])");
        CHECK_INT(dvt_set_print_style((dvt_print_style)7), DVT_PRINT_NP);
        failed_with(DVT_ERR_RANGE);
        CHECK_INT(dvt_set_print_style(DVT_PRINT_TORCH), DVT_PRINT_NP);
        CHECK_STR(shown(x, NULL), "tensor([[1., 1.]])\n");
        CHECK_INT(dvt_ctx_format(dvt_gpu(0), DVT_PRINT_DEFAULT, NULL, 0), 28);
        CHECK_INT(dvt_set_print_style(DVT_PRINT_DEFAULT), DVT_PRINT_TORCH);
        CHECK_STR(shown(x, &options), "[[1. 1.]]\n<NDArray 1x2 @cpu(0)>");
    }
}

/* Prints as NumPy's repr and TensorFlow 2 do. */
DVT_TEST(context_text_tf_style) {
    dvt_print_options options;
    memset(&options, 0, sizeof options);
    options.style = DVT_PRINT_TF;
    options.no_newline = true;
    DVT_SCOPE {
        dvt_array *x = dvt_ones(DVT_SHAPE(2, 3), DVT_F32, dvt_cpu());
        CHECK_STR(shown(x, &options),
                  "<tf.Tensor: shape=(2, 3), dtype=float32, numpy=\narray([[1., 1., 1.],\n"
                  "       [1., 1., 1.]], dtype=float32)>");
        x = DVT_ARRAY(int32_t, DVT_SHAPE(3), dvt_cpu(), 1, 2, 3);
        CHECK_STR(shown(x, &options),
                  "<tf.Tensor: shape=(3,), dtype=int32, numpy=array([1, 2, 3], dtype=int32)>");
        x = dvt_ones(DVT_SHAPE(2), DVT_F64, dvt_cpu());
        CHECK_STR(shown(x, &options),
                  "<tf.Tensor: shape=(2,), dtype=float64, numpy=array([1., 1.])>");
        x = dvt_full(DVT_SCALAR, 6, DVT_F32, dvt_cpu());
        CHECK_STR(shown(x, &options), "<tf.Tensor: shape=(), dtype=float32, numpy=6.0>");
        x = dvt_zeros(DVT_SHAPE(2, 0), DVT_F64, dvt_cpu());
        CHECK_STR(shown(x, &options),
                  "<tf.Tensor: shape=(2, 0), dtype=float64, numpy=array([], shape=(2, 0), "
                  "dtype=float64)>");
    }
}

/* The message of the chosen style MXNet comes first, followed by ours. */
DVT_TEST(context_text_mixed_contexts) {
    static const char line[] = "Operator broadcast_add require all inputs live on the same "
                               "context. But the first argument is on cpu(0) while the 2-th "
                               "argument is on cpu(1)\n";
    DVT_SCOPE {
        dvt_array *a = dvt_ones(DVT_SHAPE(2), DVT_F32, dvt_cpu()),
                  *b = dvt_ones(DVT_SHAPE(2), DVT_F32, dvt_cpu_id(1)), *all[3];
        dvt_add(a, b);
        CHECK(strncmp(dvt_error(), "dvt_add: ", 9) == 0);
        failed_with(DVT_ERR_CONTEXT);
        dvt_set_print_style(DVT_PRINT_MXNET);
        dvt_add(a, b);
        CHECK(strncmp(dvt_error(), line, sizeof line - 1) == 0);
        CHECK(strncmp(dvt_error() + sizeof line - 1, "dvt_add: all arguments must", 27) == 0);
        failed_with(DVT_ERR_CONTEXT);
        dvt_add_(a, b);
        CHECK(strncmp(dvt_error(), line, sizeof line - 1) == 0);
        failed_with(DVT_ERR_CONTEXT);
        dvt_pow(b, a);
        CHECK(strstr(dvt_error(), "Operator broadcast_power require") == dvt_error());
        failed_with(DVT_ERR_CONTEXT);
        all[0] = all[1] = a;
        all[2] = b;
        dvt_concat(all, 3, 0);
        CHECK(strstr(dvt_error(), "Operator concat require") == dvt_error());
        CHECK(strstr(dvt_error(), "while the 3-th argument is on cpu(1)\ndvt_concat: ") != NULL);
        failed_with(DVT_ERR_CONTEXT);
        dvt_set_print_style(DVT_PRINT_DEFAULT);
    }
}
