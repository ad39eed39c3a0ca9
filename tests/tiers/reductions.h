/* The reductions that all tiers have. */
#ifndef REDUCTIONS_H
#define REDUCTIONS_H
#include "tiers.h"

static const struct {
    const char *name;
    dvti_op op;
} reductions[] = {{"sum", DVTI_OP_sum},
                  {"mean", DVTI_OP_mean},
                  {"norm", DVTI_OP_norm},
                  {"min", DVTI_OP_min},
                  {"max", DVTI_OP_max},
                  {"argmin", DVTI_OP_argmin},
                  {"argmax", DVTI_OP_argmax},
                  {"prod", DVTI_OP_prod},
                  {"any", DVTI_OP_any},
                  {"all", DVTI_OP_all},
                  {"logsumexp", DVTI_OP_logsumexp}};

enum { REDUCTIONS = (int)(sizeof reductions / sizeof reductions[0]) };

static bool places(dvti_op op) {
    return op == DVTI_OP_argmin || op == DVTI_OP_argmax;
}

#endif
