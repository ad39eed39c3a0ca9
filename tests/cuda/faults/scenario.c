#include "scenario.h"
#include <stdlib.h>
#include <string.h>

#define LARGE (40 << 10)    /* floats: uses the streams for large copies */
#define CHUNKS (1200 << 10) /* floats: more than one staging chunk */

int scenario_gpu, scenario_short;

static dvt_ctx here(void) {
    return dvt_gpu(scenario_gpu);
}

/* Returns a hash of the elements of x, read back. */
static uint64_t hash_of(dvt_array *x) {
    uint64_t hash = 0xcbf29ce484222325u;
    int64_t bytes = x ? dvt_nbytes(x) : 0, i;
    unsigned char *at = (unsigned char *)malloc((size_t)bytes + 1);
    memset(at, 0, (size_t)bytes);
    if (x && dvt_to_host(x, at, bytes) == DVT_OK)
        for (i = 0; i < bytes; i++)
            hash = (hash ^ at[i]) * 0x100000001b3u;
    free(at);
    return hash;
}

static dvt_array *numbers(dvt_shape shape, dvt_ctx ctx) {
    int64_t n = dvt_shape_size(shape), i;
    float *values = (float *)malloc(sizeof(float) * (size_t)n);
    dvt_array *x;
    for (i = 0; i < n; i++)
        values[i] = (float)(i * 37 % 101) / 64 - 0.7f;
    x = dvt_from_host(values, shape, DVT_F32, ctx);
    memset(values, 0xee, sizeof(float) * (size_t)n);
    free(values);
    return x;
}

static uint64_t run_small(void) {
    dvt_array *x = numbers(DVT_SHAPE(5, 20), here());
    return hash_of(dvt_add(dvt_mul_scalar(x, 3), dvt_full(DVT_SHAPE(20), 2, DVT_F32, here())));
}

static uint64_t run_large(void) {
    dvt_array *x = numbers(DVT_SHAPE(LARGE), here());
    uint64_t hash = hash_of(dvt_neg(x));
    DVT_SCOPE { /* the next arrays reuse this memory while it is still in use */
        dvt_add(numbers(DVT_SHAPE(LARGE), here()), x);
    }
    return hash ^ hash_of(numbers(DVT_SHAPE(LARGE), here())) ^ 3 * hash_of(x);
}

static uint64_t run_chunks(void) {
    if (scenario_short)
        return 0;
    return hash_of(numbers(DVT_SHAPE(CHUNKS), here()));
}

static uint64_t run_sums(void) {
    dvt_array *x = numbers(DVT_SHAPE(40, 25), here());
    return hash_of(dvt_sum(x, DVT_ALL)) ^ hash_of(dvt_max(x, DVT_AXES(1)));
}

static uint64_t run_products(void) {
    dvt_array *x = numbers(DVT_SHAPE(7, 9), here());
    dvt_array *image = numbers(DVT_SHAPE(1, 2, 6, 6), here());
    dvt_conv2d_options p;
    memset(&p, 0, sizeof p);
    return hash_of(dvt_softmax(dvt_matmul(x, dvt_t(x)), 1)) ^
           hash_of(dvt_conv2d(image, numbers(DVT_SHAPE(3, 2, 3, 3), here()), NULL, &p));
}

static uint64_t run_backward(void) {
    dvt_array *x = numbers(DVT_SHAPE(4, 6), here()), *y = NULL;
    dvt_attach_grad(x, DVT_GRAD_WRITE);
    DVT_RECORD {
        y = dvt_sum(dvt_mul(x, dvt_tanh(x)), DVT_ALL);
    }
    return dvt_backward(y) == DVT_OK ? hash_of(dvt_grad(x)) : 0;
}

static void give_back(void *user) {
    dvt_release(user);
}

/* Memory of one array as another array, and the order of streams. */
static uint64_t run_borrowed(void) {
    dvt_array *owner = numbers(DVT_SHAPE(60), here()), *x;
    uint64_t at = owner ? dvt_cuda_address(owner) : 0;
    void *stream = dvt_cuda_stream(here());
    if (!at)
        return 0;
    x = dvt_from_memory((void *)(uintptr_t)at, DVT_SHAPE(6, 10), NULL, DVT_F32, give_back,
                        dvt_retain(owner), here());
    if (!x)
        dvt_release(owner);
    if (!x || dvt_cuda_order_before(stream, here()) != DVT_OK ||
        dvt_cuda_order_after(stream, here()) != DVT_OK)
        return 0;
    return hash_of(dvt_neg(x));
}

static uint64_t run_trim(void) {
    uint64_t hash = hash_of(numbers(DVT_SHAPE(LARGE), here()));
    dvt_trim_memory(here());
    return hash;
}

/* A full GPU is a valid result, not a failure. */
static uint64_t run_full(void) {
    dvt_array *kept = numbers(DVT_SHAPE(30), here());
    if (dvt_error_code() == DVT_OK && !dvt_empty(DVT_SHAPE((int64_t)1 << 40), DVT_U8, here()) &&
        dvt_error_code() == DVT_ERR_DEVICE_MEMORY)
        dvt_clear_error();
    return hash_of(kept);
}

