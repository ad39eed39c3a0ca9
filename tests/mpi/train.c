/* Trains a small net with several processes, for run.sh. Usage: train MODE [FILE]. Prints a hash of
   the losses and parameters on rank 0, after it has compared all ranks. Contexts per process:
   CONTEXTS, 1 by default. */
#include "devtensor.h"
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static uint64_t hash = 1469598103934665603u;

static void hash_bytes(const void *at, size_t n) {
    const unsigned char *byte = (const unsigned char *)at;
    while (n-- > 0)
        hash = (hash ^ *byte++) * 1099511628211u;
}

static int failed(const char *what) {
    fprintf(stderr, "rank %d: %s: %s\n", dvt_rank(), what, dvt_error());
    return 1;
}

static dvt_block *make_net(bool batch_norm) {
    dvt_block *net = dvt_nn_sequential();
    DVT_NN_ADD(net, dvt_nn_conv2d(3, 3, DVT_RELU));
    if (batch_norm)
        DVT_NN_ADD(net, dvt_nn_batch_norm(), dvt_nn_dropout(0.2));
    DVT_NN_ADD(net, dvt_nn_dense(6, DVT_RELU), dvt_nn_dense(3, DVT_IDENTITY));
    return net;
}

static dvt_array *negated(void *user, dvt_array *x) {
    (void)user;
    return dvt_neg(x);
}

static dvt_loader *make_loader(int64_t samples, int workers) {
    dvt_loader_desc desc;
    dvt_dataset *data;
    dvt_array *x =
        dvt_key_uniform(dvt_key_new(1), -1, 1, DVT_SHAPE(samples, 1, 6, 6), DVT_F32, dvt_cpu());
    dvt_array *y = dvt_key_randint(dvt_key_new(2), 0, 3, DVT_SHAPE(samples), DVT_I32, dvt_cpu());
    memset(&desc, 0, sizeof desc);
    desc.batch_size = 24;
    desc.shuffle = true;
    desc.seed = 5;
    desc.num_workers = workers;
    data = dvt_dataset_arrays(x, y);
    if (workers) /* makes batches sample by sample */
        data = dvt_dataset_transform_first(data, dvt_transform_new(negated, NULL));
    return dvt_loader_new(data, &desc);
}

typedef struct run {
    dvt_block *net;
    dvt_params *params;
    dvt_trainer *trainer;
    dvt_ctx_list ctxs;
} run;

static run make_run(bool parts, dvt_optimizer optimizer) {
    const char *contexts = getenv("CONTEXTS");
    run r;
    int i;
    r.ctxs = DVT_CONTEXTS(dvt_cpu());
    if (contexts && atoi(contexts) == 2)
        r.ctxs = DVT_CONTEXTS(dvt_cpu(), dvt_gpu(0));
    r.net = make_net(parts);
    /* Without a common seed, the parameters are those of rank 0. */
    dvt_seed(parts ? 7 : 7 + (uint64_t)dvt_rank());
    dvt_block_initialize(r.net, dvt_init_xavier(), r.ctxs);
    DVT_PREDICT_MODE {
        for (i = 0; i < r.ctxs.n; i++)
            dvt_block_forward(r.net, dvt_zeros(DVT_SHAPE(1, 1, 6, 6), DVT_F32, r.ctxs.ctx[i]));
    }
    r.params = dvt_block_collect_params(r.net, NULL);
    r.trainer = dvt_trainer_new(r.params, optimizer);
    if (parts)
        dvt_trainer_set_parts(r.trainer, 12);
    return r;
}

static dvt_checkpoint checkpoint_of(const run *r, dvt_loader *loader) {
    dvt_checkpoint c;
    memset(&c, 0, sizeof c);
    c.net = r->net;
    c.trainer = r->trainer;
    c.loader = loader;
    return c;
}

static dvt_array *loss_of(const run *r, dvt_array *x, dvt_array *y) {
    dvt_array *loss = NULL;
    DVT_RECORD {
        loss = dvt_loss_softmax_cross_entropy(dvt_block_forward(r->net, x), y);
    }
    dvt_backward(loss);
    return loss;
}

static int train_parts(const run *r, dvt_loader *loader, int epochs) {
    dvt_array *x, *y, *px, *py;
    int epoch;
    for (epoch = 0; epoch < epochs; epoch++)
        DVT_FOR_BATCHES(loader, x, y) {
            double loss;
            DVT_FOR_TRAINER_PARTS(r->trainer, x, y, px, py) {
                dvt_trainer_add_loss(r->trainer, loss_of(r, px, py));
            }
            if (dvt_trainer_step(r->trainer, dvt_dim(x, 0)) != DVT_OK)
                return failed("step");
            loss = dvt_trainer_loss(r->trainer);
            hash_bytes(&loss, sizeof loss);
        }
    return dvt_error_code() == DVT_OK ? 0 : failed("train");
}

