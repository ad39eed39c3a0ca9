/* Checkpoints: a resumed run has the bits of one that was not interrupted; refusals change nothing;
   directories keep the best. */
#include "dvt_test.h"
#if !defined(DEVTENSOR_NO_NN) && !defined(DEVTENSOR_NO_FILES) && !defined(DEVTENSOR_NO_FORMATS)
#include <stdio.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include <utime.h>

#define STEPS 6 /* of a run; a checkpoint is written after half of them */

typedef struct run {
    dvt_block *net;
    dvt_trainer *trainer;
    dvt_loader *loader;
    dvt_ctx_list ctxs;
} run;

/* A net with every kind of state: running statistics, dropout, momentum, schedule, shuffling. */
static run run_new(dvt_optimizer optimizer, int contexts, uint64_t seed) {
    run r;
    dvt_loader_desc desc;
    dvt_array *x = dvt_key_normal(dvt_key_new(1), 0, 1, DVT_SHAPE(24, 1, 6, 6), DVT_F32, dvt_cpu());
    dvt_array *y = dvt_key_randint(dvt_key_new(2), 0, 3, DVT_SHAPE(24), DVT_I32, dvt_cpu());
    memset(&desc, 0, sizeof desc);
    desc.batch_size = 8;
    desc.shuffle = true;
    desc.seed = 5;
    r.ctxs = contexts == 2 ? DVT_CONTEXTS(dvt_gpu(0), dvt_gpu(1)) : DVT_CONTEXTS(dvt_cpu());
    dvt_seed(seed);
    r.net = dvt_nn_sequential();
    DVT_NN_ADD(r.net, dvt_nn_conv2d(4, 3, DVT_RELU), dvt_nn_batch_norm(), dvt_nn_flatten(),
               dvt_nn_dropout(0.3), dvt_nn_dense(3, DVT_IDENTITY));
    CHECK_INT(dvt_block_initialize(r.net, dvt_init_xavier(), r.ctxs), DVT_OK);
    r.trainer = dvt_trainer_new(dvt_block_collect_params(r.net, NULL), optimizer);
    r.loader = dvt_loader_new(dvt_dataset_arrays(x, y), &desc);
    return r;
}

static void run_steps(run *r, int n) {
    dvt_array *x, *y;
    while (n > 0 && dvt_error_code() == DVT_OK)
        while (n > 0) {
            dvt_array *xs[DVT_MAX_CONTEXTS], *ys[DVT_MAX_CONTEXTS], *loss = NULL;
            int k;
            DVT_SCOPED;
            if (!dvt_loader_next(r->loader, &x, &y))
                break;
            CHECK_INT(dvt_split_and_load(x, r->ctxs, xs), DVT_OK);
            CHECK_INT(dvt_split_and_load(y, r->ctxs, ys), DVT_OK);
            for (k = 0; k < r->ctxs.n; k++) {
                DVT_RECORD {
                    loss = dvt_loss_softmax_cross_entropy(dvt_block_forward(r->net, xs[k]), ys[k]);
                }
                CHECK_INT(dvt_backward(loss), DVT_OK);
            }
            CHECK_INT(dvt_trainer_step(r->trainer, 8), DVT_OK);
            n--;
        }
}

/* Returns a sum of the bits of all copies of all parameters. */
static uint64_t run_bits(const run *r) {
    dvt_params *params = dvt_block_collect_params(r->net, NULL);
    uint64_t sum = 0;
    int i, k;
    for (i = 0; i < dvt_params_len(params); i++)
        for (k = 0; k < r->ctxs.n; k++) {
            dvt_array *x = dvt_param_data(dvt_params_at(params, i), r->ctxs.ctx[k]);
            uint32_t word[256];
            int64_t n = dvt_size(x), j;
            CHECK(n <= 256 && dvt_dtype_of(x) == DVT_F32);
            CHECK_INT(dvt_to_host(x, word, dvt_nbytes(x)), DVT_OK);
            for (j = 0; j < n; j++)
                sum = sum * 1099511628211u + word[j];
        }
    return sum;
}

