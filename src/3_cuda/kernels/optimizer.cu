/* One step of an optimizer per element, in place, of many parameters at once. The formulas are in
   2_core/math/optimizer_steps.inl, which precedes this file; UPDATE is one of them.

   Each parameter is cut into chunks of CHUNK elements, and blocks take chunks in turn:

     parameter 0         parameter 1   parameter 2
     | 0 | 1 | 2 | 3 |   | 4 |         | 5 | 6 |      chunk c goes to block c modulo the grid

   All arrays are contiguous. A thread moves N elements of each array with one access, and issues
   all loads before the first use. Elements after a parameter's last full group are updated one by
   one.

   Launch: one-dimensional, 256 threads.

   Variant: UPDATE, FLAG, STATES arrays of state; D_W, D_S0 .. D_S2, D_G; N.

   Numerics: float64 and one rounding per array, in the CPU's order and without contraction, so that
   a step gives the same bits on every device. A step reads and writes up to 28 bytes per element,
   which hides the arithmetic on data-center GPUs. GPUs with few float64 units take longer, but a
   step is still short next to the gradients. */

/* Loads M elements, starting at group number `at`. */
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

/* The arrays of one parameter. */
struct dvti_opt_arrays {
    void *w, *g, *state[3];
    const double *f;
    int64_t n;
};

template <int M> __device__ inline void dvti_step_group(const dvti_opt_arrays &p, int64_t at) {
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
        dvti_gpu_step e;
        e.w = dvti_widen<D_W, double>(w.v[j]);
        if (STATES > 0)
            e.s[0] = dvti_widen<D_S0, double>(s0.v[j]);
        if (STATES > 1)
            e.s[1] = dvti_widen<D_S1, double>(s1.v[j]);
        if (STATES > 2)
            e.s[2] = dvti_widen<D_S2, double>(s2.v[j]);
        e.g = dvti_gpu_step_gradient(p.f, dvti_widen<D_G, double>(g.v[j]));
        UPDATE(p.f, FLAG, STATES, &e);
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

#define CHUNK (256 * N * 4)
#define WORDS (STATES + 3)

__device__ inline int64_t dvti_opt_size(const dvti_koptimizer &p, int i) {
    return (int64_t)(p.word[i * WORDS + STATES + 2] & (((uint64_t)1 << DVTI_KOPT_ROW_BIT) - 1));
}

__device__ inline dvti_opt_arrays dvti_opt_parameter(const dvti_koptimizer &p, int i) {
    const uint64_t *word = p.word + i * WORDS;
    dvti_opt_arrays a;
    a.w = (void *)word[0];
    a.g = (void *)word[1];
    for (int s = 0; s < STATES; s++)
        a.state[s] = (void *)word[2 + s];
    a.f = p.f[word[STATES + 2] >> DVTI_KOPT_ROW_BIT];
    a.n = dvti_opt_size(p, i);
    return a;
}

/* Minimum blocks per multiprocessor; 0: the compiler's choice, which spills with three states. */
#define RESIDENT (STATES > 2 ? 2 : 0)

extern "C" __global__ void __launch_bounds__(256, RESIDENT)
    dvti_optimizer(const dvti_koptimizer p) {
    int64_t before = 0; /* chunks of the parameters before this one */
    int i = 0;
    for (int64_t chunk = blockIdx.x; chunk < p.chunks; chunk += gridDim.x) {
        for (;; i++) {
            const int64_t chunks = (dvti_opt_size(p, i) + CHUNK - 1) / CHUNK;
            if (chunk - before < chunks)
                break;
            before += chunks;
        }
        const dvti_opt_arrays a = dvti_opt_parameter(p, i);
        const int64_t first = (chunk - before) * CHUNK, end = min(first + CHUNK, a.n);
        for (int64_t at = first / N + threadIdx.x; at < end / N; at += blockDim.x)
            dvti_step_group<N>(a, at);
        if (N > 1 && end / N * N + threadIdx.x < end)
            dvti_step_group<1>(a, end / N * N + threadIdx.x);
    }
}
