/* [dvt:report] What a program did and learned, for people and their tools: traces, histograms,
   images, event files. Files are written as [dvt:io] describes, unless their function says
   otherwise. */

/* ---- traces, for chrome://tracing and https://ui.perfetto.dev ---- */
/* Begins to write to a file what all threads do: a row for each thread, and for the queue of each
   GPU. Operations have their context, dtype, shapes and multiply-adds; copies from one memory to
   another have their bytes; waits name the function that waited, such as dvt_print. Compiled
   kernels appear too. Each has the file and line of the call, see DEVTENSOR_NO_CALL_SITES. An
   arrow leads from an operation to its work in the queue. The queue of a CUDA GPU shows what the
   program has waited for.
   The file grows while the program runs, in steps of a quarter of a second. It opens at any time,
   also after a crash. Needs at most 64 KiB, and 256 KiB for each thread. Without a trace, an
   operation loads one flag more.
   Waits: no. Errors: IO, NOT_BUILT, VALUE (a trace has begun), NULL_ARGUMENT. */
DVT_API dvt_status dvt_trace_begin(const char *path);
/* Does the same, and gives the text to a function of the program. Any thread may call it, one at a
   time; it must not call the library. */
typedef void (*dvt_trace_fn)(void *user, const char *text, size_t bytes);
DVT_API dvt_status dvt_trace_begin_to(dvt_trace_fn write, void *user);
/* Ends the trace. Waits: for queued work, whose errors stay for the next wait. Errors: IO,
   HOST_MEMORY (events are missing), VALUE (no trace has begun). */
DVT_API dvt_status dvt_trace_end(void);
/* Writes a table of the copies from one memory to another since the latest dvt_trace_begin, which
   starts the counts. All contexts of cpu have one memory: copies between them are not in it. For
   each line of the program the function, the number of copies and their bytes, most bytes first.
   Lines after the first 256 are one row. Returns the length of the whole text; writes at most
   `size` bytes with the final 0. */
DVT_API size_t dvt_transfers_format(char *buffer, size_t size);
/* Prints that table to standard output. */
DVT_API void dvt_print_transfers(void);

/* ---- histograms ---- */
#define DVT_HISTOGRAM_BINS 64 /* the largest number of bins */

/* The finite elements of an array in bins of equal width. Bin i has those from edge[i] to below
   edge[i + 1]; the last bin includes its upper edge. */
typedef struct dvt_histogram {
    int64_t count, nan, positive_infinities, negative_infinities; /* count: finite elements */
    double low, high; /* the smallest and the largest one; 0 without any */
    double sum, sum_squares;
    int bins;
    double edge[DVT_HISTOGRAM_BINS + 1];
    int64_t bin[DVT_HISTOGRAM_BINS];
} dvt_histogram;

/* Counts the elements of x, of any dtype, in float64; `bins` is 1 to 64. The edges are NumPy's.
   Copies: to host memory.  Waits: yes.  Errors: RANGE (bins), CONTEXT (transfer guard),
   NULL_ARGUMENT; *out is then unchanged. */
DVT_API dvt_status dvt_histogram_of(dvt_array *x, int bins, dvt_histogram *out);
/* Writes one line of totals and one with a bar for each bin. Returns the length of the whole text;
   writes at most `size` bytes with the final 0. */
DVT_API size_t dvt_histogram_format(const dvt_histogram *histogram, char *buffer, size_t size);
/* Prints that text of x to standard output. Errors: as dvt_histogram_of. */
DVT_API dvt_status dvt_print_histogram(dvt_array *x, int bins);

/* ---- images ---- */
/* Joins images into one (height, width, channels), row by row, for dvt_save_image. Each gets a
   frame of `padding` zeros, which it shares with its neighbors. `columns` 0: as many columns as
   rows.
   Shapes: (N, H, W), (N, H, W, C) or (N, C, H, W); C is 1 to 4, and the last axis is looked at
   first. Copies: same context.  Waits: no.  Errors: SHAPE, RANGE. Not recorded. */
DVT_API dvt_array *dvt_image_grid(dvt_array *images, int64_t columns, int64_t padding);

#if !defined(DEVTENSOR_NO_NN)
/* Counts how often label i was predicted as class j: int64 (classes, classes). Takes the arguments
   of dvt_metric_update: labels, and scores or class numbers. Numbers that are no class do not
   count. Add the matrices of several batches.
   Copies: never between contexts.  Waits: no.  Errors: SHAPE, CONTEXT, RANGE. Not recorded. */
DVT_API dvt_array *dvt_confusion_matrix(dvt_array *labels, dvt_array *predictions, int64_t classes);
/* Writes such a matrix, of at most 100 classes, as an SVG image. The color of a cell is its share
   of the row. `names` has the name of each class; NULL: their numbers.
   Copies: to host memory.  Waits: yes.  Errors: SHAPE, IO, NOT_BUILT. */
DVT_API dvt_status dvt_confusion_save(dvt_array *matrix, const char *const *names,
                                      const char *path);
#endif

/* ---- event files, which TensorBoard shows: tensorboard --logdir folder ---- */
/* A file of events: numbers, histograms, images and texts. */
typedef struct dvt_board dvt_board;
/* Creates a new event file in the folder, which is created with its parents if it is missing. Each
   of the calls below adds an event, which readers of the file can see at once. `tag` is the name of
   the series, "train/loss" for example. An event that cannot be written, on a full disk, leaves
   nothing in the file.
   Owns: the innermost scope; the end of the board closes the file. Errors: IO, NULL_ARGUMENT,
   NOT_BUILT, memory; those below also NAME (a tag or text that is not UTF-8). */
DVT_API dvt_board *dvt_board_new(const char *folder);
/* Adds a number, as float32. */
DVT_API dvt_status dvt_board_scalar(dvt_board *board, const char *tag, double value, int64_t step);
/* Adds the histogram of x in 64 bins. Waits: yes. Errors also: those of dvt_histogram_of. */
DVT_API dvt_status dvt_board_histogram(dvt_board *board, const char *tag, dvt_array *x,
                                       int64_t step);
/* Adds an image of a shape and dtype that dvt_save_image writes as PNG. Waits: yes. Errors also:
   SHAPE, DTYPE, RANGE. */
DVT_API dvt_status dvt_board_image(dvt_board *board, const char *tag, dvt_array *x, int64_t step);
/* Adds a text, which may be Markdown. */
DVT_API dvt_status dvt_board_text(dvt_board *board, const char *tag, const char *text,
                                  int64_t step);
