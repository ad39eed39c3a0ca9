/* Writes comma-separated values: the shortest digits that read back as the same elements. */
#include "5_io/dvt_io_internal.h"

/* Writes a name, in quotes where the text alone would be read otherwise. */
static void dvti_csv_write_name(dvti_file_out *out, const char *name) {
    size_t n = strlen(name);
    bool plain = n > 0 && !strpbrk(name, ",\"\r\n") && !strchr(" \t", name[0]) &&
                 !strchr(" \t", name[n - 1]);
    const char *quote;
    if (plain) {
        dvti_file_write(out, name, n);
        return;
    }
    dvti_file_write(out, "\"", 1);
    for (; (quote = strchr(name, '"')) != NULL; name = quote + 1) {
        dvti_file_write(out, name, (size_t)(quote - name));
        dvti_file_write(out, "\"\"", 2);
    }
    dvti_file_write(out, name, strlen(name));
    dvti_file_write(out, "\"", 1);
}

/* Writes the elements as rows of `columns` cells. */
static void dvti_csv_write_rows(dvti_file_out *out, dvt_array *host, int64_t columns) {
    /* 1 and 0, which are numbers, instead of True and False */
    dvt_dtype dtype = host->dtype == DVT_BOOL ? DVT_U8 : host->dtype;
    const char *at = (const char *)dvti_view_of(host).data;
    int64_t n = dvt_size(host), size = dvt_dtype_size(dtype), i;
    char text[DVTI_NUMBER_SIZE];
    dvti_print_rules rules;
    memset(&rules, 0, sizeof rules);
    rules.style = DVT_PRINT_STR;
    for (i = 0; i < n; i++, at += size) {
        dvti_element_format format = dvti_element_plan(&rules, dtype, at, 1, 0);
        int length = dvti_element_text(text, &format, at);
        dvti_file_write(out, text, (size_t)length);
        dvti_file_write(out, (i + 1) % columns ? "," : "\n", 1);
    }
}

static dvt_status dvti_csv_write_check(const char *function, dvt_array *x,
                                       const char *const *column_names) {
    int64_t columns, i;
    if (!x)
        return dvti_null(function, "x");
    if (x->shape.ndim != 1 && x->shape.ndim != 2)
        return dvti_fail(DVT_ERR_SHAPE,
                         "%s: x is %s; expected (rows, columns), or (rows,) for one column: "
                         "reshape it",
                         function, dvti_describe(x));
    if (!dvti_has_elements(&x->shape))
        return dvti_fail(DVT_ERR_SHAPE,
                         "%s: x is %s; expected at least one element, because a text without rows "
                         "cannot be read",
                         function, dvti_describe(x));
    columns = x->shape.ndim == 2 ? x->shape.dim[1] : 1;
    for (i = 0; column_names && i < columns; i++)
        if (!column_names[i])
            return dvti_null(function, "a column name");
    return DVT_OK;
}

DVT_API dvt_status dvt_save_csv(const char *path, dvt_array *x, const char *const *column_names) {
    static const char *const function = "dvt_save_csv";
    dvt_status status = dvti_file_plain(function, path)
                            ? dvti_csv_write_check(function, x, column_names)
                            : dvti_failure();
    dvt_scope_guard scope;
    dvti_file_out out;
    dvt_array *host;
    int64_t columns, i;
    if (status != DVT_OK)
        return status;
    columns = x->shape.ndim == 2 ? x->shape.dim[1] : 1;
    scope = dvt_scope_begin();
    host = dvti_host_array(function, x, x->dtype, false);
    if (host && dvti_file_begin(&out, function, path)) {
        for (i = 0; column_names && i < columns; i++) {
            dvti_csv_write_name(&out, column_names[i]);
            dvti_file_write(&out, i + 1 < columns ? "," : "\n", 1);
        }
        dvti_csv_write_rows(&out, host, columns);
        status = dvti_file_end(&out, true);
    } else
        status = dvti_failure();
    dvt_scope_end(&scope);
    return status;
}
