/* The backends of this build: the kernels of each, and the kinds of devices. The only file that
   names all backends. */
#include "3_kernels/dvt_kernels.h"
#include "3_cpu/dvt_cpu.h"
#include "3_cuda/dvt_cuda.h"

#define DVTI_CPU_COLUMN(supports, plan, run, small)                                                \
    { supports, plan, run, small }
#define DVTI_CUDA_COLUMN(plan, run)                                                                \
    { plan, run }

#if defined(DEVTENSOR_NO_CUDA)
#define DVTI_DEFINE_KERNEL(name, of_cpu, of_cuda)                                                  \
    DVTI_FN const dvti_kernel *dvti_kernel_##name(void) {                                          \
        static const dvti_cpu_kernel cpu = DVTI_CPU_COLUMN of_cpu;                                 \
        static const dvti_kernel kernel = {#name, &cpu, NULL};                                     \
        return &kernel;                                                                            \
    }
#else
#define DVTI_DEFINE_KERNEL(name, of_cpu, of_cuda)                                                  \
    DVTI_FN const dvti_kernel *dvti_kernel_##name(void) {                                          \
        static const dvti_cpu_kernel cpu = DVTI_CPU_COLUMN of_cpu;                                 \
        static const dvti_cuda_kernel cuda = DVTI_CUDA_COLUMN of_cuda;                             \
        static const dvti_kernel kernel = {#name, &cpu, &cuda};                                    \
        return &kernel;                                                                            \
    }
#endif
DVTI_KERNELS(DVTI_DEFINE_KERNEL)
#undef DVTI_DEFINE_KERNEL
#undef DVTI_CPU_COLUMN
#undef DVTI_CUDA_COLUMN

/* Lists real GPUs before virtual ones. */
DVTI_FN const dvti_build *dvti_built(void) {
    static const dvti_build built = {{dvti_cpu_kind, dvti_cuda_kind, dvti_virtual_kind, NULL, NULL},
                                     dvti_kernel_elementwise};
    return &built;
}
