/* Random streams of the contexts, their seeds and engines. The call itself advances a stream's
   position. The launch computes only from the key and counters that it receives. */
#include "1_base/dvt_rng.h"
#include "4_ops/dvt_op.h"

#define DVTI_MXNET_GENERATORS 4

/* Philox uses key = the seed and counter = (counter low, counter high, id, type). The other members
   serve DVT_RNG_MXNET on GPUs. */
typedef struct dvti_stream {
    dvt_ctx ctx;
    uint64_t seed;
    bool own; /* seeded for this context alone */
    uint64_t counter;
    uint64_t uses;
    int64_t
        *position[DVTI_MXNET_GENERATORS]; /* words drawn from each subsequence of each generator */
    size_t positions[DVTI_MXNET_GENERATORS], capacity[DVTI_MXNET_GENERATORS];
} dvti_stream;

typedef struct dvti_streams {
    dvti_mutex lock;
    dvt_rng_engine engine;
    uint64_t seed;
    dvti_stream *stream;
    size_t n, capacity;
    uint64_t state_seed; /* DVT_RNG_MXNET: all cpu(i) share the states, as in MXNet */
    dvti_mt19937 *state;
    size_t states, states_capacity;
} dvti_streams;

static dvti_streams dvti_the_streams = {
    DVTI_MUTEX_INIT, DVT_RNG_PHILOX, 0, NULL, 0, 0, 0, NULL, 0, 0};

/* ---- functions that need the lock ---- */
static void dvti_stream_restart(dvti_stream *stream) {
    stream->counter = stream->uses = 0;
    memset(stream->positions, 0, sizeof stream->positions);
}

static dvti_stream *dvti_stream_of(const char *function, dvt_ctx ctx) {
    dvti_streams *all = &dvti_the_streams;
    dvti_stream *stream;
    size_t i;
    for (i = 0; i < all->n; i++)
        if (all->stream[i].ctx.type == ctx.type && all->stream[i].ctx.id == ctx.id)
            return &all->stream[i];
    if (!dvti_grow((void **)&all->stream, &all->capacity, all->n + 1, sizeof *all->stream)) {
        dvti_fail_memory(function, (int64_t)((all->n + 1) * sizeof *all->stream));
        return NULL;
    }
    stream = &all->stream[all->n++];
    memset(stream, 0, sizeof *stream);
    stream->ctx = ctx;
    stream->seed = all->seed;
    return stream;
}

DVT_API void dvt_seed(uint64_t seed) {
    dvti_streams *all = &dvti_the_streams;
    size_t i;
    dvti_mutex_lock(&all->lock);
    all->seed = all->state_seed = seed;
    all->states = 0;
    for (i = 0; i < all->n; i++) {
        all->stream[i].seed = seed;
        all->stream[i].own = false;
        dvti_stream_restart(&all->stream[i]);
    }
    dvti_mutex_unlock(&all->lock);
}

DVT_API void dvt_seed_ctx(uint64_t seed, dvt_ctx ctx) {
    dvti_streams *all = &dvti_the_streams;
    dvti_stream *stream;
    ctx = dvti_ctx(ctx);
    dvti_mutex_lock(&all->lock);
    stream = dvti_stream_of("dvt_seed_ctx", ctx);
    if (stream) {
        stream->seed = seed;
        stream->own = true;
        dvti_stream_restart(stream);
    }
    if (dvti_is_host_memory(ctx)) { /* MXNet's rule: all cpu(i) share these generators */
        all->state_seed = seed;
        all->states = 0;
    }
    dvti_mutex_unlock(&all->lock);
}

DVT_API dvt_rng_engine dvt_set_rng_engine(dvt_rng_engine engine) {
    dvti_streams *all = &dvti_the_streams;
    dvt_rng_engine previous;
    size_t i;
    dvti_mutex_lock(&all->lock);
    previous = all->engine;
    if ((int)engine >= DVT_RNG_PHILOX && (int)engine <= DVT_RNG_JAX) {
        all->engine = engine;
        all->states = 0;
        for (i = 0; i < all->n; i++)
            dvti_stream_restart(&all->stream[i]);
    } else {
        dvti_fail(DVT_ERR_VALUE,
                  "dvt_set_rng_engine: %d is no engine; use DVT_RNG_PHILOX, DVT_RNG_MXNET or "
                  "DVT_RNG_JAX",
                  (int)engine);
    }
    dvti_mutex_unlock(&all->lock);
    return previous;
}

