/* Cuts comma-separated values (RFC 4180) into rows of cells. A quoted cell may contain delimiters,
   line ends and doubled quotes. Lines end in LF, CRLF or CR. Keeps one row in memory. */
#include "5_io/dvt_csv.h"

DVTI_FN bool dvti_csv_begin(dvti_csv *csv) {
    dvti_source *in = &csv->in;
    if (dvti_source_peek(in, 2) &&
        ((in->at[0] == 0xff && in->at[1] == 0xfe) || (in->at[0] == 0xfe && in->at[1] == 0xff)))
        return dvti_source_wrong(in, "it is UTF-16 text; save it as UTF-8");
    if (dvti_source_peek(in, 3) && memcmp(in->at, "\xef\xbb\xbf", 3) == 0)
        dvti_source_skip(in, 3);
    return !in->reported;
}

DVTI_FN void dvti_csv_end(dvti_csv *csv) {
    dvti_free(csv->cell);
    dvti_writer_free(&csv->text);
}

static bool dvti_csv_fail_memory(dvti_csv *csv, size_t bytes) {
    if (!csv->in.reported)
        dvti_fail_memory(csv->in.function, (int64_t)bytes);
    csv->in.reported = true;
    return false;
}

DVTI_FN const char *dvti_csv_quote(const dvti_csv *csv, int64_t column) {
    const dvti_csv_cell *cell = &csv->cell[column];
    const char *at = csv->text.at + cell->at;
    size_t n = (size_t)DVTI_MIN(cell->length, 40), i;
    bool cut = cell->length > 40;
    char *text = dvti_name_buffer();
    while (cut && n > 30 && ((unsigned char)at[n] & 0xc0) == 0x80) /* not within a character */
        n--;
    text[0] = '"';
    for (i = 0; i < n; i++)
        text[i + 1] = (unsigned char)at[i] < ' ' || at[i] == 127 ? '?' : at[i];
    snprintf(text + n + 1, DVTI_NAME_SIZE - n - 1, cut ? "...\"" : "\"");
    return text;
}

/* ---- cells ---- */
static void dvti_csv_keep(dvti_csv *csv, dvti_csv_cell *cell, size_t n) {
    size_t space = cell->length < DVTI_CSV_CELL ? (size_t)(DVTI_CSV_CELL - cell->length) : 0;
    dvti_writer_bytes(&csv->text, csv->in.at, DVTI_MIN(n, space));
    cell->length += (int64_t)n;
    dvti_source_skip(&csv->in, (int64_t)n);
}

/* Reads up to the delimiter, the end of the line or of the file. */
static void dvti_csv_plain(dvti_csv *csv, dvti_csv_cell *cell, char delimiter) {
    bool more = true;
    while (more && dvti_source_peek(&csv->in, 1)) {
        const unsigned char *at = csv->in.at;
        size_t n = 0;
        while (n < csv->in.ready && at[n] != (unsigned char)delimiter && at[n] != '\n' &&
               at[n] != '\r')
            n++;
        more = n == csv->in.ready;
        dvti_csv_keep(csv, cell, n);
    }
}

static bool dvti_csv_wrong(dvti_csv *csv, const char *what) {
    return dvti_source_wrong(&csv->in, "row %lld, column %lld: %s", (long long)csv->row,
                             (long long)csv->n + 1, what);
}

/* Reads a cell that begins with a quote. Returns false with the error set. */
static bool dvti_csv_quoted(dvti_csv *csv, dvti_csv_cell *cell) {
    dvti_source *in = &csv->in;
    dvti_source_skip(in, 1);
    while (dvti_source_peek(in, 1)) {
        const unsigned char *quote = (const unsigned char *)memchr(in->at, '"', in->ready);
        dvti_csv_keep(csv, cell, quote ? (size_t)(quote - in->at) : in->ready);
        if (!quote)
            continue;
        dvti_source_skip(in, 1);
        if (!dvti_source_peek(in, 1) || *in->at == (unsigned char)csv->delimiter ||
            *in->at == '\n' || *in->at == '\r')
            return true;
        if (*in->at != '"')
            return dvti_csv_wrong(csv, "text follows the quote that ends the cell; write quotes "
                                       "within a quoted cell twice");
        dvti_csv_keep(csv, cell, 1);
    }
    return dvti_csv_wrong(csv, "the quote that begins the cell has no end; close it, or write "
                               "quotes within a quoted cell twice");
}

/* Skips the delimiter or the end of the line. Returns whether another cell follows in the row. */
static bool dvti_csv_next(dvti_csv *csv) {
    dvti_source *in = &csv->in;
    bool more, carriage;
    if (!dvti_source_peek(in, 1))
        return false;
    more = *in->at == (unsigned char)csv->delimiter;
    carriage = *in->at == '\r';
    dvti_source_skip(in, 1);
    if (carriage && dvti_source_peek(in, 1) && *in->at == '\n')
        dvti_source_skip(in, 1);
    return more;
}

/* Adds one cell to the row. */
static bool dvti_csv_add(dvti_csv *csv) {
    size_t need = (size_t)csv->n + 1;
    dvti_csv_cell *cell;
    if (!dvti_grow((void **)&csv->cell, &csv->capacity, need, sizeof *csv->cell))
        return dvti_csv_fail_memory(csv, need * sizeof *csv->cell);
    cell = &csv->cell[csv->n];
    cell->at = csv->text.length;
    cell->length = 0;
    cell->quoted = dvti_source_peek(&csv->in, 1) && *csv->in.at == '"';
    if (!cell->quoted)
        dvti_csv_plain(csv, cell, csv->delimiter);
    else if (!dvti_csv_quoted(csv, cell))
        return false;
    dvti_writer_bytes(&csv->text, "", 1);
    if (csv->text.failed)
        return dvti_csv_fail_memory(csv, csv->text.length + DVTI_CSV_CELL);
    csv->n++;
    return !csv->in.reported;
}

/* Skips a line without cells. Returns false at the beginning of a row. */
static bool dvti_csv_no_row(dvti_csv *csv) {
    dvti_csv_cell skipped;
    unsigned char c = *csv->in.at;
    if (csv->comment && c == (unsigned char)csv->comment) {
        memset(&skipped, 0, sizeof skipped);
        skipped.length = DVTI_CSV_CELL;
        dvti_csv_plain(csv, &skipped, '\n');
    } else if (c != '\n' && c != '\r')
        return false;
    dvti_csv_next(csv);
    return true;
}

DVTI_FN bool dvti_csv_row(dvti_csv *csv) {
    csv->n = 0;
    csv->text.length = 0;
    do {
        if (!dvti_source_peek(&csv->in, 1))
            return false;
        csv->row++;
    } while (dvti_csv_no_row(csv));
    do
        if (!dvti_csv_add(csv))
            return false;
    while (dvti_csv_next(csv));
    return !csv->in.reported;
}
