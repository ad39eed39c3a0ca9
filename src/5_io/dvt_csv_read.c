/* Numbers from rows of comma-separated values: a matrix, or one array per column. Every row adds
   its elements to one buffer, which doubles when it is full. So the buffer has at most twice as
   many elements as the file has cells. */
#include "5_io/dvt_csv.h"

/* More columns are refused as separate arrays, each of which takes several hundred bytes. */
#define DVTI_CSV_ARRAYS 65536

typedef enum dvti_csv_state {
    DVTI_CSV_UNKNOWN, /* only missing values so far */
    DVTI_CSV_NUMBERS,
    DVTI_CSV_LEFT_OUT, /* text since the first row: not in the buffer */
    DVTI_CSV_DROPPED   /* text later: zeros in the buffer */
} dvti_csv_state;

typedef struct dvti_csv_table {
    dvti_csv csv;
    dvt_csv_options options; /* without defaults */
    int64_t rows, columns;   /* of data; columns -1: not known yet */
    int64_t first;           /* the row that `columns` is from */
    int64_t width;           /* elements per row in the buffer */
    unsigned char *state;    /* dvti_csv_state of each column */
    size_t states;
    char *values;
    size_t capacity; /* of values, in elements */
    char **name;     /* of each column; NULL: the file has none, or they are not needed */
} dvti_csv_table;

/* ---- options ---- */
static bool dvti_csv_separates(char c) {
    return c && !strchr("\"\r\n+-._", c) && !(c >= '0' && c <= '9') && !(c >= 'a' && c <= 'z') &&
           !(c >= 'A' && c <= 'Z');
}

static bool dvti_csv_options_ok(const char *function, dvt_csv_options *options,
                                const dvt_csv_options *given) {
    memset(options, 0, sizeof *options);
    if (given)
        *options = *given;
    if (!options->delimiter)
        options->delimiter = ',';
    if (!options->decimal_point)
        options->decimal_point = '.';
    if (!dvti_csv_separates(options->delimiter) || options->delimiter == options->comment ||
        options->delimiter == options->decimal_point)
        dvti_fail(DVT_ERR_RANGE,
                  "%s: the delimiter has the code %d; expected a character such as ',', ';' or "
                  "'\\t', unlike `comment` and `decimal_point`",
                  function, (int)options->delimiter);
    else if (options->decimal_point != '.' && options->decimal_point != ',')
        dvti_fail(DVT_ERR_RANGE, "%s: decimal_point has the code %d; expected '.', ',' or 0",
                  function, (int)options->decimal_point);
    else if (options->header_rows < -1)
        dvti_fail(DVT_ERR_RANGE, "%s: header_rows is %d; expected 0 or more, or -1", function,
                  options->header_rows);
    else if (!dvti_dtype_ok(options->dtype))
        dvti_fail(DVT_ERR_DTYPE, "%s: dtype is %d; expected DVT_F32 to DVT_BOOL", function,
                  (int)options->dtype);
    else
        return true;
    return false;
}

/* ---- cells ---- */
/* Returns the cell without blanks around it. */
static const char *dvti_csv_trimmed(const dvti_csv *csv, int64_t column, size_t *n) {
    const dvti_csv_cell *cell = &csv->cell[column];
    const char *at = csv->text.at + cell->at;
    *n = (size_t)DVTI_MIN(cell->length, DVTI_CSV_CELL);
    while (*n && (*at == ' ' || *at == '\t')) {
        at++;
        --*n;
    }
    while (*n && (at[*n - 1] == ' ' || at[*n - 1] == '\t'))
        --*n;
    return at;
}

static bool dvti_csv_missing(const dvti_csv_table *t, const char *text, size_t n) {
    const char *missing = t->options.missing;
    return n == 0 || (missing && strlen(missing) == n && memcmp(text, missing, n) == 0);
}

