/* Kernels of the program on a GPU: CUDA source with shared memory and barriers, expressions, the
   compiler's messages, the order with the library's own operations. */
#include "on_gpu.h"

#include <float.h>
#include <limits.h>
#include <math.h>

/* Sums of blocks by a tree in shared memory. */
static const char sums_source[] =
    "extern \"C\" __global__ void sums(const float *x, float *y, int n)\n"
    "{\n"
    "    extern __shared__ float part[];\n"
    "    int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
    "    part[threadIdx.x] = i < n ? x[i] : 0.0f;\n"
    "    for (int step = blockDim.x / 2; step; step /= 2) {\n"
    "        __syncthreads();\n"
    "        if (threadIdx.x < step)\n"
    "            part[threadIdx.x] += part[threadIdx.x + step];\n"
    "    }\n"
    "    if (threadIdx.x == 0)\n"
    "        y[blockIdx.x] = part[0];\n"
    "}\n"
    "extern \"C\" __global__ void fill3(int8_t *x, double value, int64_t pitch, uint32_t depth)\n"
    "{\n"
    "    x[(blockIdx.z * gridDim.y + blockIdx.y) * pitch + threadIdx.x * depth + threadIdx.y] =\n"
    "        (int8_t)value;\n"
    "}\n";

#define N 10000

#define FAILS(call, code, text)                                                                    \
    do {                                                                                           \
        CHECK_ERROR(call, code);                                                                   \
        (void)(call);                                                                              \
        dvt_test_check(strstr(dvt_error(), text) != NULL, __FILE__, __LINE__, "%s", dvt_error());  \
        dvt_clear_error();                                                                         \
    } while (0)

static dvt_status sums(dvt_kernel *kernel, dvt_array *x, dvt_array *y, int64_t threads) {
    const int64_t blocks = (dvt_size(x) + threads - 1) / threads;
    return dvt_kernel_launch(kernel, DVT_SHAPE(blocks), DVT_SHAPE(threads), threads * 4,
                             DVT_ARGS(DVT_IN(x), DVT_OUT(y), DVT_INT32((int64_t)dvt_size(x))));
}

DVT_TEST(gpu_kernel_shared_memory_and_order) {
    dvt_kernel *kernel = dvt_kernel_new(sums_source, "sums");
    dvt_array *x, *y;
    int64_t compiled;
    NEEDS_GPU;
    x = dvt_add_scalar(dvt_zeros(DVT_SHAPE(N), DVT_F32, dvt_gpu(0)), 2); /* queued before */
    y = dvt_full(DVT_SHAPE((N + 127) / 128), -1, DVT_F32, dvt_gpu(0));
    CHECK_INT(sums(kernel, x, y, 128), DVT_OK);
    dvt_fill(x, 0); /* queued after */
    CHECK_CLOSE(dvt_item(dvt_sum(y, DVT_ALL)), 2.0 * N, 0);
    CHECK_CLOSE(dvt_item_at(y, DVT_SHAPE(-1)), 2.0 * (N % 128), 0);
    compiled = dvt_get_jit_stats().compiled + dvt_get_jit_stats().from_disk;
    CHECK_INT(sums(kernel, x, y, 256), DVT_OK); /* 40 of the 79 sums */
    CHECK_INT(sums(dvt_kernel_new(sums_source, "sums"), x, y, 64), DVT_OK);
    CHECK_INT(dvt_get_jit_stats().compiled + dvt_get_jit_stats().from_disk, compiled);
}

DVT_TEST(gpu_kernel_types_of_arguments) {
    dvt_kernel *kernel = dvt_kernel_new(sums_source, "fill3");
    dvt_array *x;
    NEEDS_GPU;
    x = dvt_zeros(DVT_SHAPE(2, 3, 4, 5), DVT_I8, dvt_gpu(0));
    CHECK_INT(
        dvt_kernel_launch(kernel, DVT_SHAPE(1, 3, 2), DVT_SHAPE(4, 5), 0,
                          DVT_ARGS(DVT_OUT(x), DVT_DOUBLE(-7.5), DVT_INT64(20), DVT_INT32(5))),
        DVT_OK);
    CHECK_CLOSE(dvt_item(dvt_sum(dvt_astype(x, DVT_I32), DVT_ALL)), -7.0 * 120, 0);
}

