/* The host's cost of operations on a GPU, without a GPU: the driver is null_driver.c, which does
   nothing, so that the time is devtensor's own. Also counts launches and the driver's other calls,
   and measures copies of pageable host memory through the staging buffers. Writes two tables to
   standard output, as host_cost.sh asks for.

     make bench-gpu-host */
#include "examples/lenet.h"
#include <dlfcn.h>

#define ROUNDS 1501
#define CALLS 200
#define STEPS 5
#define BATCH 256

typedef const char *calls_of(int i, long long *calls);

static calls_of *calls_by_name;
static int *driver_zeros;
static dvt_array *a, *b, *vector, *condition, *images, *labels;
static dvt_block *net;
static dvt_trainer *trainer;

/* ---- what is measured ---- */
static dvt_array *add(void) {
    return dvt_add(a, b);
}

static dvt_array *add_in_place(void) {
    return dvt_add_(a, b);
}

static dvt_array *add_row(void) {
    return dvt_add(a, vector);
}

static dvt_array *mul_scalar(void) {
    return dvt_mul_scalar(a, 0.5);
}

static dvt_array *exponential(void) {
    return dvt_exp(b);
}

static dvt_array *where(void) {
    return dvt_where(condition, a, b);
}

static dvt_array *sum_rows(void) {
    return dvt_sum(b, DVT_AXES(1));
}

static dvt_array *softmax(void) {
    return dvt_softmax(b, 1);
}

static dvt_array *matmul(void) {
    return dvt_matmul(a, b);
}

static dvt_array *copy(void) {
    return dvt_copy(b);
}

static dvt_array *empty(void) {
    return dvt_empty(DVT_SHAPE(32, 32), DVT_F32, dvt_gpu(0));
}

static dvt_array *predict(void) {
    return dvt_block_forward(net, images);
}

/* One step of SGD on a batch that is on the GPU. The loss stays there. */
static dvt_array *train(void) {
    dvt_array *losses = NULL;
    DVT_RECORD {
        losses = dvt_loss_softmax_cross_entropy(dvt_block_forward(net, images), labels);
    }
    must(dvt_backward(losses) == DVT_OK, "dvt_backward");
    must(dvt_trainer_step(trainer, BATCH) == DVT_OK, "dvt_trainer_step");
    return losses;
}

typedef struct measured {
    const char *name;
    dvt_array *(*call)(void);
    int calls;
} measured;

static const measured cases[] = {
    {"dvt_add, 32 x 32", add, CALLS},
    {"dvt_add_, in place", add_in_place, CALLS},
    {"dvt_add of a row", add_row, CALLS},
    {"dvt_mul_scalar", mul_scalar, CALLS},
    {"dvt_exp", exponential, CALLS},
    {"dvt_where", where, CALLS},
    {"dvt_sum of rows", sum_rows, CALLS},
    {"dvt_softmax", softmax, CALLS},
    {"dvt_matmul, 32 x 32", matmul, CALLS},
    {"dvt_copy", copy, CALLS},
    {"dvt_empty", empty, CALLS},
    {"LeNet, predict 256", predict, STEPS},
    {"LeNet, train 256 by SGD", train, STEPS},
};

/* ---- measuring ---- */
typedef struct counts {
    long long launches, others;
} counts;

static counts count_calls(void) {
    counts n = {0, 0};
    const char *name;
    long long calls;
    int i;
    for (i = 0; (name = calls_by_name(i, &calls)) != NULL; i++)
        if (strcmp(name, "cuLaunchKernel") == 0)
            n.launches += calls;
        else
            n.others += calls;
    return n;
}

static int by_size(const void *x, const void *y) {
    double p = *(const double *)x, q = *(const double *)y;
    return (p > q) - (p < q);
}

static void call(const measured *m, int times) {
    int i;
    for (i = 0; i < times; i++)
        DVT_SCOPE {
            must(m->call() != NULL, m->name);
        }
}

#define CASES ((int)(sizeof cases / sizeof cases[0]))

/* The rounds of all operations alternate, and last for seconds together: the clock of a shared
   machine may be half as fast for a second. */
static void measure(void) {
    static double seconds[CASES][ROUNDS];
    counts per_call[CASES], before, after;
    double begin;
    int i, round;
    for (i = 0; i < CASES; i++) {
        call(&cases[i], 20); /* compiles, and fills the caches of memory */
        before = count_calls();
        call(&cases[i], cases[i].calls);
        after = count_calls();
        per_call[i].launches = after.launches - before.launches;
        per_call[i].others = after.others - before.others;
    }
    for (round = 0; round < ROUNDS; round++)
        for (i = 0; i < CASES; i++) {
            begin = dvt_seconds();
            call(&cases[i], cases[i].calls);
            seconds[i][round] = (dvt_seconds() - begin) / cases[i].calls;
        }
    for (i = 0; i < CASES; i++) {
        qsort(seconds[i], ROUNDS, sizeof(double), by_size);
        printf("| %s | %.3f | %.3f | %.3g | %.3g |\n", cases[i].name, seconds[i][ROUNDS / 2] * 1e6,
               seconds[i][0] * 1e6, (double)per_call[i].launches / cases[i].calls,
               (double)per_call[i].others / cases[i].calls);
    }
    fflush(stdout);
}

