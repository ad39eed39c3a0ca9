/* The timing model of virtual GPUs: copies take latency plus bytes / bandwidth, a launch takes time
   of the calling thread, and computing takes operations / flops.

   The model has two effects. First, queues and callers really sleep, so a program measures times
   like on such GPUs. This needs a machine that computes faster than the model. Second, each thread
   has a clock of modeled time, which is the same in every run. A command begins once its caller has
   queued it and its queue is free. A waiting caller's clock advances to the time at which the queue
   is free. */
#include "3_cpu/dvt_cpu.h"

static dvti_mutex dvti_model_lock = DVTI_MUTEX_INIT;
static dvt_virtual_model dvti_model_now;
static bool dvti_model_was_read;   /* from the environment, or set by a call */
static dvti_atomic dvti_model_set; /* whether any number is not 0 */
static DVTI_TLS double dvti_model_time;

/* ---- numbers ---- */
static bool dvti_model_is_any(const dvt_virtual_model *m) {
    return m->latency > 0 || m->bandwidth > 0 || m->launch > 0 || m->flops > 0;
}

/* Returns whether x is finite and not negative. */
static bool dvti_model_is_number(double x) {
    return x >= 0 && x <= DBL_MAX;
}

static bool dvti_model_ok(const dvt_virtual_model *m) {
    return dvti_model_is_number(m->latency) && dvti_model_is_number(m->bandwidth) &&
           dvti_model_is_number(m->launch) && dvti_model_is_number(m->flops);
}

/* Parses a decimal number and its unit, such as "2.5us" or "12G", in any locale. Moves *at past
   it. */
static bool dvti_model_number(const char **at, bool is_time, double *out) {
    static const struct {
        const char *unit;
        double factor;
    } times[] = {{"ms", 1e-3}, {"us", 1e-6}, {"ns", 1e-9}, {"s", 1}, {NULL, 0}},
      rates[] = {{"K", 1e3}, {"M", 1e6}, {"G", 1e9}, {"T", 1e12}, {NULL, 0}}, *unit;

    const char *begin = *at;
    double value = 0, place = 1;
    int digits = 0;
    for (; **at >= '0' && **at <= '9'; (*at)++, digits++)
        value = value * 10 + (**at - '0');
    if (**at == '.')
        for ((*at)++; **at >= '0' && **at <= '9'; (*at)++, digits++)
            value += (**at - '0') * (place /= 10);
    if (!digits || *at - begin > 20)
        return false;
    for (unit = is_time ? times : rates; unit->unit; unit++)
        if (strncmp(*at, unit->unit, strlen(unit->unit)) == 0) {
            *at += strlen(unit->unit);
            value *= unit->factor;
            break;
        }
    *out = value;
    return !is_time || unit->unit || value == 0;
}

DVTI_FN bool dvti_model_parse(const char *text, dvt_virtual_model *out) {
    dvt_virtual_model m;
    memset(&m, 0, sizeof m);
    for (;;) {
        struct {
            const char *key;
            double *to;
            bool is_time;
        } keys[4] = {{"latency=", NULL, true},
                     {"bandwidth=", NULL, false},
                     {"launch=", NULL, true},
                     {"flops=", NULL, false}};

        int i;
        keys[0].to = &m.latency;
        keys[1].to = &m.bandwidth;
        keys[2].to = &m.launch;
        keys[3].to = &m.flops;
        for (i = 0; i < 4; i++)
            if (strncmp(text, keys[i].key, strlen(keys[i].key)) == 0)
                break;
        if (i == 4)
            return false;
        text += strlen(keys[i].key);
        if (!dvti_model_number(&text, keys[i].is_time, keys[i].to))
            return false;
        if (!*text)
            break;
        if (*text++ != ',')
            return false;
    }
    *out = m;
    return true;
}

