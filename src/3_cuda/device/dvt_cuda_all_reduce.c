/* Sums over several gpus by kernels that read peer memory (kernels/all_reduce.cu). The compute
   streams synchronize before and after: each waits for the work that the others have queued. So no
   gpu reads unfinished data, and none overwrites data that is being read. */
#include "3_cuda/device/dvt_cuda_device.h"
#include "3_cuda/driver/dvt_nccl.h"

#define DVTI_ONE_STAGE_BYTES ((int64_t)256 << 10)

DVTI_FN void dvti_cuda_describe_all_reduce(uint64_t variant, dvti_text *text) {
    dvti_text_add(text, "#define D %d\n", (int)variant);
}

static dvti_cuda_program dvti_cuda_all_program(dvt_dtype dtype) {
    dvti_cuda_program program = DVTI_CUDA_PROGRAM(all_reduce);
    program.variant = (uint64_t)dtype;
    return program;
}

typedef struct dvti_cuda_group {
    dvti_cuda_gpu *gpu[DVT_MAX_GPUS]; /* in the order of the sum */
    int lock_order[DVT_MAX_GPUS];     /* in the order of locking */
    int n;
} dvti_cuda_group;

/* ---- locking all gpus ---- */
static void dvti_cuda_group_end(dvti_cuda_group *group, int locked) {
    while (locked > 0) {
        dvti_cuda_gpu *gpu = group->gpu[group->lock_order[--locked]];
        gpu->in_group = false;
        dvti_mutex_unlock(&gpu->lock);
    }
}

static bool dvti_cuda_group_begin(dvti_cuda_group *group, const char *function,
                                  dvti_device *const *device, int n) {
    bool pushed;
    int i, j;
    group->n = n;
    for (i = 0; i < n; i++) {
        group->gpu[i] = dvti_cuda_gpu_of(device[i]);
        for (j = i; j > 0 && group->gpu[group->lock_order[j - 1]]->ctx.id > group->gpu[i]->ctx.id;
             j--)
            group->lock_order[j] = group->lock_order[j - 1];
        group->lock_order[j] = i;
    }
    for (i = 0; i < n; i++) {
        if (!dvti_cuda_begin(group->gpu[group->lock_order[i]], function, &pushed)) {
            dvti_cuda_group_end(group, i);
            return false;
        }
        group->gpu[group->lock_order[i]]->in_group = true;
        dvti_cuda_leave(pushed);
    }
    return true;
}

/* ---- NCCL, on request: needs a separate physical GPU for each gpu ---- */
static const dvti_nccl_comm *dvti_cuda_comms(const dvti_cuda_group *group) {
    int physical[DVT_MAX_GPUS], i, j;
    for (i = 0; i < group->n; i++) {
        physical[i] = group->gpu[i]->physical->index;
        for (j = 0; j < i; j++)
            if (physical[j] == physical[i])
                return NULL;
    }
    return dvti_nccl_open() ? dvti_nccl_comms(physical, group->n) : NULL;
}

static bool dvti_cuda_nccl_serves(const dvti_reduce_part *part, int n_parts) {
    int i;
    for (i = 0; i < n_parts; i++)
        if (dvti_nccl_type(part[i].dtype) < 0)
            return false;
    return true;
}

static dvt_status dvti_cuda_nccl_sum(dvti_cuda_group *group, const dvti_nccl_comm *comms,
                                     const char *name, const dvti_reduce_part *part, int n_parts) {
    const dvti_nccl *nccl = dvti_nccl_open();
    int result = nccl->ncclGroupStart(), ended, i, k;
    for (i = 0; i < n_parts && result == DVTI_NCCL_OK; i++)
        for (k = 0; k < group->n && result == DVTI_NCCL_OK && part[i].count > 0; k++)
            result = nccl->ncclAllReduce(part[i].at[k], part[i].at[k], (size_t)part[i].count,
                                         dvti_nccl_type(part[i].dtype), DVTI_NCCL_SUM, comms[k],
                                         group->gpu[k]->compute);
    ended = nccl->ncclGroupEnd();
    for (k = 0; k < group->n; k++)
        dvti_cuda_remember(group->gpu[k], name);
    result = result == DVTI_NCCL_OK ? ended : result;
    if (result == DVTI_NCCL_OK)
        return DVT_OK;
    return dvti_fail(DVT_ERR_INTERNAL,
                     "%s: summing over %d GPUs with NCCL gave: %s; unset DEVTENSOR_NCCL to sum "
                     "without it",
                     name, group->n, nccl->ncclGetErrorString(result));
}

