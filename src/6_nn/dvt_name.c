/* Names of parameters: one counter per kind of block, for the whole process. */
#include "6_nn/dvt_nn_internal.h"

/* A table of fixed size. When it is full, further kinds share one counter, so names stay unique. */
typedef struct dvti_kind_counter {
    char stem[40];
    int64_t next;
} dvti_kind_counter;

static dvti_mutex dvti_name_lock = DVTI_MUTEX_INIT;
static dvti_kind_counter dvti_kinds[64];
static int64_t dvti_kinds_other;

/* Returns the next number of a stem. The lock is held. */
static int64_t dvti_next_number(const char *stem) {
    int i;
    for (i = 0; i < DVTI_LENGTH(dvti_kinds); i++)
        if (!dvti_kinds[i].stem[0] || strcmp(dvti_kinds[i].stem, stem) == 0)
            break;
    if (i == DVTI_LENGTH(dvti_kinds) || strlen(stem) >= sizeof dvti_kinds[i].stem)
        return dvti_kinds_other++;
    memcpy(dvti_kinds[i].stem, stem, strlen(stem) + 1);
    return dvti_kinds[i].next++;
}

DVTI_FN size_t dvti_param_name_size(const dvt_block *block, const char *short_name) {
    return strlen(block->stem) + strlen(short_name) + 24; /* 20 digits, _ and the final 0 */
}

static void dvti_param_compose(dvt_param *p, int64_t number) {
    snprintf(p->name_text, dvti_param_name_size(p->block, p->short_name), "%s%lld_%s",
             p->block->stem, (long long)number, p->short_name);
}

DVTI_FN void dvti_param_write_name(dvt_param *p) {
    int64_t number = dvti_atomic_load(&p->block->number);
    if (number >= 0)
        dvti_param_compose(p, number);
}

DVTI_FN void dvti_block_name(dvt_block *block) {
    size_t i;
    int64_t number;
    if (dvti_atomic_load(&block->number) >= 0)
        return;
    dvti_mutex_lock(&dvti_name_lock);
    if (dvti_atomic_load(&block->number) < 0) {
        number = dvti_next_number(block->stem);
        for (i = 0; i < block->n_param; i++)
            dvti_param_compose(block->param[i], number);
        dvti_atomic_store(&block->number, number);
    }
    dvti_mutex_unlock(&dvti_name_lock);
}

DVTI_FN const char *dvti_param_name(const dvt_param *p) {
    if (p->block)
        dvti_block_name(p->block);
    return p->name_text;
}