/* Reads the environment once. The caller holds the lock. */
static void dvti_model_read(void) {
    const char *text;
    if (dvti_model_was_read)
        return;
    dvti_model_was_read = true;
    text = dvti_env("DEVTENSOR_VIRTUAL_GPU_MODEL");
    if (text && !dvti_model_parse(text, &dvti_model_now))
        dvti_log(DVT_LOG_WARNING,
                 "DEVTENSOR_VIRTUAL_GPU_MODEL=%.80s is no model such as "
                 "latency=10us,bandwidth=12G,launch=5us,flops=1T; ignored",
                 text);
    dvti_atomic_store(&dvti_model_set, dvti_model_is_any(&dvti_model_now));
}

DVTI_FN void dvti_model_ready(void) {
    dvti_mutex_lock(&dvti_model_lock);
    dvti_model_read();
    dvti_mutex_unlock(&dvti_model_lock);
}

DVTI_FN bool dvti_model(dvt_virtual_model *out) {
    if (!dvti_atomic_load(&dvti_model_set))
        return false;
    dvti_mutex_lock(&dvti_model_lock);
    *out = dvti_model_now;
    dvti_mutex_unlock(&dvti_model_lock);
    return dvti_model_is_any(out);
}

DVT_API dvt_status dvt_set_virtual_model(const dvt_virtual_model *model) {
    dvt_virtual_model none;
    memset(&none, 0, sizeof none);
    if (!model)
        model = &none;
    if (!dvti_model_ok(model))
        return dvti_fail(
            DVT_ERR_RANGE,
            "dvt_set_virtual_model: latency %g s, bandwidth %g bytes/s, launch %g s, "
            "flops %g/s; expected finite numbers of at least 0: start from a model of zeros",
            model->latency, model->bandwidth, model->launch, model->flops);
    dvti_mutex_lock(&dvti_model_lock);
    dvti_model_was_read = true;
    dvti_model_now = *model;
    dvti_atomic_store(&dvti_model_set, dvti_model_is_any(model));
    dvti_mutex_unlock(&dvti_model_lock);
    return DVT_OK;
}

DVT_API dvt_virtual_model dvt_get_virtual_model(void) {
    dvt_virtual_model model;
    dvti_mutex_lock(&dvti_model_lock);
    dvti_model_read();
    model = dvti_model_now;
    dvti_mutex_unlock(&dvti_model_lock);
    return model;
}

/* ---- the clock ---- */
DVT_API double dvt_virtual_seconds(void) {
    return dvti_model_time;
}

DVTI_FN double *dvti_model_clock(void) {
    return &dvti_model_time;
}

DVTI_FN void dvti_model_wait(const dvt_virtual_model *model, double begin, double seconds) {
    double left;
    if (model->clock_only)
        return;
    while ((left = begin + seconds - dvti_now()) > 0)
        dvti_sleep(left);
}

/* ---- what work takes ---- */
DVTI_FN double dvti_model_copy(const dvt_virtual_model *model, int64_t bytes) {
    return model->latency + (model->bandwidth > 0 ? (double)bytes / model->bandwidth : 0);
}

static double dvti_model_size(const dvti_view *view) {
    double size = 1;
    int i;
    for (i = 0; i < view->ndim; i++)
        size *= (double)view->dim[i];
    return size;
}

/* Returns the operations of a launch: 2 for each multiply-add of products and convolutions,
   otherwise 1 for each element of the largest argument. */
static double dvti_model_operations(const dvti_launch *launch) {
    double most = 0, size;
    int i;
    if (launch->op == DVTI_OP_matmul || launch->op == DVTI_OP_conv2d ||
        launch->op == DVTI_OP_conv2d_data || launch->op == DVTI_OP_conv2d_weight)
        return 2 * dvti_multiply_adds(launch);
    for (i = 0; i < launch->n_in + launch->n_out; i++) {
        size = dvti_model_size(i < launch->n_in ? &launch->in[i] : &launch->out[i - launch->n_in]);
        most = size > most ? size : most;
    }
    return most;
}

DVTI_FN double dvti_model_launch(const dvt_virtual_model *model, const dvti_launch *launch) {
    return model->flops > 0 ? dvti_model_operations(launch) / model->flops : 0;
}