static dvt_checkpoint described(const run *r) {
    dvt_checkpoint c;
    memset(&c, 0, sizeof c);
    c.net = r->net;
    c.trainer = r->trainer;
    c.loader = r->loader;
    return c;
}

static dvt_optimizer with_schedule(dvt_optimizer optimizer) {
    optimizer.schedule = dvt_schedule_cosine(10, 0.001);
    return optimizer;
}

static void resumes(dvt_optimizer optimizer, int contexts) {
    const char *path = "checkpoint.safetensors";
    run whole = run_new(optimizer, contexts, 7), first, second;
    dvt_checkpoint c;
    uint64_t wanted;
    run_steps(&whole, STEPS);
    wanted = run_bits(&whole);
    first = run_new(optimizer, contexts, 7);
    run_steps(&first, STEPS / 2);
    c = described(&first);
    c.epoch = 4;
    c.metric = 0.25;
    CHECK_INT(dvt_checkpoint_save(&c, path), DVT_OK);
    second = run_new(optimizer, contexts, 99); /* other initial values and random numbers */
    run_steps(&second, 1);
    c = described(&second);
    CHECK_INT(dvt_checkpoint_load(&c, path), DVT_OK);
    CHECK_INT(c.epoch, 4);
    CHECK_INT(c.step, STEPS / 2);
    CHECK(c.metric == 0.25);
    CHECK_INT(dvt_trainer_steps(second.trainer), STEPS / 2);
    CHECK(dvt_trainer_learning_rate(second.trainer) == dvt_trainer_learning_rate(first.trainer));
    CHECK(run_bits(&second) == run_bits(&first));
    run_steps(&second, STEPS - STEPS / 2);
    CHECK(run_bits(&second) == wanted);
    remove(path);
}

DVT_TEST(checkpoint_resumes_with_the_same_bits) {
    dvt_optimizer sgd = dvt_optimizer_sgd(0.1);
    sgd.momentum = 0.9;
    resumes(with_schedule(sgd), 1);
    resumes(dvt_optimizer_adam(0.01), 1);
    resumes(dvt_optimizer_adamw(0.01, 0.1), 1);
    resumes(dvt_optimizer_rmsprop(0.01), 1);
    resumes(dvt_optimizer_adagrad(0.01), 1);
}

DVT_TEST(checkpoint_resumes_on_two_contexts) {
    dvt_optimizer sgd = dvt_optimizer_sgd(0.1);
    sgd.momentum = 0.9;
    CHECK_INT(dvt_set_virtual_gpus(2, 0), DVT_OK);
    DVT_SCOPE {
        resumes(with_schedule(sgd), 2);
        resumes(dvt_optimizer_adam(0.01), 2);
    }
    CHECK_INT(dvt_set_virtual_gpus(0, 0), DVT_OK);
}

/* The net need not be initialized, and may go to other contexts. */
DVT_TEST(checkpoint_moves_to_other_contexts) {
    const char *path = "checkpoint.safetensors";
    CHECK_INT(dvt_set_virtual_gpus(2, 0), DVT_OK);
    DVT_SCOPE {
        run two = run_new(dvt_optimizer_adam(0.01), 2, 1), one;
        dvt_checkpoint c = described(&two);
        run_steps(&two, 2);
        CHECK_INT(dvt_checkpoint_save(&c, path), DVT_OK);
        one = run_new(dvt_optimizer_adam(0.01), 1, 2);
        c = described(&one);
        CHECK_INT(dvt_checkpoint_load(&c, path), DVT_OK);
        CHECK_INT(dvt_trainer_steps(one.trainer), 2);
        CHECK(dvt_array_equal(
            dvt_param_data(dvt_block_param(dvt_block_at(one.net, 0), "weight"), dvt_cpu()),
            dvt_copyto(
                dvt_param_data(dvt_block_param(dvt_block_at(two.net, 0), "weight"), dvt_gpu(1)),
                dvt_cpu()),
            DVT_NAN_DIFFERS));
        run_steps(&one, 1);
    }
    CHECK_INT(dvt_set_virtual_gpus(0, 0), DVT_OK);
    remove(path);
}