/* Converts the trimmed text of a cell that is not missing to element i of the buffer. */
static dvti_parsed dvti_csv_parse(const dvti_csv_table *t, int64_t column, const char *text,
                                  size_t n, void *to, int64_t i) {
    if (t->csv.cell[column].length > DVTI_CSV_CELL)
        return DVTI_PARSED_TEXT;
    return dvti_number_parse(text, n, t->options.decimal_point, t->options.dtype, to, i);
}

/* ---- rows ---- */
/* Returns whether the row is a header: it has text, and no number. */
static bool dvti_csv_is_header(const dvti_csv_table *t) {
    const dvti_csv *csv = &t->csv;
    bool text = false;
    int64_t c;
    double value;
    for (c = 0; c < csv->n; c++) {
        size_t n;
        const char *at = dvti_csv_trimmed(csv, c, &n);
        if (dvti_csv_missing(t, at, n))
            continue;
        if (csv->cell[c].length <= DVTI_CSV_CELL &&
            dvti_number_parse(at, n, t->options.decimal_point, DVT_F64, &value, 0) !=
                DVTI_PARSED_TEXT)
            return false;
        text = true;
    }
    return text;
}

static bool dvti_csv_names(dvti_csv_table *t) {
    dvti_csv *csv = &t->csv;
    size_t bytes = sizeof *t->name * (size_t)csv->n;
    t->name = (char **)dvti_alloc_zero(bytes);
    for (t->columns = 0; t->name && t->columns < csv->n; t->columns++) {
        const dvti_csv_cell *cell = &csv->cell[t->columns];
        size_t n = 0;
        const char *text = csv->text.at + cell->at;
        if (cell->length > DVTI_CSV_CELL || strlen(text) != (size_t)cell->length)
            return dvti_source_wrong(&csv->in,
                                     "row %lld, column %lld: the name is longer than %d bytes, or "
                                     "has a zero byte; expected the name of a column",
                                     (long long)csv->row, (long long)t->columns + 1, DVTI_CSV_CELL);
        if (!cell->quoted) {
            text = dvti_csv_trimmed(csv, t->columns, &n);
            csv->text.at[(size_t)(text - csv->text.at) + n] = 0;
        }
        t->name[t->columns] = dvti_strdup(text);
        if (!t->name[t->columns])
            break;
    }
    if (t->name && t->columns == csv->n)
        return true;
    csv->in.reported = true;
    dvti_fail_memory(csv->in.function, (int64_t)bytes);
    return false;
}

/* Allocates the states for the columns of the current row, and memory for its elements. */
static bool dvti_csv_row_space(dvti_csv_table *t) {
    dvti_csv *csv = &t->csv;
    size_t size = (size_t)dvt_dtype_size(t->options.dtype);
    int64_t need = 0;
    if (t->rows == 0) {
        t->width = csv->n;
        if (!dvti_grow((void **)&t->state, &t->states, (size_t)csv->n, 1))
            need = csv->n;
        else
            memset(t->state, DVTI_CSV_UNKNOWN, (size_t)csv->n);
    }
    if (!need && dvti_mul(t->rows + 1, t->width, &need) && (uint64_t)need <= SIZE_MAX &&
        dvti_grow((void **)&t->values, &t->capacity, (size_t)need, size))
        return true;
    csv->in.reported = true;
    dvti_fail_memory(csv->in.function, dvti_mul(need, (int64_t)size, &need) ? need : INT64_MAX);
    return false;
}

