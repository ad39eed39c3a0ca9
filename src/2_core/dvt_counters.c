/* Counters of transfers, launches and arrays. */
#include "2_core/dvt_core.h"

DVTI_FN dvti_counters *dvti_stats(void) {
    static dvti_counters counters;
    return &counters;
}

/* One cache line for each thread that counts at the moment. Threads that find none free share the
   first one. */
#define DVTI_TALLIES 64

typedef struct dvti_tally {
    DVTI_LINE_ALIGNED dvti_atomic count[DVTI_COUNTS];
    dvti_atomic taken;
} dvti_tally;

static dvti_tally dvti_tallies[DVTI_TALLIES];
static dvti_atomic dvti_kernels_before; /* the last dvt_reset_stats */
static DVTI_TLS dvti_tally *dvti_my_tally;

static dvti_tally *dvti_tally_take(void) {
    int i;
    dvti_scopes_at_end();
    for (i = 1; i < DVTI_TALLIES && !DVTI_TLS_ENDS_EARLY; i++)
        if (!dvti_atomic_load(&dvti_tallies[i].taken) &&
            dvti_atomic_swap(&dvti_tallies[i].taken, 0, 1))
            return &dvti_tallies[i];
    return &dvti_tallies[0];
}

/* Counts for threads without a tally of their own, in the shared one. */
static DVTI_RARE void dvti_count_slowly(dvti_counted what, int64_t n) {
    if (!dvti_my_tally)
        dvti_my_tally = dvti_tally_take();
    dvti_atomic_add(&dvti_my_tally->count[what], n);
}

DVTI_FN void dvti_count(dvti_counted what, int64_t n) {
    dvti_tally *mine = dvti_my_tally;
    if (mine && mine != dvti_tallies)
        dvti_atomic_bump(&mine->count[what], n);
    else
        dvti_count_slowly(what, n);
}

DVTI_FN void dvti_count_end(void) {
    if (dvti_my_tally && dvti_my_tally != dvti_tallies)
        dvti_atomic_unlock(&dvti_my_tally->taken);
    dvti_my_tally = dvti_tallies; /* for later calls of this thread */
}

DVTI_FN int64_t dvti_counted_all(dvti_counted what) {
    int64_t sum = 0;
    int i;
    for (i = 0; i < DVTI_TALLIES; i++)
        sum += dvti_atomic_load(&dvti_tallies[i].count[what]);
    return sum;
}

#undef DVTI_TALLIES

DVT_API dvt_stats dvt_get_stats(void) {
    dvti_counters *c = dvti_stats();
    dvt_stats stats;
    stats.to_device_count = dvti_atomic_load(&c->to_device_count);
    stats.to_device_bytes = dvti_atomic_load(&c->to_device_bytes);
    stats.to_host_count = dvti_atomic_load(&c->to_host_count);
    stats.to_host_bytes = dvti_atomic_load(&c->to_host_bytes);
    stats.between_devices_count = dvti_atomic_load(&c->between_count);
    stats.between_devices_bytes = dvti_atomic_load(&c->between_bytes);
    stats.kernels = dvti_counted_all(DVTI_COUNT_KERNELS) - dvti_atomic_load(&dvti_kernels_before);
    stats.waits = dvti_atomic_load(&c->waits);
    stats.implicit_reads = dvti_atomic_load(&c->implicit_reads);
    stats.blocks_of_memory = dvti_counted_all(DVTI_COUNT_STORAGES);
    stats.arrays = stats.blocks_of_memory + dvti_counted_all(DVTI_COUNT_SHARERS);
    return stats;
}

DVT_API void dvt_reset_stats(void) {
    dvti_counters *c = dvti_stats();
    dvti_atomic_store(&c->to_device_count, 0);
    dvti_atomic_store(&c->to_device_bytes, 0);
    dvti_atomic_store(&c->to_host_count, 0);
    dvti_atomic_store(&c->to_host_bytes, 0);
    dvti_atomic_store(&c->between_count, 0);
    dvti_atomic_store(&c->between_bytes, 0);
    dvti_atomic_store(&dvti_kernels_before, dvti_counted_all(DVTI_COUNT_KERNELS));
    dvti_atomic_store(&c->waits, 0);
    dvti_atomic_store(&c->implicit_reads, 0);
}
