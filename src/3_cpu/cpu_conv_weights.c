/* Weights and bias as the kernels of convolutions want them (cpu_conv.h). */
#include "3_cpu/cpu_conv.h"

typedef struct dvti_cv_pack {
    const dvti_cv *p;
    float *to;
} dvti_cv_pack;

static void dvti_cv_widen(void *user, int64_t begin, int64_t end) {
    const dvti_cv_pack *job = (const dvti_cv_pack *)user;
    const dvti_view *w = &job->p->launch->in[1];
    int64_t n = DVTI_MIN(end * 64, job->p->o * job->p->taps) - begin * 64;
    job->p->by->copy(job->to + begin * 64, 0, (const char *)w->data + begin * 64 * job->p->size,
                     w->dtype, 0, 1, n);
}

/* [group][tap][channel out] */
static void dvti_cv_turn(void *user, int64_t begin, int64_t end) {
    const dvti_cv_pack *job = (const dvti_cv_pack *)user;
    const dvti_cv *p = job->p;
    int64_t group, tap, taps, at;
    for (at = begin; at < end; at += taps) {
        group = at / p->taps;
        tap = at % p->taps;
        taps = DVTI_MIN(p->taps - tap, end - at);
        p->by->turn(job->to + at * p->weight_row, p->weight_row,
                    (const char *)p->launch->in[1].data + (group * p->og * p->taps + tap) * p->size,
                    p->dtype, p->taps, taps, p->og);
    }
}

/* [channel of dx][channel of dy in the group][tap], taps from the last one to the first. */
static void dvti_cv_turn_round_taps(void *user, int64_t begin, int64_t end) {
    const dvti_cv_pack *job = (const dvti_cv_pack *)user;
    const dvti_cv *p = job->p;
    const char *w = (const char *)p->launch->in[1].data;
    int64_t at, i, k;
    for (at = begin; at < end; at++)
        for (i = 0; i < p->cg; i++) {
            int64_t from = ((at / p->og * p->cg + i) * p->og + at % p->og) * p->kernel;
            float *to = job->to + (at * p->cg + i) * p->kernel;
            if (p->dtype == DVT_F32)
                for (k = 0; k < p->kernel; k++)
                    to[p->kernel - 1 - k] = ((const float *)(const void *)w)[from + k];
            else
                dvti_load_row_f32(w + (from + p->kernel - 1) * p->size, p->dtype, -1, p->kernel,
                                  to);
        }
}

static void dvti_cv_prepare_weights(dvti_cv *p, char *workspace) {
    int64_t *at = (int64_t *)(void *)workspace;
    dvti_cv_pack job;
    dvti_cv_table(p, at);
    p->at = at;
    p->row_at = at + p->taps;
    p->partial = dvti_cv_floats(workspace, p->partial_at);
    job.p = p;
    job.to = dvti_cv_floats(workspace, p->weight_at);
    p->weight = job.to;
    if (p->op == DVTI_OP_conv2d_weight)
        return;
    if (p->bare)
        dvti_parallel_for(p->o, (double)p->taps * 0.7, dvti_cv_bare_weights, p);
    else if (p->turned)
        dvti_parallel_for(p->o, (double)p->taps * 0.7, dvti_cv_turn_round_taps, &job);
    else if (p->op == DVTI_OP_conv2d_data)
        dvti_parallel_for(p->groups * p->taps, (double)p->og * 0.5, dvti_cv_turn, &job);
    else if (p->dtype != DVT_F32)
        dvti_parallel_for((p->o * p->taps + 63) / 64, 10, dvti_cv_widen, &job);
    else
        p->weight = (const float *)p->launch->in[1].data;
}

DVTI_FN void dvti_cv_prepare(dvti_cv *p, char *workspace) {
    const dvti_launch *launch = p->launch;
    if (p->winograd)
        dvti_wg_prepare(p, workspace);
    else
        dvti_cv_prepare_weights(p, workspace);
    if (launch->op != DVTI_OP_conv2d || launch->n_in < 3)
        return;
    p->bias = (const float *)launch->in[2].data;
    if (p->dtype != DVT_F32) {
        float *bias = dvti_cv_floats(workspace, p->bias_at);
        dvti_load_row_f32(launch->in[2].data, p->dtype, 1, p->o, bias);
        p->bias = bias;
    }
}
