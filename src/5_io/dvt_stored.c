/* Converts between the elements of files and the memory of arrays. */
#include "5_io/dvt_io_internal.h"

/* ---- stored elements ---- */
DVTI_FN void dvti_store_int(dvt_dtype dtype, char *to, int64_t i, int64_t value) {
    int32_t narrow = (int32_t)value;
    if (dtype == DVT_I64)
        memcpy(to + 8 * i, &value, 8);
    else if (dtype == DVT_I32)
        memcpy(to + 4 * i, &narrow, 4);
    else if (dtype == DVT_BOOL)
        to[i] = value != 0;
    else
        memcpy(to + i, &narrow, 1);
}

DVTI_FN void dvti_store_bits(char *to, int bytes, int64_t i, uint64_t value) {
    uint32_t b32 = (uint32_t)value;
    uint16_t b16 = (uint16_t)value;
    if (bytes == 8)
        memcpy(to + 8 * i, &value, 8);
    else if (bytes == 4)
        memcpy(to + 4 * i, &b32, 4);
    else
        memcpy(to + 2 * i, &b16, 2);
}

static bool dvti_host_is_big_endian(void) {
    const uint16_t one = 1;
    unsigned char first;
    memcpy(&first, &one, 1);
    return first == 0;
}

DVTI_FN bool dvti_stored_as_is(const dvti_stored *stored) {
    return stored->kind != 'b' && stored->bytes == (int)dvt_dtype_size(stored->dtype) &&
           (stored->bytes == 1 || stored->big_endian == dvti_host_is_big_endian()) &&
           (stored->kind != 'u' || stored->bytes == 1);
}

/* Converts n elements at `from` to stored->dtype at `to`. Returns false, with the index in *bad,
   when one does not fit (uint64 only). */
static bool dvti_stored_convert(const dvti_stored *stored, const unsigned char *from, void *to,
                                int64_t n, int64_t *bad) {
    int64_t i;
    for (i = 0; i < n; i++) {
        uint64_t value =
            dvti_bytes_value(from + i * stored->bytes, stored->bytes, stored->big_endian);
        if (stored->kind == 'f')
            dvti_store_bits((char *)to, stored->bytes, i, value);
        else if (stored->kind == 'i')
            dvti_store_int(stored->dtype, (char *)to, i, dvti_signed(value, stored->bytes));
        else if (value > (uint64_t)INT64_MAX) {
            *bad = i;
            return false;
        } else
            dvti_store_int(stored->dtype, (char *)to, i, (int64_t)value);
    }
    return true;
}

/* Reads the next n elements to `to`. `before` elements were read earlier; error messages need
   that. */
static bool dvti_stored_fill(const dvti_stored *stored, dvti_source *in, void *to, int64_t n,
                             int64_t before) {
    int64_t size = dvt_dtype_size(stored->dtype), i = 0, bad = 0, step;
    if (dvti_stored_as_is(stored))
        return dvti_source_read(in, to, n * size);
    for (; i < n; i += step) {
        step = DVTI_MIN(n - i, DVTI_SOURCE_PEEK / stored->bytes);
        if (!dvti_source_peek(in, (size_t)step * (size_t)stored->bytes)) {
            in->ended = true;
            return false;
        }
        if (!dvti_stored_convert(stored, in->at, (char *)to + i * size, step, &bad))
            return dvti_source_wrong(
                in,
                "element %lld is a uint64 above 9223372036854775807, which int64 cannot hold; "
                "convert the data to int64 or a float before saving",
                (long long)(before + i + bad));
        dvti_source_skip(in, step * stored->bytes);
    }
    return true;
}

/* ---- Fortran order: blocks of limited size ---- */
#define DVTI_FORTRAN_BLOCK ((int64_t)1 << 20)

typedef struct dvti_fortran {
    const dvti_stored *stored;
    dvti_source *in;
    dvt_array *to, *block;
    int axis;                    /* the last axis of a block; earlier axes are complete */
    int64_t run, step;           /* elements of the earlier axes; extent of `axis` in a block */
    int64_t index[DVT_MAX_DIMS]; /* position of the block on the later axes */
    int64_t before;              /* elements so far */
} dvti_fortran;