/* The upload is larger than small copies, so another stream writes it. */
DVT_TEST(gpu_kernel_after_an_upload) {
    enum { LARGE = 100000 };

    dvt_kernel *kernel = dvt_kernel_new(sums_source, "sums");
    dvt_array *x, *y;
    NEEDS_GPU;
    x = dvt_copyto(dvt_ones(DVT_SHAPE(LARGE), DVT_F32, dvt_cpu()), dvt_gpu(0));
    y = dvt_empty(DVT_SHAPE((LARGE + 255) / 256), DVT_F32, dvt_gpu(0));
    CHECK_INT(sums(kernel, x, y, 256), DVT_OK);
    CHECK_CLOSE(dvt_item(dvt_sum(y, DVT_ALL)), LARGE, 0);
}

/* The last of six arrays, too. */
DVT_TEST(gpu_kernel_of_many_arrays_after_an_upload) {
    enum { LARGE = 100000 };

    dvt_kernel *kernel = dvt_kernel_new(
        "extern \"C\" __global__ void sum6(const float *a, const float *b, const float *c,\n"
        "                                  const float *d, const float *e, const float *f,\n"
        "                                  float *y)\n"
        "{\n"
        "    int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
        "    y[i] = a[i] + b[i] + c[i] + d[i] + e[i] + f[i];\n"
        "}\n",
        "sum6");
    dvt_array *x, *f, *y;
    NEEDS_GPU;
    x = dvt_ones(DVT_SHAPE(LARGE), DVT_F32, dvt_gpu(0));
    y = dvt_empty(DVT_SHAPE(LARGE), DVT_F32, dvt_gpu(0));
    f = dvt_copyto(dvt_full(DVT_SHAPE(LARGE), 4, DVT_F32, dvt_cpu()), dvt_gpu(0));
    CHECK_INT(dvt_kernel_launch(kernel, DVT_SHAPE(LARGE / 100), DVT_SHAPE(100), 0,
                                DVT_ARGS(DVT_IN(x), DVT_IN(x), DVT_IN(x), DVT_IN(x), DVT_IN(x),
                                         DVT_IN(f), DVT_OUT(y))),
              DVT_OK);
    CHECK_CLOSE(dvt_item(dvt_min(y, DVT_ALL)), 9, 0);
    CHECK_CLOSE(dvt_item(dvt_max(y, DVT_ALL)), 9, 0);
}

DVT_TEST(gpu_kernel_on_two_gpus) {
    dvt_kernel *kernel = dvt_kernel_new(sums_source, "sums");
    dvt_array *x, *y;
    NEEDS_GPU;
    if (dvt_num_gpus() < 2)
        SKIP("one GPU");
    x = dvt_ones(DVT_SHAPE(256), DVT_F32, dvt_gpu(0));
    y = dvt_zeros(DVT_SHAPE(2), DVT_F32, dvt_gpu(1));
    FAILS(sums(kernel, x, y, 128), DVT_ERR_CONTEXT, "dvt_as_in_ctx(y, dvt_gpu(0))");
    CHECK_INT(sums(kernel, dvt_copyto(x, dvt_gpu(1)), y, 128), DVT_OK); /* waits for the copy */
    CHECK_CLOSE(dvt_item_at(dvt_copyto(y, dvt_gpu(0)), DVT_SHAPE(1)), 128, 0);
}

DVT_TEST(gpu_kernel_bad_source) {
    dvt_array *x;
    NEEDS_GPU;
    x = dvt_ones(DVT_SHAPE(8), DVT_F32, dvt_gpu(0));
#define RUN(source, name)                                                                          \
    dvt_kernel_launch(dvt_kernel_new(source, name), DVT_SHAPE(1), DVT_SHAPE(8), 0,                 \
                      DVT_ARGS(DVT_INOUT(x)))
    dvt_set_log_level(DVT_LOG_OFF);
    FAILS(RUN("extern \"C\" __global__ void f(float *x)\n{\n    x[0] = none;\n}\n", "f"),
          DVT_ERR_VALUE, "f.cu(3): error");
    FAILS(RUN("__global__ void f(float *x) { x[0] = 1; }", "f"), DVT_ERR_VALUE, "extern \"C\"");
    FAILS(RUN("extern \"C\" __global__ void f(float *x) { }", "g"), DVT_ERR_VALUE, "no function g");
    FAILS(dvt_kernel_apply(dvt_kernel_expression("x", "x +\n y"), DVT_ARGS(DVT_IN(x))),
          DVT_ERR_VALUE, "expression(2): error");
    dvt_set_log_level(DVT_LOG_WARNING);
    CHECK_INT(RUN("#include <stdint.h>\n#include <math.h>\n"
                  "extern \"C\" __global__ void f(float *x) { x[threadIdx.x] = sqrtf(4); }",
                  "f"),
              DVT_OK);
    CHECK_CLOSE(dvt_item(dvt_sum(x, DVT_ALL)), 16, 0);
#undef RUN
}