DVTI_FN bool dvti_cuda_can_all_reduce(dvti_device *const *device, int n) {
    dvti_cuda_group group;
    bool can = true;
    int i, j;
    if (!dvti_cuda_group_begin(&group, "all-reduce", device, n))
        return false;
    for (i = 0; i < n && can && !dvti_cuda_comms(&group); i++)
        for (j = i + 1; j < n && can; j++)
            can = dvti_cuda_reaches(group.gpu[i], group.gpu[j]);
    dvti_cuda_group_end(&group, n);
    return can;
}

/* ---- synchronizing compute streams ---- */
/* Makes the compute stream of `late` wait for the work queued in that of `early`. */
static dvti_cu_result dvti_cuda_wait_for(dvti_cuda_gpu *late, dvti_cuda_gpu *early) {
    dvti_cu_result result;
    bool pushed;
    if (late == early)
        return DVTI_CU_OK;
    result = dvti_cuda_enter(early->physical, &pushed);
    if (result != DVTI_CU_OK)
        return result;
    result = dvti_cuda_after_compute(early, late->compute);
    dvti_cuda_leave(pushed);
    return result;
}

static dvti_cu_result dvti_cuda_wait_for_all(dvti_cuda_group *group, int k) {
    dvti_cu_result result = DVTI_CU_OK;
    int j;
    for (j = 0; j < group->n && result == DVTI_CU_OK; j++)
        result = dvti_cuda_wait_for(group->gpu[k], group->gpu[j]);
    return result;
}

/* Records all events before any stream waits, so that no stream waits for another stream's
   waits. */
static dvti_cu_result dvti_cuda_synchronize(dvti_cuda_group *group) {
    dvti_cu_result result = DVTI_CU_OK;
    int k;
    for (k = 0; k < group->n && result == DVTI_CU_OK; k++) {
        bool pushed;
        result = dvti_cuda_enter(group->gpu[k]->physical, &pushed);
        if (result == DVTI_CU_OK)
            result = dvti_cuda_after_compute(group->gpu[k], group->gpu[k]->compute);
        dvti_cuda_leave(pushed);
    }
    for (k = 0; k < group->n && result == DVTI_CU_OK; k++)
        result = dvti_cuda_wait_for_all(group, k);
    for (k = 0; k < group->n; k++)
        dvti_cuda_advance(group->gpu[k]);
    return result;
}

/* ---- launching ---- */
static dvti_cu_result dvti_cuda_touch_parts(dvti_cuda_group *group, const dvti_reduce_part *part,
                                            int n_parts) {
    dvti_cu_result result = DVTI_CU_OK;
    int k, i;
    for (k = 0; k < group->n && result == DVTI_CU_OK; k++) {
        bool pushed;
        result = dvti_cuda_enter(group->gpu[k]->physical, &pushed);
        if (result != DVTI_CU_OK)
            break;
        for (i = 0; i < n_parts && result == DVTI_CU_OK; i++)
            result = dvti_cuda_touch(group->gpu[k], part[i].at[k],
                                     part[i].count * dvt_dtype_size(part[i].dtype), true);
        dvti_cuda_leave(pushed);
    }
    return result;
}

static dvt_status dvti_cuda_all_launch(dvti_cuda_group *group, int k, const char *name,
                                       const char *entry, dvt_dtype dtype, dvti_kall *args,
                                       int n_parts, int64_t longest) {
    dvti_cuda_gpu *gpu = group->gpu[k];
    dvti_launch launch;
    dvti_cuda_program program;
    dvti_cuda_grid grid = dvti_cuda_grid_for(gpu, longest, 256, 1);
    dvti_cu_result result;
    dvt_status status;
    bool pushed;
    dvti_launch_begin(&launch, name, NULL, DVTI_OP_add);
    result = dvti_cuda_enter(gpu->physical, &pushed);
    if (result != DVTI_CU_OK)
        return dvti_cuda_failed(gpu, name, "cuCtxPushCurrent_v2", result);
    program = dvti_cuda_all_program(dtype);
    grid.y = n_parts;
    dvti_cuda_remember(gpu, name);
    status = dvti_cuda_start(gpu, &launch, &program, entry, grid, args, sizeof *args);
    dvti_cuda_leave(pushed);
    return status;
}

static dvt_status dvti_cuda_group_status(dvti_cuda_group *group, const char *name,
                                         dvti_cu_result result) {
    return dvti_cuda_failed_among(group->gpu, group->n, name, "cuStreamWaitEvent", result);
}

