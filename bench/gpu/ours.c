/* Measures the rows of rows.txt on gpu(0), next to cuBLAS, cuBLASLt and the copy engine in the same
   process. Appends a JSON line for each participant of each row.

       ours ROWS OUT [--row TEXT] [--only ROW] [--once | --prepare] [--alone] [--samples N]
                     [--limit SECONDS];
       ours first          process start to the loss of the first step of LeNet;
       ours gpu            which GPU.

   --row: rows that contain the text; --only: one row. --once: one call each in this process, for
   profilers. --prepare: the same, with the comparison, which fills the kernel cache. --alone:
   without peers.

   A row is measured first and compared afterwards (check.h), because a comparison of large arrays
   takes longer: its line is appended twice, and the last one counts. A child measures (measure.h):
   when a row of ours fails, hangs or loses the GPU, its line says so, and another child continues
   with the next row. */
#define DEVTENSOR_IMPLEMENTATION
#include "devtensor.h"
#include "bench/gpu/measure.h"
#include "bench/gpu/training.h"
#include <signal.h>
#include <sys/mman.h>
#ifdef __linux__
#include <sys/prctl.h>
#endif
#include <sys/wait.h>
#include <unistd.h>

#define MOST_ROWS 128

static product task; /* of cuBLAS and cuBLASLt */

/* ---- calls ---- */
static bool call_ours(row *r) {
    DVT_SCOPE {
        must(compute(r, r->in, false) != NULL, r->text);
    }
    return true;
}

static bool call_engine(row *r) {
    return returned(driver.cuMemcpyDtoDAsync_v2(device_block[1], device_block[0],
                                                (size_t)(r->bytes / 2),
                                                dvt_cuda_stream(dvt_gpu(0))),
                    "cuMemcpyDtoDAsync_v2");
}

static bool call_cublas(row *r) {
    (void)r;
    return returned(product_cublas(&task), "cublasGemmEx");
}

static bool call_cublaslt(row *r) {
    (void)r;
    return returned(product_cublaslt(&task, dvt_cuda_stream(dvt_gpu(0))), "cublasLtMatmul");
}

/* ---- preparing a row ---- */
static void fill_host(row *r) {
    fill_host_row(r, !set.alone && !set.once && !set.prepare);
}

/* ---- comparing ---- */
/* Fills the result with NaN before the call that is compared: an element that is not written shows.
   A new result takes the memory of the array that was just released. */
static row_error checked(row *r, participant *p) {
    row_error error;
    DVT_SCOPE {
        dvt_array *y = p->result, *nan;
        if (!y)
            y = compute(r, r->in, true);
        must(y != NULL, r->text);
        DVT_SCOPE {
            nan = dvt_full(dvt_shape_of(y), NAN, dvt_dtype_of(y), dvt_gpu(0));
            if (p->result)
                dvt_copy_into(p->result, nan);
        }
        if (p->result && p->call(r))
            must(dvt_wait(p->result) == DVT_OK, r->text);
        else if (!p->result)
            y = compute(r, r->in, true);
        must(y && dvt_wait(y) == DVT_OK, r->text);
        error = is_op(r, "uniform") || is_op(r, "normal") ? random_error(r, y) : array_error(r, y);
        must(dvt_error_code() == DVT_OK, "the comparison");
    }
    return error;
}

static row_error check_transfer(row *r, participant *p) {
    (void)p;
    return transfer_error(r);
}

static row_error check_training(row *r, participant *p) {
    (void)p;
    return lenet_error(argument(r, "batch", 256));
}

/* The families of rows, in the order of rows.txt: how inputs are made, what is called. */
static const struct family {
    const char *ops;
    void (*fill)(row *r);
    bool (*call)(row *r);
    clock_kind clock;
    check_call *check; /* NULL: there is nothing to compare */
} families[] = {
    {" copy add where exp relu_gradient chain uniform normal ", fill_vectors, call_ours, EVENTS,
     checked},
    {" sum softmax layer_norm transpose sort ", fill_matrix, call_ours, EVENTS, checked},
    {" mm ", fill_product, call_ours, EVENTS, checked},
    {" conv ", fill_conv, call_ours, EVENTS, checked},
    {" dispatch ", fill_host, call_dispatch, QUEUED, checked},
    {" allocate ", fill_host, call_allocate, QUEUED, NULL},
    {" upload download ", fill_host, call_transfer, WALL, check_transfer},
    {" lenet_resident ", NULL, resident_step, EVENTS, check_training},
    {" lenet_fed ", NULL, fed_step, WALL, check_training},
    {" lenet_epoch ", NULL, whole_epoch, WALL, check_training},
    {" mnist_099 ", NULL, until_099, WALL, check_training},
};

