/* The loaded functions of a physical GPU. Every launch looks for one, without a lock: they stay
   loaded and as they are until the process ends. */
#include "3_cuda/jit/dvt_cuda_jit.h"

static dvti_atomic *dvti_cuda_slot(dvti_cuda_physical *physical, const dvti_cuda_program *program) {
    uint64_t hash = (program->variant + (uint64_t)program->family) * 0x9e3779b97f4a7c15u;
    return &physical->loaded[hash >> 32 & (DVTI_CUDA_SLOTS - 1)];
}

static const dvti_cuda_loaded *dvti_cuda_slot_first(dvti_cuda_physical *physical,
                                                    const dvti_cuda_program *program) {
    return (const dvti_cuda_loaded *)(uintptr_t)dvti_atomic_load(dvti_cuda_slot(physical, program));
}

DVTI_FN const dvti_cuda_loaded *
dvti_cuda_find(dvti_cuda_physical *physical, const dvti_cuda_program *program, const char *entry) {
    const dvti_cuda_loaded *one;
    for (one = dvti_cuda_slot_first(physical, program); one; one = one->next)
        if (one->program.variant == program->variant && one->program.family == program->family &&
            one->program.more == program->more &&
            (!entry || one->entry == entry || strcmp(one->entry, entry) == 0))
            return one;
    return NULL;
}

DVTI_FN bool dvti_cuda_loaded_function(dvti_cuda_physical *physical,
                                       const dvti_cuda_program *program, const char *entry,
                                       dvti_cu_function *out) {
    const dvti_cuda_loaded *one = dvti_cuda_find(physical, program, entry);
    if (one)
        *out = one->function;
    return one != NULL;
}

DVTI_FN void dvti_cuda_loaded_add(dvti_cuda_physical *physical, dvti_cuda_loaded *one) {
    one->next = dvti_cuda_slot_first(physical, &one->program);
    dvti_atomic_publish(dvti_cuda_slot(physical, &one->program), (int64_t)(uintptr_t)one);
}