DVT_TEST(checkpoint_of_own_arrays_and_numbers) {
    static const char *const array_name[] = {"average"}, *const number_name[] = {"best", "bad"};
    const char *path = "checkpoint.safetensors";
    dvt_array *x = DVT_ARRAY(float, DVT_SHAPE(3), dvt_cpu(), 1, 2, 3);
    double number[] = {0.1, -1.0 / 0.0};
    dvt_checkpoint c;
    memset(&c, 0, sizeof c);
    c.arrays = &x;
    c.array_names = array_name;
    c.n_arrays = 1;
    c.numbers = number;
    c.number_names = number_name;
    c.n_numbers = 2;
    c.step = 12;
    CHECK_INT(dvt_checkpoint_save(&c, path), DVT_OK);
    dvt_fill(x, 0);
    number[0] = number[1] = 0;
    c.step = 0;
    CHECK_INT(dvt_checkpoint_load(&c, path), DVT_OK);
    CHECK_VALUES(x, 0, 1, 2, 3);
    CHECK(number[0] == 0.1 && number[1] == -1.0 / 0.0);
    CHECK_INT(c.step, 12);
    c.array_names = number_name; /* another name, and a missing one */
    CHECK_ERROR(dvt_checkpoint_load(&c, path) == DVT_OK ? x : NULL, DVT_ERR_NAME);
    CHECK_INT(c.step, 12);
    remove(path);
}

DVT_TEST(checkpoint_refuses_another_run) {
    const char *path = "checkpoint.safetensors";
    run r = run_new(dvt_optimizer_adam(0.01), 1, 3), other;
    dvt_checkpoint c = described(&r);
    dvt_optimizer changed = dvt_optimizer_adam(0.01);
    uint64_t before;
    run_steps(&r, 2);
    CHECK_INT(dvt_checkpoint_save(&c, path), DVT_OK);
    /* another optimizer, another setting, another net; nothing changes */
    other = run_new(dvt_optimizer_sgd(0.1), 1, 4);
    run_steps(&other, 1);
    before = run_bits(&other);
    c = described(&other);
    CHECK_ERROR(dvt_checkpoint_load(&c, path) == DVT_OK ? r.net : NULL, DVT_ERR_VALUE);
    CHECK(run_bits(&other) == before && dvt_trainer_steps(other.trainer) == 1);
    changed.beta1 = 0.8;
    other = run_new(changed, 1, 4);
    c = described(&other);
    CHECK_INT(dvt_checkpoint_load(&c, path), DVT_ERR_VALUE);
    CHECK(strstr(dvt_error(), "does not fit: optimizer.beta1 is 0.9, here 0.8; load") != NULL);
    dvt_clear_error();
    c.other_settings = true;
    CHECK_INT(dvt_checkpoint_load(&c, path), DVT_OK);
    c.net = dvt_nn_dense(3, DVT_IDENTITY);
    CHECK_INT(dvt_block_initialize(c.net, dvt_init_xavier(), DVT_CONTEXTS(dvt_cpu())), DVT_OK);
    c.trainer = NULL;
    c.loader = NULL;
    CHECK_INT(dvt_checkpoint_load(&c, path), DVT_ERR_NAME);
    CHECK(strstr(dvt_error(), "net.weight is missing") != NULL);
    CHECK(strstr(dvt_error(), "net.0.weight is not in the net") != NULL);
    dvt_clear_error();
    CHECK_INT(dvt_block_load(r.net, path, DVT_CONTEXTS(dvt_cpu())), DVT_ERR_NAME);
    CHECK(strstr(dvt_error(), "is a checkpoint: call dvt_checkpoint_load, or map net.*") != NULL);
    dvt_clear_error();
    CHECK_INT(dvt_checkpoint_load(NULL, path), DVT_ERR_NULL_ARGUMENT);
    dvt_clear_error();
    CHECK_INT(dvt_checkpoint_load(&c, "no_such.safetensors"), DVT_ERR_IO);
    dvt_clear_error();
    remove(path);
}

