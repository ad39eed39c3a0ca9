/* The order of the samples in the epochs of a loader. It depends only on the seed, the epoch, the
   number of samples and the batch size, so it can be continued in another process. */
#include "1_base/dvt_rng.h"
#include "7_train/dvt_train_internal.h"

DVTI_FN void dvti_shuffle(int64_t *order, int64_t n, uint64_t seed, int64_t epoch) {
    uint32_t key[2], counter[4], word[4];
    int64_t i;
    key[0] = (uint32_t)seed;
    key[1] = (uint32_t)(seed >> 32);
    counter[2] = (uint32_t)epoch;
    counter[3] = (uint32_t)((uint64_t)epoch >> 32);
    for (i = n - 1; i > 0; i--) {
        int64_t j, held = order[i];
        counter[0] = (uint32_t)i;
        counter[1] = (uint32_t)((uint64_t)i >> 32);
        dvti_philox4x32(counter, key, word);
        j = (int64_t)dvti_mulhi64((uint64_t)word[0] << 32 | word[1], (uint64_t)i + 1);
        order[i] = order[j];
        order[j] = held;
    }
}

/* Returns the number of samples of the last epoch that the next one begins with. */
static int64_t dvti_order_left_over(const dvti_order *order, const dvt_loader_desc *desc) {
    return desc->last_batch == DVT_LAST_ROLLOVER ? order->length % desc->batch_size : 0;
}

static int64_t dvti_order_batches_of(const dvt_loader_desc *desc, int64_t samples) {
    int64_t size = desc->batch_size;
    return samples / size + (desc->last_batch == DVT_LAST_KEEP && samples % size ? 1 : 0);
}

DVTI_FN int64_t dvti_order_next_batches(const dvti_order *order, const dvt_loader_desc *desc,
                                        int64_t n) {
    return dvti_order_batches_of(desc, dvti_order_left_over(order, desc) + n);
}

/* Allocates `left` samples, and n more. */
static bool dvti_order_reserve(dvti_order *order, const char *function, int64_t left, int64_t n) {
    int64_t count;
    if (dvti_sum(left, n, &count) && (uint64_t)count <= SIZE_MAX / 16 &&
        dvti_grow((void **)&order->sample, &order->capacity, (size_t)count, sizeof *order->sample))
        return true;
    dvti_fail_memory(function, n);
    return false;
}

/* Writes the n samples of one epoch. */
static void dvti_order_write(const dvt_loader_desc *desc, int64_t *at, int64_t n, int64_t epoch) {
    int64_t i;
    for (i = 0; i < n; i++)
        at[i] = i;
    if (desc->shuffle)
        dvti_shuffle(at, n, desc->seed, epoch);
}

/* Derives the key of an epoch's random transforms. */
static void dvti_order_key(dvti_order *order, uint64_t seed) {
    uint32_t counter[4], key[2], word[4];
    key[0] = (uint32_t)seed;
    key[1] = (uint32_t)(seed >> 32);
    counter[0] = (uint32_t)order->epoch;
    counter[1] = (uint32_t)((uint64_t)order->epoch >> 32);
    counter[2] = 0;
    counter[3] = DVTI_COUNTER_SAMPLES;
    dvti_philox4x32(counter, key, word);
    memcpy(order->key, word, sizeof order->key);
}

DVTI_FN bool dvti_order_open(dvti_order *order, const char *function, const dvt_loader_desc *desc,
                             int64_t n) {
    int64_t left = dvti_order_left_over(order, desc);
    if (!dvti_order_reserve(order, function, left, n))
        return false;
    if (left)
        memmove(order->sample, order->sample + (order->length - left),
                (size_t)left * sizeof *order->sample);
    if (n)
        dvti_order_write(desc, order->sample + left, n, order->epoch);
    dvti_order_key(order, desc->seed);
    order->length = left + n;
    order->batches = dvti_order_batches_of(desc, order->length);
    return true;
}

/* Makes the samples that earlier epochs left over the whole order. They are the last ones of
   `epochs` epochs. */
static void dvti_order_restore(dvti_order *order, const dvt_loader_desc *desc, int64_t n,
                               int64_t epochs, int64_t left) {
    int64_t i;
    for (i = 0; i < epochs; i++)
        dvti_order_write(desc, order->sample + i * n, n, order->epoch - epochs + i);
    if (left)
        memmove(order->sample, order->sample + (epochs * n - left),
                (size_t)left * sizeof *order->sample);
    order->length = left;
}

DVTI_FN dvt_status dvti_order_seek(dvti_order *order, const char *function, dvt_loader_desc *desc,
                                   int64_t n, const dvt_loader_state *state) {
    int64_t left = 0, epochs = 0, count, batches;
    /* Every epoch takes whole batches, so the rest is that of all samples so far. */
    if (state->epoch < 0 || state->epoch > INT64_MAX / 2 ||
        (desc->last_batch == DVT_LAST_ROLLOVER && !dvti_mul(state->epoch, n, &left)))
        return dvti_fail(DVT_ERR_RANGE, "%s: epoch %lld; expected a state of dvt_loader_get_state",
                         function, (long long)state->epoch);
    left %= desc->batch_size;
    if (left)
        epochs = (left - 1) / n + 1;
    batches = dvti_sum(left, n, &count) ? dvti_order_batches_of(desc, count) : 0;
    if (state->batch < 0 || state->batch > batches)
        return dvti_fail(DVT_ERR_RANGE,
                         "%s: batch %lld of an epoch with %lld; expected a state of a loader with "
                         "as many samples and the same batch_size and last_batch",
                         function, (long long)state->batch, (long long)batches);
    if (!dvti_order_reserve(order, function, left, n)) /* epochs * n < left + n */
        return dvti_failure();
    desc->seed = state->seed;
    order->epoch = state->epoch;
    dvti_order_restore(order, desc, n, epochs, left);
    return dvti_order_open(order, function, desc, n) ? DVT_OK : dvti_failure();
}
