/* Kernels of the program: checks of calls, C functions that stand in on cpu() and virtual GPUs. */
#include "dvt_test.h"

static const char saxpy_source[] =
    "/* __global__ void saxpy(int no) */\n"
    "static __device__ float twice(float x) { return 2 * x; }\n"
    "extern \"C\" __global__ void saxpy(const float *__restrict__ x, float *y, float a, int64_t "
    "n)\n"
    "{\n"
    "    int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;\n"
    "    if (i < n)\n"
    "        y[i] += a * x[i];\n"
    "}\n";

static dvt_kernel_call seen;
static int calls;

static void saxpy_host(void *user, const dvt_kernel_call *call) {
    const float *x = (const float *)call->arg[0].data;
    float *y = (float *)call->arg[1].data;
    int64_t i;
    *(int *)user += 1;
    seen = *call;
    for (i = 0; i < call->arg[3].i; i++)
        y[i] += (float)call->arg[2].f * x[i];
}

static double square_plus(void *user, const double *value) {
    (void)user;
    return value[0] * value[0] + value[1];
}

#define N 1000
/* Checks that the call fails with that status and that its message contains the text. */
#define FAILS(call, code, text)                                                                    \
    do {                                                                                           \
        CHECK_ERROR(call, code);                                                                   \
        (void)(call);                                                                              \
        dvt_test_check(strstr(dvt_error(), text) != NULL, __FILE__, __LINE__, "%s", dvt_error());  \
        dvt_clear_error();                                                                         \
    } while (0)

static dvt_status run_saxpy(dvt_kernel *kernel, dvt_array *x, dvt_array *y) {
    return dvt_kernel_launch(kernel, DVT_SHAPE(4), DVT_SHAPE(256), 0,
                             DVT_ARGS(DVT_IN(x), DVT_INOUT(y), DVT_FLOAT(2), DVT_INT64(N)));
}

static void saxpy_on(dvt_ctx ctx) {
    dvt_kernel *kernel = dvt_kernel_new(saxpy_source, "saxpy");
    dvt_array *x = dvt_arange(0, N, 1, DVT_F32, ctx), *y = dvt_ones(DVT_SHAPE(N), DVT_F32, ctx);
    calls = 0;
    CHECK_INT(dvt_kernel_set_host(kernel, saxpy_host, &calls), DVT_OK);
    CHECK_INT(run_saxpy(kernel, x, y), DVT_OK);
    dvt_mul_scalar_(x, 0); /* queued after the kernel */
    dvt_discard(kernel);   /* before the queue has come to it */
    CHECK_CLOSE(dvt_item_at(y, DVT_SHAPE(N - 1)), 1 + 2.0 * (N - 1), 0);
    CHECK_CLOSE(dvt_item(dvt_sum(y, DVT_ALL)), N + (double)N * (N - 1), 0);
    CHECK_INT(calls, 1);
    CHECK_INT(seen.grid[0], 4);
    CHECK_INT(seen.grid[1], 1);
    CHECK_INT(seen.block[0], 256);
    CHECK_INT(seen.n_args, 4);
    CHECK_INT(seen.arg[0].size, N);
    CHECK_INT(seen.arg[0].dtype, DVT_F32);
    CHECK_CLOSE(seen.arg[2].f, 2, 0);
}

DVT_TEST(kernel_on_cpu) {
    saxpy_on(dvt_cpu());
}

DVT_TEST(kernel_on_a_virtual_gpu) {
    if (dvt_set_virtual_gpus(2, 0) != DVT_OK)
        return;
    saxpy_on(dvt_gpu(1));
    dvt_discard_all();
    dvt_set_virtual_gpus(0, 0);
}

DVT_TEST(kernel_without_a_function) {
    dvt_kernel *kernel = dvt_kernel_new(saxpy_source, "saxpy");
    dvt_array *x = dvt_ones(DVT_SHAPE(N), DVT_F32, dvt_cpu());
    FAILS(run_saxpy(kernel, x, dvt_copy(x)), DVT_ERR_UNSUPPORTED, "dvt_kernel_set_host");
    FAILS(dvt_kernel_apply(dvt_kernel_expression("x", "x + 1"), DVT_ARGS(DVT_IN(x))),
          DVT_ERR_UNSUPPORTED, "dvt_kernel_set_element");
}

