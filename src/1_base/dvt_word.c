/* Words that threads look at, and sleep on. */
#include "1_base/dvt_base.h"

#if DVTI_THREADS

DVTI_FN bool dvti_word_look(const dvti_word *word, dvti_word value, double seconds) {
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
DVTI_FN void dvti_word_sleep(dvti_word *word, dvti_word value) {
    syscall(SYS_futex, word, 128 /* FUTEX_WAIT_PRIVATE */, value, NULL, NULL, 0);
}

DVTI_FN int dvti_word_wake(dvti_word *word) {
    return (int)syscall(SYS_futex, word, 129 /* FUTEX_WAKE_PRIVATE */, 1, NULL, NULL, 0);
}

DVTI_FN void dvti_word_ready(void) {
}
#else
static dvti_mutex dvti_word_lock = DVTI_MUTEX_INIT;
static dvti_cond dvti_word_changed = DVTI_COND_INIT;

DVTI_FN void dvti_word_sleep(dvti_word *word, dvti_word value) {
    dvti_mutex_lock(&dvti_word_lock);
    while (dvti_atomic_load(word) == value)
        dvti_cond_wait(&dvti_word_changed, &dvti_word_lock);
    dvti_mutex_unlock(&dvti_word_lock);
}

DVTI_FN int dvti_word_wake(dvti_word *word) {
    (void)word;
    dvti_mutex_lock(&dvti_word_lock); /* who has seen the old value waits by now */
    dvti_mutex_unlock(&dvti_word_lock);
    dvti_cond_broadcast(&dvti_word_changed);
    return 1;
}

DVTI_FN void dvti_word_ready(void) {
    dvti_mutex fresh_lock = DVTI_MUTEX_INIT;
    dvti_cond fresh_cond = DVTI_COND_INIT;
    memcpy(&dvti_word_lock, &fresh_lock, sizeof fresh_lock);
    memcpy(&dvti_word_changed, &fresh_cond, sizeof fresh_cond);
}
#endif

#endif