/* Converts one block. A block in Fortran order is C order of the reversed shape. Source and target
   views have the same axes, so the copy transposes. */
static bool dvti_fortran_block(dvti_fortran *f, int64_t first, int64_t extent) {
    dvt_shape shape = DVT_SCALAR;
    int64_t stride[DVT_MAX_DIMS], step = 1, offset = f->to->offset;
    dvt_array *from, *to;
    dvt_scope_guard scope;
    bool ok;
    int i;
    if (!dvti_stored_fill(f->stored, f->in, dvti_view_of(f->block).data, f->run * extent,
                          f->before))
        return false;
    f->before += f->run * extent;
    shape.ndim = f->axis + 1;
    for (i = 0; i <= f->axis; i++) {
        shape.dim[i] = i == f->axis ? extent : f->to->shape.dim[i];
        stride[i] = step;
        step *= shape.dim[i];
    }
    for (i = f->axis + 1; i < f->to->shape.ndim; i++)
        offset += f->index[i] * f->to->stride[i];
    scope = dvt_scope_begin();
    from = dvti_view_new(f->in->function, f->block, shape, stride, f->block->offset);
    to = dvti_view_new(f->in->function, f->to, shape, f->to->stride,
                       offset + first * f->to->stride[f->axis]);
    ok = from && to && dvti_copy_elements(f->in->function, to, from) == DVT_OK &&
         dvt_wait(f->to) == DVT_OK;
    dvt_scope_end(&scope);
    return ok;
}

/* Advances to the next position on the later axes. Returns false after the last one. */
static bool dvti_fortran_next(dvti_fortran *f) {
    int i;
    for (i = f->axis + 1; i < f->to->shape.ndim; i++) {
        if (++f->index[i] < f->to->shape.dim[i])
            return true;
        f->index[i] = 0;
    }
    return false;
}

static bool dvti_fortran_fill(const dvti_stored *stored, dvti_source *in, dvt_array *to) {
    int64_t most = DVTI_FORTRAN_BLOCK / dvt_dtype_size(stored->dtype), first;
    const int64_t *extent = to->shape.dim;
    dvti_fortran f;
    dvt_shape flat = DVT_SCALAR;
    if (dvt_size(to) == 0)
        return true;
    memset(&f, 0, sizeof f);
    f.stored = stored;
    f.in = in;
    f.to = to;
    f.run = 1;
    while (f.axis < to->shape.ndim - 1 && extent[f.axis] <= most / f.run)
        f.run *= extent[f.axis++];
    f.step = DVTI_MIN(DVTI_MAX(most / f.run, 1), extent[f.axis]);
    flat.ndim = 1;
    flat.dim[0] = f.run * f.step;
    f.block = dvti_array_new(in->function, flat, stored->dtype, to->storage->ctx);
    if (!f.block)
        return false;
    do
        for (first = 0; first < extent[f.axis]; first += f.step)
            if (!dvti_fortran_block(&f, first, DVTI_MIN(f.step, extent[f.axis] - first)))
                return false;
    while (dvti_fortran_next(&f));
    return true;
}

#undef DVTI_FORTRAN_BLOCK

DVTI_FN bool dvti_stored_bytes(const dvti_stored *stored, const dvt_shape *shape, int64_t *bytes) {
    int64_t n = 1;
    int i;
    for (i = 0; i < shape->ndim; i++)
        if (!dvti_mul(n, shape->dim[i], &n))
            return false;
    return dvti_mul(n, stored->bytes, bytes);
}

DVTI_FN dvt_array *dvti_stored_to_ctx(const char *function, dvt_array *host, dvt_ctx ctx) {
    dvt_array *x;
    if (dvti_is_host_memory(ctx))
        return host;
    x = dvti_array_new(function, host->shape, host->dtype, ctx);
    return x && dvti_copy_elements(function, x, host) == DVT_OK ? x : NULL;
}

