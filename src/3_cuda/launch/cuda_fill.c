/* Creation of values: kernels fill, arange and eye (kernels/fill.cu). Variant: the dtype. The
   driver writes contiguous zeros, which needs no program. */
#include "3_cuda/dvt_cuda.h"

DVTI_FN void dvti_cuda_describe_fill(uint64_t variant, dvti_text *text) {
    dvti_text_add(text, "#define D %d\n", (int)variant);
}

/* Returns whether the result is 0 in every dtype, not -0, and contiguous. */
static bool dvti_cuda_fills_zeros(const dvti_launch *launch) {
    const dvti_view *out = &launch->out[0];
    int64_t stride = 1;
    int axis;
    if (launch->op != DVTI_OP_fill || launch->i[0] != 0 || launch->f[0] != 0 ||
        signbit(launch->f[0]))
        return false;
    for (axis = out->ndim - 1; axis >= 0; stride *= out->dim[axis--])
        if (out->stride[axis] != stride && out->dim[axis] != 1)
            return false;
    return true;
}

DVTI_FN dvt_status dvti_cuda_fill(dvti_cuda_gpu *gpu, const dvti_launch *launch) {
    const dvti_view *out = &launch->out[0];
    dvti_cuda_program program;
    dvti_kfill args;
    const char *entry = launch->op == DVTI_OP_fill     ? "dvti_fill"
                        : launch->op == DVTI_OP_arange ? "dvti_arange"
                                                       : "dvti_eye";
    if (dvti_cuda_fills_zeros(launch))
        return dvti_cuda_start_zeros(gpu, launch, out);
    dvti_clear(&args, sizeof args);
    program = DVTI_CUDA_PROGRAM(fill);
    program.variant = (uint64_t)out->dtype;
    dvti_cuda_view(&args.out, out);
    args.n = dvti_cuda_view_size(out);
    args.f0 = launch->f[0];
    args.f1 = launch->f[1];
    args.last = launch->f[2];
    args.i0 = launch->i[0];
    args.i1 = launch->i[1];
    args.fixed = launch->i[2];
    return dvti_cuda_start(gpu, launch, &program, entry, dvti_cuda_grid_for(gpu, args.n, 256, 1),
                           &args, sizeof args);
}