static int train_plain(const run *r, dvt_loader *loader, int epochs) {
    dvt_array *x, *y;
    int epoch, i;
    for (epoch = 0; epoch < epochs; epoch++)
        DVT_FOR_BATCHES(loader, x, y) {
            dvt_array *xs[2], *ys[2];
            dvt_array_split_and_load(x, r->ctxs, xs);
            dvt_array_split_and_load(y, r->ctxs, ys);
            for (i = 0; i < r->ctxs.n; i++)
                loss_of(r, xs[i], ys[i]);
            if (dvt_trainer_allreduce(r->trainer) != DVT_OK ||
                dvt_trainer_step(r->trainer, dvt_dim(x, 0)) != DVT_OK)
                return failed("step");
        }
    return dvt_error_code() == DVT_OK ? 0 : failed("train");
}

/* Returns 1 unless all ranks have the same hash. */
static int same_on_all_ranks(void) {
    dvt_array *first = dvt_empty(DVT_SHAPE(8), DVT_U8, dvt_cpu());
    memcpy(dvt_data(first), &hash, 8);
    if (dvt_broadcast_ranks(first, 0) != DVT_OK)
        return failed("broadcast");
    if (memcmp(dvt_data(first), &hash, 8) == 0)
        return 0;
    fprintf(stderr, "rank %d has other bits than rank 0\n", dvt_rank());
    return 1;
}

/* Adds the parameters to the hash. All ranks must have the same one. */
static int finish(const run *r, bool print_values) {
    int i;
    for (i = 0; i < dvt_params_len(r->params); i++) {
        dvt_array *x =
            dvt_copyto(dvt_param_data(dvt_params_at(r->params, i), r->ctxs.ctx[0]), dvt_cpu());
        hash_bytes(dvt_data(x), (size_t)dvt_nbytes(x));
    }
    if (same_on_all_ranks() != 0)
        return 1;
    if (dvt_rank() == 0 && print_values)
        printf("%.4f\n",
               dvt_item(dvt_norm(dvt_block_data(dvt_block_at(r->net, -1), "weight", r->ctxs.ctx[0]),
                                 DVT_ALL)));
    else if (dvt_rank() == 0)
        printf("%016llx\n", (unsigned long long)hash);
    return 0;
}

/* A loader gives this rank its rows of each batch, or all of them. */
static int loaders(void) {
    const int n = dvt_num_ranks(), rank = dvt_rank();
    dvt_array *data = dvt_arange(0, 50, 1, DVT_F32, dvt_cpu());
    dvt_dataset *set = dvt_dataset_arrays(data, data);
    dvt_loader_desc desc;
    dvt_loader *share, *whole;
    dvt_array *x, *y, *all, *none;
    memset(&desc, 0, sizeof desc);
    desc.batch_size = 22; /* the last batch has 6 samples */
    desc.shuffle = true;
    desc.seed = 5;
    share = dvt_loader_new(set, &desc);
    desc.all_ranks = true;
    whole = dvt_loader_new(set, &desc);
    DVT_FOR_BATCHES(share, x, y) {
        int64_t rows, first, end;
        if (!dvt_loader_next(whole, &all, &none))
            return failed("whole batches");
        rows = dvt_dim(all, 0);
        first = rank * rows / n;
        end = (rank + 1) * rows / n;
        if ((rows != 22 && rows != 6) || dvt_dim(x, 0) != end - first ||
            (end > first && !dvt_array_equal(x, dvt_rows(all, first, end), DVT_NAN_DIFFERS)))
            return failed("the share of a batch");
    }
    return dvt_error_code() == DVT_OK ? 0 : failed("loaders");
}

static int arrays(void) {
    int n = dvt_num_ranks(), rank = dvt_rank(), i;
    dvt_array *x = dvt_full(DVT_SHAPE(3, 5), rank + 1, DVT_F64, dvt_cpu());
    dvt_array *g = dvt_full(DVT_SHAPE(2), rank + 1, DVT_I32, dvt_gpu(0));
    if (dvt_all_reduce_ranks(x) != DVT_OK || dvt_all_reduce_ranks(g) != DVT_OK)
        return failed("sum");
    for (i = 0; i < 15; i++)
        if (((const double *)dvt_data(x))[i] != n * (n + 1) / 2)
            return failed("the sum is wrong");
    if (dvt_item_int(dvt_rows(g, 1, 2)) != n * (n + 1) / 2)
        return failed("the sum on gpu(0) is wrong");
    for (i = 0; i < n; i++) {
        x = dvt_full(DVT_SHAPE(4), 10 + rank, DVT_F16, dvt_cpu());
        if (dvt_broadcast_ranks(x, i) != DVT_OK || dvt_item(dvt_rows(x, 3, 4)) != 10 + i)
            return failed("broadcast");
    }
    if (dvt_broadcast_ranks(x, n) != DVT_ERR_RANGE)
        return failed("broadcast accepts a root that is not there");
    dvt_clear_error();
    if (dvt_barrier_ranks() != DVT_OK || dvt_distributed_init() != DVT_ERR_VALUE)
        return failed("barrier, second start");
    dvt_clear_error();
    if ((n > 1) != (dvt_rank_bytes() > 0))
        return failed("bytes");
    return loaders();
}

#include "gpus.h"
#include "overlap.h"
#include "trainers.h"

