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

#undef DVTI_CIFAR_SIDE
