/* Five breaks that leave only a guard's block. At compile time an optimizing compiler warns about
   each; at run time the library logs the first one. Without DVT_SCOPE_BLOCKS the guards are
   declarations, so break leaves the loop and ends the scope. */
#include "devtensor.h"
#include <stdio.h>
#include <string.h>

static int logged;

static void count(void *user, dvt_log_level level, const char *message) {
    (void)user;
    if (level == DVT_LOG_WARNING && strstr(message, "breaks.c:") && strstr(message, "DVT_SCOPED"))
        logged++;
    else
        printf("%s\n", message);
}

#if defined(DVT_SCOPE_BLOCKS)
static int alone(int n) {
    int i, turns = 0;
    for (i = 0; i < n; i++)
        DVT_SCOPE {
            if (i == 1)
                break;
            turns++;
        }
    return turns;
}

static int two_levels(int n) {
    int i, j, turns = 0;
    for (i = 0; i < n; i++)
        DVT_SCOPE {
            for (j = 0; j < n; j++)
                DVT_WITH_CTX(dvt_cpu()) {
                    if (j == 1)
                        break;
                    turns++;
                }
            if (turns > 100)
                return turns;
        }
    return turns;
}

static int recorded(int n) {
    int turns = 0;
    while (n--) {
        DVT_RECORD {
            turns++;
            DVT_SCOPE {
                if (n == 2)
                    break;
                if (n == 1)
                    continue;
                turns++;
            }
        }
        DVT_PREDICT_MODE {
            break;
        }
    }
    return turns;
}

static int in_switch(int n) {
    DVT_SCOPE {
        switch (n) {
        case 1:
            n++;
            break;
        default:
            n += 3;
        }
        if (n > 5)
            break;
        n++;
    }
    return n;
}

int main(void) {
    dvt_set_logger(count, NULL);
    if (alone(3) != 2 || two_levels(3) != 6 || recorded(3) != 4 || in_switch(4) != 7)
        return 1;
    return logged != 1; /* once per process */
}
#else
static int scoped(int n) {
    int i, turns = 0;
    for (i = 0; i < n; i++) {
        DVT_SCOPED;
        dvt_array *x = dvt_zeros(DVT_SHAPE(2), DVT_F32, dvt_cpu());
        if (dvt_dim(x, 0) != 2 || i == 1)
            break;
        turns++;
    }
    return turns;
}

static int modes(int n) {
    int i, turns = 0;
    for (i = 0; i < n; i++) {
        DVT_RECORD_SCOPED;
        DVT_CTX_SCOPED(dvt_cpu_id(1));
        if (!dvt_is_recording() || !dvt_is_training() || dvt_default_ctx().id != 1)
            return -1;
        if (i == 2)
            break;
        turns++;
    }
    return dvt_is_recording() || dvt_default_ctx().id ? -1 : turns;
}

int main(void) {
    dvt_set_logger(count, NULL);
    if (scoped(5) != 1 || modes(5) != 2)
        return 1;
    return dvt_get_stats().arrays != 0 || logged;
}
#endif