static uint64_t run_between(void) {
    dvt_array *x = numbers(DVT_SHAPE(30), dvt_gpu(0));
    dvt_array *large = numbers(DVT_SHAPE(LARGE), dvt_gpu(1));
    dvt_array *there = dvt_copyto(x, dvt_gpu(1)), *back = dvt_copyto(large, dvt_gpu(0));
    uint64_t hash;
    dvt_fill(x, 9);
    dvt_fill(large, 8);
    hash = hash_of(there) ^ 3 * hash_of(back);
    return hash ^ 5 * hash_of(x) ^ 7 * hash_of(large);
}

static uint64_t run_training(void) {
    dvt_ctx_list both = DVT_CONTEXTS(dvt_gpu(0), dvt_gpu(1));
    dvt_block *net = dvt_nn_sequential();
    dvt_array *x = numbers(DVT_SHAPE(4, 6), dvt_cpu()), *xs[8], *losses[8];
    dvt_params *params;
    dvt_trainer *trainer;
    uint64_t hash = 0;
    int step, i;
    dvt_seed(3);
    if (!scenario_short)
        DVT_NN_ADD(net, dvt_nn_dense(5, DVT_RELU));
    DVT_NN_ADD(net, dvt_nn_dense(2, DVT_IDENTITY));
    dvt_block_initialize(net, dvt_init_xavier(), both);
    params = dvt_block_collect_params(net, NULL);
    trainer = dvt_trainer_new(params, dvt_optimizer_sgd(0.1));
    for (step = 0; step < (scenario_short ? 1 : 2) && dvt_error_code() == DVT_OK; step++)
        DVT_SCOPE {
            if (dvt_split_and_load(x, both, xs) != DVT_OK)
                continue; /* also ends the loop, because there is an error */
            DVT_RECORD {
                for (i = 0; i < 2; i++)
                    losses[i] = dvt_sum(dvt_square(dvt_block_forward(net, xs[i])), DVT_ALL);
            }
            for (i = 0; i < 2; i++)
                dvt_backward(losses[i]);
            dvt_trainer_step(trainer, 4);
        }
    for (i = 0; i < dvt_params_len(params) && dvt_error_code() == DVT_OK; i++) {
        dvt_param *p = dvt_params_at(params, i);
        uint64_t first = hash_of(dvt_param_data(p, dvt_gpu(0)));
        hash = hash * 31 + first + 7 * (first - hash_of(dvt_param_data(p, dvt_gpu(1))));
    }
    if (dvt_error_code() == DVT_OK)
        dvt_wait_all();
    return hash;
}

/* A kernel of the program, an expression, and the events around them. */
static uint64_t run_kernels(void) {
    dvt_kernel *twice = dvt_kernel_new(
        "extern \"C\" __global__ void twice(float *x) { x[threadIdx.x] *= 2; }", "twice");
    dvt_array *x = numbers(DVT_SHAPE(100), here());
    dvt_event *begin = dvt_event_record(here()), *end;
    uint64_t hash;
    dvt_kernel_launch(twice, DVT_SHAPE(1), DVT_SHAPE(100), 50000, DVT_ARGS(DVT_INOUT(x)));
    hash = hash_of(dvt_kernel_apply(dvt_kernel_expression("x", "x * x"), DVT_ARGS(DVT_IN(x))));
    end = dvt_event_record(here());
    return hash ^ (uint64_t)(dvt_event_elapsed(begin, end) >= 0 && dvt_event_done(end));
}

/* Copies from page-locked memory, which is written and released while they are pending. */
static uint64_t run_pinned(void) {
    dvt_array *x = dvt_empty_pinned(DVT_SHAPE(LARGE), DVT_F32, here()), *y;
    uint64_t hash = 0;
    dvt_fill(x, 3);
    y = dvt_copyto(x, here());
    dvt_fill(x, 4);
    DVT_SCOPE {
        hash = hash_of(y) ^ 3 * hash_of(dvt_copyto(x, here()));
    }
    dvt_copy_into(x, dvt_neg(y));
    y = dvt_copyto(x, here());
    hash ^= 5 * hash_of(x);
    if (x)
        dvt_discard(x);
    return hash ^ 7 * hash_of(y);
}

static uint64_t run_wait(void) {
    dvt_array *x = dvt_full(DVT_SHAPE(50), 4, DVT_F32, here());
    if (x)
        dvt_wait(x);
    return 1;
}

const step scenario[] = {
    {"small arrays", run_small},   {"a large array", run_large}, {"several chunks", run_chunks},
    {"reductions", run_sums},      {"products", run_products},   {"backward", run_backward},
    {"borrowed", run_borrowed},    {"trimming", run_trim},       {"a full GPU", run_full},
    {"own kernels", run_kernels},  {"pinned", run_pinned},       {"waiting", run_wait},
    {"between GPUs", run_between}, {"training", run_training}};
const int scenario_steps = (int)(sizeof scenario / sizeof *scenario);
const int scenario_single = (int)(sizeof scenario / sizeof *scenario) - 2;

int scenario_run(step_result *results, int first, int last) {
    int failed = 0, i;
    for (i = first; i < last; i++) {
        step_result *r = &results[i];
        DVT_SCOPE {
            r->hash = scenario[i].run();
        }
        r->code = dvt_error_code();
        strncpy(r->error, dvt_error(), sizeof r->error - 1);
        r->error[sizeof r->error - 1] = 0;
        dvt_clear_error();
        failed += r->code != DVT_OK;
    }
    return failed;
}
