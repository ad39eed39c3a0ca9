/* Comma-separated values. The first two bytes choose the options and the form of the result. */
#include "fuzz.h"

static dvt_csv_options options;
static int as_columns;

static dvt_array *read_csv(const void *data, size_t size, const char *path, int i) {
    dvt_array_list *list;
    int64_t sum = 0;
    int n;
    if (!as_columns)
        return path ? dvt_load_csv(path, &options, dvt_cpu())
                    : dvt_read_csv(data, size, &options, dvt_cpu());
    list = path ? dvt_load_csv_columns(path, &options, dvt_cpu())
                : dvt_read_csv_columns(data, size, &options, dvt_cpu());
    n = dvt_array_list_len(list);
    if (!list)
        return NULL;
    FUZZ_CHECK(n > 0);
    for (i = 0; i < n; i++) { /* all arrays in one, so that they can be compared */
        const char *name = dvt_array_list_name(list, i);
        dvt_array *x = dvt_array_list_at(list, i);
        FUZZ_CHECK(dvt_ndim(x) == 1 && dvt_size(x) == dvt_size(dvt_array_list_at(list, 0)));
        FUZZ_CHECK(!*name || dvt_array_list_find(list, name) != NULL);
        sum = (int64_t)(((uint64_t)sum ^ fuzz_hash(x)) * 31 + strlen(name));
    }
    return dvt_from_host(&sum, DVT_SCALAR, DVT_I64, dvt_cpu());
}

DVT_FUZZ(csv) {
    if (size < 2)
        return 0;
    memset(&options, 0, sizeof options);
    options.delimiter = data[0] & 1 ? ';' : 0;
    options.decimal_point = (data[0] & 3) == 3 ? ',' : 0;
    options.comment = data[0] & 4 ? '#' : 0;
    options.header_rows = data[0] / 8 % 4 - 1;
    options.missing = data[0] & 32 ? "NA" : NULL;
    options.skip_text = (data[0] & 64) != 0;
    options.dtype = (dvt_dtype)(data[1] % DVT_DTYPE_COUNT);
    as_columns = data[0] >> 7;
    fuzz_read(read_csv, data + 2, size - 2);
    return 0;
}