static dvt_status dvti_cuda_one_stage(dvti_cuda_group *group, const char *name, dvt_dtype dtype,
                                      dvti_kall *args, int n_parts, int64_t longest) {
    dvt_status status = dvti_cuda_group_status(group, name, dvti_cuda_wait_for_all(group, 0));
    dvti_cu_result result = DVTI_CU_OK;
    int k;
    args->self = -1;
    if (status == DVT_OK)
        status =
            dvti_cuda_all_launch(group, 0, name, "dvti_all_sum", dtype, args, n_parts, longest);
    for (k = 1; k < group->n && status == DVT_OK && result == DVTI_CU_OK; k++) {
        result = dvti_cuda_wait_for(group->gpu[k], group->gpu[0]);
        dvti_cuda_advance(group->gpu[k]);
    }
    return status == DVT_OK ? dvti_cuda_group_status(group, name, result) : status;
}

static dvt_status dvti_cuda_two_stages(dvti_cuda_group *group, const char *name, dvt_dtype dtype,
                                       dvti_kall *args, int n_parts, int64_t longest) {
    static const char *const entry[] = {"dvti_all_sum", "dvti_all_gather"};
    dvt_status status = dvti_cuda_group_status(group, name, dvti_cuda_synchronize(group));
    int stage, k;
    for (stage = 0; stage < 2; stage++) {
        for (k = 0; k < group->n && status == DVT_OK; k++) {
            args->self = k;
            status =
                dvti_cuda_all_launch(group, k, name, entry[stage], dtype, args, n_parts, longest);
        }
        if (status == DVT_OK)
            status = dvti_cuda_group_status(group, name, dvti_cuda_synchronize(group));
    }
    return status;
}

/* Takes as many parts of one dtype as the kernel's arguments hold. Returns their number. */
static int dvti_cuda_take_parts(const dvti_cuda_group *group, const dvti_reduce_part *part,
                                int n_parts, dvti_kall *args, int64_t *bytes, int64_t *longest) {
    int most = DVTI_MIN(DVTI_KALL_PARTS, DVTI_KALL_POINTERS / group->n), taken = 0, k;
    memset(args, 0, sizeof *args);
    args->devices = group->n;
    *bytes = *longest = 0;
    while (taken < n_parts && taken < most && part[taken].dtype == part[0].dtype) {
        for (k = 0; k < group->n; k++)
            args->at[taken * group->n + k] = part[taken].at[k];
        args->count[taken] = part[taken].count;
        *longest = DVTI_MAX(*longest, part[taken].count);
        *bytes += part[taken].count * dvt_dtype_size(part[0].dtype);
        taken++;
    }
    return taken;
}

/* Compiles the kernels before any gpu is locked, unless NCCL will probably form the sums. */
static dvt_status dvti_cuda_all_prepare(const char *name, dvti_device *const *device, int n,
                                        const dvti_reduce_part *part, int n_parts) {
    dvt_status status = DVT_OK;
    int k, i;
    for (i = 0; i < n_parts && !dvti_nccl_open(); i++)
        for (k = 0; k < n && status == DVT_OK && (i == 0 || part[i].dtype != part[i - 1].dtype);
             k++)
            status = dvti_cuda_prepare(dvti_cuda_gpu_of(device[k])->physical, name,
                                       dvti_cuda_all_program(part[i].dtype));
    return status;
}

DVTI_FN dvt_status dvti_cuda_all_reduce(const char *name, dvti_device *const *device, int n,
                                        const dvti_reduce_part *part, int n_parts) {
    dvti_cuda_group group;
    const dvti_nccl_comm *comms;
    dvti_kall args;
    int64_t bytes, longest;
    dvt_status status;
    int taken;
    if (dvti_cuda_all_prepare(name, device, n, part, n_parts) != DVT_OK ||
        !dvti_cuda_group_begin(&group, name, device, n))
        return dvti_failure();
    comms = dvti_cuda_nccl_serves(part, n_parts) ? dvti_cuda_comms(&group) : NULL;
    status = dvti_cuda_group_status(&group, name, dvti_cuda_touch_parts(&group, part, n_parts));
    if (comms && status == DVT_OK) {
        status = dvti_cuda_nccl_sum(&group, comms, name, part, n_parts);
        n_parts = 0;
    }
    for (; n_parts > 0 && status == DVT_OK; part += taken, n_parts -= taken) {
        taken = dvti_cuda_take_parts(&group, part, n_parts, &args, &bytes, &longest);
        if (longest == 0)
            continue;
        status = bytes <= DVTI_ONE_STAGE_BYTES
                     ? dvti_cuda_one_stage(&group, name, part[0].dtype, &args, taken, longest)
                     : dvti_cuda_two_stages(&group, name, part[0].dtype, &args, taken, longest);
    }
    for (taken = 0; taken < n && status != DVT_OK; taken++)
        dvti_cuda_settle(group.gpu[taken], group.gpu[taken]->compute);
    dvti_cuda_group_end(&group, n);
    return status;
}

#undef DVTI_ONE_STAGE_BYTES
