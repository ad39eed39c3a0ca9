/* [dvt:report] What a program did and learned, for people and their tools: traces, pictures,
   histograms. Files are written as [dvt:io] describes, unless their function says otherwise. */

/* ---- traces, for chrome://tracing and https://ui.perfetto.dev ---- */
/* Begins to write to a file what all threads do: one row for each thread, and for the queue of each
   virtual GPU. Operations have their context, dtype, shapes and multiply-adds; copies between
   contexts their bytes; waits the function that waited, such as dvt_print. Compiled kernels appear
   too. Each has the file and line of the call, see DEVTENSOR_NO_CALL_SITES. An arrow leads from an
   operation to its work in the queue. On CUDA GPUs the times are those of the calling thread.
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
/* Writes a table of the copies between contexts since the latest dvt_trace_begin: for each line of
   the program the function, the number of copies and their bytes, most bytes first. Lines after the
   first 256 are one row. Returns the length of the whole text; writes at most `size` bytes with the
   final 0. */
DVT_API size_t dvt_transfers_format(char *buffer, size_t size);
/* Prints that table to standard output. */
DVT_API void dvt_print_transfers(void);
