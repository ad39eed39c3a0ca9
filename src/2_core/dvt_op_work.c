/* How much an elementwise operation computes: the one list behind costs of threads on the CPU and
   lengths of programs on GPUs. */
#include "2_core/dvt_core.h"

DVTI_FN dvti_op_work dvti_op_work_of(dvti_op op) {
    switch ((int)op) {
#define DVTI_WORK_OF_SAME DVTI_WORK_MOVE
#define DVTI_WORK_OF_NOBOOL DVTI_WORK_MOVE
#define DVTI_WORK_OF_BOOL DVTI_WORK_MOVE
#define DVTI_WORK_OF_FLOAT DVTI_WORK_FUNCTION
#define DVTI_ROW(name, rule, f, i, grad, lo, hi, doc)                                              \
    case DVTI_OP_##name:                                                                           \
        return DVTI_WORK_OF_##rule;
        DVTI_UNARY_TABLE(DVTI_ROW)
#undef DVTI_ROW
#undef DVTI_WORK_OF_SAME
#undef DVTI_WORK_OF_NOBOOL
#undef DVTI_WORK_OF_BOOL
#undef DVTI_WORK_OF_FLOAT
    case DVTI_OP_div:
        return DVTI_WORK_DIVISION;
    case DVTI_OP_pow:
    case DVTI_OP_atan2:
    case DVTI_OP_hypot:
    case DVTI_OP_mod:
    case DVTI_OP_floor_div:
        return DVTI_WORK_LONG;
    default:
        return DVTI_WORK_MOVE;
    }
}
