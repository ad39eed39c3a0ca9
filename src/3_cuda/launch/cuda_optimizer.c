/* Optimiser steps (kernels/optimizer.cu). Variant, from the lowest bit: 3 rule, 1 flag, 2 states, 5 x 4 dtypes (weight, three
   states, gradient), 2 log2 of N. */
#include "3_cuda/dvt_cuda.h"

#define DVTI_OPT_MOST 4 /* elements per access: 16 bytes of float32 */

DVTI_FN void dvti_cuda_describe_optimizer(uint64_t variant, dvti_text *text) {
    static const char *const name[] = {"W", "S0", "S1", "S2", "G"};
    int k;
    dvti_text_add(text, "#define RULE %d\n", (int)(variant & 7));
    dvti_text_add(text, "#define FLAG %d\n", (int)(variant >> 3 & 1));
    dvti_text_add(text, "#define STATES %d\n", (int)(variant >> 4 & 3));
    for (k = 0; k < 5; k++)
        dvti_text_add(text, "#define D_%s %d\n", name[k], (int)(variant >> (6 + 4 * k) & 15));
    dvti_text_add(text, "#define N %d\n", 1 << (variant >> 26 & 3));
}

static uint64_t dvti_cuda_opt_rule(dvti_op op) {
    return op == DVTI_OP_sgd       ? 0
           : op == DVTI_OP_adam    ? 1
           : op == DVTI_OP_adamw   ? 2
           : op == DVTI_OP_rmsprop ? 3
                                   : 4;
}

DVTI_FN dvt_status dvti_cuda_optimizer(dvti_cuda_gpu *gpu, const dvti_launch *launch) {
    const dvti_view *view[5]; /* in the order of the dtypes */
    dvti_cuda_program program;
    dvti_koptimizer args;
    int states = launch->n_out - 1, each = DVTI_OPT_MOST, k;
    memset(&args, 0, sizeof args);
    program.family = DVTI_CUDA_FAMILY_optimizer;
    program.variant =
        dvti_cuda_opt_rule(launch->op) | (uint64_t)(launch->i[0] != 0) << 3 | (uint64_t)states << 4;
    for (k = 0; k < 5; k++) {
        view[k] = k == 4 ? &launch->in[0] : &launch->out[k <= states ? k : 0];
        program.variant |= (uint64_t)view[k]->dtype << (6 + 4 * k);
        while (each * dvt_dtype_size(view[k]->dtype) > 16 ||
               (uintptr_t)view[k]->data % (uintptr_t)(each * dvt_dtype_size(view[k]->dtype)))
            each /= 2;
    }
    program.variant |= (uint64_t)(each / 2) << 26; /* 4, 2, 1 */
    args.w = view[0]->data;
    for (k = 0; k < states; k++)
        args.state[k] = view[1 + k]->data;
    args.g = view[4]->data;
    args.n = dvti_cuda_view_size(view[0]);
    memcpy(args.f, launch->f, sizeof args.f);
    return dvti_cuda_start(gpu, launch, program, "dvti_optimizer",
                           dvti_cuda_grid_for(gpu, args.n, 256, each), &args, sizeof args);
}

#undef DVTI_OPT_MOST