#undef CASES

/* ---- copies of pageable host memory ---- */
#define COPY_BYTES ((int64_t)64 << 20)
#define COPY_ROUNDS 31

static void copy_memory(dvt_array *x, char *p, char *q) {
    (void)x;
    memcpy(q, p, (size_t)COPY_BYTES);
}

static void copy_up(dvt_array *x, char *p, char *q) {
    (void)q;
    must(dvt_set_from_host(x, p, COPY_BYTES) == DVT_OK, "dvt_set_from_host");
}

static void copy_down(dvt_array *x, char *p, char *q) {
    (void)p;
    must(dvt_to_host(x, q, COPY_BYTES) == DVT_OK, "dvt_to_host");
}

/* The rounds of all cases alternate, so that other load of the machine hits them alike. */
static void measure_copies(void) {
    enum { CASES = 5 };

    static const char *const name[CASES] = {
        "one memcpy", "dvt_set_from_host, 1 thread", "dvt_to_host, 1 thread",
        "dvt_set_from_host, all threads", "dvt_to_host, all threads"};
    static void (*const copy[CASES])(dvt_array *, char *, char *) = {copy_memory, copy_up,
                                                                     copy_down, copy_up, copy_down};
    static const int threads[CASES] = {1, 1, 1, 0, 0};
    double seconds[CASES][COPY_ROUNDS], begin;
    char *p = (char *)malloc((size_t)COPY_BYTES), *q = (char *)malloc((size_t)COPY_BYTES);
    dvt_array *x = dvt_zeros(DVT_SHAPE(COPY_BYTES), DVT_U8, dvt_gpu(0));
    int i, round;
    must(p && q && x, "memory for the copies");
    memset(p, 1, (size_t)COPY_BYTES);
    memset(q, 2, (size_t)COPY_BYTES);
    *driver_zeros = 0;
    for (round = -1; round < COPY_ROUNDS; round++) /* the first round allocates */
        for (i = 0; i < CASES; i++) {
            must(dvt_set_num_threads(threads[i]) == DVT_OK, "dvt_set_num_threads");
            copy[i](x, p, q); /* starts or stops threads */
            begin = dvt_seconds();
            copy[i](x, p, q);
            if (round >= 0)
                seconds[i][round] = dvt_seconds() - begin;
        }
    *driver_zeros = 1;
    printf("\n| copy of %d MiB | GB/s, median | GB/s, best |\n|---|---|---|\n",
           (int)(COPY_BYTES >> 20));
    for (i = 0; i < CASES; i++) {
        qsort(seconds[i], COPY_ROUNDS, sizeof(double), by_size);
        printf("| %s | %.2f | %.2f |\n", name[i], COPY_BYTES / seconds[i][COPY_ROUNDS / 2] / 1e9,
               COPY_BYTES / seconds[i][0] / 1e9);
    }
    free(p);
    free(q);
}

static dvt_array *drawn(double low, double high, dvt_shape shape) {
    dvt_array *x = dvt_uniform(low, high, shape, DVT_F32, dvt_gpu(0));
    must(x != NULL, "dvt_uniform");
    return x;
}

int main(void) {
    const char *path = getenv("DEVTENSOR_CUDA_PATH");
    void *driver = path ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL;
    void *symbol = driver ? dlsym(driver, "null_driver_calls") : NULL;
    void *zeros = driver ? dlsym(driver, "null_driver_zeros") : NULL;
    dvt_ctx_list devices = DVT_CONTEXTS(dvt_gpu(0));
    if (!symbol || !zeros) {
        fprintf(stderr, "host_cost: DEVTENSOR_CUDA_PATH must name the driver that does nothing; "
                        "use make bench-gpu-host\n");
        return 2;
    }
    memcpy(&calls_by_name, &symbol, sizeof symbol);
    driver_zeros = (int *)zeros;
    must(dvt_num_gpus() == 1, dvt_gpu_reason());
    a = drawn(-1, 1, DVT_SHAPE(32, 32));
    b = drawn(-1, 1, DVT_SHAPE(32, 32));
    vector = drawn(-1, 1, DVT_SHAPE(32));
    condition = dvt_greater(a, b);
    images = drawn(-1, 1, DVT_SHAPE(BATCH, 1, 28, 28));
    labels = dvt_zeros(DVT_SHAPE(BATCH), DVT_I32, dvt_gpu(0));
    net = lenet();
    must(dvt_block_initialize(net, dvt_init_xavier(), devices) == DVT_OK, "initializing");
    trainer = dvt_trainer_new(dvt_block_collect_params(net, NULL), dvt_optimizer_sgd(0.1));
    must(trainer != NULL, "dvt_trainer_new");
    printf("| operation | us, median | us, least | launches | other calls of the driver |\n"
           "|---|---|---|---|---|\n");
    measure();
    measure_copies();
    return 0;
}
