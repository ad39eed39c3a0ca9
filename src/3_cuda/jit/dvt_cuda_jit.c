/* Programs on cards: compiled at their first use, loaded into the card's context, looked up by family, variant and entry. */
#include "3_cuda/dvt_cuda.h"
#include "3_cuda/jit/dvt_cuda_jit.h"

struct dvti_cuda_loaded {
    dvti_cuda_program program;
    dvti_cu_module module;
    const char *entry; /* a literal */
    dvti_cu_function function;
};

static dvti_cuda_loaded *dvti_cuda_find(dvti_cuda_card *card, dvti_cuda_program program,
                                        const char *entry) {
    size_t i;
    for (i = 0; i < card->n_loaded; i++) {
        dvti_cuda_loaded *one = &card->loaded[i];
        if (one->program.variant == program.variant && one->program.family == program.family &&
            (!entry || one->entry == entry || strcmp(one->entry, entry) == 0))
            return one;
    }
    return NULL;
}

static dvt_status dvti_cuda_load(dvti_cuda_card *card, const char *function,
                                 dvti_cuda_program program, dvti_cu_module *module) {
    const dvti_cuda_driver *cu = dvti_cuda();
    dvti_cuda_image image;
    dvti_cu_result result;
    dvt_status status = dvti_cuda_compile(card->cc, function, program, &image);
    if (status != DVT_OK)
        return status;
    result = cu->cuModuleLoadDataEx(module, image.bytes, 0, NULL, NULL);
    dvti_free(image.bytes);
    return result == DVTI_CU_OK ? DVT_OK : dvti_cuda_fail(function, "cuModuleLoadDataEx", result);
}

/* With the card's lock held. */
static dvt_status dvti_cuda_resolve(dvti_cuda_card *card, const char *function,
                                    dvti_cuda_program program, const char *entry,
                                    dvti_cu_function *out) {
    dvti_cuda_loaded *one = dvti_cuda_find(card, program, entry), *sibling;
    dvti_cu_module module = NULL;
    dvti_cu_result result;
    dvt_status status = DVT_OK;
    if (one) {
        *out = one->function;
        return DVT_OK;
    }
    if (!dvti_grow((void **)&card->loaded, &card->loaded_capacity, card->n_loaded + 1,
                   sizeof *card->loaded))
        return dvti_fail_memory(function, (int64_t)sizeof *card->loaded);
    sibling = dvti_cuda_find(card, program, NULL);
    if (sibling)
        module = sibling->module;
    else
        status = dvti_cuda_load(card, function, program, &module);
    if (status != DVT_OK)
        return status;
    result = dvti_cuda()->cuModuleGetFunction(out, module, entry);
    if (result != DVTI_CU_OK) {
        if (!sibling)
            dvti_cuda()->cuModuleUnload(module);
        return dvti_cuda_fail(function, "cuModuleGetFunction", result);
    }
    one = &card->loaded[card->n_loaded++];
    one->program = program;
    one->module = module;
    one->entry = entry;
    one->function = *out;
    return DVT_OK;
}

DVTI_FN dvt_status dvti_cuda_function(dvti_cuda_card *card, const char *function,
                                      dvti_cuda_program program, const char *entry,
                                      dvti_cu_function *out) {
    dvt_status status;
    dvti_mutex_lock(&card->lock);
    status = dvti_cuda_resolve(card, function, program, entry, out);
    dvti_mutex_unlock(&card->lock);
    return status;
}
