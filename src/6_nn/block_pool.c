/* Pooling and resizing. Settings are checked once, when the block is made. */
#include "6_nn/dvt_nn_internal.h"

/* One axis is the second place of each pair, with 1 or 0 in the first. */
typedef struct dvti_pool_block {
    dvt_pool2d_options params;
    dvt_pool1d_options row; /* for one axis; params has the same in pairs */
    bool average, one_axis;
} dvti_pool_block;

static dvt_array *dvti_pool_block_forward(dvt_block *self, void *user, dvt_array *x) {
    const dvti_pool_block *pool = (const dvti_pool_block *)user;
    (void)self;
    if (pool->one_axis)
        return pool->average ? dvt_avg_pool1d(x, &pool->row) : dvt_max_pool1d(x, &pool->row);
    return pool->average ? dvt_avg_pool2d(x, &pool->params) : dvt_max_pool2d(x, &pool->params);
}

/* Describes the block. As in Gluon, global pools print a window of 1 and ceil_mode. */
static size_t dvti_pool_block_describe(const dvt_block *self, void *user, char *buffer,
                                       size_t size) {
    const dvti_pool_block *pool = (const dvti_pool_block *)user;
    dvt_pool2d_options p = pool->params;
    dvti_text text = dvti_text_begin(buffer, size);
    int window[2], stride[2], padding[2];
    if (p.global) {
        memset(&p, 0, sizeof p);
        p.size[0] = p.stride[0] = 1;
        p.global = p.ceil_mode = true;
    }
    dvti_pool2d_pairs(&p, window, stride, padding);
    if (pool->one_axis)
        dvti_text_add(&text, "%s(size=(%d,), stride=(%d,), padding=(%d,)", self->desc.kind,
                      window[1], stride[1], padding[1]);
    else
        dvti_text_add(&text, "%s(size=(%d, %d), stride=(%d, %d), padding=(%d, %d)", self->desc.kind,
                      window[0], window[1], stride[0], stride[1], padding[0], padding[1]);
    dvti_text_add(&text, ", ceil_mode=%s, global_pool=%s, pool_type=%s, layout=%s)",
                  p.ceil_mode ? "True" : "False", p.global ? "True" : "False",
                  pool->average ? "avg" : "max", pool->one_axis ? "NCW" : "NCHW");
    return text.length;
}

/* Checks p and leaves it unchanged: the operations resolve it. */
static bool dvti_pool_block_ok(const char *function, const dvt_pool2d_options *p) {
    int size[2], stride[2], padding[2];
    if (p->global)
        return true;
    dvti_pool2d_pairs(p, size, stride, padding);
    if (!dvti_nn_pair_ok(function, "size", size, 1) ||
        !dvti_nn_pair_ok(function, "stride", stride, 1) ||
        !dvti_nn_pair_ok(function, "padding", padding, 0))
        return false;
    if (padding[0] > size[0] / 2 || padding[1] > size[1] / 2) {
        dvti_fail(DVT_ERR_RANGE,
                  "%s: padding is (%d, %d) and size (%d, %d); expected at most half the size",
                  function, padding[0], padding[1], size[0], size[1]);
        return false;
    }
    return true;
}

static dvt_block *dvti_pool_block_new(const char *function, const dvti_pool_block *pool) {
    /* [one axis][average][global] */
    static const char *const names[2][2][2] = {
        {{"MaxPool2D", "GlobalMaxPool2D"}, {"AvgPool2D", "GlobalAvgPool2D"}},
        {{"MaxPool1D", "GlobalMaxPool1D"}, {"AvgPool1D", "GlobalAvgPool1D"}}};
    dvti_nn_kind kind = {NULL, "pool", dvti_pool_block_forward, NULL, dvti_pool_block_describe};
    kind.kind = names[pool->one_axis][pool->average][pool->params.global];
    return dvti_pool_block_ok(function, &pool->params)
               ? dvti_nn_block(function, &kind, pool, sizeof *pool)
               : NULL;
}

static dvt_block *dvti_pool_block_make(const char *function, const dvt_pool2d_options *p,
                                       bool average) {
    dvti_pool_block pool;
    memset(&pool, 0, sizeof pool);
    pool.params = *p;
    pool.average = average;
    return dvti_pool_block_new(function, &pool);
}

static dvt_block *dvti_pool_block_row(const char *function, int size, int stride, bool average,
                                      bool global) {
    dvti_pool_block pool;
    memset(&pool, 0, sizeof pool);
    pool.row.size = size;
    pool.row.stride = stride;
    pool.row.global = global;
    pool.params = dvti_pool1d_pairs(&pool.row);
    pool.average = average;
    pool.one_axis = true;
    return dvti_pool_block_new(function, &pool);
}

static dvt_block *dvti_pool_block_simple(const char *function, int size, int stride, bool average) {
    dvt_pool2d_options p;
    memset(&p, 0, sizeof p);
    p.size[0] = size;
    p.stride[0] = stride;
    return dvti_pool_block_make(function, &p, average);
}

static dvt_block *dvti_pool_block_with(const char *function, const dvt_pool2d_options *p,
                                       bool average) {
    if (p)
        return dvti_pool_block_make(function, p, average);
    dvti_null(function, "p");
    return NULL;
}

DVT_API dvt_block *dvt_nn_max_pool2d(int size, int stride) {
    return dvti_pool_block_simple("dvt_nn_max_pool2d", size, stride, false);
}

