/* CIFAR's binary files (A. Krizhevsky, 2009). A record has 1 label byte (CIFAR-10) or 2 (CIFAR-100:
   coarse, fine), then 3072 pixels: all red ones of 32 rows, then the green and the blue ones. */
#include "5_io/dvt_formats.h"

#define DVTI_CIFAR_SIDE 1024 /* pixels of one channel */

DVTI_FN dvti_cifar_kind dvti_cifar10(void) {
    static const dvti_cifar_kind kind = {1, 0, 10};
    return kind;
}

DVTI_FN dvti_cifar_kind dvti_cifar100(dvt_cifar100_labels labels) {
    static const dvti_cifar_kind fine = {2, 1, 100}, coarse = {2, 0, 20};
    return labels == DVT_CIFAR100_FINE ? fine : coarse;
}

DVTI_FN bool dvti_cifar_count(dvti_source *in, dvti_cifar_kind kind, int64_t *n) {
    int64_t left = dvti_source_left(in), record = kind.label_bytes + DVTI_CIFAR_PIXELS;
    *n = left / record;
    if (!in->known)
        return dvti_source_wrong(in, "its size is not known; expected a regular file");
    if (left == 0)
        return dvti_source_wrong(in,
                                 "it is empty; expected %lld bytes for each image: fetch the "
                                 "file again",
                                 (long long)record);
    return left % record == 0 ||
           dvti_source_wrong(in,
                             "it has %lld bytes; expected a multiple of %lld, %d label bytes and "
                             "%d pixels for each image: unpack or fetch the file again",
                             (long long)left, (long long)record, kind.label_bytes,
                             DVTI_CIFAR_PIXELS);
}

DVTI_FN bool dvti_cifar_fill(dvti_source *in, dvti_cifar_kind kind, int64_t n, uint8_t *x,
                             int32_t *y) {
    int64_t i;
    int c, p;
    for (i = 0; i < n; i++, x += DVTI_CIFAR_PIXELS) {
        const unsigned char *plane;
        if (!dvti_source_peek(in, (size_t)kind.label_bytes + DVTI_CIFAR_PIXELS))
            return dvti_source_wrong(in, "it ends within image %lld; fetch the file again",
                                     (long long)i);
        y[i] = in->at[kind.label_at];
        if (y[i] >= kind.classes)
            return dvti_source_wrong(
                in,
                "the label of image %lld is %d; expected 0 to %d: check that this is a file of "
                "CIFAR-%s",
                (long long)i, (int)y[i], kind.classes - 1, kind.label_bytes == 1 ? "10" : "100");
        plane = in->at + kind.label_bytes;
        for (c = 0; c < 3; c++, plane += DVTI_CIFAR_SIDE)
            for (p = 0; p < DVTI_CIFAR_SIDE; p++)
                x[3 * p + c] = plane[p];
        dvti_source_skip(in, kind.label_bytes + DVTI_CIFAR_PIXELS);
    }
    return true;
}

static dvt_status dvti_cifar_read(const char *function, const void *data, size_t bytes,
                                  dvti_cifar_kind kind, dvt_array **x, dvt_array **y) {
    dvt_array *images = NULL, *labels = NULL;
    dvt_scope_guard scope;
    dvti_source in;
    int64_t n;
    bool ok;
    if (x)
        *x = NULL;
    if (y)
        *y = NULL;
    if (!data || !x || !y)
        return dvti_null(function, !data ? "data" : !x ? "x" : "y");
    dvti_source_memory(&in, function, data, bytes);
    if (!dvti_cifar_count(&in, kind, &n))
        return dvti_failure();
    scope = dvt_scope_begin();
    images = dvti_array_new(function, DVT_SHAPE(n, 32, 32, 3), DVT_U8, dvt_cpu());
    labels = images ? dvti_array_new(function, DVT_SHAPE(n), DVT_I32, dvt_cpu()) : NULL;
    ok = labels && dvti_cifar_fill(&in, kind, n, (uint8_t *)dvti_view_of(images).data,
                                   (int32_t *)dvti_view_of(labels).data);
    if (ok) {
        *x = (dvt_array *)dvt_keep(images);
        *y = (dvt_array *)dvt_keep(labels);
    }
    dvt_scope_end(&scope);
    return ok ? DVT_OK : dvti_failure();
}

DVT_API dvt_status dvt_read_cifar10(const void *data, size_t bytes, dvt_array **x, dvt_array **y) {
    return dvti_cifar_read("dvt_read_cifar10", data, bytes, dvti_cifar10(), x, y);
}

DVT_API dvt_status dvt_read_cifar100(const void *data, size_t bytes, dvt_cifar100_labels labels,
                                     dvt_array **x, dvt_array **y) {
    if (!dvti_choice("dvt_read_cifar100", "labels", (int)labels, "DVT_CIFAR100_FINE",
                     "DVT_CIFAR100_COARSE")) {
        if (x)
            *x = NULL;
        if (y)
            *y = NULL;
        return dvti_failure();
    }
    return dvti_cifar_read("dvt_read_cifar100", data, bytes, dvti_cifar100(labels), x, y);
}