/* Arguments have 32 or 64 bits: the next parameter would be read from another place. */
DVT_TEST(kernel_narrow_scalars) {
    static const char *const type[] = {"char",     "unsigned short", "bool",    "int8_t",
                                       "uint16_t", "const char",     "int16_t", "uint8_t"};
    dvt_array *x = dvt_ones(DVT_SHAPE(N), DVT_F32, dvt_cpu());
    char source[160];
    size_t i;
    for (i = 0; i < sizeof type / sizeof *type; i++) {
        dvt_kernel *kernel;
        snprintf(source, sizeof source,
                 "extern \"C\" __global__ void f(%s flag, float *x) { x[0] = flag; }", type[i]);
        kernel = dvt_kernel_new(source, "f");
        dvt_kernel_set_host(kernel, saxpy_host, &calls);
        FAILS(dvt_kernel_launch(kernel, DVT_SHAPE(1), DVT_SHAPE(1), 0,
                                DVT_ARGS(DVT_INT32(1), DVT_OUT(x))),
              DVT_ERR_VALUE, "flag has 8 or 16 bits");
    }
}

static void nothing(void *user, const dvt_kernel_call *call) {
    (void)user;
    (void)call;
}

/* Only the compiler knows which of two different functions is launched; equal ones are compared. */
DVT_TEST(kernel_declared_twice) {
    static const char two[] = "namespace a { __global__ void f(int n) {} }\n"
                              "extern \"C\" __global__ void f(float *x) { x[0] = 1; }";
    static const char same[] = "extern \"C\" __global__ void f(float *);\n"
                               "extern \"C\" __global__ void f(float *x) { x[0] = 1; }";
    dvt_array *x = dvt_ones(DVT_SHAPE(N), DVT_F32, dvt_cpu());
    dvt_kernel *kernel = dvt_kernel_new(two, "f");
    dvt_kernel_set_host(kernel, nothing, NULL);
    CHECK_INT(dvt_kernel_launch(kernel, DVT_SHAPE(1), DVT_SHAPE(1), 0, DVT_ARGS(DVT_OUT(x))),
              DVT_OK);
    kernel = dvt_kernel_new(same, "f");
    dvt_kernel_set_host(kernel, nothing, NULL);
    CHECK_INT(dvt_kernel_launch(kernel, DVT_SHAPE(1), DVT_SHAPE(1), 0, DVT_ARGS(DVT_OUT(x))),
              DVT_OK);
    FAILS(dvt_kernel_launch(kernel, DVT_SHAPE(1), DVT_SHAPE(1), 0,
                            DVT_ARGS(DVT_OUT(x), DVT_INT32(1))),
          DVT_ERR_VALUE, "the source declares 1");
}

