/* How exact float32 has to be: a setting of the process, which operations write into their launches. */
#include "2_core/dvt_core.h"

static dvti_atomic dvti_tf32; /* 0: not read yet, 1: not allowed, 2: allowed */

DVTI_FN bool dvti_tf32_allowed(void) {
    if (!dvti_atomic_load(&dvti_tf32)) {
        /* a setting that was made meanwhile stays */
        int64_t first = 1 + dvti_env_int("DEVTENSOR_TF32", 0, 1, 0);
        (void)dvti_atomic_swap(&dvti_tf32, 0, first);
    }
    return dvti_atomic_load(&dvti_tf32) == 2;
}

DVT_API bool dvt_allow_tf32(bool allow) {
    bool previous = dvti_tf32_allowed();
    dvti_atomic_store(&dvti_tf32, allow ? 2 : 1);
    return previous;
}