static bool names(const char *list, const char *word) {
    char padded[140], spaced[40];
    snprintf(padded, sizeof padded, " %s ", list);
    snprintf(spaced, sizeof spaced, " %s ", word);
    return strstr(padded, spaced) != NULL;
}

static void describe_task(const row *r) {
    memset(&task, 0, sizeof task);
    task.m = (int)argument(r, "m", 1);
    task.n = (int)argument(r, "n", 1);
    task.k = (int)argument(r, "k", 1);
    task.ta = argument(r, "ta", 0) != 0;
    task.tb = argument(r, "tb", 0) != 0;
    task.type = has_dtype(r, "f16") ? TYPE_F16 : has_dtype(r, "bf16") ? TYPE_BF16 : TYPE_F32;
    task.compute = has_dtype(r, "tf32") ? COMPUTE_TF32 : COMPUTE_F32;
    task.a = dvt_cuda_address(r->in[0]);
    task.b = dvt_cuda_address(r->in[1]);
    task.c = dvt_cuda_address(r->twin);
}

static int join(participant *all, int n, const char *name, bool (*call)(row *), clock_kind clock,
                dvt_array *result) {
    memset(&all[n], 0, sizeof all[n]);
    all[n].name = name;
    all[n].call = call;
    all[n].clock = clock;
    all[n].result = result;
    all[n].error.whole = all[n].error.worst = all[n].error.spot = -1;
    return n + 1;
}

/* Adds the peers that are here; a missing one gets a line. */
static int join_peers(participant *all, int n, row *r) {
    bool lt = names(r->peers, "cublaslt");
    if (names(r->peers, "copy")) {
        reserve_blocks((size_t)(r->bytes / 2));
        n = join(all, n, "copy", call_engine, EVENTS, NULL);
    }
    if (names(r->peers, "cumemalloc"))
        n = join(all, n, "cumemalloc", call_cumemalloc, QUEUED, NULL);
    if (names(r->peers, "pageable")) {
        n = join(all, n, "pageable", call_pageable, WALL, NULL);
        n = join(all, n, "pinned", call_pinned, WALL, NULL);
    }
    if (names(r->peers, "cublas") || lt)
        describe_task(r);
    if (names(r->peers, "cublas")) {
        if (cublas.handle || cublas_open(dvt_cuda_stream(dvt_gpu(0))))
            n = join(all, n, "cublas", call_cublas, EVENTS, r->twin);
        else
            say_failed(r->text, "cublas", "not found, or it did not start");
    }
    if (lt) {
        if ((cublaslt.handle || cublaslt_open()) && product_describe(&task))
            n = join(all, n, "cublaslt", call_cublaslt, EVENTS, r->twin);
        else
            say_failed(r->text, "cublaslt", "not found, or without an algorithm for the row");
    }
    return n;
}

static void release_row(row *r) {
    int i;
    for (i = 0; i < 4; i++)
        dvt_release(r->in[i]);
    dvt_release(r->out);
    dvt_release(r->twin);
    dvt_release(r->trainer);
    dvt_release(r->net);
    dvt_release(r->train);
    dvt_release(r->test);
    release_blocks();
    dvt_trim_memory(dvt_gpu(0));
}