DVT_API dvt_block *dvt_nn_avg_pool2d(int size, int stride) {
    return dvti_pool_block_simple("dvt_nn_avg_pool2d", size, stride, true);
}

DVT_API dvt_block *dvt_nn_max_pool2d_with(const dvt_pool2d_options *p) {
    return dvti_pool_block_with("dvt_nn_max_pool2d_with", p, false);
}

DVT_API dvt_block *dvt_nn_avg_pool2d_with(const dvt_pool2d_options *p) {
    return dvti_pool_block_with("dvt_nn_avg_pool2d_with", p, true);
}

DVT_API dvt_block *dvt_nn_global_avg_pool2d(void) {
    dvt_pool2d_options p;
    memset(&p, 0, sizeof p);
    p.global = true;
    return dvti_pool_block_make("dvt_nn_global_avg_pool2d", &p, true);
}

DVT_API dvt_block *dvt_nn_max_pool1d(int size, int stride) {
    return dvti_pool_block_row("dvt_nn_max_pool1d", size, stride, false, false);
}

DVT_API dvt_block *dvt_nn_avg_pool1d(int size, int stride) {
    return dvti_pool_block_row("dvt_nn_avg_pool1d", size, stride, true, false);
}

DVT_API dvt_block *dvt_nn_global_avg_pool1d(void) {
    return dvti_pool_block_row("dvt_nn_global_avg_pool1d", 0, 0, true, true);
}

/* ---- AdaptiveAvgPool2D ---- */
static dvt_array *dvti_adaptive_block_forward(dvt_block *self, void *user, dvt_array *x) {
    const int64_t *size = (const int64_t *)user;
    (void)self;
    return dvt_adaptive_avg_pool2d(x, size[0], size[1]);
}

static size_t dvti_adaptive_block_describe(const dvt_block *self, void *user, char *buffer,
                                           size_t size) {
    const int64_t *extent = (const int64_t *)user;
    dvti_text text = dvti_text_begin(buffer, size);
    dvti_text_add(&text, "%s(output_size=(%lld, %lld))", self->desc.kind, (long long)extent[0],
                  (long long)extent[1]);
    return text.length;
}

DVT_API dvt_block *dvt_nn_adaptive_avg_pool2d(int64_t height, int64_t width) {
    static const dvti_nn_kind kind = {"AdaptiveAvgPool2D", "pool", dvti_adaptive_block_forward,
                                      NULL, dvti_adaptive_block_describe};
    const char *function = "dvt_nn_adaptive_avg_pool2d";
    int64_t size[2];
    size[0] = height;
    size[1] = width;
    if (height > 0 && width > 0)
        return dvti_nn_block(function, &kind, size, sizeof size);
    dvti_fail(DVT_ERR_RANGE, "%s: the result would be %lld x %lld; expected at least 1 x 1",
              function, (long long)height, (long long)width);
    return NULL;
}

/* ---- UpSampling2D ---- */
static dvt_array *dvti_upsample_block_forward(dvt_block *self, void *user, dvt_array *x) {
    (void)self;
    return dvt_upsample2d(x, (const dvt_upsample2d_options *)user);
}

static size_t dvti_upsample_block_describe(const dvt_block *self, void *user, char *buffer,
                                           size_t size) {
    const dvt_upsample2d_options *p = (const dvt_upsample2d_options *)user;
    dvti_text text = dvti_text_begin(buffer, size);
    bool scale = p->scale[0] != 0;
    dvti_text_add(&text, "%s(%s=(%lld, %lld), mode=%s%s)", self->desc.kind,
                  scale ? "scale" : "size", scale ? (long long)p->scale[0] : (long long)p->size[0],
                  scale ? (long long)p->scale[1] : (long long)p->size[1],
                  p->bilinear ? "bilinear" : "nearest",
                  p->bilinear && p->align_corners ? ", align_corners=True" : "");
    return text.length;
}

static dvt_block *dvti_upsample_block(const char *function, dvt_upsample2d_options p) {
    static const dvti_nn_kind kind = {"UpSampling2D", "upsampling", dvti_upsample_block_forward,
                                      NULL, dvti_upsample_block_describe};
    dvti_pair(p.scale, 0, p.scale);
    p.size[1] = p.size[1] ? p.size[1] : p.size[0];
    if ((p.scale[0] != 0) != (p.size[0] != 0) && p.scale[0] >= 0 && p.scale[1] >= 0 &&
        p.size[0] >= 0 && p.size[1] >= 0)
        return dvti_nn_block(function, &kind, &p, sizeof p);
    dvti_fail(DVT_ERR_RANGE,
              "%s: scale is (%d, %d) and size (%lld, %lld); expected one of them, positive",
              function, p.scale[0], p.scale[1], (long long)p.size[0], (long long)p.size[1]);
    return NULL;
}

DVT_API dvt_block *dvt_nn_upsample2d(int scale, bool bilinear) {
    dvt_upsample2d_options p;
    memset(&p, 0, sizeof p);
    p.scale[0] = scale;
    p.bilinear = bilinear;
    return dvti_upsample_block("dvt_nn_upsample2d", p);
}

DVT_API dvt_block *dvt_nn_upsample2d_with(const dvt_upsample2d_options *p) {
    if (p)
        return dvti_upsample_block("dvt_nn_upsample2d_with", *p);
    dvti_null("dvt_nn_upsample2d_with", "p");
    return NULL;
}
