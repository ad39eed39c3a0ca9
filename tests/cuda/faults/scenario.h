/* What a program does with two cards, in steps that stand for themselves: each makes what it needs, and its result can be compared with
   that of an undisturbed run. */
#ifndef FAULTS_SCENARIO_H
#define FAULTS_SCENARIO_H
#include "devtensor_under_test.h"

typedef struct step_result {
    dvt_status code; /* DVT_OK: it ended without an error */
    char error[400];
    uint64_t hash; /* of what it read back */
} step_result;

typedef struct step {
    const char *name;
    uint64_t (*run)(void); /* leaves an error behind when something fails */
} step;

extern const step scenario[];
extern const int scenario_steps;
/* The steps that need one card only, each on this one. */
extern const int scenario_single;
extern int scenario_card;
/* As short as the calls that differ allow: one layer trained for one step, and no large copies, which have a step of their own. */
extern int scenario_short;

/* Runs steps [first, last), each in a scope of its own, and takes their errors away. Returns how many failed. */
int scenario_run(step_result *results, int first, int last);

#endif