DVT_TEST(kernel_wrong_arguments) {
    dvt_kernel *kernel = dvt_kernel_new(saxpy_source, "saxpy");
    dvt_kernel *plus = dvt_kernel_expression("x", "x + 1");
    dvt_array *x = dvt_ones(DVT_SHAPE(N), DVT_F32, dvt_cpu()), *y = dvt_copy(x);
    dvt_array *d = dvt_astype(x, DVT_F64), *wide = dvt_ones(DVT_SHAPE(N, 2), DVT_F32, dvt_cpu());
    const dvt_shape one = DVT_SHAPE(1);
    dvt_kernel_arg none;
    calls = 0;
    memset(&none, 0, sizeof none);
    dvt_kernel_set_host(kernel, saxpy_host, &calls);
#define LAUNCH(...) dvt_kernel_launch(kernel, one, one, 0, DVT_ARGS(__VA_ARGS__))
    FAILS(LAUNCH(DVT_IN(x), DVT_INOUT(y), DVT_FLOAT(2)), DVT_ERR_VALUE, "3 arguments");
    FAILS(LAUNCH(DVT_IN(x), DVT_INOUT(y), DVT_DOUBLE(2), DVT_INT64(N)), DVT_ERR_VALUE, "DVT_FLOAT");
    FAILS(LAUNCH(DVT_IN(x), DVT_INOUT(y), DVT_FLOAT(2), DVT_INT32(N)), DVT_ERR_VALUE, "DVT_INT64");
    FAILS(LAUNCH(DVT_FLOAT(1), DVT_INOUT(y), DVT_FLOAT(2), DVT_INT64(N)), DVT_ERR_VALUE, "pointer");
    FAILS(LAUNCH(DVT_IN(x), DVT_INOUT(y), DVT_IN(x), DVT_INT64(N)), DVT_ERR_VALUE, "a is a float");
    FAILS(LAUNCH(DVT_OUT(x), DVT_INOUT(y), DVT_FLOAT(2), DVT_INT64(N)), DVT_ERR_VALUE, "const");
    FAILS(LAUNCH(DVT_IN(d), DVT_INOUT(y), DVT_FLOAT(2), DVT_INT64(N)), DVT_ERR_DTYPE, "float64");
    FAILS(LAUNCH(DVT_IN(NULL), DVT_INOUT(y), DVT_FLOAT(2), DVT_INT64(N)), DVT_ERR_NULL_ARGUMENT,
          "x is NULL");
    FAILS(LAUNCH(DVT_IN(dvt_slice(wide, 1, 0, 1, 1)), DVT_INOUT(y), DVT_FLOAT(2), DVT_INT64(N)),
          DVT_ERR_VALUE, "not contiguous");
    FAILS(LAUNCH(DVT_IN(x), DVT_INOUT(dvt_broadcast_to(dvt_scalar(1, DVT_F32, dvt_cpu()), one)),
                 DVT_FLOAT(2), none),
          DVT_ERR_VALUE, "kind 0");
    FAILS(LAUNCH(DVT_FLOAT(1), DVT_FLOAT(1), DVT_FLOAT(2), DVT_INT64(1)), DVT_ERR_VALUE,
          "no argument is an array");
    FAILS(LAUNCH(DVT_IN(x), DVT_INOUT(y), DVT_INT32(INT64_MAX), DVT_INT64(N)), DVT_ERR_RANGE,
          "int32_t");
    FAILS(dvt_kernel_launch(kernel, one, one, 0, NULL, 4), DVT_ERR_NULL_ARGUMENT, "args");
    FAILS(dvt_kernel_launch(kernel, one, one, 0, &none, 33), DVT_ERR_RANGE, "33 arguments");
    FAILS(dvt_kernel_launch(NULL, one, one, 0, &none, 1), DVT_ERR_NULL_ARGUMENT, "kernel");
    FAILS(dvt_kernel_launch(plus, one, one, 0, &none, 1), DVT_ERR_VALUE, "dvt_kernel_apply");
#undef LAUNCH
#define LAUNCH(grid, block, bytes)                                                                 \
    dvt_kernel_launch(kernel, grid, block, bytes,                                                  \
                      DVT_ARGS(DVT_IN(x), DVT_INOUT(y), DVT_FLOAT(2), DVT_INT64(N)))
    FAILS(LAUNCH(DVT_SCALAR, one, 0), DVT_ERR_RANGE, "the grid is ()");
    FAILS(LAUNCH(DVT_SHAPE(1, 1, 1, 1), one, 0), DVT_ERR_RANGE, "grid");
    FAILS(LAUNCH(DVT_SHAPE(-1), one, 0), DVT_ERR_RANGE, "grid");
    FAILS(LAUNCH(DVT_SHAPE((int64_t)1 << 31), one, 0), DVT_ERR_RANGE, "grid");
    FAILS(LAUNCH(DVT_SHAPE(1, 65536), one, 0), DVT_ERR_RANGE, "grid");
    FAILS(LAUNCH(one, DVT_SHAPE(0), 0), DVT_ERR_RANGE, "block");
    FAILS(LAUNCH(one, DVT_SHAPE(1025), 0), DVT_ERR_RANGE, "block");
    FAILS(LAUNCH(one, DVT_SHAPE(1, 1, 65), 0), DVT_ERR_RANGE, "block");
    FAILS(LAUNCH(one, DVT_SHAPE(64, 32), 0), DVT_ERR_RANGE, "2048 threads");
    FAILS(LAUNCH(one, one, -1), DVT_ERR_RANGE, "shared");
    FAILS(LAUNCH(one, one, 1 << 20), DVT_ERR_RANGE, "shared");
    CHECK_INT(calls, 0);
    CHECK_INT(LAUNCH(DVT_SHAPE(0), one, 0), DVT_OK); /* nothing to compute */
    CHECK_INT(calls, 0);
#undef LAUNCH
    FAILS(dvt_kernel_new(NULL, "f"), DVT_ERR_NULL_ARGUMENT, "source");
    FAILS(dvt_kernel_new("", "no name"), DVT_ERR_VALUE, "identifier");
    FAILS(dvt_kernel_set_host(plus, saxpy_host, NULL), DVT_ERR_VALUE, "dvt_kernel_set_element");
    FAILS(dvt_kernel_set_element(kernel, square_plus, NULL), DVT_ERR_VALUE, "dvt_kernel_set_host");
}