/* Comments and strings of every byte that dvt_kernel_new takes, after a byte order mark. */
DVT_TEST(gpu_kernel_source_of_all_bytes) {
    char source[1200] = "\xef\xbb\xbf/* ";
    dvt_array *x;
    size_t n = strlen(source);
    int byte;
    NEEDS_GPU;
    x = dvt_zeros(DVT_SHAPE(2), DVT_I32, dvt_gpu(0));
    for (byte = 1; byte < 0xff; byte++)
        source[n++] = (char)byte;
    snprintf(source + n, sizeof source - n,
             " */\r\nextern \"C\" __global__ void f(int *x) {\r\n"
             "    const char s[] = \"\xc3\xa9\xfe\";\r\n"
             "    x[0] = (unsigned char)s[0]; x[1] = (unsigned char)s[2] + sizeof s;\r\n}\r\n");
    CHECK_INT(dvt_kernel_launch(dvt_kernel_new(source, "f"), DVT_SHAPE(1), DVT_SHAPE(1), 0,
                                DVT_ARGS(DVT_OUT(x))),
              DVT_OK);
    CHECK_CLOSE(dvt_item_at(x, DVT_SHAPE(0)), 0xc3, 0);
    CHECK_CLOSE(dvt_item_at(x, DVT_SHAPE(1)), 0xfe + 4, 0);
}

/* The macros that a kernel finds in its headers have the values of C's. */
DVT_TEST(gpu_kernel_macros_of_headers) {
    static const char source[] =
        "#include <stdint.h>\n#include <limits.h>\n#include <float.h>\n#include <math.h>\n"
        "#include <stddef.h>\n#include <stdbool.h>\n#include <stdint.h>\n"
        "extern \"C\" __global__ void macros(double *x, int64_t *n) {\n"
        "    const double d[] = {FLT_MIN, FLT_MAX, FLT_EPSILON, DBL_MIN, DBL_MAX, DBL_EPSILON,\n"
        "                        M_E, M_LN2, M_LN10, M_PI, M_PI_2, M_SQRT2, INFINITY, HUGE_VAL};\n"
        "    const int64_t i[] = {INT8_MIN, INT8_MAX, UINT8_MAX, INT16_MIN, INT16_MAX, "
        "UINT16_MAX,\n"
        "                         INT32_MIN, INT32_MAX, UINT32_MAX, INT64_MIN, INT64_MAX,\n"
        "                         (int64_t)(UINT64_MAX >> 1), CHAR_BIT, SCHAR_MIN, UCHAR_MAX,\n"
        "                         SHRT_MIN, USHRT_MAX, INT_MIN, INT_MAX, UINT_MAX, LLONG_MIN,\n"
        "                         (int64_t)(SIZE_MAX >> 1), (intptr_t)sizeof(uintptr_t), NAN != "
        "NAN};\n"
        "    for (int k = 0; k < 14; k++) x[k] = d[k];\n"
        "    for (int k = 0; k < 24; k++) n[k] = i[k];\n"
        "}\n";
    const double d[] = {FLT_MIN,
                        FLT_MAX,
                        FLT_EPSILON,
                        DBL_MIN,
                        DBL_MAX,
                        DBL_EPSILON,
                        2.718281828459045235,
                        0.693147180559945309,
                        2.302585092994045684,
                        3.141592653589793238,
                        1.570796326794896619,
                        1.414213562373095049,
                        INFINITY,
                        INFINITY};
    const int64_t i[] = {INT8_MIN,  INT8_MAX,  UINT8_MAX,  INT16_MIN, INT16_MAX, UINT16_MAX,
                         INT32_MIN, INT32_MAX, UINT32_MAX, INT64_MIN, INT64_MAX, INT64_MAX,
                         CHAR_BIT,  SCHAR_MIN, UCHAR_MAX,  SHRT_MIN,  USHRT_MAX, INT_MIN,
                         INT_MAX,   UINT_MAX,  LLONG_MIN,  INT64_MAX, 8,         1};
    dvt_array *x, *n;
    NEEDS_GPU;
    x = dvt_zeros(DVT_SHAPE(14), DVT_F64, dvt_gpu(0));
    n = dvt_zeros(DVT_SHAPE(24), DVT_I64, dvt_gpu(0));
    CHECK_INT(dvt_kernel_launch(dvt_kernel_new(source, "macros"), DVT_SHAPE(1), DVT_SHAPE(1), 0,
                                DVT_ARGS(DVT_OUT(x), DVT_OUT(n))),
              DVT_OK);
    CHECK(memcmp(dvt_data(dvt_copyto(x, dvt_cpu())), d, sizeof d) == 0);
    CHECK(memcmp(dvt_data(dvt_copyto(n, dvt_cpu())), i, sizeof i) == 0);
}

