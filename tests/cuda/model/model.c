/* Prints the counts of each row's kernels on the simulated driver, as expected.txt has them.
   usage: model [--quick] [TEXT]
     --quick: without rows that only the full test runs; TEXT: rows whose name contains it
   The environment selects the simulator and the counting (model.sh). */
#include "devtensor.h"
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "tests/simcuda/sim_control.h"

static void must(bool ok, const char *what) {
    if (ok)
        return;
    fprintf(stderr, "model: %s: %s\n", what, dvt_error_code() ? dvt_error() : "no error is set");
    exit(1);
}

#include "model_rows.h"
#include "model_table.h"

static sim_counts_get_fn *counts_get;
static sim_counts_clear_fn *counts_clear;

typedef unsigned long long number;

static void print_global(const char *name, const sim_global_counts *c) {
    if (c->requests)
        printf("    %s requests %llu sectors %llu bytes %llu touched %llu\n", name,
               (number)c->requests, (number)c->sectors, (number)c->bytes, (number)c->touched);
}

static void print_shared(const char *name, const sim_shared_counts *c) {
    if (c->requests)
        printf("    %s requests %llu wavefronts %llu least %llu\n", name, (number)c->requests,
               (number)c->wavefronts, (number)c->least);
}

static void print_instructions(const sim_kernel_counts *c) {
    static const char *const names[SIM_COUNT_CLASSES] = {
        "fp32",   "fp64",    "half",   "special", "convert",   "integer", "exchange",
        "memory", "control", "matrix", "macs16",  "macs_tf32", "macs8",   "macs64"};
    int i;
    printf("    instructions");
    for (i = 0; i < SIM_COUNT_CLASSES; i++)
        if (c->instructions[i])
            printf(" %s %llu", names[i], (number)c->instructions[i]);
    printf("\n");
}

static void print_kernel(const sim_kernel_counts *c) {
    printf("  kernel %s launches %llu blocks %llu warps %llu threads %d shared %d\n", c->kernel,
           (number)c->launches, (number)c->blocks, (number)c->warps, c->threads, c->shared);
    if (c->registers)
        printf("    ptxas registers %d spills %d resident %d\n", c->registers, c->spills,
               c->resident);
    print_global("loads", &c->load);
    print_global("stores", &c->store);
    print_shared("shared_loads", &c->shared_load);
    print_shared("shared_stores", &c->shared_store);
    if (c->atomics)
        printf("    atomics requests %llu lanes %llu\n", (number)c->atomics,
               (number)c->atomic_lanes);
    if (c->local)
        printf("    local requests %llu\n", (number)c->local);
    if (c->barriers)
        printf("    barriers warps %llu\n", (number)c->barriers);
    print_instructions(c);
}

static void run_row(const row *r) {
    sim_kernel_counts counts;
    work w;
    int i;
    memset(&w, 0, sizeof w);
    w.row = r;
    DVT_SCOPE {
        r->prepare(&w);
        must(dvt_error_code() == DVT_OK && dvt_wait_all() == DVT_OK, r->text);
        counts_clear();
        r->run(&w);
        must(dvt_wait_all() == DVT_OK, r->text);
        printf("row %s\n  least bytes %.0f", r->text, w.bytes);
        if (w.macs > 0)
            printf(" macs %.0f", w.macs);
        printf("\n");
        must(counts_get(0, &counts) != 0, "no launch was counted");
        for (i = 0; counts_get(i, &counts); i++)
            print_kernel(&counts);
        fflush(stdout);
    }
}

/* The first line: what the counts of instructions and registers depend on. */
static void print_version(void) {
    int (*version)(int *, int *);
    void *nvrtc = dlopen("libnvrtc.so.13", RTLD_NOW);
    int major = 0, minor = 0;
    version = (int (*)(int *, int *))(nvrtc ? dlsym(nvrtc, "nvrtcVersion") : NULL);
    must(version && version(&major, &minor) == 0, "no libnvrtc.so.13 of the simulator");
    printf("NVRTC %d.%d\n", major, minor);
}

int main(int argc, char **argv) {
    void *driver = dlopen("libcuda.so.1", RTLD_NOW);
    bool quick = argc > 1 && strcmp(argv[1], "--quick") == 0;
    const char *text = argc > 1 + quick ? argv[1 + quick] : "";
    size_t i;
    counts_get = (sim_counts_get_fn *)(driver ? dlsym(driver, "sim_counts_get") : NULL);
    counts_clear = (sim_counts_clear_fn *)(driver ? dlsym(driver, "sim_counts_clear") : NULL);
    must(counts_get && counts_clear, "libcuda.so.1 is not the simulated driver");
    must(dvt_num_gpus() > 0, dvt_gpu_reason());
    print_version();
    dvt_seed(1);
    for (i = 0; i < sizeof rows / sizeof *rows; i++)
        if (strstr(rows[i].text, text) && !(quick && rows[i].full))
            run_row(&rows[i]);
    return 0;
}
