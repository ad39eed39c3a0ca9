/* "GPUs and TPUs", the JAX edition with its printed outputs, block by block. JAX's random engine gives the document's numbers.
   The document ran where the CPU was the only device: run it without GPUs for the same contexts. */
#define DEVTENSOR_IMPLEMENTATION
#include "devtensor.h"
#include "show.h"

static const char *jax_device(dvt_ctx ctx) {
    static char text[4][40];
    static int next;
    char *at = text[next++ % 4];
    snprintf(at, sizeof text[0], "%sDevice(id=%d)", ctx.type == DVT_DEVICE_GPU ? "Cuda" : "Cpu",
             ctx.id);
    return at;
}

/* There is no TPU backend: the count is 0, as on the document's machine. */
static int num_tpu(void) {
    return 0;
}

static dvt_ctx try_tpu_gpu(int i) {
    return dvt_try_gpu(i);
}

/* "%%timeit -n1 -r3": mean and population standard deviation. */
static void timeit(const char *what, void (*body)(dvt_ctx), dvt_ctx ctx) {
    double seconds[3], mean = 0, square = 0;
    int i;
    for (i = 0; i < 3; i++)
        DVT_SCOPE {
            double start = dvt_seconds();
            body(ctx);
            seconds[i] = dvt_seconds() - start;
            mean += seconds[i] / 3;
        }
    for (i = 0; i < 3; i++)
        square += (seconds[i] - mean) * (seconds[i] - mean) / 3;
    printf("~ %s: %.3g ms ± %.3g ms per loop (mean ± std. dev. of 3 runs, 1 loop each)\n", what,
           mean * 1e3, sqrt(square) * 1e3);
}

static const int64_t large = 200000;

/* y = x ** 0.5 - log(abs(x)) on a linspace. */
static void lazy_body(dvt_ctx ctx) {
    dvt_array *x = dvt_linspace(0, 100, large, DVT_F32, ctx);
    dvt_wait(dvt_sub(dvt_pow_scalar(x, 0.5), dvt_log(dvt_abs(x))));
}

static void round_trip(dvt_ctx ctx) {
    dvt_array *x = dvt_key_uniform(dvt_key_new(1), 0, 1, DVT_SHAPE(large), DVT_F32, ctx);
    dvt_array *ycpu = dvt_sub_scalar(dvt_pow_scalar(dvt_copyto(x, dvt_cpu()), 2), 0.5);
    dvt_array *yacc = dvt_copyto(ycpu, ctx);
    dvt_wait(dvt_sub_scalar(dvt_pow_scalar(yacc, 3), 0.2));
}

static void one_device(dvt_ctx ctx) {
    DVT_WITH_CTX(ctx) {
        dvt_array *x =
            dvt_key_uniform(dvt_key_new(1), 0, 1, DVT_SHAPE(large), DVT_F32, dvt_default_ctx());
        dvt_wait(dvt_sub_scalar(dvt_pow_scalar(dvt_sub_scalar(dvt_pow_scalar(x, 2), 0.5), 3), 0.2));
    }
}