/* NVRTC takes this byte as the end of the source. */
DVT_TEST(kernel_source_with_0xff) {
    static const char source[] = "// Pr\xc3\xbc"
                                 "fung\n"
                                 "/* \xff */\nextern \"C\" __global__ void f(float *x) {}\n";
    dvt_set_log_level(DVT_LOG_OFF);
    FAILS(dvt_kernel_new(source, "f"), DVT_ERR_VALUE, "byte 15 of the source (line 2, byte 3)");
    FAILS(dvt_kernel_new("\xff", "f"), DVT_ERR_VALUE, "byte 0 of the source (line 1, byte 0)");
    FAILS(dvt_kernel_expression("x", "x /*\xff*/"), DVT_ERR_VALUE, "byte 4 of the source");
    dvt_set_log_level(DVT_LOG_WARNING);
    CHECK(dvt_kernel_new("// \x80\xfe\n", "f") != NULL);
}

DVT_TEST(kernel_arrays_of_two_contexts) {
    dvt_kernel *kernel = dvt_kernel_new(saxpy_source, "saxpy");
    if (dvt_set_virtual_gpus(2, 0) != DVT_OK)
        return;
    dvt_kernel_set_host(kernel, saxpy_host, &calls);
    FAILS(run_saxpy(kernel, dvt_ones(DVT_SHAPE(N), DVT_F32, dvt_gpu(0)),
                    dvt_ones(DVT_SHAPE(N), DVT_F32, dvt_gpu(1))),
          DVT_ERR_CONTEXT, "dvt_as_in_ctx(y, dvt_gpu(0))");
    dvt_discard_all();
    dvt_set_virtual_gpus(0, 0);
}

/* Returns whether a call with this one argument agrees with the parameter list. */
static bool agrees(const char *parameters, const dvt_kernel_arg *args, int n) {
    char source[300];
    dvt_kernel *kernel;
    snprintf(source, sizeof source, "extern \"C\" __global__ void f(%s) {}", parameters);
    kernel = dvt_kernel_new(source, "f");
    return dvt_kernel_launch(kernel, DVT_SHAPE(0), DVT_SHAPE(1), 0, args, n) == DVT_ERR_UNSUPPORTED;
}