DVTI_FN dvt_array *dvti_stored_filled(const char *function, dvt_shape shape, dvt_dtype dtype,
                                      dvt_ctx ctx, bool (*fill)(void *user, dvt_array *host),
                                      void *user) {
    dvt_array *host, *result = NULL;
    dvt_scope_guard scope;
    ctx = dvti_ctx(ctx);
    scope = dvt_scope_begin();
    host = dvti_array_new(function, shape, dtype, dvti_is_host_memory(ctx) ? ctx : dvt_cpu());
    if (host && fill(user, host))
        result = dvti_stored_to_ctx(function, host, ctx);
    dvt_keep(result);
    dvt_scope_end(&scope);
    return result;
}

typedef struct dvti_stored_job {
    const dvti_stored *stored;
    dvti_source *in;
    bool fortran_order;
} dvti_stored_job;

static bool dvti_stored_run(void *user, dvt_array *host) {
    const dvti_stored_job *job = (const dvti_stored_job *)user;
    return job->fortran_order && host->shape.ndim > 1
               ? dvti_fortran_fill(job->stored, job->in, host)
               : dvti_stored_fill(job->stored, job->in, dvti_view_of(host).data, dvt_size(host), 0);
}

DVTI_FN dvt_array *dvti_stored_array(const dvti_stored *stored, dvti_source *in, dvt_shape shape,
                                     bool fortran_order, dvt_ctx ctx) {
    dvti_stored_job job;
    if (dvti_stored_maps(stored, in, shape))
        return dvti_stored_mapped(stored, in, shape, fortran_order, ctx);
    job.stored = stored;
    job.in = in;
    job.fortran_order = fortran_order;
    return dvti_stored_filled(in->function, shape, stored->dtype, ctx, dvti_stored_run, &job);
}

DVTI_FN dvt_array *dvti_stored_whole(const dvti_stored *stored, dvti_source *in, dvt_shape shape,
                                     bool fortran_order, dvt_ctx ctx, bool *fits) {
    int64_t bytes, left = dvti_source_left(in);
    dvt_scope_guard scope;
    dvt_array *x;
    *fits =
        dvti_stored_bytes(stored, &shape, &bytes) && (in->known ? bytes == left : bytes <= left);
    if (!*fits)
        return NULL;
    scope = dvt_scope_begin();
    x = dvti_stored_array(stored, in, shape, fortran_order, ctx);
    *fits = !in->ended && (!x || dvti_source_at_end(in));
    if (!*fits)
        x = NULL;
    dvt_keep(x);
    dvt_scope_end(&scope);
    return x;
}

static void dvti_swap_bytes(unsigned char *at, int bytes, int64_t n) {
    for (; n > 0; n--, at += bytes) {
        int i;
        for (i = 0; i < bytes / 2; i++) {
            unsigned char low = at[i];
            at[i] = at[bytes - 1 - i];
            at[bytes - 1 - i] = low;
        }
    }
}

/* Reads values explicitly: the guard of implicit reads does not apply. */
DVTI_FN dvt_array *dvti_host_array(const char *function, dvt_array *x, dvt_dtype dtype, bool copy) {
    dvt_array *host;
    if (!copy && dvti_is_host_memory(x->storage->ctx) && x->dtype == dtype && dvt_is_contiguous(x))
        return dvt_wait(x) == DVT_OK ? x : NULL;
    if (!dvti_has_values(function, x))
        return NULL;
    host = dvti_array_new(function, x->shape, dtype, dvt_cpu());
    if (!host || dvti_copy_elements(function, host, x) != DVT_OK || dvt_wait(host) != DVT_OK)
        return NULL;
    return host;
}

DVTI_FN dvt_array *dvti_stored_host(const char *function, dvt_array *x, dvt_dtype dtype) {
    return dvti_stored_host_in(function, x, dtype, false);
}

DVTI_FN dvt_array *dvti_stored_host_in(const char *function, dvt_array *x, dvt_dtype dtype,
                                       bool big_endian) {
    bool swap = dvti_host_is_big_endian() != big_endian && dvt_dtype_size(dtype) > 1;
    dvt_array *host = dvti_host_array(function, x, dtype, swap);
    if (host && swap)
        dvti_swap_bytes((unsigned char *)dvti_view_of(host).data, (int)dvt_dtype_size(dtype),
                        dvt_size(host));
    return host;
}