/* Every cut and every changed byte is refused, or, in a text that nobody compares, changes nothing
   that is restored. */
DVT_TEST(checkpoint_refuses_damaged_files) {
    const char *path = "checkpoint.safetensors";
    dvt_block *net = dvt_nn_dense(2, DVT_IDENTITY);
    dvt_checkpoint c;
    static unsigned char file[8192];
    size_t n, i;
    FILE *f;
    memset(&c, 0, sizeof c);
    c.net = net;
    c.no_random = true;
    CHECK_INT(dvt_block_initialize(net, dvt_init_xavier(), DVT_CONTEXTS(dvt_cpu())), DVT_OK);
    dvt_block_forward(net, dvt_ones(DVT_SHAPE(1, 3), DVT_F32, dvt_cpu()));
    CHECK_INT(dvt_checkpoint_save(&c, path), DVT_OK);
    f = fopen(path, "rb");
    CHECK(f != NULL);
    n = f ? fread(file, 1, sizeof file, f) : 0;
    if (f)
        fclose(f);
    CHECK(n > 100 && n < sizeof file);
    dvt_set_log_level(DVT_LOG_OFF);
    for (i = 0; i < n; i += 7) {
        file[i] ^= 0x11;
        f = fopen(path, "wb");
        CHECK(f && fwrite(file, 1, n, f) == n);
        if (f)
            fclose(f);
        file[i] ^= 0x11;
        CHECK(dvt_checkpoint_load(&c, path) != DVT_OK);
        dvt_clear_error();
        f = fopen(path, "wb");
        CHECK(f && fwrite(file, 1, i, f) == i);
        if (f)
            fclose(f);
        CHECK(dvt_checkpoint_load(&c, path) != DVT_OK);
        dvt_clear_error();
    }
    dvt_set_log_level(DVT_LOG_WARNING);
    remove(path);
}

/* A directory that does not exist is created with its parents. */
DVT_TEST(checkpoint_directories_are_created) {
    char path[200];
    dvt_checkpoint c;
    memset(&c, 0, sizeof c);
    c.step = 7;
    CHECK_INT(dvt_checkpoint_keep_best(&c, "new_runs/first", 1, DVT_LARGEST), DVT_OK);
    CHECK(dvt_checkpoint_latest("new_runs/first", path, sizeof path));
    CHECK_STR(path, "new_runs/first/checkpoint-000000007.safetensors");
    CHECK(dvt_checkpoint_keep_best(&c, path, 1, DVT_LARGEST) != DVT_OK); /* it is a file */
    CHECK_INT(dvt_error_code(), DVT_ERR_IO);
    dvt_clear_error();
    CHECK(remove(path) == 0);
    CHECK(rmdir("new_runs/first") == 0 && rmdir("new_runs") == 0);
}

/* Loading sets the step, and later checkpoints of a resumed run have the steps of its trainer. */
DVT_TEST(checkpoint_directories_of_a_resumed_run) {
    const char *first = "./checkpoint-000000002.safetensors";
    const char *second = "./checkpoint-000000003.safetensors";
    const char *own = "./checkpoint-000000050.safetensors";
    run r = run_new(dvt_optimizer_adam(0.01), 1, 7);
    dvt_checkpoint c = described(&r);
    char path[200];
    run_steps(&r, 2);
    c.metric = 0.9;
    CHECK_INT(dvt_checkpoint_keep_best(&c, ".", 2, DVT_LARGEST), DVT_OK);
    CHECK_INT(dvt_checkpoint_load(&c, first), DVT_OK);
    CHECK_INT(c.step, 2);
    run_steps(&r, 1);
    c.metric = 0.1;
    CHECK_INT(dvt_checkpoint_keep_best(&c, ".", 2, DVT_LARGEST), DVT_OK);
    CHECK(dvt_checkpoint_latest(".", path, sizeof path));
    CHECK_STR(path, second);
    CHECK_INT(dvt_checkpoint_load(&c, first), DVT_OK);
    CHECK_CLOSE(c.metric, 0.9, 0);
    c.step = 50; /* the caller's own steps */
    CHECK_INT(dvt_checkpoint_save(&c, own), DVT_OK);
    CHECK_INT(dvt_checkpoint_load(&c, own), DVT_OK);
    CHECK_INT(c.step, 50);
    CHECK_INT(c.loaded_step, 0);
    CHECK(remove(first) == 0 && remove(second) == 0 && remove(own) == 0);
}

