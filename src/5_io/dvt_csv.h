/* Rows of comma-separated values (RFC 4180), shared by the reader's two files. */
#ifndef DVTI_CSV_H
#define DVTI_CSV_H
#include "5_io/dvt_formats.h"

#if !defined(DEVTENSOR_NO_FORMATS)

/* The bytes of a cell that are kept. Longer cells are text, whose rest is skipped. */
#define DVTI_CSV_CELL 4096

typedef struct dvti_csv_cell {
    size_t at;      /* offset in dvti_csv.text, where a 0 follows the cell */
    int64_t length; /* of the whole cell, more than DVTI_CSV_CELL if it was cut */
    bool quoted;
} dvti_csv_cell;

typedef struct dvti_csv {
    dvti_source in;
    char delimiter, comment; /* comment 0: none */
    int64_t row;             /* of the current row, counted from 1 */
    int64_t n;               /* its cells */
    dvti_csv_cell *cell;
    size_t capacity;
    dvti_writer text; /* the cells one after the other */
} dvti_csv;

/* Skips the mark of UTF-8. Returns false with the error set for UTF-16. */
DVTI_FN bool dvti_csv_begin(dvti_csv *csv);
/* Reads the next row. Skips blank lines and comments. Returns false at the end, or with the error
   set and csv->in.reported. */
DVTI_FN bool dvti_csv_row(dvti_csv *csv);
DVTI_FN void dvti_csv_end(dvti_csv *csv);
/* Returns the cell for messages: at most 40 bytes, in quotes, without control characters. */
DVTI_FN const char *dvti_csv_quote(const dvti_csv *csv, int64_t column);

#endif

#endif
