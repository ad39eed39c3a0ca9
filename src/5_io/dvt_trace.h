/* The interface between the files of traces: JSON objects of the Trace Event Format.

   A process is a group of rows: 1 the threads, 2 + i the queue of gpu(i). Times are seconds since
   the trace began; the text has microseconds. */
#ifndef DVTI_TRACE_H
#define DVTI_TRACE_H
#include "5_io/dvt_io_internal.h"

/* Adds the text as the content of a JSON string. */
DVTI_FN void dvti_trace_string(dvti_writer *out, const char *text);
/* Adds "gpu(0)"; "all GPUs" for a negative number. */
DVTI_FN void dvti_trace_ctx(dvti_writer *out, dvt_ctx ctx);
/* Begins an object: {"name":"dvt_add","cat":"operation","ph":"X","pid":1,"tid":2,"ts":3.000 */
DVTI_FN void dvti_trace_object(dvti_writer *out, const char *name, const char *category,
                               const char *phase, int process, int row, double at);
/* Begins a slice: an object with a duration and arguments, which "}}" ends. */
DVTI_FN void dvti_trace_slice(dvti_writer *out, const char *name, const char *category, int process,
                              int row, double begin, double end);
/* Names a process (row 0) or a row of it. A number that is not negative follows the name. */
DVTI_FN void dvti_trace_name(dvti_writer *out, int process, int row, const char *name, int number);
/* Adds one end of an arrow from a launch (phase "s") to its run ("f"). */
DVTI_FN void dvti_trace_arrow(dvti_writer *out, const char *phase, const dvti_event *e, int process,
                              int row, double start);
/* Add the arguments of a launch, and of a small product. */
DVTI_FN void dvti_trace_launch(dvti_writer *out, const dvti_launch *launch);
DVTI_FN void dvti_trace_product(dvti_writer *out, const dvti_matrices *p);

#endif