int main(void) {
    dvt_array *x, *X, *Y, *Z, *Z2;
    char list[128];

    dvt_set_log_level(DVT_LOG_OFF);
    dvt_set_rng_engine(DVT_RNG_JAX);

    block("2", "cpu(), gpu(), tpu()");
    printf("%s\n", jax_device(dvt_cpu()));

    block("3", "num_gpus()");
    printf("%d\n", dvt_num_gpus());

    block("4", "num_tpu()");
    printf("%d\n", num_tpu());

    block("5", "try_tpu_gpu(), try_tpu_gpu(10), try_all_gpus()");
    dvt_ctx_list_format(dvt_try_all_gpus(), list, sizeof list);
    printf("(%s, %s, %s)\n", jax_device(try_tpu_gpu(0)), jax_device(try_tpu_gpu(10)), list);

    block("6", "x = jnp.array([1, 2, 3]); x.devices()");
    x = DVT_ARRAY1(dvt_cpu(), int32_t, 3, {1, 2, 3});
    printf("{%s}\n", jax_device(dvt_ctx_of(x)));

    block("7", "X = jax.device_put(jnp.ones((2, 3)), try_tpu_gpu()); X, X.devices()");
    X = dvt_copyto(dvt_ones(DVT_SHAPE(2, 3), DVT_F32, dvt_cpu()), try_tpu_gpu(0));
    show(X, DVT_PRINT_JAX);
    printf("{%s}\n", jax_device(dvt_ctx_of(X)));

    block("8",
          "Y = jax.device_put(jax.random.uniform(jax.random.PRNGKey(0), (2, 3)), try_tpu_gpu(1))");
    Y = dvt_copyto(dvt_key_uniform(dvt_key_new(0), 0, 1, DVT_SHAPE(2, 3), DVT_F32, dvt_cpu()),
                   try_tpu_gpu(1));
    show(Y, DVT_PRINT_JAX);
    printf("{%s}\n", jax_device(dvt_ctx_of(Y)));

    block("9", "X + Y: the document's two devices are one CPU; on two GPUs it is the error that "
               "its text announces");
    if (dvt_ctx_equal(dvt_ctx_of(X), dvt_ctx_of(Y)))
        show(dvt_add(X, Y), DVT_PRINT_JAX);
    else {
        dvt_add(X, Y);
        show_error();
    }

    block("10",
          "Z = jax.device_put(X, try_tpu_gpu(1)); print(X, X.devices()); print(Z, Z.devices())");
    Z = dvt_copyto(X, try_tpu_gpu(1));
    show(X, DVT_PRINT_STR);
    printf("{%s}\n", jax_device(dvt_ctx_of(X)));
    show(Z, DVT_PRINT_STR);
    printf("{%s}\n", jax_device(dvt_ctx_of(Z)));

    block("11", "Y + Z");
    show(dvt_add(Y, Z), DVT_PRINT_JAX);

    block("12", "Z2 = jax.device_put(Z, try_tpu_gpu(1)); Z2 is Z");
    Z2 = dvt_copyto(Z, try_tpu_gpu(1));
    puts(truth(Z2 == Z));

    block("14", "lazy execution: linspace, x ** 0.5 - log(abs(x)), and waiting for it");
    timeit("on the CPU", lazy_body, dvt_cpu());
    block("16", "accelerator to CPU to accelerator");
    timeit("round trip", round_trip, try_tpu_gpu(0));
    block("17", "all on the CPU");
    timeit("on the CPU", one_device, dvt_cpu());
    block("18", "all on the accelerator");
    timeit("on the accelerator", one_device, try_tpu_gpu(0));

    block("20", "tf.config.get_visible_devices()");
    {
        dvt_ctx_list all = dvt_try_all_gpus();
        int i;
        printf("[PhysicalDevice(name='/physical_device:CPU:0', device_type='CPU')");
        for (i = 0; i < all.n; i++)
            printf(", PhysicalDevice(name='/physical_device:GPU:%d', device_type='GPU')",
                   all.ctx[i].id);
        puts("]");
    }

    block("21", "with tf.device('cpu'): x = tnp.linspace(0, 10, num=100); x.device");
    DVT_WITH_CTX(dvt_cpu()) {
        x = dvt_linspace(0, 10, 100, DVT_F64, dvt_default_ctx());
        puts(dvt_ctx_name(dvt_ctx_of(x)));
    }

    block("22", "torch.cuda.device_count()");
    printf("%d\n", dvt_num_gpus());

    block("23", "x = torch.linspace(0., 10, 100).to('cpu'); x.device");
    {
        dvt_ctx cpu;
        dvt_ctx_parse("cpu", &cpu);
        x = dvt_as_in_ctx(dvt_linspace(0, 10, 100, DVT_F32, dvt_cpu()), cpu);
        puts(dvt_ctx_name(dvt_ctx_of(x)));
    }
    return finish();
}
