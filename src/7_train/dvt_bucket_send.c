/* The two ways of a bucket (dvt_buckets.c) to the other ranks.

   Messages: each rank adds one slice of the sum, and sends it to all, in the order of
   dvti_ranks_merge. They leave from host memory. The bytes of a GPU are copied there while it goes
   on, and the messages start when a poll finds the copy complete.

   Devices: the GPUs of the ranks sum the bucket while they go on (dvt_rank_devices.c). */
#include "7_train/dvt_buckets.h"

#if defined(DEVTENSOR_MPI)
/* ---- messages ---- */
/* How memory is divided among the messages to or from the ranks. */
typedef enum dvti_bucket_layout {
    DVTI_BUCKET_WHOLE, /* the bucket: each rank has its slice */
    DVTI_BUCKET_ROWS,  /* this rank's slice, once for each rank */
    DVTI_BUCKET_ONE    /* this rank's slice, the same for all */
} dvti_bucket_layout;

static void dvti_bucket_divide(const dvti_bucket *b, dvti_message *message, char *at,
                               dvti_bucket_layout layout) {
    const int64_t size = dvt_dtype_size(b->dtype);
    const int rank = dvt_rank();
    const int64_t own = dvti_rank_row(b->size, rank + 1) - dvti_rank_row(b->size, rank);
    int r;
    for (r = 0; r < dvt_num_ranks() && at; r++) {
        const int64_t first = dvti_rank_row(b->size, r), end = dvti_rank_row(b->size, r + 1);
        message[r].at = at + (layout == DVTI_BUCKET_WHOLE  ? first * size
                              : layout == DVTI_BUCKET_ROWS ? r * own * size
                                                           : 0);
        message[r].bytes = (layout == DVTI_BUCKET_WHOLE ? end - first : own) * size;
    }
}

/* Starts messages from `out` and to `in`; NULL: none. */
static dvti_flight *dvti_bucket_post(const char *function, const dvti_bucket *b, int tag, char *out,
                                     dvti_bucket_layout out_layout, char *in,
                                     dvti_bucket_layout in_layout) {
    const size_t n = (size_t)dvt_num_ranks();
    dvti_message *message = (dvti_message *)dvti_alloc_zero(2 * n * sizeof *message);
    dvti_flight *flight;
    if (!message) {
        dvti_fail_memory(function, (int64_t)(2 * n * sizeof *message));
        return NULL;
    }
    dvti_bucket_divide(b, message, out, out_layout);
    dvti_bucket_divide(b, message + n, in, in_layout);
    flight = dvti_ranks_post(function, tag, message, message + n);
    dvti_free(message);
    return flight;
}

DVTI_FN bool dvti_bucket_landed(const char *function, dvti_flight *flight, bool wait,
                                dvt_status *status) {
    if (!wait)
        return dvti_ranks_arrived(function, flight, status);
    *status = dvti_ranks_await(function, flight);
    return *status == DVT_OK;
}

static bool dvti_bucket_prepare_messages(const char *function, dvti_bucket *b, dvt_ctx ctx) {
    if (dvti_is_host_memory(ctx))
        return true;
    if (!b->fetch)
        b->fetch = dvti_fetch_new(function, ctx, b->size * dvt_dtype_size(b->dtype));
    return b->fetch && dvti_fetch_start(function, b->fetch, b->total) == DVT_OK;
}

/* Sends the slices, and expects those of the other ranks and all sums. */
static bool dvti_bucket_send_slices(const char *function, dvti_bucket *b, int number) {
    const int64_t size = dvt_dtype_size(b->dtype);
    const int64_t first = dvti_rank_row(b->size, dvt_rank()) * size;
    const int64_t own = dvti_rank_row(b->size, dvt_rank() + 1) * size - first;
    char *from = b->fetch ? dvti_fetch_bytes(b->fetch) : (char *)dvt_data(b->total);
    dvti_free(b->in); /* of an attempt that failed */
    dvti_disown(b->result);
    b->result = NULL;
    b->in = (char *)dvti_alloc((size_t)(own * dvt_num_ranks()));
    b->result =
        (dvt_array *)dvti_own(dvti_array_new(function, DVT_SHAPE(b->size), b->dtype, dvt_cpu()));
    if (b->result && !b->in)
        dvti_fail_memory(function, own * dvt_num_ranks());
    if (!b->result || !b->in)
        return false;
    if (own)
        memcpy(b->in + own * dvt_rank(), from + first, (size_t)own);
    b->slices = dvti_bucket_post(function, b, 2 * number + 1, from, DVTI_BUCKET_WHOLE, b->in,
                                 DVTI_BUCKET_ROWS);
    if (b->slices)
        b->sums = dvti_bucket_post(function, b, 2 * number + 2, NULL, DVTI_BUCKET_ONE,
                                   (char *)dvt_data(b->result), DVTI_BUCKET_WHOLE);
    if (b->slices && !b->sums)
        dvti_ranks_break(); /* the slices would be sent again, and match those of another bucket */
    return b->sums != NULL;
}

