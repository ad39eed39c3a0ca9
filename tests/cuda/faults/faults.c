/* Makes every call to the driver and to NVRTC fail once, in a process of its own, while the
   scenario runs. --every N: the first two calls of each function, then every Nth. A prime N
   does not follow a period of the scenario.

   usage: faults [--short] [--every N] [--step N | --steps N] [--only NAME@NTH=CODE] FUNCTION...

   There are two kinds of failure. A *passing* failure affects one call. The steps that see it end
   with an error that reports it, or recover with the right results. Afterwards the whole scenario
   has the right results, and nothing is leaked. A *lasting* failure (a negative code) ends the
   context: calls for that GPU report that it is lost, and the other GPU works. */
#define _GNU_SOURCE
#include "scenario.h"
#include "../simulated.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define MOST_FUNCTIONS 80
#define MOST_STEPS 16

/* Results of a run without failures, for comparison. */
typedef struct reference {
    uint64_t hash[MOST_STEPS];
    uint64_t calls[MOST_FUNCTIONS];
    long long alive; /* blocks of host memory after the second run */
    sim_stats objects;
} reference;

static reference *known;
static simulated sim;
static const char *functions[MOST_FUNCTIONS];
static int n_functions;
static long long alive;
static const char *doing = "starting";
static int first_step, steps; /* of the scenario: the first, and one past the last */

/* ---- host memory ---- */
static void *count_alloc(void *user, size_t bytes) {
    void *block = malloc(bytes);
    (void)user;
    if (block) {
        __atomic_add_fetch(&alive, 1, __ATOMIC_SEQ_CST);
        memset(block, 0xa5, bytes < 256 ? bytes : 256);
    }
    return block;
}

static void *count_resize(void *user, void *block, size_t bytes) {
    (void)user;
    return realloc(block, bytes);
}

static void count_release(void *user, void *block) {
    (void)user;
    __atomic_add_fetch(&alive, -1, __ATOMIC_SEQ_CST);
    free(block);
}

/* ---- the child ---- */
static int wrong(const char *what, const char *detail) {
    printf("    %s: %s: %s\n", doing, what, detail);
    return 1;
}

static int is_nvrtc(const char *name) {
    return strncmp(name, "nvrtc", 5) == 0;
}

/* Checks the error sentence: function, arguments, and the driver's or our own reason. */
static int check_sentence(const step_result *r) {
    return strlen(r->error) > 20 && strstr(r->error, ": ")
               ? 0
               : wrong("an error without a sentence", r->error);
}

static int check_steps(const step_result *results, int first, int last, int may_fail) {
    int bad = 0, i;
    for (i = first; i < last; i++) {
        doing = scenario[i].name;
        if (results[i].code != DVT_OK)
            bad += may_fail ? check_sentence(&results[i]) : wrong("failed", results[i].error);
        else if (results[i].hash != known->hash[i])
            bad += wrong("no error, and another result", "");
    }
    return bad;
}

static int close_all(void) {
    dvt_status status;
    doing = "closing";
    dvt_trim_memory(dvt_cpu()); /* cached memory is not a leak */
    status = dvt_set_virtual_gpus(0, 0);
    if (status == DVT_OK)
        return 0;
    wrong("an error", dvt_error());
    dvt_clear_error();
    return 1;
}

/* Checks for leaks, except for what a failing call could not release. */
static int check_nothing_left(const char *name, int unseen) {
    int one = strstr(name, "Destroy") || strstr(name, "Free") || strstr(name, "Unload");
    sim_stats now;
    char text[200];
    long long left;
    sim.get_stats(&now);
    left = (long long)(now.streams + now.events + now.host_blocks + now.device_allocations);
    snprintf(
        text, sizeof text,
        "%lld blocks of host memory for %lld, streams %d, events %d, pinned %d, allocations %d",
        alive, known->alive, (int)now.streams, (int)now.events, (int)now.host_blocks,
        (int)now.device_allocations);
    doing = "closing";
    if (unseen && strcmp(name, "cuCtxPushCurrent_v2") == 0) /* closing without a context */
        return 0;
    return alive <= known->alive && left <= one && now.modules <= known->objects.modules
               ? 0
               : wrong("left behind", text);
}