/* ---- writing ---- */
typedef struct dvti_cifar_out {
    const char *function;
    dvt_array *x, *label[2];
    const char *name[2];
    int classes[2], labels;
} dvti_cifar_out;

static dvt_status dvti_cifar_check_labels(const dvti_cifar_out *o, int k) {
    const dvt_array *y = o->label[k];
    const int64_t n = o->x->shape.dim[0];
    dvt_status status = DVT_OK;
    if (!y)
        return dvti_null(o->function, o->name[k]);
    if (y->shape.ndim != 1 || y->shape.dim[0] != n)
        status = DVT_ERR_SHAPE;
    else if (dvt_dtype_is_float(y->dtype) || y->dtype == DVT_BOOL)
        status = DVT_ERR_DTYPE;
    return status == DVT_OK ? status
                            : dvti_fail(status,
                                        "%s: %s is %s; expected integers (%lld,), a label for each "
                                        "image",
                                        o->function, o->name[k], dvti_describe(y), (long long)n);
}

static dvt_status dvti_cifar_check(const dvti_cifar_out *o) {
    dvt_status status = DVT_OK;
    const dvt_shape *shape;
    int k;
    if (!o->x)
        return dvti_null(o->function, "x");
    shape = &o->x->shape;
    if (shape->ndim != 4 || shape->dim[0] < 1 || shape->dim[1] != 32 || shape->dim[2] != 32 ||
        shape->dim[3] != 3)
        status = DVT_ERR_SHAPE;
    else if (o->x->dtype != DVT_U8)
        status = DVT_ERR_DTYPE;
    if (status != DVT_OK)
        return dvti_fail(status, "%s: x is %s; expected uint8 (N, 32, 32, 3), N above 0",
                         o->function, dvti_describe(o->x));
    for (k = 0; k < o->labels && status == DVT_OK; k++)
        status = dvti_cifar_check_labels(o, k);
    return status;
}

/* Writes the records. Returns false with RANGE set for a label that is no class. */
static bool dvti_cifar_write(const dvti_cifar_out *o, dvti_file_out *out, const uint8_t *x,
                             const int64_t *const *label) {
    unsigned char record[2 + DVTI_CIFAR_PIXELS];
    int64_t i;
    int c, p, k;
    for (i = 0; i < o->x->shape.dim[0]; i++, x += DVTI_CIFAR_PIXELS) {
        for (k = 0; k < o->labels; k++) {
            if (label[k][i] < 0 || label[k][i] >= o->classes[k]) {
                dvti_fail(DVT_ERR_RANGE, "%s: %s[%lld] is %lld; expected 0 to %d", o->function,
                          o->name[k], (long long)i, (long long)label[k][i], o->classes[k] - 1);
                return false;
            }
            record[k] = (unsigned char)label[k][i];
        }
        for (c = 0; c < 3; c++)
            for (p = 0; p < DVTI_CIFAR_SIDE; p++)
                record[o->labels + c * DVTI_CIFAR_SIDE + p] = x[3 * p + c];
        dvti_file_write(out, record, (size_t)o->labels + DVTI_CIFAR_PIXELS);
    }
    return true;
}

static dvt_status dvti_cifar_save(const dvti_cifar_out *o, const char *path) {
    dvt_status status = dvti_cifar_check(o);
    const int64_t *label[2] = {NULL, NULL};
    dvt_scope_guard scope;
    dvti_file_out out;
    dvt_array *images;
    bool good;
    int k;
    if (status != DVT_OK)
        return status;
    scope = dvt_scope_begin();
    images = dvti_host_array(o->function, o->x, DVT_U8, false);
    good = images != NULL;
    for (k = 0; k < o->labels && good; k++) {
        dvt_array *labels = dvti_host_array(o->function, o->label[k], DVT_I64, false);
        good = labels != NULL;
        label[k] = good ? (const int64_t *)dvti_view_of(labels).data : NULL;
    }
    if (good && dvti_file_begin(&out, o->function, path)) {
        good = dvti_cifar_write(o, &out, (const uint8_t *)dvti_view_of(images).data, label);
        status = dvti_file_end(&out, good);
    } else
        status = dvti_failure();
    dvt_scope_end(&scope);
    return status;
}

DVT_API dvt_status dvt_save_cifar10(const char *path, dvt_array *x, dvt_array *y) {
    dvti_cifar_out o;
    memset(&o, 0, sizeof o);
    o.function = "dvt_save_cifar10";
    o.x = x;
    o.labels = 1;
    o.label[0] = y;
    o.name[0] = "y";
    o.classes[0] = 10;
    return dvti_cifar_save(&o, path);
}

DVT_API dvt_status dvt_save_cifar100(const char *path, dvt_array *x, dvt_array *coarse,
                                     dvt_array *fine) {
    dvti_cifar_out o;
    memset(&o, 0, sizeof o);
    o.function = "dvt_save_cifar100";
    o.x = x;
    o.labels = 2;
    o.label[0] = coarse;
    o.name[0] = "coarse";
    o.classes[0] = 20;
    o.label[1] = fine;
    o.name[1] = "fine";
    o.classes[1] = 100;
    return dvti_cifar_save(&o, path);
}

#undef DVTI_CIFAR_SIDE