static bool dvti_csv_wrong_cell(dvti_csv_table *t, int64_t column, dvti_parsed parsed) {
    dvti_csv *csv = &t->csv;
    const char *name = dvt_dtype_name(t->options.dtype);
    const char *what = dvti_csv_quote(csv, column);
    if (parsed == DVTI_PARSED)
        return dvti_source_wrong(
            &csv->in,
            "row %lld, column %lld: %s is a missing value, for which %s has no NaN; read a float "
            "dtype, or fill in the value",
            (long long)csv->row, (long long)column + 1, what, name);
    if (parsed == DVTI_PARSED_OUTSIDE)
        return dvti_source_wrong(
            &csv->in,
            "row %lld, column %lld: %s is not a whole number from %lld to %lld, the values of %s; "
            "read another dtype",
            (long long)csv->row, (long long)column + 1, what,
            (long long)dvti_int_lowest(t->options.dtype),
            (long long)dvti_int_largest(t->options.dtype), name);
    return dvti_source_wrong(
        &csv->in, "row %lld, column %lld: %s is not a number; %s", (long long)csv->row,
        (long long)column + 1, what,
        t->rows == 0 && t->options.header_rows == 0
            ? "if the row has names, set header_rows; if its cells are not separated by the "
              "delimiter, set that; skip_text leaves out columns of text"
            : "skip_text leaves out columns of text, `missing` names a text that means NaN");
}

/* Stores one cell as the next element. Returns false with the error set. */
static bool dvti_csv_cell_store(dvti_csv_table *t, int64_t column, int64_t at) {
    unsigned char *state = &t->state[column];
    size_t size = (size_t)dvt_dtype_size(t->options.dtype), n;
    const char *text = dvti_csv_trimmed(&t->csv, column, &n);
    dvti_parsed parsed;
    if (*state == DVTI_CSV_DROPPED) {
        memset(t->values + (size_t)at * size, 0, size);
        return true;
    }
    if (dvti_csv_missing(t, text, n))
        return dvt_dtype_is_float(t->options.dtype)
                   ? dvti_number_parse("nan", 3, '.', t->options.dtype, t->values, at) ==
                         DVTI_PARSED
                   : dvti_csv_wrong_cell(t, column, DVTI_PARSED);
    parsed = dvti_csv_parse(t, column, text, n, t->values, at);
    if (t->options.skip_text && *state == DVTI_CSV_UNKNOWN && parsed == DVTI_PARSED_TEXT) {
        memset(t->values + (size_t)at * size, 0, size);
        *state = t->rows ? DVTI_CSV_DROPPED : DVTI_CSV_LEFT_OUT;
        return true;
    }
    *state = DVTI_CSV_NUMBERS;
    return parsed == DVTI_PARSED || dvti_csv_wrong_cell(t, column, parsed);
}

static bool dvti_csv_row_store(dvti_csv_table *t) {
    dvti_csv *csv = &t->csv;
    int64_t c, at;
    if (t->columns >= 0 && csv->n != t->columns)
        return dvti_source_wrong(
            &csv->in,
            "row %lld has %lld cells, and row %lld has %lld; expected the same number in all rows",
            (long long)csv->row, (long long)csv->n, (long long)t->first, (long long)t->columns);
    if (!dvti_csv_row_space(t))
        return false;
    at = t->rows * t->width;
    for (c = 0; c < csv->n; c++)
        if (t->state[c] != DVTI_CSV_LEFT_OUT) {
            if (!dvti_csv_cell_store(t, c, at))
                return false;
            at += t->state[c] != DVTI_CSV_LEFT_OUT;
        }
    if (t->rows == 0)
        t->width = at;
    if (t->columns < 0)
        t->first = csv->row;
    t->columns = csv->n;
    t->rows++;
    return true;
}

/* Reads the header, of which the last row gives the names, and all data. */
static bool dvti_csv_rows(dvti_csv_table *t, bool names) {
    dvti_csv *csv = &t->csv;
    int64_t left = t->options.header_rows;
    bool begin = true;
    t->columns = -1;
    if (!dvti_csv_begin(csv))
        return false;
    while (dvti_csv_row(csv)) {
        bool header = left > 0 || (left < 0 && begin && dvti_csv_is_header(t));
        begin = false;
        left -= left > 0;
        if (!header) {
            if (!dvti_csv_row_store(t))
                return false;
        } else if (left <= 0 && names) {
            t->first = csv->row;
            if (!dvti_csv_names(t))
                return false;
        }
    }
    return !csv->in.reported;
}

/* ---- arrays ---- */
static bool dvti_csv_is_kept(const dvti_csv_table *t, int64_t column) {
    return t->state[column] != DVTI_CSV_LEFT_OUT && t->state[column] != DVTI_CSV_DROPPED;
}