static void run_row(row *r) {
    participant all[4];
    const struct family *f = families, *end = families + sizeof families / sizeof *families;
    int n;
    while (f < end && !names(f->ops, r->op))
        f++;
    if (f == end) {
        say_failed(r->text, "devtensor", "no such operation");
        return;
    }
    dvt_allow_tf32(has_dtype(r, "tf32"));
    dvt_allow_tf32x3(argument(r, "parts", 1) == 2);
    DVT_SCOPE {
        if (f->fill)
            f->fill(r);
        else if (!fill_training(r)) {
            say_failed(r->text, "devtensor", "the data are not here");
            f = NULL;
        }
        if (f) {
            n = join(all, 0, "devtensor", f->call, f->clock, r->out);
            if (r->train && (set.prepare || !set.once))
                one_batch(r);
            if (set.prepare && f->check)
                f->check(r, &all[0]);
            if ((set.once || set.prepare) && !r->train)
                f->call(r);
            if (!set.once && !set.prepare) {
                if (!set.alone)
                    n = join_peers(all, n, r);
                measure(r, all, n, f->check);
            }
            must(dvt_wait_all() == DVT_OK, r->text);
        }
    }
    release_row(r);
}

/* ---- rows and processes ---- */
static int read_rows(row *rows) {
    char line[400];
    FILE *in = fopen(set.rows, "r");
    int n = 0;
    must(in != NULL, set.rows);
    while (fgets(line, sizeof line, in) && n < MOST_ROWS) {
        row *r = &rows[n];
        memset(r, 0, sizeof *r);
        if (sscanf(line, "%199[^|#\n] | %99[^|] | %lf | %31[^\n]", r->text, r->peers, &r->bound,
                   r->floor) < 4 ||
            sscanf(r->text, "%31s", r->op) != 1)
            continue;
        while (r->text[strlen(r->text) - 1] == ' ')
            r->text[strlen(r->text) - 1] = 0;
        while (r->peers[0] && r->peers[strlen(r->peers) - 1] == ' ')
            r->peers[strlen(r->peers) - 1] = 0;
        if (set.only ? strcmp(r->text, set.only) == 0 : strstr(r->text, set.part) != NULL)
            n++;
    }
    fclose(in);
    return n;
}

/* Tells how many kernels were compiled: none, when a pack holds all of them. */
static void say_kernels(void) {
    char line[200];
    dvt_jit_stats jit = dvt_get_jit_stats();
    snprintf(line, sizeof line,
             "{\"kind\": \"kernels\", \"step\": \"rows\", \"compiled\": %lld, \"cached\": %lld, "
             "\"seconds\": %.3g}\n",
             (long long)jit.compiled, (long long)jit.from_disk, jit.compile_seconds);
    append(line);
}

static int child(row *rows, int n, int from, volatile int *at) {
#ifdef __linux__
    prctl(PR_SET_PDEATHSIG, SIGKILL); /* a call that is cut leaves nobody on the GPU */
#endif
    if (dvt_num_gpus() == 0) {
        fprintf(stderr, "ours: no GPU: %s\n", dvt_gpu_reason());
        return 2;
    }
    must(driver_open(), "the driver's functions for peers");
    need(driver.cuEventCreate(&event[0], 0), "cuEventCreate");
    need(driver.cuEventCreate(&event[1], 0), "cuEventCreate");
    dvt_seed(1);
    for (*at = from; *at < n; ++*at) {
        alarm((unsigned)set.limit);
        run_row(&rows[*at]);
        printf("%s\n", rows[*at].text);
        fflush(stdout);
    }
    alarm(0);
    say_kernels();
    return 0;
}

/* Copies what comes to stderr, and keeps its end. */
static void read_all(int from, char *end, size_t size) {
    char piece[400];
    ssize_t got;
    while ((got = read(from, piece, sizeof piece)) > 0) {
        size_t n = (size_t)got < size ? (size_t)got : size - 1, had = strlen(end);
        size_t keep = had + n < size ? had : size - 1 - n;
        if (write(2, piece, (size_t)got) < 0)
            perror("ours");
        memmove(end, end + had - keep, keep);
        memcpy(end + keep, piece + (size_t)got - n, n);
        end[keep + n] = 0;
    }
}