/* Tells whether the GPU is lost. Every call must then report it. */
static int is_lost(int gpu, int *bad) {
    int lost = 0, i;
    for (i = 0; i < 4; i++)
        DVT_SCOPE {
            float one = 1;
            dvt_array *x =
                i == 0   ? dvt_full(DVT_SHAPE(3), 1, DVT_F32, dvt_gpu(gpu))
                : i == 1 ? dvt_from_host(&one, DVT_SHAPE(1), DVT_F32, dvt_gpu(gpu))
                : i == 2 ? dvt_copyto(dvt_ones(DVT_SHAPE(2), DVT_F32, dvt_cpu()), dvt_gpu(gpu))
                         : dvt_empty(DVT_SHAPE(5), DVT_U8, dvt_gpu(gpu));
            if (!x && dvt_error_code() != DVT_ERR_DEVICE_LOST)
                *bad += wrong("a lost GPU returns another error", dvt_error());
            if (i > 0 && (x == NULL) != lost)
                *bad += wrong("a GPU is lost for some calls only", dvt_error());
            lost = !x;
            dvt_clear_error();
        }
    return lost;
}

/* Receives a late error, because the first call after a failure may report it. */
static void hear(void) {
    int gpu;
    for (gpu = 0; gpu < 2; gpu++)
        DVT_SCOPE {
            dvt_array *x = dvt_full(DVT_SHAPE(2), 1, DVT_F32, dvt_gpu(gpu));
            if (x)
                dvt_wait(x);
            dvt_clear_error();
        }
}

/* Checks that the GPU without the lasting failure works, and that the other one stays lost. */
static int check_survivors(int expected) {
    step_result results[MOST_STEPS];
    int lost[2], bad = 0, gpu, last;
    doing = "after the failure";
    hear();
    for (gpu = 0; gpu < 2; gpu++)
        lost[gpu] = is_lost(gpu, &bad);
    if (lost[0] + lost[1] > expected)
        return bad + wrong("both GPUs are lost", "");
    for (gpu = 0; gpu < 2; gpu++) {
        if (lost[gpu])
            continue;
        scenario_gpu = gpu;
        last = steps < scenario_single ? steps : scenario_single;
        scenario_run(results, first_step, last);
        bad += check_steps(results, first_step, last, 0);
    }
    bad += close_all();
    hear(); /* the failing call may have been one of closing */
    for (gpu = 0; gpu < 2; gpu++)
        if (lost[gpu] && !is_lost(gpu, &bad))
            bad += wrong("closing has revived a lost GPU", "");
    return bad + close_all();
}

static void say_nothing(void *user, dvt_log_level level, const char *message) {
    (void)user;
    (void)level;
    if (getenv("FAULTS_LOG"))
        fprintf(stderr, "    log: %s\n", message);
}

static void begin(void) {
    dvt_allocator counting = {count_alloc, count_resize, count_release, NULL};
    alarm(60);
    dvt_set_allocator(&counting);
    dvt_set_logger(say_nothing, NULL);
    if (!simulated_find(&sim))
        exit(2);
}

/* Checks the state after a driver that does not start: no GPU, with a reason. */
static int check_no_gpu(void) {
    doing = "no GPU";
    return strlen(dvt_gpu_reason()) > 20 ? 0 : wrong("without a reason", dvt_gpu_reason());
}

static int child_fails(const char *name, int nth, int code) {
    step_result results[MOST_STEPS];
    int bad, unseen;
    begin();
    if (is_nvrtc(name))
        sim.nvrtc_fail(name, nth, code);
    else
        sim.fail(name, nth, code);
    if (dvt_num_gpus() == 0)
        return check_no_gpu();
    unseen = scenario_run(results, first_step, steps) == 0;
    bad = check_steps(results, first_step, steps, 1);
    if (code < 0) {
        if (unseen) /* the failing call may be one of closing */
            bad += close_all();
        return bad + check_survivors(1);
    }
    bad += close_all();
    sim.fail_clear();
    sim.nvrtc_reset();
    scenario_run(results, first_step, steps);
    bad += check_steps(results, first_step, steps, 0);
    bad += close_all();
    return bad + check_nothing_left(name, unseen);
}

