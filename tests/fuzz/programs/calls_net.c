/* Networks and trainers: small ones, in two slots of their own. */
#include "programs.h"

const fuzz_op fuzz_ops_net[] = {
    {NULL, NULL, NULL, 0, 0, FUZZ_EXACT, 0},
};
