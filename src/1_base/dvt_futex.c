/* Futexes: 32-bit words on which threads spin and sleep. */
#include "1_base/dvt_base.h"

#if DVTI_THREADS

DVTI_FN bool dvti_futex_spin(const dvti_futex *word, dvti_futex value, double seconds) {
    double end = 0, now;
    int i;
    if (seconds <= 0)
        return false;
    for (;;) {
        for (i = 0; i < 16; i++) {
            if (dvti_atomic_load(word) != value)
                return true;
            dvti_pause();
        }
        now = dvti_now();
        if (end <= 0)
            end = now + seconds;
        else if (now >= end)
            return false;
    }
}

#if DVTI_FUTEX
DVTI_FN void dvti_futex_wait(dvti_futex *word, dvti_futex value) {
    syscall(SYS_futex, word, 128 /* FUTEX_WAIT_PRIVATE */, value, NULL, NULL, 0);
}

DVTI_FN int dvti_futex_wake(dvti_futex *word) {
    return (int)syscall(SYS_futex, word, 129 /* FUTEX_WAKE_PRIVATE */, 1, NULL, NULL, 0);
}

DVTI_FN void dvti_futex_reset(void) {
}
#else
static dvti_mutex dvti_futex_lock = DVTI_MUTEX_INIT;
static dvti_cond dvti_futex_changed = DVTI_COND_INIT;

DVTI_FN void dvti_futex_wait(dvti_futex *word, dvti_futex value) {
    dvti_mutex_lock(&dvti_futex_lock);
    while (dvti_atomic_load(word) == value)
        dvti_cond_wait(&dvti_futex_changed, &dvti_futex_lock);
    dvti_mutex_unlock(&dvti_futex_lock);
}

DVTI_FN int dvti_futex_wake(dvti_futex *word) {
    (void)word;
    dvti_mutex_lock(&dvti_futex_lock); /* a thread that saw the old value waits by now */
    dvti_mutex_unlock(&dvti_futex_lock);
    dvti_cond_broadcast(&dvti_futex_changed);
    return 1;
}

DVTI_FN void dvti_futex_reset(void) {
    dvti_mutex fresh_lock = DVTI_MUTEX_INIT;
    dvti_cond fresh_cond = DVTI_COND_INIT;
    memcpy(&dvti_futex_lock, &fresh_lock, sizeof fresh_lock);
    memcpy(&dvti_futex_changed, &fresh_cond, sizeof fresh_cond);
}
#endif

#endif
