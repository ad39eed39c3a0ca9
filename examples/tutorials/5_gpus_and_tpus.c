/* "GPUs and TPUs", the JAX edition with its printed outputs, cell by cell. JAX's random engine
   gives the document's numbers. The document was run on a machine whose only device was the CPU;
   run the program without GPUs for the same contexts. */
#define DEVTENSOR_IMPLEMENTATION
#include "devtensor.h"
#include "show.h"

static const char *jax(dvt_ctx ctx) {
    return device(ctx, DVT_PRINT_JAX);
}

/* Prints "(Array(...),\n {CpuDevice(id=0)})": a pair as IPython prints it, with the array's lines
   indented by one column. */
static void show_with_devices(dvt_array *x) {
    dvt_print_options options;
    char text[1024];
    const char *at;
    memset(&options, 0, sizeof options);
    options.style = DVT_PRINT_JAX;
    options.no_newline = true;
    if (dvt_format(x, &options, text, sizeof text, NULL) != DVT_OK)
        return;
    printf("(");
    for (at = text; *at; at++)
        printf(*at == '\n' ? "\n " : "%c", *at);
    printf(",\n {%s})\n", jax(dvt_ctx_of(x)));
}

/* Does print(x, x.devices()). */
static void print_with_devices(dvt_array *x) {
    dvt_print_options options;
    char text[1024];
    memset(&options, 0, sizeof options);
    options.style = DVT_PRINT_STR;
    options.no_newline = true;
    if (dvt_format(x, &options, text, sizeof text, NULL) == DVT_OK)
        printf("%s {%s}\n", text, jax(dvt_ctx_of(x)));
}

/* Does random.randint(0, high). */
static int64_t randint(int64_t high) {
    return dvt_item_int(dvt_randint(0, high + 1, DVT_SCALAR, DVT_I64, dvt_cpu()));
}

/* Prints a time as IPython does: three digits and a unit. */
static void show_time(double seconds) {
    static const char *const units[] = {"s", "ms", "µs", "ns"};
    int order = seconds > 0 ? -(int)floor(floor(log10(seconds)) / 3) : 0;
    order = order < 0 ? 0 : order > 3 ? 3 : order;
    printf("%.3g %s", seconds * pow(1000, order), units[order]);
}

/* Does "%%timeit -n loops -r runs": prints mean and population standard deviation of the runs, each
   the mean of its loops. */
static void timeit(int loops, int runs, void (*body)(void)) {
    double seconds[7], mean = 0, square = 0;
    int i, k;
    for (i = 0; i < runs; i++) {
        double start = dvt_seconds();
        for (k = 0; k < loops; k++) {
            DVT_SCOPED;
            body();
        }
        seconds[i] = (dvt_seconds() - start) / loops;
        mean += seconds[i] / runs;
    }
    for (i = 0; i < runs; i++)
        square += (seconds[i] - mean) * (seconds[i] - mean) / runs;
    show_time(mean);
    printf(" ± ");
    show_time(sqrt(square));
    printf(" per loop (mean ± std. dev. of %d runs, %d loop%s each)\n", runs, loops,
           loops == 1 ? "" : "s");
}

static int64_t n; /* elements of the large arrays */

/* Returns x ** power - less. */
static dvt_array *power_less(dvt_array *x, double power, double less) {
    return dvt_sub_scalar(dvt_pow_scalar(x, power), less);
}

static void lazy(void) {
    int64_t rand = randint(10000);
    DVT_CTX_SCOPED(dvt_cpu());
    dvt_array *x = dvt_linspace(0, 100, sized(10000000, 200000) + rand, DVT_F32, dvt_default_ctx());
    dvt_sub(dvt_pow_scalar(x, 0.5), dvt_log(dvt_abs(x)));
}

static void round_trip(void) {
    dvt_key key = dvt_key_new((uint64_t)randint(1000000000000));
    dvt_array *x = dvt_key_uniform(key, 0, 1, DVT_SHAPE(n), DVT_F32, dvt_try_tpu_gpu(0));
    dvt_array *xcpu = dvt_copyto(x, dvt_cpu());
    dvt_array *ycpu = power_less(xcpu, 2, 0.5);
    dvt_array *yacc = dvt_copyto(ycpu, dvt_try_tpu_gpu(0));
    dvt_wait(power_less(yacc, 3, 0.2));
}

static void one_device(dvt_ctx ctx) {
    DVT_CTX_SCOPED(ctx);
    dvt_key key = dvt_key_new((uint64_t)randint(1000000000000));
    dvt_array *x = dvt_key_uniform(key, 0, 1, DVT_SHAPE(n), DVT_F32, dvt_default_ctx());
    dvt_wait(power_less(power_less(x, 2, 0.5), 3, 0.2));
}

static void on_cpu(void) {
    one_device(dvt_cpu());
}

static void on_accelerator(void) {
    one_device(dvt_try_tpu_gpu(0));
}