static int warnings;

static void count_warnings(void *user, dvt_log_level level, const char *message) {
    (void)user;
    warnings += level == DVT_LOG_WARNING && strstr(message, "is damaged") != NULL;
}

DVT_TEST(checkpoint_directories_keep_the_best) {
    static const double metric[] = {0.5, 0.9, 0.7, 0.6, 0.1};
    static const char *const kept[] = {"./checkpoint-000000002.safetensors",
                                       "./checkpoint-000000003.safetensors",
                                       "./checkpoint-000000005.safetensors"};
    char path[200];
    dvt_checkpoint c;
    FILE *f;
    int i;
    memset(&c, 0, sizeof c);
    for (i = 0; i < 5; i++) {
        c.step = i + 1;
        c.metric = metric[i];
        CHECK_INT(dvt_checkpoint_keep_best(&c, ".", 2, DVT_LARGEST), DVT_OK);
    }
    for (i = 0; i < 3; i++) {
        f = fopen(kept[i], "rb");
        CHECK(f != NULL);
        if (f)
            fclose(f);
    }
    CHECK((f = fopen("./checkpoint-000000001.safetensors", "rb")) == NULL);
    CHECK((f = fopen("./checkpoint-000000004.safetensors", "rb")) == NULL);
    CHECK(dvt_checkpoint_latest(".", path, sizeof path));
    CHECK_STR(path, kept[2]);
    /* a damaged newest file is left out */
    f = fopen(kept[2], "wb");
    CHECK(f && fwrite("cut", 1, 3, f) == 3);
    if (f)
        fclose(f);
    warnings = 0;
    dvt_set_logger(count_warnings, NULL);
    CHECK(dvt_checkpoint_latest(".", path, sizeof path));
    dvt_set_logger(NULL, NULL);
    CHECK_INT(warnings, 1);
    CHECK_STR(path, kept[1]);
    CHECK(!dvt_checkpoint_latest("no_such_directory", path, sizeof path));
    CHECK_INT(dvt_error_code(), DVT_OK);
    CHECK(!dvt_checkpoint_latest(".", path, 5));
    CHECK_INT(dvt_error_code(), DVT_ERR_RANGE);
    dvt_clear_error();
    for (i = 0; i < 3; i++)
        remove(kept[i]);
}

/* ---- what others do in the directory ---- */
static dvt_status keep_step(const char *folder, int64_t step, int n) {
    dvt_checkpoint c;
    memset(&c, 0, sizeof c);
    c.step = step;
    return dvt_checkpoint_keep_best(&c, folder, n, DVT_LARGEST);
}

/* Creates a temporary file of the process, changed `age` seconds ago, and keeps the best. Returns
   whether the file stays. */
static bool temporary_stays(const char *folder, long long process, int age) {
    char path[200];
    struct utimbuf times;
    FILE *f;
    bool stays;
    snprintf(path, sizeof path, "%s/.devtensor-%lld-123456.tmp", folder, process);
    f = fopen(path, "wb");
    CHECK(f && fclose(f) == 0);
    times.actime = times.modtime = time(NULL) - age;
    CHECK(utime(path, &times) == 0);
    CHECK_INT(keep_step(folder, 1, 1), DVT_OK);
    stays = access(path, F_OK) == 0;
    remove(path);
    return stays;
}