DVT_TEST(kernel_parameters_of_the_source) {
    dvt_array *x = dvt_ones(DVT_SHAPE(2), DVT_F32, dvt_cpu());
    dvt_kernel_arg two[2], *one = two;
    static const char *const fits_float[] = {"float *x",
                                             "const float *x",
                                             "float const * __restrict__ x",
                                             "volatile float *",
                                             "float x[]",
                                             "float x[2]",
                                             "void *x",
                                             "const float4 *x",
                                             "unsigned char *x",
                                             "FLOATS x",
                                             "ARGUMENTS",
                                             "\n#if 1\nfloat *x\n#else\nint x, int y\n#endif\n",
                                             "float /* , int */ *x // , int\n",
                                             "T<int> x",
                                             "half x",
                                             "char *x"};
    static const char *const not_float[] = {
        "",    "void",     "int *x",       "double *", "float x", "float *x, int n", "long long *x",
        "int", "size_t n", "unsigned char"};
    static const char *const fits_int[] = {
        "int n, float *x",    "unsigned n, float *x",  "const int n, const float *x",
        "int32_t n, float *", "signed int n, void *x", "uint32_t, float *x",
        "long n, float *x"};
    static const char *const not_int[] = {"long long n, float *x", "float n, float *x",
                                          "double, float *x", "unsigned long long int n, float *x"};
    int i;
    two[0] = DVT_IN(x);
    for (i = 0; i < (int)(sizeof fits_float / sizeof *fits_float); i++) {
        dvt_test_check(agrees(fits_float[i], one, 1), __FILE__, __LINE__, "%s: %s", fits_float[i],
                       dvt_error());
        dvt_clear_error();
    }
    for (i = 0; i < (int)(sizeof not_float / sizeof *not_float); i++) {
        dvt_test_check(!agrees(not_float[i], one, 1), __FILE__, __LINE__, "%s", not_float[i]);
        dvt_clear_error();
    }
    two[1] = two[0];
    two[0] = DVT_INT32(3);
    for (i = 0; i < (int)(sizeof fits_int / sizeof *fits_int); i++) {
        dvt_test_check(agrees(fits_int[i], two, 2), __FILE__, __LINE__, "%s: %s", fits_int[i],
                       dvt_error());
        dvt_clear_error();
    }
    for (i = 0; i < (int)(sizeof not_int / sizeof *not_int); i++) {
        dvt_test_check(!agrees(not_int[i], two, 2), __FILE__, __LINE__, "%s", not_int[i]);
        dvt_clear_error();
    }
}

/* Writing counts for autograd, and a history is refused. */
DVT_TEST(kernel_and_gradients) {
    dvt_kernel *kernel = dvt_kernel_new(saxpy_source, "saxpy");
    dvt_array *x = dvt_ones(DVT_SHAPE(N), DVT_F32, dvt_cpu()), *y = dvt_copy(x), *z = NULL;
    dvt_kernel_set_host(kernel, saxpy_host, &calls);
    dvt_attach_grad(x, DVT_GRAD_WRITE);
    DVT_RECORD {
        FAILS(run_saxpy(kernel, x, y), DVT_ERR_GRAD, "dvt_detach(x)");
        FAILS(run_saxpy(kernel, y, x), DVT_ERR_GRAD, "");
        CHECK_INT(run_saxpy(kernel, dvt_detach(x), y), DVT_OK);
        z = dvt_sum(dvt_mul(x, y), DVT_ALL);
    }
    CHECK_INT(run_saxpy(kernel, dvt_detach(x), y), DVT_OK); /* overwrites what backward needs */
    FAILS(dvt_backward(z), DVT_ERR_GRAD, "");
}

static double times_two(void *user, const double *value) {
    (void)user;
    return value[0] * 2;
}

DVT_TEST(kernel_integers_wrap) {
    dvt_kernel *kernel = dvt_kernel_expression("x", "x * 2");
    dvt_array *x = dvt_full(DVT_SHAPE(2), 200, DVT_U8, dvt_cpu());
    dvt_kernel_set_element(kernel, times_two, NULL);
    CHECK_CLOSE(dvt_item_at(dvt_kernel_apply(kernel, DVT_ARGS(DVT_IN(x))), DVT_SHAPE(1)), 144, 0);
}