static bool dvti_bucket_start_messages(const char *function, dvti_bucket *b, int number, bool wait,
                                       dvt_status *status) {
    if (b->fetch && !dvti_fetch_done(b->fetch, wait, status))
        return false;
    if (!dvti_bucket_send_slices(function, b, number))
        *status = dvti_failure();
    return *status == DVT_OK;
}

/* Adds the slices that have arrived, and sends the sum. */
static bool dvti_bucket_add_messages(const char *function, dvti_bucket *b, int number, bool wait,
                                     dvt_status *status) {
    const int64_t size = dvt_dtype_size(b->dtype), first = dvti_rank_row(b->size, dvt_rank());
    const int64_t length = dvti_rank_row(b->size, dvt_rank() + 1) - first;
    if (!dvti_bucket_landed(function, b->slices, wait, status))
        return false;
    if (!b->sum) /* an attempt that failed may have left it */
        b->sum = dvti_ranks_add(function, b->dtype, length, b->in);
    if (b->sum && length)
        memcpy((char *)dvt_data(b->result) + first * size, dvt_data(b->sum),
               (size_t)(length * size));
    if (b->sum)
        b->sent = dvti_bucket_post(function, b, 2 * number + 2, (char *)dvt_data(b->sum),
                                   DVTI_BUCKET_ONE, NULL, DVTI_BUCKET_WHOLE);
    if (!b->sent)
        *status = dvti_failure();
    return b->sent != NULL;
}

static bool dvti_bucket_finish_messages(const char *function, dvti_bucket *b, int number, bool wait,
                                        dvt_status *status) {
    (void)number;
    return dvti_bucket_landed(function, b->sums, wait, status) &&
           dvti_bucket_landed(function, b->sent, wait, status);
}

static dvt_status dvti_bucket_write_messages(const char *function, const dvti_bucket *b, int64_t at,
                                             dvt_array *gradient) {
    return dvti_write_host(function, gradient,
                           (const char *)dvt_data(b->result) + at * dvt_dtype_size(b->dtype));
}

static void dvti_bucket_clear_messages(dvti_bucket *b) {
    dvt_status status = DVT_OK;
    if (b->fetch) /* reads the packed gradients */
        dvti_fetch_done(b->fetch, true, &status);
    dvti_ranks_land(b->slices);
    dvti_ranks_land(b->sums);
    dvti_ranks_land(b->sent);
    b->slices = b->sums = b->sent = NULL;
    dvti_disown(b->sum);
    dvti_disown(b->result);
    b->sum = b->result = NULL;
    dvti_free(b->in);
    b->in = NULL;
}

DVTI_FN const dvti_bucket_transport *dvti_bucket_messages(void) {
    static const dvti_bucket_transport transport = {false,
                                                    dvti_bucket_prepare_messages,
                                                    dvti_bucket_start_messages,
                                                    dvti_bucket_add_messages,
                                                    dvti_bucket_finish_messages,
                                                    dvti_bucket_write_messages,
                                                    dvti_bucket_clear_messages};
    return &transport;
}

/* ---- devices ---- */
static bool dvti_bucket_prepare_devices(const char *function, dvti_bucket *b, dvt_ctx ctx) {
    dvti_disown(b->result); /* of an attempt that failed */
    b->result = (dvt_array *)dvti_own(dvti_array_new(function, DVT_SHAPE(b->size), b->dtype, ctx));
    return b->result != NULL;
}

static bool dvti_bucket_start_devices(const char *function, dvti_bucket *b, int number, bool wait,
                                      dvt_status *status) {
    *status = dvti_rank_devices_start(function, b->total, b->result, &b->ticket);
    (void)number;
    (void)wait;
    return *status == DVT_OK;
}

static bool dvti_bucket_add_devices(const char *function, dvti_bucket *b, int number, bool wait,
                                    dvt_status *status) {
    (void)function;
    (void)b;
    (void)number;
    (void)wait;
    (void)status;
    return true; /* the devices add */
}

static bool dvti_bucket_finish_devices(const char *function, dvti_bucket *b, int number, bool wait,
                                       dvt_status *status) {
    bool done = false;
    (void)number;
    *status = dvti_rank_devices_done(function, b->ticket, wait, &done);
    return done;
}

static dvt_status dvti_bucket_write_devices(const char *function, const dvti_bucket *b, int64_t at,
                                            dvt_array *gradient) {
    dvt_array *view = dvt_slice(b->result, 0, at, at + dvt_size(gradient), 1);
    view = view ? dvt_reshape(view, gradient->shape) : NULL;
    return view ? dvti_copy_elements(function, gradient, view) : dvti_failure();
}

static void dvti_bucket_clear_devices(dvti_bucket *b) {
    dvti_rank_devices_forget(b->ticket);
    b->ticket = NULL;
    dvti_disown(b->result);
    b->result = NULL;
}

DVTI_FN const dvti_bucket_transport *dvti_bucket_devices(void) {
    static const dvti_bucket_transport transport = {true,
                                                    dvti_bucket_prepare_devices,
                                                    dvti_bucket_start_devices,
                                                    dvti_bucket_add_devices,
                                                    dvti_bucket_finish_devices,
                                                    dvti_bucket_write_devices,
                                                    dvti_bucket_clear_devices};
    return &transport;
}
#endif
