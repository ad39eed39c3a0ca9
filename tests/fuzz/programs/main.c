/* The program: generates from a seed, replays, shrinks; and the entry point of libFuzzer.

   usage: programs [--seed N] [--count N | --seconds N] [--calls N] [--only WORLD] [--save FILE]
   programs --replay FILE... | --show FILE | --shrink FILE
   --save keeps the current program in a file, in case it crashes. --shrink runs programs in child
   processes. */
#include "programs.h"
#include <sys/wait.h>
#include <unistd.h>

const char *__asan_default_options(void);

const char *__asan_default_options(void) {
    return "allocator_may_return_null=1:max_allocation_size_mb=512:detect_stack_use_after_return=0:"
           "quarantine_size_mb=16";
}

const char *__ubsan_default_options(void);

const char *__ubsan_default_options(void) {
    return "print_stacktrace=1";
}

static const fuzz_config worlds[] = {
    {"cpu", NULL, 4, false, FUZZ_RECORD, 0, false},
    {"cpu, other ISA, one thread", "avx2", 1, false, FUZZ_BITS, 0, false},
    {"virtual GPUs", NULL, 3, true, FUZZ_BITS, 0, false},
    {"reference, one thread", "reference", 1, false, FUZZ_NEAR, 0, false},
    {"virtual GPUs with little memory", NULL, 2, true, FUZZ_ALONE, 6000, false},
    {"allocations fail", NULL, 2, false, FUZZ_ALONE, 0, true},
    {"virtual GPUs, allocations fail", NULL, 2, true, FUZZ_ALONE, 0, true},
};
#define WORLDS (int)(sizeof worlds / sizeof worlds[0])

static int64_t total_calls, total_worked, total_runs;
static const char *only;

/* Returns the name of the first world that fails; "" when none does. */
static bool run_program(const fuzz_program *p, char *why, size_t size) {
    static fuzz_world w;
    fuzz_trace trace;
    bool good = true;
    int i;
    memset(&trace, 0, sizeof trace);
    for (i = 0; i < WORLDS && good; i++) {
        if (i && only && !strstr(worlds[i].name, only))
            continue;
        good = fuzz_run(&w, &worlds[i], p, &trace);
        total_calls += w.calls;
        total_worked += w.worked;
        total_runs++;
        if (!good)
            snprintf(why, size, "%s", w.why);
    }
    free(trace.item);
    free(trace.value);
    return good;
}

/* ---- text ---- */
static void write_program(FILE *file, const fuzz_program *p) {
    int n, i, k;
    const fuzz_op *ops = fuzz_ops(&n);
    for (i = 0; i < p->n; i++) {
        fprintf(file, "%-20s", ops[p->call[i].op % n].name);
        for (k = 0; k < FUZZ_ARGS; k++)
            fprintf(file, " %02x", p->call[i].arg[k]);
        fprintf(file, "\n");
    }
}

static bool read_program(const char *path, fuzz_program *p) {
    char line[256], name[64];
    FILE *file = fopen(path, "r");
    memset(p, 0, sizeof *p);
    if (!file)
        return false;
    while (fgets(line, sizeof line, file) && p->n < FUZZ_CALLS) {
        int at = 0, used, k, op;
        unsigned byte;
        if (line[0] == '#' || sscanf(line, "%63s%n", name, &at) != 1)
            continue;
        op = fuzz_find_op(name);
        if (op < 0) {
            fprintf(stderr, "%s: there is no operation %s\n", path, name);
            fclose(file);
            return false;
        }
        p->call[p->n].op = (uint16_t)op;
        for (k = 0; k < FUZZ_ARGS && sscanf(line + at, "%x%n", &byte, &used) == 1; k++, at += used)
            p->call[p->n].arg[k] = (uint8_t)byte;
        p->n++;
    }
    fclose(file);
    return true;
}

/* ---- generation ---- */
static uint64_t random_state;