DVTI_FN dvt_rng_engine dvti_rng_engine_now(void) {
    dvt_rng_engine engine;
    dvti_mutex_lock(&dvti_the_streams.lock);
    engine = dvti_the_streams.engine;
    dvti_mutex_unlock(&dvti_the_streams.lock);
    return engine;
}

/* ---- drawing ---- */
static uint64_t dvti_place(uint32_t word2, uint32_t word3) {
    return (uint64_t)word2 << 32 | word3;
}

/* Takes `counters` from the stream of out's context. A failing launch gives its counters back
   unless another draw came in between. */
static dvt_status dvti_draw_stream(dvt_array *out, dvti_launch *launch, uint64_t counters) {
    dvt_ctx ctx = out->storage->ctx;
    dvti_stream *stream;
    dvt_status status;
    uint64_t first;
    dvti_mutex_lock(&dvti_the_streams.lock);
    stream = dvti_stream_of(launch->name, ctx);
    if (!stream) {
        dvti_mutex_unlock(&dvti_the_streams.lock);
        return DVT_ERR_HOST_MEMORY;
    }
    first = stream->counter;
    stream->counter += counters;
    launch->i[1] = (int64_t)stream->seed;
    dvti_mutex_unlock(&dvti_the_streams.lock);
    launch->i[0] = DVTI_RNG_PHILOX;
    launch->i[2] = (int64_t)first;
    launch->i[3] = (int64_t)dvti_place((uint32_t)ctx.id, (uint32_t)ctx.type);
    status = dvti_run(out->storage->device, launch);
    if (status != DVT_OK) {
        dvti_mutex_lock(&dvti_the_streams.lock);
        stream = dvti_stream_of(launch->name, ctx);
        if (stream && stream->counter == first + counters)
            stream->counter = first;
        dvti_mutex_unlock(&dvti_the_streams.lock);
    }
    return status;
}

static dvt_status dvti_draw_key(dvt_array *out, dvti_launch *launch, dvt_key key) {
    launch->i[0] = dvti_rng_engine_now() == DVT_RNG_JAX ? DVTI_RNG_THREEFRY : DVTI_RNG_PHILOX;
    launch->i[1] = (int64_t)((uint64_t)key.word[0] << 32 | key.word[1]);
    launch->i[3] = (int64_t)dvti_place(0, DVTI_COUNTER_KEYED);
    return dvti_run(out->storage->device, launch);
}

/* ---- parts of a batch ---- */
static DVTI_TLS dvti_part_stream dvti_this_part;

DVTI_FN void dvti_set_part_stream(dvti_part_stream stream) {
    dvti_this_part = stream;
}

DVTI_FN bool dvti_part_key(const char *function, uint64_t *key) {
    uint32_t counter[4], words[2], out[4];
    dvti_stream *stream;
    bool good;
    memset(counter, 0, sizeof counter);
    counter[3] = (uint32_t)dvt_cpu().type;
    dvti_mutex_lock(&dvti_the_streams.lock);
    stream = dvti_stream_of(function, dvt_cpu());
    good = stream != NULL;
    if (good) {
        counter[0] = (uint32_t)stream->counter;
        counter[1] = (uint32_t)(stream->counter >> 32);
        words[0] = (uint32_t)(stream->seed >> 32);
        words[1] = (uint32_t)stream->seed;
        stream->counter++;
        dvti_philox4x32(counter, words, out);
        *key = (uint64_t)out[0] << 32 | out[1];
    }
    dvti_mutex_unlock(&dvti_the_streams.lock);
    return good;
}

static dvt_status dvti_draw_part(dvt_array *out, dvti_launch *launch, uint64_t counters) {
    dvti_part_stream *part = &dvti_this_part;
    launch->i[0] = DVTI_RNG_PHILOX;
    launch->i[1] = (int64_t)part->key;
    launch->i[2] = (int64_t)part->counter;
    launch->i[3] = (int64_t)dvti_place(part->part, DVTI_COUNTER_PART);
    part->counter += counters;
    return dvti_run(out->storage->device, launch);
}

