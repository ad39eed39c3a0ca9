/* Creation of values. One thread per element; threads loop over larger arrays.

     fill     out[...] = value, any strides
     arange   out[at] = first + at * step, contiguous; the last value is exactly `last` when `fixed`
     eye      out[row][column] = column - row == i0

   Launch: one-dimensional, 256 threads. Variant: D the dtype. */

extern "C" __global__ void dvti_fill(const dvti_kfill p) {
#pragma unroll 1
    for (int64_t at = dvti_thread(); at < p.n; at += dvti_threads()) {
        const int64_t place = dvti_offset<int64_t>(p.out, at);
        if constexpr (DVTI_IS_FLOAT(D))
            dvti_store<D>(p.out.data, place, p.f0);
        else
            dvti_store<D>(p.out.data, place, p.i0);
    }
}

extern "C" __global__ void dvti_arange(const dvti_kfill p) {
#pragma unroll 1
    for (int64_t at = dvti_thread(); at < p.n; at += dvti_threads()) {
        if constexpr (DVTI_IS_FLOAT(D))
            dvti_store<D>(p.out.data, at,
                          p.fixed && at == p.n - 1 ? p.last : p.f0 + (double)at * p.f1);
        else
            dvti_store<D>(p.out.data, at,
                          (int64_t)((uint64_t)p.i0 + (uint64_t)at * (uint64_t)p.i1));
    }
}

extern "C" __global__ void dvti_eye(const dvti_kfill p) {
#pragma unroll 1
    for (int64_t at = dvti_thread(); at < p.n; at += dvti_threads()) {
        const int64_t row = at / p.out.dim[1], column = at % p.out.dim[1];
        dvti_store<D>(p.out.data, row * p.out.stride[0] + column * p.out.stride[1],
                      (int64_t)(column - row == p.i0));
    }
}
