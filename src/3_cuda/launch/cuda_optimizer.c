/* Steps of optimizers (kernels/optimizer.cu). Variant, from the lowest bit: 5 row of the table, 1
   flag, 2 states, 5 x 4 dtypes (weight, three states, gradient), 2 log2 of N. */
#include "3_cuda/dvt_cuda.h"

#define DVTI_OPT_MOST 4 /* elements per access: 16 bytes of float32 */

DVTI_FN void dvti_cuda_describe_optimizer(uint64_t variant, dvti_text *text) {
    static const char *const name[] = {"W", "S0", "S1", "S2", "G"};
#define DVTI_ROW(name, kind, make, epsilon, few, many, states, flag, p0, p1, p2, p3, doc) #name,
    static const char *const rule[] = {DVTI_OPTIMIZER_TABLE(DVTI_ROW)};
#undef DVTI_ROW
    int k;
    dvti_text_add(text, "#define UPDATE dvti_gpu_update_%s\n", rule[variant & 31]);
    dvti_text_add(text, "#define FLAG %d\n", (int)(variant >> 5 & 1));
    dvti_text_add(text, "#define STATES %d\n", (int)(variant >> 6 & 3));
    for (k = 0; k < 5; k++)
        dvti_text_add(text, "#define D_%s %d\n", name[k], (int)(variant >> (8 + 4 * k) & 15));
    dvti_text_add(text, "#define N %d\n", 1 << (variant >> 28 & 3));
    dvti_cuda_add_functions(text, "optimizer_steps.inl");
}

DVTI_FN dvt_status dvti_cuda_optimizer(dvti_cuda_gpu *gpu, const dvti_launch *launch) {
    const dvti_view *view[5]; /* in the order of the dtypes */
    dvti_cuda_program program;
    dvti_koptimizer args;
    int states = launch->n_out - 1, each = DVTI_OPT_MOST, k;
    memset(&args, 0, sizeof args);
    program = DVTI_CUDA_PROGRAM(optimizer);
    program.variant = (uint64_t)((int)launch->op - DVTI_OPTIMIZER_BEGIN) |
                      (uint64_t)(launch->i[0] != 0) << 5 | (uint64_t)states << 6;
    for (k = 0; k < 5; k++) {
        view[k] = k == 4 ? &launch->in[0] : &launch->out[k <= states ? k : 0];
        program.variant |= (uint64_t)view[k]->dtype << (8 + 4 * k);
        while (each * dvt_dtype_size(view[k]->dtype) > 16 ||
               (uintptr_t)view[k]->data % (uintptr_t)(each * dvt_dtype_size(view[k]->dtype)))
            each /= 2;
    }
    program.variant |= (uint64_t)(each / 2) << 28; /* 4, 2, 1 */
    args.w = view[0]->data;
    for (k = 0; k < states; k++)
        args.state[k] = view[1 + k]->data;
    args.g = view[4]->data;
    args.n = dvti_cuda_view_size(view[0]);
    memcpy(args.f, launch->f, sizeof args.f);
    if (!(args.f[3] > 0))
        args.f[3] = (double)INFINITY;
    return dvti_cuda_start(gpu, launch, program, "dvti_optimizer",
                           dvti_cuda_grid_for(gpu, args.n, 256, each), &args, sizeof args);
}

#undef DVTI_OPT_MOST
