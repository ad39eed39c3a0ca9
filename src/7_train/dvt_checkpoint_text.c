/* Numbers and settings of checkpoints as text, with the shortest digits that read back as the same
   number, in any locale. Settings are compared as text. */
#include "7_train/dvt_checkpoint_internal.h"

#if defined(DVTI_CHECKPOINTS)
static int dvti_number_write(char text[DVTI_NUMBER_SIZE], dvt_dtype dtype, const void *value) {
    dvti_print_rules rules;
    dvti_element_format format;
    memset(&rules, 0, sizeof rules);
    rules.style = DVT_PRINT_STR;
    format = dvti_element_plan(&rules, dtype, value, 1, 0);
    return dvti_element_text(text, &format, value);
}

DVTI_FN bool dvti_note_number(const char *function, dvt_array_list *list, const char *key,
                              dvt_dtype dtype, const void *value) {
    char text[DVTI_NUMBER_SIZE];
    dvti_number_write(text, dtype, value);
    return dvti_array_list_note(function, list, key, text);
}

DVTI_FN bool dvti_note_int(const char *function, dvt_array_list *list, const char *key,
                           int64_t value) {
    return dvti_note_number(function, list, key, DVT_I64, &value);
}

DVTI_FN bool dvti_noted_number(const dvt_array_list *list, const char *key, dvt_dtype dtype,
                               void *value) {
    const char *text = dvt_array_list_metadata(list, key);
    return text && dvti_number_parse(text, strlen(text), '.', dtype, value, 0) == DVTI_PARSED;
}

/* ---- settings ---- */
typedef enum dvti_setting_type {
    DVTI_SETTING_DOUBLE,
    DVTI_SETTING_INT64,
    DVTI_SETTING_BOOL,
    DVTI_SETTING_ENUM,
    DVTI_SETTING_STEPS /* schedule.at */
} dvti_setting_type;

typedef struct dvti_setting {
    const char *key;
    dvti_setting_type type;
    size_t offset;
} dvti_setting;

static void dvti_setting_number(dvti_text *text, dvt_dtype dtype, const void *value) {
    char number[DVTI_NUMBER_SIZE];
    dvti_number_write(number, dtype, value);
    dvti_text_add(text, "%s%s", text->length ? " " : "", number);
}

static void dvti_setting_write(const dvti_setting *setting, const void *object,
                               char out[DVTI_SETTING_SIZE]) {
    const char *at = (const char *)object + setting->offset;
    dvti_text text = dvti_text_begin(out, DVTI_SETTING_SIZE);
    const dvt_schedule *schedule;
    int i, number;
    switch (setting->type) {
    case DVTI_SETTING_DOUBLE:
        dvti_setting_number(&text, DVT_F64, at);
        break;
    case DVTI_SETTING_INT64:
        dvti_setting_number(&text, DVT_I64, at);
        break;
    case DVTI_SETTING_BOOL:
        dvti_text_add(&text, "%s", *(const bool *)at ? "true" : "false");
        break;
    case DVTI_SETTING_ENUM:
        memcpy(&number, at, sizeof number);
        dvti_text_add(&text, "%d", number);
        break;
    default:
        schedule = (const dvt_schedule *)at;
        for (i = 0; i < schedule->n_at; i++)
            dvti_setting_number(&text, DVT_I64, &schedule->at[i]);
    }
}

static const char *dvti_optimizer_name(const dvt_optimizer *o) {
    switch (o->kind) {
#define DVTI_ROW(name, kind, make, epsilon, few, many, states, flag, p0, p1, p2, p3, doc)          \
    case DVT_OPTIMIZER_##kind:                                                                     \
        return #name;
        DVTI_OPTIMIZER_TABLE(DVTI_ROW)
#undef DVTI_ROW
    default:
        return o->custom.name ? o->custom.name : "custom";
    }
}

/* Everything but the learning rate, which is state: dvt_trainer_set_learning_rate changes it. */
DVTI_FN const char *dvti_optimizer_setting(const dvt_optimizer *o, int i,
                                           char text[DVTI_SETTING_SIZE]) {
#define DVTI_FIELD(type, field)                                                                    \
    { "optimizer." #field, type, offsetof(dvt_optimizer, field) }
    static const dvti_setting setting[] = {
        DVTI_FIELD(DVTI_SETTING_DOUBLE, weight_decay),
        DVTI_FIELD(DVTI_SETTING_DOUBLE, momentum),
        DVTI_FIELD(DVTI_SETTING_BOOL, nesterov),
        DVTI_FIELD(DVTI_SETTING_DOUBLE, beta1),
        DVTI_FIELD(DVTI_SETTING_DOUBLE, beta2),
        DVTI_FIELD(DVTI_SETTING_DOUBLE, rho),
        DVTI_FIELD(DVTI_SETTING_BOOL, centered),
        DVTI_FIELD(DVTI_SETTING_DOUBLE, epsilon),
        DVTI_FIELD(DVTI_SETTING_DOUBLE, clip_gradient),
        DVTI_FIELD(DVTI_SETTING_ENUM, schedule.kind),
        DVTI_FIELD(DVTI_SETTING_DOUBLE, schedule.factor),
        DVTI_FIELD(DVTI_SETTING_DOUBLE, schedule.minimum),
        DVTI_FIELD(DVTI_SETTING_DOUBLE, schedule.final),
        DVTI_FIELD(DVTI_SETTING_DOUBLE, schedule.power),
        DVTI_FIELD(DVTI_SETTING_INT64, schedule.every),
        DVTI_FIELD(DVTI_SETTING_INT64, schedule.total),
        {"optimizer.schedule.at", DVTI_SETTING_STEPS, offsetof(dvt_optimizer, schedule)},
        DVTI_FIELD(DVTI_SETTING_INT64, schedule.warmup),
        DVTI_FIELD(DVTI_SETTING_DOUBLE, schedule.warmup_begin)};
#undef DVTI_FIELD
    if (i == 0) {
        snprintf(text, DVTI_SETTING_SIZE, "%.300s", dvti_optimizer_name(o));
        return "optimizer.kind";
    }
    if (i == 1) {
        snprintf(text, DVTI_SETTING_SIZE, "%d", dvti_optimizer_states(o));
        return "optimizer.states";
    }
    if (i - 2 >= DVTI_LENGTH(setting))
        return NULL;
    dvti_setting_write(&setting[i - 2], o, text);
    return setting[i - 2].key;
}

DVTI_FN const char *dvti_loader_setting(const dvt_loader *loader, int i,
                                        char text[DVTI_SETTING_SIZE]) {
#define DVTI_FIELD(type, field)                                                                    \
    { "loader." #field, type, offsetof(dvt_loader_desc, field) }
    static const dvti_setting setting[] = {DVTI_FIELD(DVTI_SETTING_INT64, batch_size),
                                           DVTI_FIELD(DVTI_SETTING_BOOL, shuffle),
                                           DVTI_FIELD(DVTI_SETTING_ENUM, last_batch)};
#undef DVTI_FIELD
    int64_t samples;
    const dvt_loader_desc *desc = dvti_loader_described(loader, &samples);
    if (i < DVTI_LENGTH(setting)) {
        dvti_setting_write(&setting[i], desc, text);
        return setting[i].key;
    }
    snprintf(text, DVTI_SETTING_SIZE, "%lld", (long long)samples);
    return i == DVTI_LENGTH(setting) ? "loader.samples" : NULL;
}
#endif