static void expressions_on(dvt_ctx ctx) {
    dvt_kernel *kernel = dvt_kernel_expression(" x ,y", "x * x + y");
    dvt_array *a = dvt_reshape(dvt_arange(0, 6, 1, DVT_F32, ctx), DVT_SHAPE(2, 3)), *r;
    dvt_array *b = dvt_arange(10, 12, 1, DVT_I32, ctx);
    CHECK_INT(dvt_kernel_set_element(kernel, square_plus, NULL), DVT_OK);
    r = dvt_kernel_apply(kernel, DVT_ARGS(DVT_IN(dvt_t(a)), DVT_IN(b)));
    CHECK(dvt_shape_equal(dvt_shape_of(r), DVT_SHAPE(3, 2)) && dvt_dtype_of(r) == DVT_F32);
    CHECK(dvt_ctx_equal(dvt_ctx_of(r), ctx));
    CHECK_CLOSE(dvt_item_at(r, DVT_SHAPE(2, 1)), 25 + 11, 0);
    CHECK_CLOSE(dvt_item_at(r, DVT_SHAPE(1, 0)), 1 + 10, 0);
    r = dvt_kernel_apply(kernel, DVT_ARGS(DVT_IN(b), DVT_INT32(3)));
    CHECK(dvt_dtype_of(r) == DVT_I32);
    CHECK_CLOSE(dvt_item_at(r, DVT_SHAPE(1)), 124, 0);
    r = dvt_kernel_apply(kernel, DVT_ARGS(DVT_IN(b), DVT_DOUBLE(0.5)));
    CHECK(dvt_dtype_of(r) == DVT_F32);
    CHECK_CLOSE(dvt_item_at(r, DVT_SHAPE(0)), 100.5, 0);
    r = dvt_kernel_apply(kernel, DVT_ARGS(DVT_IN(dvt_astype(b, DVT_BOOL)), DVT_INT64(3)));
    CHECK(dvt_dtype_of(r) == DVT_I64);
    CHECK_CLOSE(dvt_item_at(r, DVT_SHAPE(0)), 4, 0);
    r = dvt_kernel_apply(kernel,
                         DVT_ARGS(DVT_IN(dvt_zeros(DVT_SHAPE(0, 2), DVT_F16, ctx)), DVT_IN(b)));
    CHECK(dvt_shape_equal(dvt_shape_of(r), DVT_SHAPE(0, 2)) && dvt_dtype_of(r) == DVT_F16);
}

DVT_TEST(kernel_expressions) {
    expressions_on(dvt_cpu());
    if (dvt_set_virtual_gpus(1, 0) != DVT_OK)
        return;
    expressions_on(dvt_gpu(0));
    dvt_discard_all();
    dvt_set_virtual_gpus(0, 0);
}

DVT_TEST(kernel_wrong_expressions) {
    static const char *const names[] = {
        "", "x y", "x,", ",x", "x, x", "T", "1x", "a-b", "a, b, c, d, e, f, g, h, i"};
    dvt_kernel *kernel = dvt_kernel_expression("a, b, c, d, e, f, g, h", "a");
    dvt_array *x = dvt_ones(DVT_SHAPE(2), DVT_F32, dvt_cpu()), *none = NULL;
    int i;
    for (i = 0; i < (int)(sizeof names / sizeof *names); i++) {
        FAILS(dvt_kernel_expression(names[i], "1"), DVT_ERR_VALUE, "identifiers");
    }
    FAILS(dvt_kernel_expression(NULL, "1"), DVT_ERR_NULL_ARGUMENT, "inputs");
    dvt_kernel_set_element(kernel, square_plus, NULL);
    FAILS(dvt_kernel_apply(kernel, DVT_ARGS(DVT_IN(x), DVT_IN(x))), DVT_ERR_VALUE, "8 inputs");
    kernel = dvt_kernel_expression("x, y", "x + y");
    dvt_kernel_set_element(kernel, square_plus, NULL);
    FAILS(dvt_kernel_apply(kernel, DVT_ARGS(DVT_IN(x), DVT_OUT(x))), DVT_ERR_VALUE, "DVT_IN");
    FAILS(dvt_kernel_apply(kernel, DVT_ARGS(DVT_IN(x), DVT_IN(none))), DVT_ERR_NULL_ARGUMENT, "y");
    FAILS(dvt_kernel_apply(kernel, DVT_ARGS(DVT_INT32(1), DVT_INT32(1))), DVT_ERR_VALUE,
          "no argument is an array");
    FAILS(dvt_kernel_apply(kernel,
                           DVT_ARGS(DVT_IN(x), DVT_IN(dvt_ones(DVT_SHAPE(3), DVT_F32, dvt_cpu())))),
          DVT_ERR_SHAPE, "broadcast");
    FAILS(dvt_kernel_apply(dvt_kernel_new(saxpy_source, "saxpy"), DVT_ARGS(DVT_IN(x))),
          DVT_ERR_VALUE, "dvt_kernel_launch");
    dvt_attach_grad(x, DVT_GRAD_WRITE);
    DVT_RECORD {
        FAILS(dvt_kernel_apply(kernel, DVT_ARGS(DVT_IN(x), DVT_INT32(1))), DVT_ERR_GRAD,
              "dvt_detach");
    }
}