int main(void) {
    dvt_array *x, *X, *Y, *Z, *Z2;
    dvt_ctx cpu;
    int i;

    setvbuf(stdout, NULL, _IOLBF, 0); /* timings take a while: print each line at once */
    dvt_set_log_level(DVT_LOG_OFF);

    block("1", "import jax; import jax.numpy as jnp");
    dvt_set_rng_engine(DVT_RNG_JAX);
    dvt_set_print_style(DVT_PRINT_JAX);
    puts("arrays are printed, and keys draw, as there");

    block("2", "def cpu(); def gpu(i=0); def tpu(i=0)");
    printf("(%s, %s, %s, %s)\n", jax(dvt_cpu()), jax(dvt_gpu(0)), jax(dvt_gpu(1)), jax(dvt_tpu(0)));
    if (!dvt_ones(DVT_SHAPE(2), DVT_F32, dvt_tpu(0)))
        show_error(); /* an undefined name */

    block("3", "def num_gpus(); num_gpus()");
    if (!dvt_num_gpus())
        printf("%s. Falling back to cpu.\n", dvt_gpu_reason());
    printf("%d\n", dvt_num_gpus());

    block("4", "def num_tpu(); num_tpu()");
    printf("%d\n", dvt_num_tpus());

    block("5", "def try_tpu_gpu(i=0); try_tpu_gpu(), try_tpu_gpu(10), try_all_gpus()");
    printf("(%s, %s, ", jax(dvt_try_tpu_gpu(0)), jax(dvt_try_tpu_gpu(10)));
    show_devices(dvt_try_all_gpus(), DVT_PRINT_JAX, ")\n");

    block("6", "x = jnp.array([1, 2, 3]); x.devices()");
    /* the device on which JAX makes arrays */
    x = DVT_ARRAY(int32_t, DVT_SHAPE(3), dvt_try_tpu_gpu(0), 1, 2, 3);
    printf("{%s}\n", jax(dvt_ctx_of(x)));

    block("7", "X = jax.device_put(jnp.ones((2, 3)), try_tpu_gpu()); X, X.devices()");
    X = dvt_copyto(dvt_ones(DVT_SHAPE(2, 3), DVT_F32, dvt_cpu()), dvt_try_tpu_gpu(0));
    show_with_devices(X);

    block("8", "Y = jax.device_put(jax.random.uniform(jax.random.PRNGKey(0), (2, 3)), "
               "try_tpu_gpu(1)); Y, Y.devices()");
    Y = dvt_copyto(dvt_key_uniform(dvt_key_new(0), 0, 1, DVT_SHAPE(2, 3), DVT_F32, dvt_cpu()),
                   dvt_try_tpu_gpu(1));
    show_with_devices(Y);

    block("9", "X + Y: the document's two devices are one CPU; on two GPUs it is the error that "
               "its text announces");
    x = dvt_add(X, Y);
    if (x)
        dvt_print(x);
    else
        show_error();

    block("10",
          "Z = jax.device_put(X, try_tpu_gpu(1)); print(X, X.devices()); print(Z, Z.devices())");
    Z = dvt_copyto(X, dvt_try_tpu_gpu(1));
    print_with_devices(X);
    print_with_devices(Z);

    block("11", "Y + Z");
    dvt_print(dvt_add(Y, Z));

    block("12", "Z2 = jax.device_put(Z, try_tpu_gpu(1)); Z2 is Z");
    Z2 = dvt_copyto(Z, dvt_try_tpu_gpu(1));
    puts(python_bool(Z2 == Z));

    block("13", "import random");
    printf("~ random.randint(0, 1e4) gives %lld\n", (long long)randint(10000));

    block("14", "%%timeit -n1 -r3, with jax.default_device(cpu()): x ** 0.5 - log(abs(x))");
    timeit(1, 3, lazy);

    block("15", "n = 100_000_000");
    n = sized(100000000, 20000);
    printf("~ n = %lld\n", (long long)n);

    block("16", "%%timeit -n5: accelerator to CPU to accelerator");
    timeit(5, 7, round_trip);
    block("17", "%%timeit -n5, with jax.default_device(cpu())");
    timeit(5, 7, on_cpu);
    block("18", "%%timeit -n5, with jax.default_device(try_tpu_gpu())");
    timeit(5, 7, on_accelerator);

    block("19",
          "import tensorflow as tf; import tensorflow.experimental.numpy as tnp; import torch");
    puts("devices are printed as there");

    block("20", "tf.config.get_visible_devices()");
    printf("[PhysicalDevice(name='/physical_device:CPU:0', device_type='CPU')");
    for (i = 0; i < dvt_num_gpus(); i++)
        printf(", PhysicalDevice(name='/physical_device:GPU:%d', device_type='GPU')", i);
    puts("]");

    block("21", "with tf.device('cpu'): x = tnp.linspace(0, 10, num=100); x.device");
    dvt_ctx_parse("cpu", &cpu);
    DVT_WITH_CTX(cpu) {
        x = dvt_linspace(0, 10, 100, DVT_F64, dvt_default_ctx());
    }
    printf("'%s'\n", device(dvt_ctx_of(x), DVT_PRINT_TF));

    block("22", "torch.cuda.device_count()");
    printf("%d\n", dvt_num_gpus());

    block("23", "x = torch.linspace(0., 10, 100).to('cpu'); x.device");
    x = dvt_as_in_ctx(dvt_linspace(0, 10, 100, DVT_F32, dvt_cpu()), cpu);
    puts(device(dvt_ctx_of(x), DVT_PRINT_TORCH));
    return finish();
}
