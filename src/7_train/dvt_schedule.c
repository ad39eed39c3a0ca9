/* Learning-rate schedules: pure functions of a step counted from 0. Warm-up comes first; the
   schedule counts its own steps from the end of the warm-up. */
#include "1_base/dvt_float_mode.h"
#include "7_train/dvt_train_internal.h"

static dvt_schedule dvti_schedule_of(dvt_schedule_kind kind) {
    dvt_schedule schedule;
    memset(&schedule, 0, sizeof schedule);
    schedule.kind = kind;
    return schedule;
}

DVT_API dvt_schedule dvt_schedule_factor(int64_t every, double factor, double minimum) {
    dvt_schedule schedule = dvti_schedule_of(DVT_SCHEDULE_FACTOR);
    schedule.every = every;
    schedule.factor = factor;
    schedule.minimum = minimum;
    return schedule;
}

DVT_API dvt_schedule dvt_schedule_multi_factor(const int64_t *at, int n, double factor) {
    dvt_schedule schedule = dvti_schedule_of(DVT_SCHEDULE_MULTI_FACTOR);
    int i;
    schedule.factor = factor;
    schedule.n_at = n;
    if (!at && n > 0) {
        dvti_null("dvt_schedule_multi_factor", "at");
        schedule.n_at = 0;
    } else if (n < 0 || n > DVTI_LENGTH(schedule.at)) {
        dvti_fail(DVT_ERR_RANGE, "dvt_schedule_multi_factor: %d steps; expected 0 to %d", n,
                  DVTI_LENGTH(schedule.at));
        schedule.n_at = 0;
    }
    for (i = 0; i < schedule.n_at; i++)
        schedule.at[i] = at[i];
    return schedule;
}

DVT_API dvt_schedule dvt_schedule_poly(int64_t total, double power, double final) {
    dvt_schedule schedule = dvti_schedule_of(DVT_SCHEDULE_POLY);
    schedule.total = total;
    schedule.power = power;
    schedule.final = final;
    return schedule;
}

DVT_API dvt_schedule dvt_schedule_cosine(int64_t total, double final) {
    dvt_schedule schedule = dvti_schedule_of(DVT_SCHEDULE_COSINE);
    schedule.total = total;
    schedule.final = final;
    return schedule;
}

DVT_API dvt_schedule dvt_schedule_custom(double (*rate)(void *user, double base, int64_t step),
                                         void *user) {
    dvt_schedule schedule = dvti_schedule_of(DVT_SCHEDULE_CUSTOM);
    schedule.rate = rate;
    schedule.user = user;
    return schedule;
}

/* Returns the progress: 0 at the first step, 1 from `total` on. */
static double dvti_schedule_part(const dvt_schedule *schedule, int64_t step) {
    if (step >= schedule->total)
        return 1;
    return (double)step / (double)schedule->total;
}

static double dvti_schedule_multi(const dvt_schedule *schedule, double base, int64_t step) {
    int i, passed = 0;
    for (i = 0; i < schedule->n_at && i < DVTI_LENGTH(schedule->at); i++)
        if (step >= schedule->at[i])
            passed++;
    return passed ? base * pow(schedule->factor, passed) : base;
}

static double dvti_schedule_stairs(const dvt_schedule *schedule, double base, int64_t step) {
    int64_t stairs = schedule->every > 0 ? step / schedule->every : 0;
    double rate = base;
    if (stairs > 0)
        rate *= pow(schedule->factor, (double)stairs);
    /* A base rate below the minimum stays unchanged. */
    return rate < schedule->minimum ? DVTI_MIN(schedule->minimum, base) : rate;
}

static DVTI_NOINLINE double dvti_schedule_rate(const dvt_schedule *schedule, double base,
                                               int64_t step) {
    double left;
    DVTI_NOT_PURE();
    step = DVTI_MAX(step, 0);
    if (step < schedule->warmup)
        return schedule->warmup_begin +
               (base - schedule->warmup_begin) * ((double)step / (double)schedule->warmup);
    step -= DVTI_MAX(schedule->warmup, 0);
    left = 1 - dvti_schedule_part(schedule, step);
    switch (schedule->kind) {
    case DVT_SCHEDULE_FACTOR:
        return dvti_schedule_stairs(schedule, base, step);
    case DVT_SCHEDULE_MULTI_FACTOR:
        return dvti_schedule_multi(schedule, base, step);
    case DVT_SCHEDULE_POLY:
        return schedule->final + (base - schedule->final) * pow(left, schedule->power);
    case DVT_SCHEDULE_COSINE:
        return schedule->final +
               (base - schedule->final) * (1 - cos(3.14159265358979323846 * left)) / 2;
    case DVT_SCHEDULE_CUSTOM:
        return schedule->rate ? schedule->rate(schedule->user, base, step) : base;
    default:
        return base;
    }
}

DVT_API double dvt_schedule_rate(const dvt_schedule *schedule, double base, int64_t step) {
    dvti_float_mode mode;
    double rate;
    if (!schedule) {
        dvti_null("dvt_schedule_rate", "schedule");
        return (double)NAN;
    }
    mode = dvti_float_mode_begin();
    rate = dvti_schedule_rate(schedule, base, step);
    dvti_float_mode_end(&mode);
    return rate;
}

static bool dvti_schedule_usable(double x) {
    return x >= 0 && x <= DBL_MAX;
}

DVTI_FN dvt_status dvti_schedule_check(const char *function, const dvt_schedule *schedule) {
    const char *wrong = NULL;
    if ((int)schedule->kind < 0 || schedule->kind > DVT_SCHEDULE_CUSTOM)
        wrong = "kind is none of dvt_schedule_kind";
    else if (schedule->warmup < 0 || !dvti_schedule_usable(schedule->warmup_begin))
        wrong = "warmup and warmup_begin must be finite and not negative";
    else if (schedule->kind == DVT_SCHEDULE_FACTOR && schedule->every < 1)
        wrong = "every must be at least 1";
    else if ((schedule->kind == DVT_SCHEDULE_FACTOR ||
              schedule->kind == DVT_SCHEDULE_MULTI_FACTOR) &&
             !(schedule->factor > 0 && schedule->factor <= 1))
        wrong = "factor must be above 0 and at most 1";
    else if (schedule->kind == DVT_SCHEDULE_MULTI_FACTOR &&
             (schedule->n_at < 0 || schedule->n_at > DVTI_LENGTH(schedule->at)))
        wrong = "n_at must be 0 to 16";
    else if (schedule->kind == DVT_SCHEDULE_CUSTOM && !schedule->rate)
        wrong = "rate must be a function";
    else if ((schedule->kind == DVT_SCHEDULE_POLY || schedule->kind == DVT_SCHEDULE_COSINE) &&
             (schedule->total < 1 || !dvti_schedule_usable(schedule->final)))
        wrong = "total must be at least 1, and final finite and not negative";
    else if (schedule->kind == DVT_SCHEDULE_POLY && !dvti_schedule_usable(schedule->power))
        wrong = "power must be finite and not negative";
    return wrong ? dvti_fail(DVT_ERR_RANGE, "%s: the learning-rate schedule cannot be used: %s",
                             function, wrong)
                 : DVT_OK;
}
