/* Sums arrays over GPUs that can access each other's memory. Element i of every GPU becomes

     (((x0[i] + x1[i]) + x2[i]) + ...)

   The order is always the order of the GPUs, and the sum is rounded once to the dtype (16-bit
   floats are added in float32). So all GPUs get the same bits, with one stage as with two.

   One stage, for small arrays: one GPU sums and writes the result everywhere. `self` is -1, and the
   other GPUs wait for it.

   Two stages, for large arrays: the elements are cut into one slice per GPU.

     dvti_all_sum      GPU k sums slice k of all GPUs into its own memory; only GPU k accesses
                       that slice of its memory in this stage
     dvti_all_gather   each GPU copies the other slices from the GPUs that summed them

   All GPUs wait for each other between the stages.

   Launch: grid x: blocks of 256 threads over the elements; grid y: the array. Variant: D the
   dtype. */

#if D == 1
typedef double dvti_sum_type;
#elif D == 0 || D == 2 || D == 3
typedef float dvti_sum_type;
#else
typedef int64_t dvti_sum_type;
#endif

/* Returns the first element of slice k. Slices are multiples of 64 elements, so that no two GPUs
   share a sector. */
__device__ inline int64_t dvti_slice(int64_t count, int64_t devices, int64_t k) {
    const int64_t size = ((count + devices - 1) / devices + 63) / 64 * 64;
    return k * size < count ? k * size : count;
}

extern "C" __global__ void dvti_all_sum(const dvti_kall p) {
    void *const *at = p.at + blockIdx.y * p.devices;
    const int64_t count = p.count[blockIdx.y], n = p.devices;
    const int64_t begin = p.self < 0 ? 0 : dvti_slice(count, n, p.self);
    const int64_t end = p.self < 0 ? count : dvti_slice(count, n, p.self + 1);
    for (int64_t i = begin + dvti_thread(); i < end; i += dvti_threads()) {
        dvti_sum_type sum = dvti_load<D, dvti_sum_type>(at[0], i);
        for (int64_t k = 1; k < n; k++)
            sum += dvti_load<D, dvti_sum_type>(at[k], i);
        if (p.self >= 0)
            dvti_store<D>(at[p.self], i, sum);
        else
            for (int64_t k = 0; k < n; k++)
                dvti_store<D>(at[k], i, sum);
    }
}

extern "C" __global__ void dvti_all_gather(const dvti_kall p) {
    typedef dvti_stored<D>::type T;
    void *const *at = p.at + blockIdx.y * p.devices;
    const int64_t count = p.count[blockIdx.y], size = dvti_slice(count, p.devices, 1);
    for (int64_t i = dvti_thread(); i < count; i += dvti_threads()) {
        const int64_t owner = i / size;
        if (owner != p.self)
            ((T *)at[p.self])[i] = ((const T *)at[owner])[i];
    }
}