/* Returns its number, or 0. MPICH's launcher waits for a stopped process until someone kills it. */
static pid_t process_of_rank_1(void) {
    dvt_array *number =
        dvt_full(DVT_SHAPE(1), dvt_rank() == 1 ? (double)getpid() : 0, DVT_F64, dvt_cpu());
    return dvt_all_reduce_ranks(number) == DVT_OK ? (pid_t)dvt_item(number) : 0;
}

int main(int argc, char **argv) {
    const char *mode = argc > 1 ? argv[1] : "parts", *file = argc > 2 ? argv[2] : NULL;
    dvt_optimizer momentum = dvt_optimizer_sgd(0.1);
    const dvt_allocator scarce = {scarce_alloc, scarce_resize, scarce_release, NULL};
    dvt_checkpoint state;
    int code = 0;
    run r;
    momentum.momentum = 0.9;
    if (strcmp(mode, "overlap") == 0 || strcmp(mode, "trainers") == 0 ||
        strcmp(mode, "broken") == 0)
        dvt_set_allocator(&scarce);
    if (!getenv("SIMCUDA_DEVICES"))
        dvt_set_virtual_gpus(2, 0);
    if (strcmp(mode, "again") == 0)
        return again();
    if (dvt_distributed_init() != DVT_OK)
        return failed("start");
    if (strcmp(mode, "arrays") == 0) {
        code = arrays();
    } else if (strcmp(mode, "gpus") == 0) {
        code = gpus(file);
    } else if (strcmp(mode, "overlap") == 0) {
        code = overlap(file ? file : "cpu", argc > 3 ? argv[3] : NULL);
    } else if (strcmp(mode, "trainers") == 0) {
        code = trainers(file ? file : "cpu", argc > 3 ? argv[3] : "oecml");
    } else if (strcmp(mode, "swapped") == 0) {
        code = swapped();
    } else if (strcmp(mode, "broken") == 0) {
        code = broken(file ? file : "cpu");
    } else if (strcmp(mode, "time") == 0) {
        code = step_times(file ? atoi(file) : 512);
    } else if (strcmp(mode, "dies_early") == 0) {
        code = dies_early(file ? file : "cpu");
    } else if (strcmp(mode, "dies_late") == 0) {
        code = dies_late(file ? file : "cpu");
    } else if (strcmp(mode, "trains") == 0) {
        code = trains(file ? file : "cpu");
    } else if (strcmp(mode, "parts") == 0) { /* the last batch of an epoch has 2 samples */
        r = make_run(true, dvt_optimizer_adam(0.01));
        code = train_parts(&r, make_loader(98, 1), 20); /* 100 steps */
        code = code ? code : finish(&r, false);
    } else if (strcmp(mode, "plain") == 0) {
        r = make_run(false, momentum);
        code = train_plain(&r, make_loader(98, 0), 2);
        code = code ? code : finish(&r, true);
    } else if (strcmp(mode, "save") == 0) {
        dvt_loader *loader = make_loader(48, 0);
        r = make_run(true, dvt_optimizer_adam(0.01));
        code = train_parts(&r, loader, 1);
        state = checkpoint_of(&r, loader);
        if (dvt_rank() == 0 && dvt_checkpoint_save(&state, file) != DVT_OK)
            code = failed("save");
    } else if (strcmp(mode, "resume") == 0 || strcmp(mode, "whole") == 0) {
        bool whole = strcmp(mode, "whole") == 0;
        dvt_loader *loader = make_loader(48, 0);
        r = make_run(true, dvt_optimizer_adam(0.01));
        state = checkpoint_of(&r, loader);
        if (whole)
            code = train_parts(&r, loader, 1);
        else if (dvt_checkpoint_load(&state, file) != DVT_OK)
            code = failed("load");
        hash = 1469598103934665603u;
        code = code ? code : train_parts(&r, loader, 1);
        code = code ? code : finish(&r, false);
    } else if (strcmp(mode, "dies") == 0 || strcmp(mode, "stops") == 0 ||
               strcmp(mode, "leaves") == 0) {
        pid_t second = process_of_rank_1();
        r = make_run(false, momentum);
        code = train_plain(&r, make_loader(48, 0), 1);
        if (dvt_rank() == 1 && mode[0] == 'l')
            exit(0); /* without dvt_distributed_end */
        if (dvt_rank() == 1)
            raise(mode[0] == 'd' ? SIGKILL : SIGSTOP);
        code = train_plain(&r, make_loader(48, 0), 1000);
        if (mode[0] == 's' && second > 0) {
            sleep(1); /* the launcher prints our error */
            kill(second, SIGKILL);
        }
    } else if (strcmp(mode, "differs") == 0) {
        dvt_array *x = dvt_ones(DVT_SHAPE(dvt_rank() == 1 ? 3 : 40), DVT_F32, dvt_cpu());
        code = dvt_all_reduce_ranks(x) == DVT_OK ? 1 : failed("differs");
    }
    if (dvt_distributed_end() != DVT_OK)
        code = 1;
    else if (dvt_distributed_init() != DVT_ERR_VALUE)
        code = failed("MPI starts twice");
    return code;
}
