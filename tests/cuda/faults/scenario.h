/* Steps of a program on two GPUs. Each step is independent and creates what it needs. Its result
   can be compared with that of a run without failures. */
#ifndef FAULTS_SCENARIO_H
#define FAULTS_SCENARIO_H
#include "devtensor_under_test.h"

typedef struct step_result {
    dvt_status code; /* DVT_OK: no error */
    char error[400];
    uint64_t hash; /* of the values read back */
} step_result;

typedef struct step {
    const char *name;
    uint64_t (*run)(void); /* leaves an error when something fails */
} step;

extern const step scenario[];
extern const int scenario_steps;
/* Index of the GPU for the steps that need only one. */
extern const int scenario_single;
extern int scenario_gpu;
/* Nonzero shortens the scenario to one step of training of one layer. Large copies have a step of
   their own. */
extern int scenario_short;

/* Runs steps [first, last), each in its own scope, and clears their errors. Returns how many
   failed. */
int scenario_run(step_result *results, int first, int last);

#endif
