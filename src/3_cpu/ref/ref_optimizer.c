/* One optimiser step per element, in place. g is always rescale * gradient, clipped; w the weight, d the weight decay, a the rate.

   sgd       w <- w - a (g + d w);  with momentum u:  m <- u m - a (g + d w), w <- w + m;
             Nesterov:  w <- w + u m - a (g + d w), with the new m. Source: MXNet; Sutskever et al., 2013
   adam      h = g + d w;  m <- b1 m + (1 - b1) h,  v <- b2 v + (1 - b2) h h,  w <- w - a' m / (sqrt(v) + e)
             with a' = a sqrt(1 - b2^t) / (1 - b1^t). Source: Kingma and Ba, 2014
   adamw     the same with h = g, and w <- w - a' m / (sqrt(v) + e) - a d w. Source: Loshchilov and Hutter, 2017
   rmsprop   h = g + d w;  n <- r n + (1 - r) h h,  w <- w - a h / sqrt(n + e). Source: Tieleman and Hinton, 2012
             centered:  s <- r s + (1 - r) h,  m <- u m - a h / sqrt(n - s s + e),  w <- w + m. Source: Graves, 2013
   adagrad   n <- n + g g,  w <- w - a (g / sqrt(n + e) + d w). Source: Duchi et al., 2011

   Computed in float64 and rounded once per array: a step is bound by memory, and the result then depends on nothing else. */
#include "3_cpu/dvt_cpu.h"

/* What one element's step reads and writes: the weight, and up to three state values. */
typedef struct dvti_step_state {
    double w, s[3];
} dvti_step_state;

static void dvti_step_sgd(const dvti_launch *l, dvti_step_state *e, double g) {
    double rate = l->f[0], momentum = l->f[4], change = -rate * (g + l->f[1] * e->w);
    if (momentum == 0) {
        e->w += change;
        return;
    }
    e->s[0] = momentum * e->s[0] + change;
    e->w += l->i[0] ? momentum * e->s[0] + change : e->s[0];
}

static void dvti_step_adam(const dvti_launch *l, dvti_step_state *e, double g) {
    double decay = l->f[1], b1 = l->f[4], b2 = l->f[5];
    double h = l->op == DVTI_OP_adam ? g + decay * e->w : g;
    e->s[0] = b1 * e->s[0] + (1 - b1) * h;
    e->s[1] = b2 * e->s[1] + (1 - b2) * h * h;
    e->w -= l->f[7] * e->s[0] / (sqrt(e->s[1]) + l->f[6]) +
            (l->op == DVTI_OP_adamw ? l->f[0] * decay * e->w : 0);
}

static void dvti_step_rmsprop(const dvti_launch *l, dvti_step_state *e, double g) {
    double rate = l->f[0], r = l->f[4], h = g + l->f[1] * e->w;
    e->s[0] = r * e->s[0] + (1 - r) * h * h;
    if (!l->i[0]) {
        e->w -= rate * h / sqrt(e->s[0] + l->f[6]);
        return;
    }
    e->s[1] = r * e->s[1] + (1 - r) * h;
    /* The difference is a variance; rounding may leave it a little below 0. */
    e->s[2] = l->f[5] * e->s[2] - rate * h / sqrt(fmax(e->s[0] - e->s[1] * e->s[1], 0) + l->f[6]);
    e->w += e->s[2];
}

static void dvti_step_adagrad(const dvti_launch *l, dvti_step_state *e, double g) {
    e->s[0] += g * g;
    e->w -= l->f[0] * (g / sqrt(e->s[0] + l->f[6]) + l->f[1] * e->w);
}

static void dvti_optimizer_range(void *user, int64_t begin, int64_t end) {
    const dvti_launch *l = (const dvti_launch *)user;
    void (*step)(const dvti_launch *, dvti_step_state *, double) =
        l->op == DVTI_OP_sgd       ? dvti_step_sgd
        : l->op == DVTI_OP_rmsprop ? dvti_step_rmsprop
        : l->op == DVTI_OP_adagrad ? dvti_step_adagrad
                                   : dvti_step_adam;
    double clip = l->f[3];
    int64_t at;
    for (at = begin; at < end; at++) {
        dvti_step_state e;
        double g = l->f[2] * dvti_load_f64(l->in[0].data, l->in[0].dtype, at);
        int k;
        if (clip > 0)
            g = g > clip ? clip : g < -clip ? -clip : g;
        e.w = dvti_load_f64(l->out[0].data, l->out[0].dtype, at);
        for (k = 1; k < l->n_out; k++)
            e.s[k - 1] = dvti_load_f64(l->out[k].data, l->out[k].dtype, at);
        step(l, &e, g);
        dvti_store_f64(l->out[0].data, l->out[0].dtype, at, e.w);
        for (k = 1; k < l->n_out; k++)
            dvti_store_f64(l->out[k].data, l->out[k].dtype, at, e.s[k - 1]);
    }
}

DVTI_FN void dvti_ref_optimizer(const dvti_launch *launch) {
    dvti_parallel_for(dvti_view_size(&launch->out[0]), 4, dvti_optimizer_range,
                      (void *)(uintptr_t)launch);
}