/* Removes the columns that were dropped from the buffer. */
static void dvti_csv_compact(dvti_csv_table *t) {
    size_t size = (size_t)dvt_dtype_size(t->options.dtype), from = 0, to = 0;
    int64_t r, c, kept = 0;
    for (c = 0; c < t->columns; c++)
        kept += dvti_csv_is_kept(t, c);
    for (r = 0; kept < t->width && r < t->rows; r++)
        for (c = 0; c < t->columns; c++) {
            if (t->state[c] == DVTI_CSV_LEFT_OUT)
                continue;
            if (t->state[c] != DVTI_CSV_DROPPED) {
                memmove(t->values + to, t->values + from, size);
                to += size;
            }
            from += size;
        }
    t->width = kept;
}

/* Reads the table. Returns false with the error set. */
static bool dvti_csv_table_read(dvti_csv_table *t, bool names) {
    if (!dvti_source_gunzip(&t->csv.in) || !dvti_csv_rows(t, names))
        return false;
    if (t->rows == 0)
        return dvti_source_wrong(&t->csv.in, "it has no row of numbers; expected at least one%s",
                                 t->options.header_rows ? " after the header" : "");
    dvti_csv_compact(t);
    return t->width > 0 ||
           dvti_source_wrong(
               &t->csv.in,
               "it has no column of numbers; expected at least one: check the delimiter%s",
               t->options.header_rows ? "" : ", and set header_rows if the first row has names");
}

static void dvti_csv_table_end(dvti_csv_table *t) {
    int64_t c;
    for (c = 0; t->name && c < t->columns; c++)
        dvti_free(t->name[c]);
    dvti_free(t->name);
    dvti_free(t->state);
    dvti_free(t->values);
    dvti_csv_end(&t->csv);
    dvti_source_close(&t->csv.in);
}

static dvt_array *dvti_csv_matrix(dvti_csv_table *t, dvt_ctx ctx) {
    const char *function = t->csv.in.function;
    dvt_array *x;
    if (!dvti_csv_table_read(t, false))
        return NULL;
    x = dvti_array_new(function, DVT_SHAPE(t->rows, t->width), t->options.dtype, ctx);
    return x && dvti_write_host(function, x, t->values) == DVT_OK ? x : NULL;
}

static dvt_array *dvti_csv_column(dvti_csv_table *t, int64_t column, char *buffer, dvt_ctx ctx) {
    size_t size = (size_t)dvt_dtype_size(t->options.dtype);
    const char *from = t->values + (size_t)column * size;
    dvt_array *x = dvti_array_new(t->csv.in.function, DVT_SHAPE(t->rows), t->options.dtype, ctx);
    int64_t r;
    for (r = 0; r < t->rows; r++)
        memcpy(buffer + (size_t)r * size, from + (size_t)(r * t->width) * size, size);
    return x && dvti_write_host(t->csv.in.function, x, buffer) == DVT_OK ? x : NULL;
}

static bool dvti_csv_list_names(dvti_csv_table *t, dvt_array_list *list) {
    int64_t c;
    int i = 0;
    if (!dvti_array_list_begin_names(t->csv.in.function, list))
        return false;
    for (c = 0; c < t->columns; c++)
        if (dvti_csv_is_kept(t, c)) {
            list->name[i++] = t->name[c];
            t->name[c] = NULL;
        }
    return true;
}

static bool dvti_csv_fill_list(dvti_csv_table *t, dvt_array_list *list, dvt_ctx ctx) {
    const char *function = t->csv.in.function;
    size_t bytes = (size_t)t->rows * (size_t)dvt_dtype_size(t->options.dtype);
    char *buffer = (char *)dvti_alloc(bytes);
    int64_t c;
    bool ok = buffer != NULL;
    if (!buffer)
        dvti_fail_memory(function, (int64_t)bytes);
    for (c = 0; ok && c < t->width; c++) {
        dvt_array *x = dvti_csv_column(t, c, buffer, ctx);
        ok = x && dvti_array_list_add(function, list, x);
    }
    dvti_free(buffer);
    return ok && (!t->name || dvti_csv_list_names(t, list));
}

