/* How exact float32 has to be: settings of the process, which operations write into their launches. */
#include "2_core/dvt_core.h"

static dvti_atomic dvti_tf32, dvti_winograd; /* 0: not read yet, 1: not allowed, 2: allowed */

static bool dvti_precision_allowed(dvti_atomic *setting, const char *variable) {
    if (!dvti_atomic_load(setting)) {
        /* a setting that was made meanwhile stays */
        int64_t first = 1 + dvti_env_int(variable, 0, 1, 0);
        (void)dvti_atomic_swap(setting, 0, first);
    }
    return dvti_atomic_load(setting) == 2;
}

DVTI_FN bool dvti_tf32_allowed(void) {
    return dvti_precision_allowed(&dvti_tf32, "DEVTENSOR_TF32");
}

DVTI_FN bool dvti_winograd_allowed(void) {
    return dvti_precision_allowed(&dvti_winograd, "DEVTENSOR_WINOGRAD");
}

DVT_API bool dvt_allow_tf32(bool allow) {
    bool previous = dvti_tf32_allowed();
    dvti_atomic_store(&dvti_tf32, allow ? 2 : 1);
    return previous;
}

DVT_API bool dvt_allow_winograd(bool allow) {
    bool previous = dvti_winograd_allowed();
    dvti_atomic_store(&dvti_winograd, allow ? 2 : 1);
    return previous;
}