/* ---- DVT_RNG_MXNET: n elements are divided over states, one per 64 elements up to a limit ---- */
static int64_t dvti_mxnet_threads(int64_t n, int64_t limit) {
    return DVTI_MIN((n - 1) / 64 + 1, limit);
}

/* Returns the 32-bit seed that MXNet uses: the user's times 127, plus 16 for each generator and 1
   for each device. */
static uint32_t dvti_mxnet_seed(uint64_t seed, int generator, int id) {
    return (uint32_t)seed * 127u + (uint32_t)generator * 16u + (uint32_t)id;
}

/* Draws with the lock held, because the launch changes the states. */
static dvt_status dvti_draw_mxnet_cpu(dvt_array *out, dvti_launch *launch) {
    dvti_streams *all = &dvti_the_streams;
    size_t threads = (size_t)dvti_mxnet_threads(launch->i[6], 1024);
    dvti_view *states = &launch->out[1];
    if (!dvti_grow((void **)&all->state, &all->states_capacity, threads, sizeof *all->state))
        return dvti_fail_memory(launch->name, (int64_t)(threads * sizeof *all->state));
    for (; all->states < threads; all->states++)
        dvti_mt19937_seed(&all->state[all->states],
                          dvti_mxnet_seed(all->state_seed, 0, 0) + (uint32_t)all->states);
    states->data = all->state;
    states->dtype = DVT_I32;
    states->ndim = 2;
    states->dim[0] = (int64_t)threads;
    states->dim[1] = states->stride[0] = (int64_t)(sizeof *all->state / 4);
    states->stride[1] = 1;
    launch->n_out = 2;
    launch->i[0] = DVTI_RNG_MT19937;
    launch->i[4] = (int64_t)threads;
    return dvti_run(out->storage->device, launch);
}

/* Passes the positions of one generator's subsequences to the launch: a number for one
   subsequence, an array on the device for several. */
static bool dvti_mxnet_positions(dvt_array *out, dvti_launch *launch, dvti_stream *stream, int g) {
    size_t threads = (size_t)launch->i[4];
    dvt_array *positions;
    if (!dvti_grow((void **)&stream->position[g], &stream->capacity[g], threads, 8)) {
        dvti_fail_memory(launch->name, launch->i[4] * 8);
        return false;
    }
    for (; stream->positions[g] < threads; stream->positions[g]++)
        stream->position[g][stream->positions[g]] = 0;
    launch->i[2] = stream->position[g][0];
    if (threads == 1)
        return true;
    positions = dvti_array_new(launch->name, DVT_SHAPE(launch->i[4]), DVT_I64, out->storage->ctx);
    if (!positions || dvti_write_host(launch->name, positions, stream->position[g]) != DVT_OK)
        return false;
    dvti_view_into(&launch->in[0], positions);
    launch->n_in = 1;
    return true;
}

/* Draws from the generators in rotation, starting with number 1. The lock is held. */
static dvt_status dvti_draw_mxnet_gpu(dvt_array *out, dvti_launch *launch) {
    dvt_ctx ctx = out->storage->ctx;
    dvti_stream *stream = dvti_stream_of(launch->name, ctx);
    int64_t n = launch->i[6], threads = dvti_mxnet_threads(n, 32768), t;
    int64_t step = (n + threads - 1) / threads, words = out->dtype == DVT_F64 ? 2 : 1;
    dvt_status status;
    int g;
    if (!stream)
        return DVT_ERR_HOST_MEMORY;
    g = (int)((stream->uses + 1) % DVTI_MXNET_GENERATORS);
    launch->i[0] = DVTI_RNG_CURAND;
    launch->i[1] = (int64_t)dvti_mxnet_seed(stream->seed, g, stream->own ? 0 : ctx.id);
    launch->i[4] = threads;
    if (!dvti_mxnet_positions(out, launch, stream, g))
        return dvti_failure();
    status = dvti_run(out->storage->device, launch);
    if (status == DVT_OK) {
        stream->uses++;
        for (t = 0; t < threads && t * step < n; t++)
            stream->position[g][t] += DVTI_MIN(step, n - t * step) * words;
    }
    return status;
}