/* 100 KiB of shared memory must be asked for; the whole limit is more than some GPUs have. */
DVT_TEST(gpu_kernel_much_shared_memory) {
    dvt_kernel *kernel = dvt_kernel_new(sums_source, "sums");
    dvt_array *x, *y;
    dvt_status status;
    NEEDS_GPU;
    x = dvt_ones(DVT_SHAPE(64), DVT_F32, dvt_gpu(0));
    y = dvt_zeros(DVT_SHAPE(1), DVT_F32, dvt_gpu(0));
    status = dvt_kernel_launch(kernel, DVT_SHAPE(1), DVT_SHAPE(64), 60 << 10,
                               DVT_ARGS(DVT_IN(x), DVT_OUT(y), DVT_INT32(64)));
    CHECK_INT(status, DVT_OK);
    CHECK_CLOSE(dvt_item(y), 64, 0);
    status = dvt_kernel_launch(kernel, DVT_SHAPE(1), DVT_SHAPE(64), 232448,
                               DVT_ARGS(DVT_IN(x), DVT_OUT(y), DVT_INT32(64)));
    CHECK(status == DVT_OK || status == DVT_ERR_RANGE);
    CHECK_INT(dvt_wait(y), DVT_OK); /* a refused launch does not end the context */
    dvt_clear_error();
}

/* ---- expressions ---- */
static double quotient(void *user, const double *value) {
    (void)user;
    return value[0] * value[1] - value[2];
}

DVT_TEST(gpu_kernel_expressions) {
    static const dvt_dtype dtypes[] = {DVT_F32, DVT_F64, DVT_F16, DVT_BF16, DVT_I8, DVT_I64};
    dvt_kernel *kernel = dvt_kernel_expression("x, y, z", "x * y - z");
    int i;
    NEEDS_GPU;
    dvt_kernel_set_element(kernel, quotient, NULL);
    for (i = 0; i < 6; i++) {
        dvt_array *x = random_on_cpu(DVT_SHAPE(3, 4, 5), dtypes[i], -4, 4);
        dvt_array *y = random_on_cpu(DVT_SHAPE(4, 1), dtypes[i], -4, 4);
        dvt_array *on_gpu = dvt_copyto(x, dvt_gpu(0)), *y_on_gpu = dvt_copyto(y, dvt_gpu(0));
        if (!EACH(i, 5))
            continue;
        SAME_ON_GPU(
            dvt_kernel_apply(kernel, DVT_ARGS(DVT_IN(on_gpu), DVT_IN(y_on_gpu), DVT_INT32(2))),
            dvt_kernel_apply(kernel, DVT_ARGS(DVT_IN(x), DVT_IN(y), DVT_INT32(2))), 16,
            "broadcast");
        x = dvt_slice(dvt_transpose(x, DVT_ALL), 0, -1, DVT_END, -2);
        on_gpu = dvt_slice(dvt_transpose(on_gpu, DVT_ALL), 0, -1, DVT_END, -2);
        SAME_ON_GPU(
            dvt_kernel_apply(kernel, DVT_ARGS(DVT_IN(on_gpu), DVT_IN(on_gpu), DVT_IN(y_on_gpu))),
            dvt_kernel_apply(kernel, DVT_ARGS(DVT_IN(x), DVT_IN(x), DVT_IN(y))), 16, "strides");
    }
}

/* One expression is one launch and one program, whatever the shape. */
DVT_TEST(gpu_kernel_expression_is_one_launch) {
    dvt_kernel *kernel = dvt_kernel_expression("x, a", "x > (T)0 ? x : a * (exp(x) - 1)");
    dvt_jit_stats before, after;
    dvt_array *x, *y;
    int64_t launches;
    NEEDS_GPU;
    x = dvt_full(DVT_SHAPE(300), -1, DVT_F32, dvt_gpu(0));
    dvt_wait(x);
    before = dvt_get_jit_stats();
    launches = dvt_get_stats().kernels;
    y = dvt_kernel_apply(kernel, DVT_ARGS(DVT_IN(x), DVT_DOUBLE(0.5)));
    CHECK_INT(dvt_get_stats().kernels - launches, 1);
    CHECK_CLOSE(dvt_item_at(y, DVT_SHAPE(299)), 0.5 * (exp(-1) - 1), 1e-6);
    dvt_kernel_apply(kernel, DVT_ARGS(DVT_IN(dvt_rows(x, 0, 77)), DVT_DOUBLE(2.5)));
    after = dvt_get_jit_stats();
    CHECK_INT(after.compiled + after.from_disk - before.compiled - before.from_disk, 1);
}