static uint64_t random_next(void) {
    uint64_t z = random_state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

static void generate(fuzz_program *p, uint64_t seed, int most) {
    int n, i, k, total = 0, favorite[6];
    bool recorded, large;
    const fuzz_op *ops = fuzz_ops(&n);
    random_state = seed * 0x2545f4914f6cdd1du + 1;
    for (i = 0; i < n; i++)
        total += ops[i].weight;
    for (i = 0; i < 6; i++)
        favorite[i] = (int)(random_next() % (uint64_t)n);
    recorded = random_next() % 4 != 0;
    large = random_next() % 32 == 0; /* enough for several threads */
    p->n = 4 + (int)(random_next() % (uint64_t)(most - 3));
    for (i = 0; i < p->n; i++) {
        int op = 0;
        if (i < 3)
            op = 0; /* from_host */
        else if (i < 8 && recorded)
            op = fuzz_find_op(i < 5    ? "attach_grad"
                              : i == 5 ? "record"
                              : i == 6 ? "net"
                                       : "trainer");
        else if (random_next() % 4 == 0)
            op = favorite[random_next() % 6];
        else {
            int at = (int)(random_next() % (uint64_t)total);
            while (at >= ops[op].weight)
                at -= ops[op++].weight;
        }
        p->call[i].op = (uint16_t)op;
        for (k = 0; k < FUZZ_ARGS; k++) {
            p->call[i].arg[k] = (uint8_t)random_next();
            if (random_next() % 8 && p->call[i].arg[k] >= 240)
                p->call[i].arg[k] = (uint8_t)(p->call[i].arg[k] % 240);
        }
        if (large && i < 2)
            p->call[i].arg[0] = (uint8_t)(240 + random_next() % 4);
    }
}

static void set_up(void) {
    dvt_set_logger(NULL, NULL);
    if (dvt_set_virtual_gpus(2, 0) != DVT_OK) {
        fprintf(stderr, "programs: %s\n", dvt_error());
        exit(2);
    }
}

static bool in_children; /* each run is a process, so that crashes can be shrunk */

static bool still_fails(const fuzz_program *p) {
    char why[600];
    int status = 0;
    pid_t child;
    if (!in_children)
        return !run_program(p, why, sizeof why);
    child = fork();
    if (child == 0) {
        if (!freopen("/dev/null", "w", stderr))
            _exit(0);
        set_up();
        alarm(20);
        _exit(!run_program(p, why, sizeof why));
    }
    return child > 0 && waitpid(child, &status, 0) == child && status != 0;
}

/* Removes calls, then zeroes bytes, as long as it still fails. */
static void shrink(fuzz_program *p) {
    bool again = true;
    int i, k, size;
    while (again) {
        again = false;
        for (size = p->n / 2; size >= 1; size /= 2)
            for (i = 0; i + size <= p->n;) {
                fuzz_program shorter = *p;
                memmove(shorter.call + i, shorter.call + i + size,
                        (size_t)(p->n - i - size) * sizeof p->call[0]);
                shorter.n -= size;
                if (still_fails(&shorter)) {
                    *p = shorter;
                    again = true;
                } else
                    i += size;
            }
    }
    for (i = 0; i < p->n; i++)
        for (k = 0; k < FUZZ_ARGS; k++) {
            fuzz_program simpler = *p;
            if (!simpler.call[i].arg[k])
                continue;
            simpler.call[i].arg[k] = 0;
            if (still_fails(&simpler))
                *p = simpler;
        }
}

static void show(const fuzz_program *p) {
    char why[600];
    fuzz_verbose = 1;
    if (!run_program(p, why, sizeof why))
        printf("%s\n", why);
    fuzz_verbose = 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static bool ready;
    fuzz_program p;
    char why[600];
    if (!ready)
        set_up();
    ready = true;
    p.n = 0;
    while (size >= 2 + FUZZ_ARGS && p.n < FUZZ_CALLS) {
        p.call[p.n].op = (uint16_t)(data[0] | data[1] << 8);
        memcpy(p.call[p.n].arg, data + 2, FUZZ_ARGS);
        data += 2 + FUZZ_ARGS;
        size -= 2 + FUZZ_ARGS;
        p.n++;
    }
    if (!run_program(&p, why, sizeof why)) {
        write_program(stderr, &p);
        fprintf(stderr, "%s\n", why);
        abort();
    }
    return 0;
}

#ifndef DVT_FUZZ_LIBFUZZER
static const char *save_path;

static int one_seed(uint64_t seed, int most) {
    fuzz_program p;
    char why[600];
    generate(&p, seed, most);
    if (save_path) { /* the current program, in case it crashes */
        FILE *file = fopen(save_path, "w");
        if (file) {
            fprintf(file, "# seed %llu\n", (unsigned long long)seed);
            write_program(file, &p);
            fclose(file);
        }
    }
    if (run_program(&p, why, sizeof why))
        return 0;
    printf("FAIL seed %llu: %s\n", (unsigned long long)seed, why);
    fflush(stdout);
    shrink(&p);
    printf("# shrunk:\n");
    write_program(stdout, &p);
    show(&p);
    fflush(stdout);
    return 1;
}

int main(int argc, char **argv) {
    uint64_t seed = 1, count = 1000, k;
    double seconds = 0, begin = dvt_seconds();
    bool stats = false;
    int i, most = 40, passed = 0, failed = 0, stop = 20;
    if (argc == 3 && !strcmp(argv[1], "--shrink")) {
        fuzz_program p;
        in_children = true;
        if (!read_program(argv[2], &p) || !still_fails(&p))
            return 1;
        shrink(&p);
        write_program(stdout, &p);
        return 0;
    }
    set_up();
    for (i = 1; i < argc; i++) {
        fuzz_program p;
        char why[600];
        if (!strcmp(argv[i], "--seed") && i + 1 < argc)
            seed = strtoull(argv[++i], NULL, 10);
        else if (!strcmp(argv[i], "--count") && i + 1 < argc)
            count = strtoull(argv[++i], NULL, 10);
        else if (!strcmp(argv[i], "--seconds") && i + 1 < argc) {
            seconds = atof(argv[++i]);
            count = UINT64_MAX;
        } else if (!strcmp(argv[i], "--calls") && i + 1 < argc)
            most = atoi(argv[++i]);
        else if (!strcmp(argv[i], "--only") && i + 1 < argc)
            only = argv[++i];
        else if (!strcmp(argv[i], "--stats"))
            stats = true;
        else if (!strcmp(argv[i], "--save") && i + 1 < argc)
            save_path = argv[++i];
        else if (!strcmp(argv[i], "--show") && i + 1 < argc) {
            if (read_program(argv[++i], &p))
                show(&p);
            count = 0;
        } else if (!strcmp(argv[i], "--replay"))
            for (count = 0; i + 1 < argc; i++) {
                bool good = read_program(argv[i + 1], &p) && run_program(&p, why, sizeof why);
                if (!good)
                    printf("FAIL %s: %s\n", argv[i + 1], why);
                passed += good;
                failed += !good;
            }
        else {
            fprintf(stderr, "usage: programs [--seed N] [--count N] [--seconds N] [--calls N] "
                            "[--only WORLD] [--save FILE] [--show FILE] [--replay FILE...]\n");
            return 2;
        }
    }
    most = most < 4 ? 4 : most > FUZZ_CALLS ? FUZZ_CALLS : most;
    for (k = 0; k < count && failed < stop && (!seconds || dvt_seconds() - begin < seconds); k++) {
        int bad = one_seed(seed + k, most);
        failed += bad;
        passed += !bad;
    }
    for (i = 0; stats && i < 512 && fuzz_ops(NULL)[i].name; i++)
        printf("%-24s %8lld calls %8lld without an error\n", fuzz_ops(NULL)[i].name,
               (long long)fuzz_op_calls[i], (long long)fuzz_op_worked[i]);
    printf("%lld programs in all worlds, %lld calls, %lld of them without an error, %.0f s\n",
           (long long)total_runs, (long long)total_calls, (long long)total_worked,
           dvt_seconds() - begin);
    printf("%d passed, %d failed, 0 skipped\n", passed, failed);
    return failed != 0;
}
#endif