static dvt_status dvti_draw_mxnet(dvt_array *out, dvti_launch *launch) {
    dvt_scope_guard scope = dvt_scope_begin();
    dvt_status status;
    dvti_mutex_lock(&dvti_the_streams.lock);
    status = dvti_supports(out->storage->device, launch->kernel, launch->op, out->dtype,
                           DVTI_CAN_HOST_STATE)
                 ? dvti_draw_mxnet_cpu(out, launch)
                 : dvti_draw_mxnet_gpu(out, launch);
    dvti_mutex_unlock(&dvti_the_streams.lock);
    dvt_scope_end(&scope);
    return status;
}

DVTI_FN dvt_status dvti_draw(dvt_array *out, dvti_launch *launch, const dvt_key *key, int words) {
    int per = 4 / words;
    int64_t n = dvt_shape_size(out->shape);
    dvti_view_into(&launch->out[0], out);
    launch->n_out = 1;
    launch->i[6] = n;
    if (dvti_is_meta(out->storage->device)) /* no number is drawn */
        return dvti_run(out->storage->device, launch);
    if (key)
        return dvti_draw_key(out, launch, *key);
    if (dvti_this_part.on)
        return dvti_draw_part(out, launch, (uint64_t)((n - 1) / per + 1));
    if (launch->op == DVTI_OP_uniform && dvti_rng_engine_now() == DVT_RNG_MXNET)
        return dvti_draw_mxnet(out, launch);
    return dvti_draw_stream(out, launch, (uint64_t)((n - 1) / per + 1));
}

#if defined(DVTI_CHECKPOINTS)
/* ---- the state of all streams as integers ----
   engine, seed, state_seed, number of states, number of streams; the states' words; for each
   stream type, id, seed, own, counter, uses, then the number of positions of each generator and
   these positions. */
#define DVTI_STATE_WORDS (DVTI_MT19937_WORDS + 1)

/* Writes the state at `out` unless that is NULL. Returns its length. The lock is held. */
static int64_t dvti_streams_write(int64_t *out) {
    const dvti_streams *all = &dvti_the_streams;
    int64_t n = 0;
    size_t i, k;
    int g;
#define DVTI_PUT(value)                                                                            \
    do {                                                                                           \
        if (out)                                                                                   \
            out[n] = (int64_t)(value);                                                             \
        n++;                                                                                       \
    } while (0)
    DVTI_PUT(all->engine);
    DVTI_PUT(all->seed);
    DVTI_PUT(all->state_seed);
    DVTI_PUT(all->states);
    DVTI_PUT(all->n);
    for (i = 0; i < all->states; i++) {
        for (k = 0; k < DVTI_MT19937_WORDS; k++)
            DVTI_PUT(all->state[i].word[k]);
        DVTI_PUT(all->state[i].at);
    }
    for (i = 0; i < all->n; i++) {
        const dvti_stream *stream = &all->stream[i];
        DVTI_PUT(stream->ctx.type);
        DVTI_PUT(stream->ctx.id);
        DVTI_PUT(stream->seed);
        DVTI_PUT(stream->own);
        DVTI_PUT(stream->counter);
        DVTI_PUT(stream->uses);
        for (g = 0; g < DVTI_MXNET_GENERATORS; g++) {
            DVTI_PUT(stream->positions[g]);
            for (k = 0; k < stream->positions[g]; k++)
                DVTI_PUT(stream->position[g][k]);
        }
    }
#undef DVTI_PUT
    return n;
}

DVTI_FN dvt_array *dvti_streams_state(const char *function) {
    dvt_array *state;
    dvti_mutex_lock(&dvti_the_streams.lock);
    state = dvti_array_new(function, DVT_SHAPE(dvti_streams_write(NULL)), DVT_I64, dvt_cpu());
    if (state)
        dvti_streams_write((int64_t *)dvti_view_of(state).data);
    dvti_mutex_unlock(&dvti_the_streams.lock);
    return state;
}

DVTI_FN void dvti_streams_free(dvti_streams *streams) {
    size_t i;
    int g;
    for (i = 0; streams && i < streams->n; i++)
        for (g = 0; g < DVTI_MXNET_GENERATORS; g++)
            dvti_free(streams->stream[i].position[g]);
    if (streams) {
        dvti_free(streams->stream);
        dvti_free(streams->state);
    }
    dvti_free(streams);
}