DVT_TEST(checkpoint_directories_keep_temporary_files_in_use) {
    CHECK_INT(keep_step("shared_run", 1, 1), DVT_OK);
    CHECK(temporary_stays("shared_run", (long long)getpid(), 0));
    CHECK(temporary_stays("shared_run", (long long)getppid(), 100));
    CHECK(!temporary_stays("shared_run", 2147483647, 0));              /* no such process */
    CHECK(!temporary_stays("shared_run", (long long)getpid(), 90000)); /* of an older process */
    CHECK(remove("shared_run/checkpoint-000000001.safetensors") == 0);
    CHECK(rmdir("shared_run") == 0);
}

/* "" is the current directory. */
DVT_TEST(checkpoint_directories_of_any_path) {
    char folder[2000] = "long_run", path[2100];
    int i;
    for (i = 0; i < 16; i++)
        snprintf(folder + strlen(folder), 101, "/%099d", i);
    for (i = 1; i <= 3; i++)
        CHECK_INT(keep_step(folder, i, 1), DVT_OK);
    if (CHECK(dvt_checkpoint_latest(folder, path, sizeof path))) {
        CHECK_STR(path + strlen(folder), "/checkpoint-000000003.safetensors");
        CHECK(remove(path) == 0);
        memcpy(path + strlen(folder), "/checkpoint-000000002", 21);
        CHECK(access(path, F_OK) != 0); /* keep_best has deleted it */
    }
    for (i = 0; i <= 16; i++, *(strrchr(folder, '/') ? strrchr(folder, '/') : folder) = 0)
        CHECK(rmdir(folder) == 0);
    CHECK_INT(keep_step("", 4, 1), DVT_OK);
    CHECK(dvt_checkpoint_latest("", path, sizeof path));
    CHECK_STR(path, "./checkpoint-000000004.safetensors");
    CHECK(remove(path) == 0);
}

static char unreadable_warning[700];

static void note_warning(void *user, dvt_log_level level, const char *message) {
    (void)user;
    if (level == DVT_LOG_WARNING)
        snprintf(unreadable_warning, sizeof unreadable_warning, "%s", message);
}

/* Only a missing directory has no checkpoints without an error. */
DVT_TEST(checkpoint_directories_that_cannot_be_read) {
    const char *first = "hidden_run/checkpoint-000000001.safetensors";
    const char *second = "hidden_run/checkpoint-000000002.safetensors";
    char path[200] = "";
    const uid_t user = geteuid();
    FILE *f = fopen("no_directory", "wb");
    CHECK(f && fclose(f) == 0);
    CHECK_ERROR(dvt_checkpoint_latest("no_directory", path, sizeof path), DVT_ERR_IO);
    CHECK(remove("no_directory") == 0);
    CHECK_INT(keep_step("hidden_run", 1, 2), DVT_OK);
    CHECK_INT(keep_step("hidden_run", 2, 2), DVT_OK);
    CHECK(chmod("hidden_run", 0755) == 0 && chmod(first, 0644) == 0 && chmod(second, 0) == 0);
    if (user == 0)
        CHECK(seteuid(65534) == 0);
    dvt_set_logger(note_warning, NULL);
    CHECK(dvt_checkpoint_latest("hidden_run", path, sizeof path));
    dvt_set_logger(NULL, NULL);
    CHECK_STR(path, first);
    CHECK(strstr(unreadable_warning, "Permission denied") != NULL);
    CHECK(seteuid(user) == 0 && chmod(first, 0) == 0 && (user || seteuid(65534) == 0));
    CHECK_ERROR(dvt_checkpoint_latest("hidden_run", path, sizeof path), DVT_ERR_IO);
    CHECK(seteuid(user) == 0 && chmod("hidden_run", 0) == 0 && (user || seteuid(65534) == 0));
    CHECK_ERROR(dvt_checkpoint_latest("hidden_run", path, sizeof path), DVT_ERR_IO);
    CHECK(seteuid(user) == 0 && chmod("hidden_run", 0755) == 0);
    CHECK(remove(first) == 0 && remove(second) == 0 && rmdir("hidden_run") == 0);
}
#endif
