/* Text of arrays, and files in memory. */
#include "programs.h"

static void call_format(fuzz_world *w, const fuzz_op *op) {
    static const int precision[] = {0, 1, 3, -1, 8, 17, 500, 501, -2};
    static const int64_t threshold[] = {0, 1, 10, 1000, INT64_MAX, -1};
    static const int width[] = {0, 1, 10, 40, 75, 200, -1, INT32_MAX};
    fuzz_object *a = fuzz_pick(w);
    dvt_print_options options;
    char buffer[4096];
    size_t size, length = 0;
    uint8_t b = fuzz_byte(w), c = fuzz_byte(w);
    dvt_status status;
    (void)op;
    memset(&options, 0, sizeof options);
    memset(buffer, 1, sizeof buffer);
    options.style = b % 2 ? DVT_PRINT_STR : DVT_PRINT_JAX;
    options.precision = precision[b / 2 % 9];
    options.threshold = threshold[c % 6];
    options.edge_items = c / 6 % 5 - (c > 250);
    options.line_width = width[b / 18 % 8];
    options.suppress = c & 128;
    options.no_newline = c & 64;
    size = c % 3 == 0 ? sizeof buffer : c % 3 == 1 ? (size_t)b : 0;
    status = dvt_format(a->x, c == 77 ? NULL : &options, size ? buffer : NULL, size,
                        c % 5 ? &length : NULL);
    if (!fuzz_ended(w, status != DVT_OK))
        return;
    if (size && !memchr(buffer, 0, size))
        fuzz_fail(w, "text does not end");
    else if (size && c % 5 && strlen(buffer) != (length < size ? length : size - 1))
        fuzz_fail(w, "says %zu bytes and writes %zu", length, strlen(buffer));
    else if (size && buffer[size - 1] == 1 && size < sizeof buffer && strlen(buffer) == size - 1)
        fuzz_fail(w, "wrote beyond its size");
    if (size && c != 77)
        fuzz_text(w, buffer);
}

/* Reads a .npy file that the model has built. */
static void call_read_npy(fuzz_world *w, const fuzz_op *op) {
    static const char *const descr[] = {"<f4", "<f8", "<f2", "", "|i1", "|u1", "<i4", "<i8", "|b1"};
    fuzz_object *a = fuzz_pick(w);
    uint8_t b = fuzz_byte(w), c = fuzz_byte(w);
    char header[256], dims[128];
    size_t bytes, n = 0;
    unsigned char *file;
    dvt_array *y;
    fuzz_value *v;
    int i, pad;
    (void)op;
    if (!a->x || a->view.dtype == DVT_BF16)
        return;
    for (i = 0, dims[0] = 0; i < a->view.shape.ndim; i++)
        n += (size_t)snprintf(dims + n, sizeof dims - n, "%lld,", (long long)a->view.shape.dim[i]);
    n = (size_t)snprintf(header, sizeof header,
                         "{'descr': '%s', 'fortran_order': False, 'shape': (%s), }",
                         descr[a->view.dtype], dims);
    pad = (int)(64 - (10 + n + 1) % 64) % 64;
    bytes = 10 + n + (size_t)pad + 1 + (size_t)dvt_nbytes(a->x);
    file = (unsigned char *)malloc(bytes + 1);
    memcpy(file, "\x93NUMPY\1\0", 8);
    file[8] = (unsigned char)((n + (size_t)pad + 1) & 255);
    file[9] = (unsigned char)((n + (size_t)pad + 1) >> 8);
    memcpy(file + 10, header, n);
    memset(file + 10 + n, ' ', (size_t)pad);
    file[10 + n + (size_t)pad] = '\n';
    v = fuzz_values(&a->view);
    {
        void *values = calloc((size_t)dvt_size(a->x) + 1, 8);
        fuzz_encode(v, a->view.dtype, dvt_size(a->x), values);
        memcpy(file + bytes - (size_t)dvt_nbytes(a->x), values, (size_t)dvt_nbytes(a->x));
        free(values);
    }
    w->expect.shape = a->view.shape;
    w->expect.dtype = a->view.dtype;
    w->expect.shape_known = w->expect.dtype_known = w->expect.must_work = b < 200;
    if (b < 200)
        w->expect.value = v;
    else {
        free(v);
        if (b < 225)
            bytes -= c % bytes;
        else
            file[c % 80 % bytes] ^= (unsigned char)(1 << b % 8);
    }
    {
        unsigned char *exact = (unsigned char *)malloc(bytes ? bytes : 1);
        memcpy(exact, file, bytes);
        y = dvt_read_npy(exact, bytes, fuzz_place(w, c % 3));
        free(exact);
    }
    free(file);
    if (!fuzz_ended(w, !y))
        return;
    fuzz_result(w, y);
}

static void call_read_params(fuzz_world *w, const fuzz_op *op) {
    unsigned char bytes[FUZZ_ARGS * 2];
    dvt_array_list *list;
    int i;
    (void)op;
    memset(bytes, 0, sizeof bytes);
    bytes[0] = 0x12;
    bytes[1] = 1;
    for (i = 0; i < FUZZ_ARGS; i++)
        bytes[8 + i] = fuzz_byte(w);
    list = dvt_read_params(bytes, sizeof bytes, fuzz_place(w, 0));
    fuzz_ended(w, !list);
}

const fuzz_op fuzz_ops_io[] = {
    {"format", call_format, NULL, 10, 0, FUZZ_EXACT, 0},
    {"read_npy", call_read_npy, NULL, 8, 0, FUZZ_EXACT, 0},
    {"read_params", call_read_params, NULL, 1, 0, FUZZ_EXACT, 0},
    {NULL, NULL, NULL, 0, 0, FUZZ_EXACT, 0},
};
