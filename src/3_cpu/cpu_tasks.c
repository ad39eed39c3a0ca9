/* Runs tasks that each need an area of the workspace while they run. */
#include "3_cpu/dvt_cpu.h"

DVTI_FN int64_t dvti_task_areas(int64_t tasks, double multiply_adds, int threads) {
    return multiply_adds * DVTI_MULTIPLY_ADD_NS < DVTI_PARALLEL_NS
               ? 1
               : DVTI_MAX(1, DVTI_MIN(tasks, threads));
}

typedef struct dvti_task_run {
    int64_t area_bytes;
    char *workspace;
    dvti_task_fn run;
    void *user;
} dvti_task_run;

static void dvti_task_range(void *user, int64_t begin, int64_t end, int area) {
    const dvti_task_run *run = (const dvti_task_run *)user;
    for (; begin < end; begin++)
        run->run(run->user, begin, run->workspace ? run->workspace + area * run->area_bytes : NULL);
}

DVTI_FN void dvti_run_tasks(int64_t tasks, double multiply_adds, void *workspace, int64_t areas,
                            int64_t area_bytes, dvti_task_fn run, void *user) {
    dvti_task_run all;
    all.area_bytes = area_bytes;
    all.workspace = (char *)workspace;
    all.run = run;
    all.user = user;
    dvti_parallel_parts(tasks, multiply_adds * DVTI_MULTIPLY_ADD_NS / (double)tasks,
                        (int)DVTI_MIN(areas, INT_MAX), dvti_task_range, &all);
}
