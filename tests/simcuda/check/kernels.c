/* Runs whole kernels. */
#include "check.h"
#include "kernels.h"

int run(exec *e, const char *kernel, exec_launch launch, uint64_t p0, uint64_t p1, uint64_t p2,
        uint64_t p3) {
    uint64_t params[4] = {p0, p1, p2, p3};
    const char *problem = e ? exec_run(e, kernel, launch, params) : "no module";
    if (!problem)
        exec_counts(e, kernel);
    return check_that(!problem, "kernel %s: %s", kernel, problem ? problem : "");
}

int run_fails(exec *e, const char *kernel, exec_launch launch, const char *text, uint64_t p0,
              uint64_t p1, uint64_t p2, uint64_t p3) {
    uint64_t params[4] = {p0, p1, p2, p3};
    return check_message(e ? exec_run(e, kernel, launch, params) : "no module", text, kernel);
}
