/* The functions of checkpoints in a build without files, or without safetensors: they fail. */
#include "5_io/dvt_io_internal.h"
#include "7_train/dvt_train_internal.h"

#if !defined(DVTI_CHECKPOINTS)
static dvt_status dvti_no_checkpoints(const char *function) {
    return dvti_fail(DVT_ERR_NOT_BUILT,
                     "%s: this build was compiled with DEVTENSOR_NO_FILES or DEVTENSOR_NO_FORMATS; "
                     "compile without them, or save parameters with dvt_save_params",
                     function);
}

DVT_API dvt_status dvt_checkpoint_save(const dvt_checkpoint *c, const char *path) {
    (void)c, (void)path;
    return dvti_no_checkpoints("dvt_checkpoint_save");
}

DVT_API dvt_status dvt_checkpoint_load(dvt_checkpoint *c, const char *path) {
    (void)c, (void)path;
    return dvti_no_checkpoints("dvt_checkpoint_load");
}

DVT_API bool dvt_checkpoint_latest(const char *folder, char *path, size_t size) {
    (void)folder, (void)path, (void)size;
    dvti_no_checkpoints("dvt_checkpoint_latest");
    return false;
}

DVT_API dvt_status dvt_checkpoint_keep_best(const dvt_checkpoint *c, const char *folder, int n,
                                            dvt_extreme best) {
    (void)c, (void)folder, (void)n, (void)best;
    return dvti_no_checkpoints("dvt_checkpoint_keep_best");
}
#endif
