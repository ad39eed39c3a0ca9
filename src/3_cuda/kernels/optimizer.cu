/* One optimiser step per element, in place; the formulas and their sources are in 3_cpu/ref/ref_optimizer.c. With g the gradient,
   rescaled and clipped, w the weight, d the weight decay, a the rate:

   sgd       w <- w - a (g + d w); with momentum u: m <- u m - a (g + d w), w <- w + m, or Nesterov's w <- w + u m - a (g + d w)
   adam      h = g + d w; m <- b1 m + (1 - b1) h, v <- b2 v + (1 - b2) h h, w <- w - a' m / (sqrt(v) + e)
   adamw     the same with h = g, and w <- .. - a d w
   rmsprop   h = g + d w; n <- r n + (1 - r) h h, w <- w - a h / sqrt(n + e)
             centered: s <- r s + (1 - r) h, m <- u m - a h / sqrt(n - s s + e), w <- w + m
   adagrad   n <- n + g g, w <- w - a (g / sqrt(n + e) + d w)

   All arrays are contiguous. A thread moves N elements of each with one access, all loads before the first use, and loops
   over what is left; elements after the last whole group are done one by one.

   Launch: one-dimensional, 256 threads.
   Variant: RULE, FLAG (nesterov, centered), STATES arrays of state; D_W, D_S0 .. D_S2, D_G; N.
   Numerics: float64 and one rounding per array, in the CPU's order and without contraction, so that a step gives the same bits
   on every device. It reads and writes up to 28 bytes per element, under which a data centre's card hides this; cards with few
   float64 units take longer for a step, which is still little beside the gradients. */

#define SGD 0
#define ADAM 1
#define ADAMW 2
#define RMSPROP 3
#define ADAGRAD 4

/* What one element's step reads and writes. */
struct dvti_step {
    double w, s[3];
};

__device__ inline void dvti_step_sgd(const dvti_koptimizer &p, dvti_step &e, double g) {
    const double momentum = p.f[4], change = -p.f[0] * (g + p.f[1] * e.w);
    if (STATES == 0) {
        e.w += change;
        return;
    }
    e.s[0] = momentum * e.s[0] + change;
    e.w += FLAG ? momentum * e.s[0] + change : e.s[0];
}

__device__ inline void dvti_step_adam(const dvti_koptimizer &p, dvti_step &e, double g) {
    const double decay = p.f[1], b1 = p.f[4], b2 = p.f[5];
    const double h = RULE == ADAM ? g + decay * e.w : g;
    e.s[0] = b1 * e.s[0] + (1 - b1) * h;
    e.s[1] = b2 * e.s[1] + (1 - b2) * h * h;
    e.w -= p.f[7] * e.s[0] / (sqrt(e.s[1]) + p.f[6]) + (RULE == ADAMW ? p.f[0] * decay * e.w : 0);
}

__device__ inline void dvti_step_rmsprop(const dvti_koptimizer &p, dvti_step &e, double g) {
    const double rate = p.f[0], r = p.f[4], h = g + p.f[1] * e.w;
    e.s[0] = r * e.s[0] + (1 - r) * h * h;
    if (!FLAG) {
        e.w -= rate * h / sqrt(e.s[0] + p.f[6]);
        return;
    }
    e.s[1] = r * e.s[1] + (1 - r) * h;
    /* The difference is a variance; rounding may leave it a little below 0. */
    e.s[2] = p.f[5] * e.s[2] - rate * h / sqrt(fmax(e.s[0] - e.s[1] * e.s[1], 0.0) + p.f[6]);
    e.w += e.s[2];
}

__device__ inline void dvti_step_adagrad(const dvti_koptimizer &p, dvti_step &e, double g) {
    e.s[0] += g * g;
    e.w -= p.f[0] * (g / sqrt(e.s[0] + p.f[6]) + p.f[1] * e.w);
}

__device__ inline void dvti_step_one(const dvti_koptimizer &p, dvti_step &e, double gradient) {
    const double clip = p.f[3];
    double g = p.f[2] * gradient;
    if (clip > 0)
        g = g > clip ? clip : g < -clip ? -clip : g;
    if (RULE == SGD)
        dvti_step_sgd(p, e, g);
    if (RULE == ADAM || RULE == ADAMW)
        dvti_step_adam(p, e, g);
    if (RULE == RMSPROP)
        dvti_step_rmsprop(p, e, g);
    if (RULE == ADAGRAD)
        dvti_step_adagrad(p, e, g);
}

/* M elements from group number `at` on. */
template <int D, int M>
__device__ inline dvti_group<D, M> dvti_group_get(const void *data, int64_t at) {
    dvti_group<D, M> group;
    group.word = ((const decltype(group.word) *)data)[at];
    return group;
}

template <int D, int M>
__device__ inline void dvti_group_put(void *data, int64_t at, const dvti_group<D, M> &group) {
    ((decltype(group.word) *)data)[at] = group.word;
}

template <int M> __device__ inline void dvti_step_group(const dvti_koptimizer &p, int64_t at) {
    dvti_group<D_W, M> w = dvti_group_get<D_W, M>(p.w, at);
    dvti_group<D_G, M> g = dvti_group_get<D_G, M>(p.g, at);
    dvti_group<D_S0, M> s0;
    dvti_group<D_S1, M> s1;
    dvti_group<D_S2, M> s2;
    if (STATES > 0)
        s0 = dvti_group_get<D_S0, M>(p.state[0], at);
    if (STATES > 1)
        s1 = dvti_group_get<D_S1, M>(p.state[1], at);
    if (STATES > 2)
        s2 = dvti_group_get<D_S2, M>(p.state[2], at);
#pragma unroll
    for (int j = 0; j < M; j++) {
        dvti_step e;
        e.w = dvti_widen<D_W, double>(w.v[j]);
        if (STATES > 0)
            e.s[0] = dvti_widen<D_S0, double>(s0.v[j]);
        if (STATES > 1)
            e.s[1] = dvti_widen<D_S1, double>(s1.v[j]);
        if (STATES > 2)
            e.s[2] = dvti_widen<D_S2, double>(s2.v[j]);
        dvti_step_one(p, e, dvti_widen<D_G, double>(g.v[j]));
        w.v[j] = dvti_narrow<D_W>(e.w);
        if (STATES > 0)
            s0.v[j] = dvti_narrow<D_S0>(e.s[0]);
        if (STATES > 1)
            s1.v[j] = dvti_narrow<D_S1>(e.s[1]);
        if (STATES > 2)
            s2.v[j] = dvti_narrow<D_S2>(e.s[2]);
    }
    dvti_group_put<D_W, M>(p.w, at, w);
    if (STATES > 0)
        dvti_group_put<D_S0, M>(p.state[0], at, s0);
    if (STATES > 1)
        dvti_group_put<D_S1, M>(p.state[1], at, s1);
    if (STATES > 2)
        dvti_group_put<D_S2, M>(p.state[2], at, s2);
}

extern "C" __global__ void __launch_bounds__(256) dvti_optimizer(const dvti_koptimizer p) {
    const int64_t groups = p.n / N;
    for (int64_t at = dvti_thread(); at < groups; at += dvti_threads())
        dvti_step_group<N>(p, at);
    if (N > 1)
        for (int64_t at = groups * N + dvti_thread(); at < p.n; at += dvti_threads())
            dvti_step_group<1>(p, at);
}
