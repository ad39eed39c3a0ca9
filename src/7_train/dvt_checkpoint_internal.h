/* Internals of checkpoints. A file has these arrays, and numbers as text in its metadata:

   net.NAME             a parameter by its structural name
   trainer.counts       steps of each trained parameter, int64
   trainer.compute ...  mixed precision: its dtype, log2 of the loss scale (trainer.scale), good and
                        skipped steps (trainer.good, trainer.skipped), as metadata
   trainer.I.S          state S of the trainer's parameter I
   random               dvti_streams_state
   array.NAME           the caller's arrays
   number.NAME          the caller's numbers, float64

   Copies that differ between contexts are NAME@0, NAME@1, ... in the order of the contexts. */
#ifndef DVTI_CHECKPOINT_H
#define DVTI_CHECKPOINT_H
#include "5_io/dvt_formats.h"
#include "7_train/dvt_train_internal.h"

#if defined(DVTI_CHECKPOINTS)

#define DVTI_CHECKPOINT_FORMAT "devtensor.checkpoint"
#define DVTI_CHECKPOINT_SUM "checksum"

/* ---- numbers and settings as text ---- */
/* Appends a number of dtype float64 or int64 to the metadata. */
DVTI_FN bool dvti_note_number(const char *function, dvt_array_list *list, const char *key,
                              dvt_dtype dtype, const void *value);
DVTI_FN bool dvti_note_int(const char *function, dvt_array_list *list, const char *key,
                           int64_t value);
/* Read a number of the metadata. Return false when it is missing or no number. */
DVTI_FN bool dvti_noted_number(const dvt_array_list *list, const char *key, dvt_dtype dtype,
                               void *value);
/* Writes setting i of an optimizer or of a loader as text. Returns its key, or NULL after the last
   one. */
#define DVTI_SETTING_SIZE 400
DVTI_FN const char *dvti_optimizer_setting(const dvt_optimizer *optimizer, int i,
                                           char text[DVTI_SETTING_SIZE]);
DVTI_FN const char *dvti_loader_setting(const dvt_loader *loader, int i,
                                        char text[DVTI_SETTING_SIZE]);

/* ---- saving ---- */
/* Returns the list of everything that c names, in the current scope. */
DVTI_FN dvt_array_list *dvti_checkpoint_collect(const char *function, const dvt_checkpoint *c);
DVTI_FN dvt_status dvti_checkpoint_write(const char *function, const dvt_checkpoint *c,
                                         const char *path);
/* Returns the step of a checkpoint: the caller's, or the trainer's. */
DVTI_FN int64_t dvti_checkpoint_step(const dvt_checkpoint *c);

/* ---- loading ---- */
/* Reads a file and verifies its checksum. Returns NULL with the error set. */
DVTI_FN dvt_array_list *dvti_checkpoint_read(const char *function, const char *path);
/* Restores what c names from a list, whose checksum counts no more. */
DVTI_FN dvt_status dvti_checkpoint_restore(const char *function, dvt_checkpoint *c,
                                           dvt_array_list *list, const char *path);

#endif
#endif