/* Runs children until all rows have a line. Returns the exit code. */
static int parent(void) {
    static row rows[MOST_ROWS];
    int n = read_rows(rows), from = 0, status = 0, failures = 0;
    volatile int *at = (volatile int *)mmap(NULL, sizeof *at, PROT_READ | PROT_WRITE,
                                            MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    must(n > 0, "reading rows");
    must((void *)at != MAP_FAILED, "mmap");
    if (set.once || set.prepare)
        return child(rows, n, 0, at);
    while (from < n) {
        char why[80], said[400] = "";
        int pipes[2];
        pid_t pid;
        must(pipe(pipes) == 0, "pipe");
        *at = from;
        pid = fork();
        must(pid >= 0, "fork");
        if (pid == 0) {
            dup2(pipes[1], 2); /* the reason of a failure */
            close(pipes[0]);
            close(pipes[1]);
            _exit(child(rows, n, from, at));
        }
        close(pipes[1]);
        read_all(pipes[0], said, sizeof said);
        close(pipes[0]);
        must(waitpid(pid, &status, 0) == pid, "waitpid");
        if (status == 0)
            return failures ? 1 : 0;
        if (WIFEXITED(status) && WEXITSTATUS(status) == 2)
            return 2;
        snprintf(why, sizeof why, "%s %d",
                 WIFSIGNALED(status)
                     ? WTERMSIG(status) == SIGALRM ? "exceeded its time, signal" : "ended by signal"
                     : "exit code",
                 WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
        say_failed(rows[*at].text, "devtensor", WIFEXITED(status) && said[0] ? said : why);
        failures++;
        from = *at + 1;
    }
    return 1;
}

/* Prints the loss of one step of LeNet. */
static int first(void) {
    row r;
    memset(&r, 0, sizeof r);
    snprintf(r.text, sizeof r.text, "lenet_fed batch=256");
    snprintf(r.op, sizeof r.op, "lenet_fed");
    must(fill_training(&r), "the step");
    printf("loss %g",
           train_batch(r.net, r.trainer, DVT_CONTEXTS(dvt_gpu(0)), r.in[0], r.in[1], 256));
    printf(", %lld kernels compiled, %lld of the cache\n", (long long)dvt_get_jit_stats().compiled,
           (long long)dvt_get_jit_stats().from_disk);
    return 0;
}

static int which_gpu(void) {
    dvt_device_info info;
    if (dvt_num_gpus() == 0) {
        fprintf(stderr, "%s\n", dvt_gpu_reason());
        return 1;
    }
    must(dvt_device_query(dvt_gpu(0), &info) == DVT_OK, "dvt_device_query");
    if (info.driver_version == 0) {
        fprintf(stderr, "gpu(0) is a virtual GPU; unset DEVTENSOR_VIRTUAL_GPUS\n");
        return 1;
    }
    printf("%s, driver for CUDA %d.%d, %d GiB\n", info.name, info.driver_version / 1000,
           info.driver_version % 1000 / 10, (int)(info.memory_total >> 30));
    return 0;
}

int main(int argc, char **argv) {
    int i;
    if (argc == 2 && strcmp(argv[1], "gpu") == 0)
        return which_gpu();
    if (argc == 2 && strcmp(argv[1], "first") == 0)
        return first();
    for (i = 1; i < argc; i++) {
        bool value = i + 1 < argc;
        if (strcmp(argv[i], "--once") == 0)
            set.once = true;
        else if (strcmp(argv[i], "--prepare") == 0)
            set.prepare = true;
        else if (strcmp(argv[i], "--alone") == 0)
            set.alone = true;
        else if (strcmp(argv[i], "--row") == 0 && value)
            set.part = argv[++i];
        else if (strcmp(argv[i], "--only") == 0 && value)
            set.only = argv[++i];
        else if (strcmp(argv[i], "--samples") == 0 && value)
            set.samples = atoi(argv[++i]);
        else if (strcmp(argv[i], "--limit") == 0 && value)
            set.limit = atoi(argv[++i]);
        else if (!set.rows)
            set.rows = argv[i];
        else
            set.out = argv[i];
    }
    if (!set.rows || !set.out || set.samples < 1 || set.samples > MOST_SAMPLES) {
        fprintf(stderr,
                "usage: ours ROWS OUT [--row TEXT] [--only ROW] [--once | --prepare] [--alone] "
                "[--samples 1 to %d] [--limit S]\n       ours first\n       ours gpu\n",
                MOST_SAMPLES);
        return 2;
    }
    return parent();
}