static int child_counts(void) {
    step_result results[MOST_STEPS];
    int i, bad = 0;
    begin();
    if (dvt_num_gpus() != 2) {
        printf("    %s\n", dvt_gpu_reason());
        return 1;
    }
    scenario_run(results, first_step, steps);
    for (i = first_step; i < steps; i++) {
        doing = scenario[i].name;
        if (results[i].code != DVT_OK)
            bad += wrong("failed", results[i].error);
        known->hash[i] = results[i].hash;
    }
    bad += close_all();
    for (i = 0; i < n_functions; i++)
        known->calls[i] =
            is_nvrtc(functions[i]) ? sim.nvrtc_calls(functions[i]) : sim.calls(functions[i]);
    scenario_run(results, first_step, steps);
    bad += check_steps(results, first_step, steps, 0);
    bad += close_all();
    known->alive = alive;
    sim.get_stats(&known->objects);
    if (known->objects.streams || known->objects.events || known->objects.host_blocks ||
        known->objects.device_allocations) {
        sim.leaks();
        bad += wrong("left behind", "see above");
    }
    return bad;
}

/* ---- the parent ---- */
/* Runs one case in a child that exits normally, so that process exit is tested in every run. */
static int run_child(const char *name, int nth, int code) {
    pid_t child;
    int state = 0;
    fflush(NULL);
    child = fork();
    if (child == 0)
        exit(name ? child_fails(name, nth, code) != 0 : child_counts() != 0);
    if (child < 0 || waitpid(child, &state, 0) != child)
        return 1;
    if (WIFSIGNALED(state))
        printf("    %s\n", WTERMSIG(state) == SIGALRM ? "hangs" : strsignal(WTERMSIG(state)));
    if (state != 0 && name)
        printf("FAIL %s, call %d gives %d\n", name, nth, code);
    return state != 0;
}

static int allocates(const char *name) {
    return strcmp(name, "cuMemAlloc_v2") == 0 || strcmp(name, "cuMemHostAlloc") == 0 ||
           strcmp(name, "cuModuleLoadDataEx") == 0 || strcmp(name, "cuDevicePrimaryCtxRetain") == 0;
}

/* Returns the code of a passing failure, and of one that ends the current context; 0: the function
   has none. Where contexts change, the current context is not that of the GPU. */
static int passing(const char *name) {
    return is_nvrtc(name) ? 6 : allocates(name) ? 2 : 304;
}

static int lasting(const char *name) {
    return is_nvrtc(name) || strncmp(name, "cuGetError", 10) == 0 ||
                   strncmp(name, "cuCtx", 5) == 0 || strncmp(name, "cuDevice", 8) == 0 ||
                   strcmp(name, "cuInit") == 0 || strcmp(name, "cuDriverGetVersion") == 0
               ? 0
           : strstr(name, "Launch")                                ? -719
           : strstr(name, "Synchronize") || strstr(name, "Memcpy") ? -700
                                                                   : -999;
}

int main(int argc, char **argv) {
    int passed = 0, failed = 0, i, kind;
    char only[64] = "";
    int only_nth = 0, only_code = 0, every = 1;
    steps = scenario_steps;
    known = (reference *)mmap(NULL, sizeof *known, PROT_READ | PROT_WRITE,
                              MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    for (i = 1; i < argc; i++)
        if (strcmp(argv[i], "--short") == 0)
            scenario_short = 1;
        else if (strcmp(argv[i], "--every") == 0)
            every = atoi(argv[++i]);
        else if (strcmp(argv[i], "--steps") == 0)
            steps = atoi(argv[++i]);
        else if (strcmp(argv[i], "--step") == 0)
            steps = (first_step = atoi(argv[++i])) + 1;
        else if (strcmp(argv[i], "--only") == 0)
            sscanf(argv[++i], "%63[^@]@%d=%d", only, &only_nth, &only_code);
        else if (n_functions < MOST_FUNCTIONS)
            functions[n_functions++] = argv[i];
    if (run_child(NULL, 0, 0) != 0) {
        printf("FAIL the scenario without failures\n0 passed, 1 failed, 0 skipped\n");
        return 1;
    }
    if (only[0])
        return run_child(only, only_nth, only_code);
    for (i = 0; i < n_functions; i++)
        for (kind = 0; kind < 2; kind++) {
            int code = kind ? lasting(functions[i]) : passing(functions[i]), nth;
            for (nth = 1; code && nth <= (int)known->calls[i]; nth++) {
                if (nth > 2 && nth % every != 0)
                    continue;
                if (run_child(functions[i], nth, code))
                    failed++;
                else
                    passed++;
            }
        }
    printf("%d passed, %d failed, 0 skipped\n", passed, failed);
    return failed != 0;
}
