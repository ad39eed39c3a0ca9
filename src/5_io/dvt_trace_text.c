/* The text of a trace: objects of the Trace Event Format. Numbers ignore the locale. */
#include "5_io/dvt_trace.h"

DVTI_FN void dvti_trace_string(dvti_writer *out, const char *text) {
    static const char digits[] = "0123456789abcdef";
    for (; *text; text++) {
        unsigned char c = (unsigned char)*text;
        char code[7] = "\\u0000";
        code[4] = digits[c >> 4];
        code[5] = digits[c & 15];
        if (c < 0x20 || c == '"' || c == '\\')
            dvti_writer_text(out, code);
        else
            dvti_writer_bytes(out, text, 1);
    }
}

/* Writes seconds as microseconds with three decimals. */
static void dvti_trace_time(dvti_writer *out, double seconds) {
    int64_t ns = seconds > 0 ? (int64_t)(seconds * 1e9 + 0.5) : 0, digit;
    dvti_writer_int(out, ns / 1000);
    dvti_writer_text(out, ".");
    for (digit = 100; digit; digit /= 10)
        dvti_writer_int(out, ns / digit % 10);
}

DVTI_FN void dvti_trace_ctx(dvti_writer *out, dvt_ctx ctx) {
    dvti_writer_text(out, ctx.id < 0 ? "all GPUs" : dvti_is_host_memory(ctx) ? "cpu(" : "gpu(");
    if (ctx.id >= 0) {
        dvti_writer_int(out, ctx.id);
        dvti_writer_text(out, ")");
    }
}

static void dvti_trace_dims(dvti_writer *out, const int64_t *dim, int n) {
    int i;
    dvti_writer_text(out, "(");
    for (i = 0; i < n; i++) {
        dvti_writer_text(out, i ? ", " : "");
        dvti_writer_int(out, dim[i]);
    }
    dvti_writer_text(out, n == 1 ? ",)" : ")");
}

DVTI_FN void dvti_trace_object(dvti_writer *out, const char *name, const char *category,
                               const char *phase, int process, int row, double at) {
    dvti_writer_text(out, "{\"name\":\"");
    dvti_trace_string(out, name);
    dvti_writer_text(out, "\",\"cat\":\"");
    dvti_writer_text(out, category);
    dvti_writer_text(out, "\",\"ph\":\"");
    dvti_writer_text(out, phase);
    dvti_writer_text(out, "\",\"pid\":");
    dvti_writer_int(out, process);
    dvti_writer_text(out, ",\"tid\":");
    dvti_writer_int(out, row);
    dvti_writer_text(out, ",\"ts\":");
    dvti_trace_time(out, at);
}

DVTI_FN void dvti_trace_slice(dvti_writer *out, const char *name, const char *category, int process,
                              int row, double begin, double end) {
    dvti_trace_object(out, name, category, "X", process, row, begin);
    dvti_writer_text(out, ",\"dur\":");
    dvti_trace_time(out, end - begin);
    dvti_writer_text(out, ",\"args\":{");
}

DVTI_FN void dvti_trace_name(dvti_writer *out, int process, int row, const char *name, int number) {
    dvti_trace_object(out, row ? "thread_name" : "process_name", "__metadata", "M", process, row,
                      0);
    dvti_writer_text(out, ",\"args\":{\"name\":\"");
    dvti_writer_text(out, name);
    if (number >= 0)
        dvti_writer_int(out, number);
    dvti_writer_text(out, row || number < 0 ? "\"}},\n" : ")\"}},\n");
}

DVTI_FN void dvti_trace_arrow(dvti_writer *out, const char *phase, const dvti_event *e, int process,
                              int row, double start) {
    dvti_trace_object(out, "launch", "launch", phase, process, row, e->begin - start);
    dvti_writer_text(out, ",\"id\":");
    dvti_writer_int(out, e->number);
    dvti_writer_text(out, *phase == 'f' ? ",\"bp\":\"e\"},\n" : "},\n");
}

static void dvti_trace_view(dvti_writer *out, const dvti_view *view) {
    dvti_writer_text(out, dvt_dtype_name(view->dtype));
    dvti_writer_text(out, " ");
    dvti_trace_dims(out, view->dim, view->ndim);
}

DVTI_FN void dvti_trace_launch(dvti_writer *out, const dvti_launch *launch) {
    double products = dvti_multiply_adds(launch);
    int i;
    dvti_writer_text(out, ",\"kernel\":\"");
    dvti_writer_text(out, launch->kernel->name);
    if (launch->n_out) {
        dvti_writer_text(out, "\",\"dtype\":\"");
        dvti_writer_text(out, dvt_dtype_name(launch->out[0].dtype));
        dvti_writer_text(out, "\",\"shape\":\"");
        dvti_trace_dims(out, launch->out[0].dim, launch->out[0].ndim);
    }
    dvti_writer_text(out, "\",\"inputs\":\"");
    for (i = 0; i < launch->n_in; i++) {
        dvti_writer_text(out, i ? ", " : "");
        dvti_trace_view(out, &launch->in[i]);
    }
    dvti_writer_text(out, "\"");
    if (products > 0) {
        dvti_writer_text(out, ",\"multiply_adds\":");
        dvti_writer_int(out, products < 9e18 ? (int64_t)products : INT64_MAX);
    }
}

DVTI_FN void dvti_trace_product(dvti_writer *out, const dvti_matrices *p) {
    int64_t dim[2];
    dim[0] = p->n;
    dim[1] = p->m;
    dvti_writer_text(out, ",\"kernel\":\"matmul\",\"dtype\":\"");
    dvti_writer_text(out, dvt_dtype_name(p->dtype));
    dvti_writer_text(out, "\",\"shape\":\"");
    dvti_trace_dims(out, dim, 2);
    dvti_writer_text(out, "\",\"multiply_adds\":");
    dvti_writer_int(out, p->n * p->m * p->k);
}