/* Takes `count` integers. Returns NULL, and takes nothing, when fewer are left. */
static const int64_t *dvti_streams_take(const int64_t **at, int64_t *left, int64_t count) {
    const int64_t *from = *at;
    if (count < 0 || count > *left)
        return NULL;
    *at += count;
    *left -= count;
    return from;
}

/* Returns false with *memory set when memory is exhausted. */
static bool dvti_streams_take_stream(dvti_stream *stream, const int64_t **at, int64_t *left,
                                     bool *memory) {
    const int64_t *from = dvti_streams_take(at, left, 6);
    int g;
    if (!from || from[0] < 0 || from[0] > INT_MAX || from[1] < 0 || from[1] > INT_MAX)
        return false;
    stream->ctx.type = (dvt_device_type)from[0];
    stream->ctx.id = (int)from[1];
    stream->seed = (uint64_t)from[2];
    stream->own = from[3] != 0;
    stream->counter = (uint64_t)from[4];
    stream->uses = (uint64_t)from[5];
    for (g = 0; g < DVTI_MXNET_GENERATORS; g++) {
        const int64_t *count = dvti_streams_take(at, left, 1);
        const int64_t *values = count ? dvti_streams_take(at, left, *count) : NULL;
        size_t n = values ? (size_t)*count : 0;
        if (!values)
            return false;
        *memory =
            !dvti_grow((void **)&stream->position[g], &stream->capacity[g], n, sizeof *values);
        if (*memory)
            return false;
        if (n)
            memcpy(stream->position[g], values, n * sizeof *values);
        stream->positions[g] = n;
    }
    return true;
}

static bool dvti_streams_take_all(dvti_streams *all, const int64_t *at, int64_t left,
                                  bool *memory) {
    const int64_t *head = dvti_streams_take(&at, &left, 5), *words;
    size_t i, k;
    if (!head || head[0] < DVT_RNG_PHILOX || head[0] > DVT_RNG_JAX || head[3] < 0 || head[4] < 0 ||
        head[3] > left / DVTI_STATE_WORDS || head[4] > left)
        return false;
    all->engine = (dvt_rng_engine)head[0];
    all->seed = (uint64_t)head[1];
    all->state_seed = (uint64_t)head[2];
    *memory =
        !dvti_grow((void **)&all->state, &all->states_capacity, (size_t)head[3],
                   sizeof *all->state) ||
        !dvti_grow((void **)&all->stream, &all->capacity, (size_t)head[4], sizeof *all->stream);
    if (*memory)
        return false;
    for (; all->states < (size_t)head[3]; all->states++) {
        words = dvti_streams_take(&at, &left, DVTI_STATE_WORDS);
        for (k = 0; k < DVTI_MT19937_WORDS; k++)
            all->state[all->states].word[k] = (uint32_t)words[k];
        if (words[k] < 0 || words[k] > DVTI_MT19937_WORDS)
            return false;
        all->state[all->states].at = (uint32_t)words[k];
    }
    for (i = 0; i < (size_t)head[4]; i++) {
        memset(&all->stream[i], 0, sizeof all->stream[i]);
        all->n = i + 1;
        if (!dvti_streams_take_stream(&all->stream[i], &at, &left, memory))
            return false;
    }
    return left == 0;
}

DVTI_FN dvti_streams *dvti_streams_make(const char *function, const int64_t *state, int64_t n) {
    dvti_streams *all = (dvti_streams *)dvti_alloc_zero(sizeof *all);
    bool memory = all == NULL;
    if (all && dvti_streams_take_all(all, state, n, &memory))
        return all;
    dvti_streams_free(all);
    if (memory)
        dvti_fail_memory(function, n * 8);
    return NULL;
}

DVTI_FN void dvti_streams_adopt(dvti_streams *streams) {
    /* all but the lock */
    const size_t from = offsetof(dvti_streams, engine), bytes = sizeof *streams - from;
    char *all = (char *)&dvti_the_streams + from, *given = (char *)streams + from;
    char old[sizeof *streams];
    if (!streams)
        return;
    dvti_mutex_lock(&dvti_the_streams.lock);
    memcpy(old, all, bytes);
    memcpy(all, given, bytes);
    memcpy(given, old, bytes);
    dvti_mutex_unlock(&dvti_the_streams.lock);
    dvti_streams_free(streams);
}

#undef DVTI_STATE_WORDS
#endif
#undef DVTI_MXNET_GENERATORS