static dvt_array_list *dvti_csv_list(dvti_csv_table *t, dvt_ctx ctx) {
    dvt_array_list *list = NULL;
    dvt_scope_guard scope;
    t->options.skip_text = true;
    if (!dvti_csv_table_read(t, true))
        return NULL;
    if (t->width > DVTI_CSV_ARRAYS) {
        dvti_source_wrong(&t->csv.in,
                          "it has %lld columns of numbers, more than the limit of %d arrays; read "
                          "it as a matrix",
                          (long long)t->width, DVTI_CSV_ARRAYS);
        return NULL;
    }
    scope = dvt_scope_begin();
    list = dvti_array_list_new(t->csv.in.function);
    if (list && !dvti_csv_fill_list(t, list, ctx))
        list = NULL;
    dvt_keep(list);
    dvt_scope_end(&scope);
    return list;
}

/* ---- public functions ---- */
static bool dvti_csv_table_begin(dvti_csv_table *t, const char *function,
                                 const dvt_csv_options *options) {
    memset(t, 0, sizeof *t);
    t->csv.text = dvti_writer_begin();
    dvti_source_memory(&t->csv.in, function, NULL, 0);
    if (!dvti_csv_options_ok(function, &t->options, options))
        return false;
    t->csv.delimiter = t->options.delimiter;
    t->csv.comment = t->options.comment;
    return true;
}

static bool dvti_csv_open_memory(dvti_csv_table *t, const char *function,
                                 const dvt_csv_options *options, const void *data, size_t bytes) {
    if (!dvti_csv_table_begin(t, function, options))
        return false;
    if (!data) {
        dvti_null(function, "data");
        return false;
    }
    dvti_source_memory(&t->csv.in, function, data, bytes);
    return true;
}

static bool dvti_csv_open_file(dvti_csv_table *t, const char *function,
                               const dvt_csv_options *options, const char *path) {
    return dvti_csv_table_begin(t, function, options) &&
           dvti_source_open(&t->csv.in, function, path);
}

DVT_API dvt_array *dvt_read_csv(const void *data, size_t bytes, const dvt_csv_options *options,
                                dvt_ctx ctx) {
    dvti_csv_table t;
    dvt_array *x = NULL;
    if (dvti_csv_open_memory(&t, "dvt_read_csv", options, data, bytes))
        x = dvti_csv_matrix(&t, ctx);
    dvti_csv_table_end(&t);
    return x;
}

DVT_API dvt_array *dvt_load_csv(const char *path, const dvt_csv_options *options, dvt_ctx ctx) {
    dvti_csv_table t;
    dvt_array *x = NULL;
    if (dvti_csv_open_file(&t, "dvt_load_csv", options, path))
        x = dvti_csv_matrix(&t, ctx);
    dvti_csv_table_end(&t);
    return x;
}

DVT_API dvt_array_list *dvt_read_csv_columns(const void *data, size_t bytes,
                                             const dvt_csv_options *options, dvt_ctx ctx) {
    dvti_csv_table t;
    dvt_array_list *list = NULL;
    if (dvti_csv_open_memory(&t, "dvt_read_csv_columns", options, data, bytes))
        list = dvti_csv_list(&t, ctx);
    dvti_csv_table_end(&t);
    return list;
}

DVT_API dvt_array_list *dvt_load_csv_columns(const char *path, const dvt_csv_options *options,
                                             dvt_ctx ctx) {
    dvti_csv_table t;
    dvt_array_list *list = NULL;
    if (dvti_csv_open_file(&t, "dvt_load_csv_columns", options, path))
        list = dvti_csv_list(&t, ctx);
    dvti_csv_table_end(&t);
    return list;
}

#undef DVTI_CSV_ARRAYS
