/* The losses of a batch that is computed by parts. */
#include "7_train/dvt_parts.h"

DVT_API dvt_status dvt_trainer_add_loss(dvt_trainer *trainer, dvt_array *losses) {
    static const char *const function = "dvt_trainer_add_loss";
    dvti_part_batch *p = trainer ? trainer->parts : NULL;
    dvt_record_guard record;
    dvt_scope_guard scope;
    dvt_array *sum;
    if (!trainer || !losses)
        return dvti_null(function, trainer ? "losses" : "trainer");
    if (!p || p->now < 0)
        return dvti_fail(DVT_ERR_VALUE,
                         "%s: no part of a batch runs; call it inside DVT_FOR_TRAINER_PARTS",
                         function);
    record = dvt_record_begin(DVT_OFF, DVT_UNCHANGED);
    scope = dvt_scope_begin();
    sum = dvt_as_in_dtype(losses, DVT_F64);
    sum = sum ? dvt_sum(sum, DVT_ALL) : NULL;
    if (sum && p->part_loss)
        sum = dvt_add(p->part_loss, sum);
    if (sum) {
        dvti_own(sum);
        dvti_disown(p->part_loss);
        p->part_loss = sum;
    }
    dvt_scope_end(&scope);
    dvt_record_end(&record);
    return sum ? DVT_OK : dvti_failure();
}

DVT_API double dvt_trainer_loss(const dvt_trainer *trainer) {
    if (!trainer) {
        dvti_null("dvt_trainer_loss", "trainer");
        return (double)NAN;
    }
    if (!trainer->parts || !trainer->parts->loss)
        return (double)NAN;
    return dvt_item(trainer->parts->loss) / (double)trainer->parts->loss_rows;
}
