/* The built-in names of a CUDA compiler, for clang without its headers. */
#define __global__ __attribute__((global))
#define __device__ __attribute__((device))
#define __shared__ __attribute__((shared))
#define __constant__ __attribute__((constant))
#define __noinline__ __attribute__((noinline))

struct simulated_thread {
    static __device__ unsigned get_x() {
        return __nvvm_read_ptx_sreg_tid_x();
    }

    static __device__ unsigned get_y() {
        return __nvvm_read_ptx_sreg_tid_y();
    }

    __declspec(property(get = get_x)) unsigned x;
    __declspec(property(get = get_y)) unsigned y;
};

struct simulated_block {
    static __device__ unsigned get_x() {
        return __nvvm_read_ptx_sreg_ctaid_x();
    }

    __declspec(property(get = get_x)) unsigned x;
};

struct simulated_size {
    static __device__ unsigned get_x() {
        return __nvvm_read_ptx_sreg_ntid_x();
    }

    static __device__ unsigned get_y() {
        return __nvvm_read_ptx_sreg_ntid_y();
    }

    __declspec(property(get = get_x)) unsigned x;
    __declspec(property(get = get_y)) unsigned y;
};

extern const __device__ __attribute__((weak)) simulated_thread threadIdx;
extern const __device__ __attribute__((weak)) simulated_block blockIdx;
extern const __device__ __attribute__((weak)) simulated_size blockDim;

#define __shfl_xor_sync(mask, value, lanes) __nvvm_shfl_sync_bfly_i32(mask, value, lanes, 31)
#define __shfl_down_sync(mask, value, lanes) __nvvm_shfl_sync_down_i32(mask, value, lanes, 31)
#define __ballot_sync(mask, value) __nvvm_vote_ballot_sync(mask, value)
#define __popc(x) __builtin_popcount(x)
#define __clz(x) __builtin_clz(x)
#define atomicAdd(address, value) __nvvm_atom_add_gen_i(address, value)
#define atomicMax(address, value) __nvvm_atom_max_gen_i(address, value)
#define atomicCAS(address, compare, value) __nvvm_atom_cas_gen_i(address, compare, value)
