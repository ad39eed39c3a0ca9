/* Blocks as text: the form that Gluon prints, and the summary table of a forward pass. */
#include "1_base/dvt_float_mode.h"
#include "6_nn/dvt_nn_internal.h"

/* Returns the shortest digits that round-trip. */
static DVTI_NOINLINE const char *dvti_python_digits(double value) {
    char *buffer = dvti_name_buffer(), *exponent;
    int digits, power;
    for (digits = 0; digits < 17; digits++) {
        snprintf(buffer, DVTI_NAME_SIZE, "%.*e", digits, value);
        if (strtod(buffer, NULL) == value)
            break;
    }
    exponent = strchr(buffer, 'e');
    if (!exponent) /* inf, nan */
        return buffer;
    power = (int)strtol(exponent + 1, NULL, 10);
    if (power >= -4 && power < 16)
        snprintf(buffer, DVTI_NAME_SIZE, "%.*f", DVTI_MAX(digits - power, 1), value);
    return buffer;
}

DVTI_FN const char *dvti_python_number(double value) {
    /* printf and strtod follow the rounding mode */
    const dvti_float_mode mode = dvti_float_mode_begin();
    const char *text = dvti_python_digits(value);
    dvti_float_mode_end(&mode);
    return text;
}

/* ---- text as Gluon prints it ---- */
static void dvti_nn_text_indented(dvti_text *text, const char *from, int indent) {
    for (; *from; from++) {
        dvti_text_char(text, *from, 1);
        if (*from == '\n')
            dvti_text_char(text, ' ', indent);
    }
}

/* Appends the text of the block's describe function. Texts longer than the stack buffer need
   memory, and are truncated without it. It is not inlined, because its caller recurses. */
static DVTI_NOINLINE void dvti_block_described(dvti_text *text, const dvt_block *block,
                                               int indent) {
    char brief[400], *large = NULL;
    size_t length = block->desc.describe(block, block->desc.user, brief, sizeof brief);
    if (length >= sizeof brief && (large = (char *)dvti_alloc(length + 1)) != NULL)
        block->desc.describe(block, block->desc.user, large, length + 1);
    dvti_nn_text_indented(text, large ? large : brief, indent);
    dvti_free(large);
}

static void dvti_nn_block_text(dvti_text *text, const dvt_block *block, int indent) {
    size_t i;
    if (block->desc.describe) {
        dvti_block_described(text, block, indent);
        return;
    }
    if (block->n_child == 0 && !dvti_block_is_sequential(block)) {
        dvti_text_add(text, "%s()", block->desc.kind); /* a leaf, not an empty container */
        return;
    }
    dvti_text_add(text, "%s(\n", block->desc.kind);
    for (i = 0; i < block->n_child; i++) {
        dvti_text_char(text, ' ', indent + 2);
        dvti_text_add(text, "(%lld): ", (long long)i);
        dvti_nn_block_text(text, block->child[i], indent + 2);
        dvti_text_add(text, "\n");
    }
    if (block->n_child == 0)
        dvti_text_add(text, "\n");
    dvti_text_char(text, ' ', indent);
    dvti_text_add(text, ")");
}

DVT_API size_t dvt_block_format(const dvt_block *net, char *buffer, size_t size) {
    dvti_text text = dvti_text_begin(buffer, size);
    if (!net)
        dvti_null("dvt_block_format", "net");
    else
        dvti_nn_block_text(&text, net, 0);
    return text.length;
}

/* Calls format twice: for the length, and into memory of that length. */
static dvt_status dvti_nn_print_text(const char *function,
                                     size_t (*format)(const void *, char *, size_t),
                                     const void *user) {
    size_t length = format(user, NULL, 0);
    char *buffer = (char *)dvti_alloc(length + 1);
    if (!buffer)
        return dvti_fail_memory(function, (int64_t)length + 1);
    format(user, buffer, length + 1);
    printf("%s\n", buffer);
    dvti_free(buffer);
    return DVT_OK;
}

static size_t dvti_format_block(const void *user, char *buffer, size_t size) {
    return dvt_block_format((const dvt_block *)user, buffer, size);
}

DVT_API void dvt_block_print(const dvt_block *net) {
    if (net)
        dvti_nn_print_text("dvt_block_print", dvti_format_block, net);
    else
        printf("(null)\n");
}

/* ---- the summary ---- */
typedef struct dvti_summary_row {
    dvt_block *block;
    int depth;
    int64_t index; /* position among the children of its caller; -1: none */
    dvt_shape shape;
    dvt_block_cost cost; /* of the block itself, without its children */
} dvti_summary_row;

typedef struct dvti_summary {
    const char *function;
    dvti_summary_row *row;
    size_t count, capacity;
    size_t *open; /* rows of the blocks that are running */
    size_t depth, open_capacity;
    bool exhausted;
    dvt_shape input;
    dvt_block_cost total;
} dvti_summary;

static int64_t dvti_child_index(const dvt_block *parent, const dvt_block *child) {
    size_t i;
    for (i = 0; i < parent->n_child; i++)
        if (parent->child[i] == child)
            return (int64_t)i;
    return -1;
}

static void dvti_summary_param(dvt_block_cost *cost, const dvt_param *p) {
    int64_t n = dvt_shape_size(dvt_param_shape(p));
    *(p->grad_req == DVT_GRAD_NULL ? &cost->fixed : &cost->trained) += n;
    cost->param_bytes += n * dvt_dtype_size(p->dtype);
}

/* Sums of inputs that no machine could compute stay at INT64_MAX. */
static void dvti_summary_add(int64_t *sum, int64_t n) {
    if (!dvti_sum(*sum, n, sum))
        *sum = INT64_MAX;
}

static void dvti_summary_visit(void *user, dvt_block *block, dvt_array *y) {
    dvti_summary *s = (dvti_summary *)user;
    dvti_summary_row *row;
    size_t i;
    if (s->exhausted)
        return;
    if (y) { /* its parameters have their shapes now */
        row = &s->row[s->open[--s->depth]];
        row->shape = y->shape;
        for (i = 0; i < block->n_param; i++)
            dvti_summary_param(&row->cost, block->param[i]);
        return;
    }
    if (!dvti_grow((void **)&s->row, &s->capacity, s->count + 1, sizeof *s->row) ||
        !dvti_grow((void **)&s->open, &s->open_capacity, s->depth + 1, sizeof *s->open)) {
        s->exhausted = true;
        return;
    }
    row = &s->row[s->count];
    memset(row, 0, sizeof *row);
    row->block = block;
    row->depth = (int)s->depth;
    row->index = s->depth ? dvti_child_index(s->row[s->open[s->depth - 1]].block, block) : -1;
    s->open[s->depth++] = s->count++;
}

/* Adds an operation to the innermost block that is running. */
static void dvti_summary_hear(void *user, const dvti_event *event) {
    dvti_summary *s = (dvti_summary *)user;
    const dvti_matrices *product = event->product;
    dvt_block_cost *cost;
    double products;
    int i;
    if (event->kind != DVTI_EVENT_LAUNCH || !s->depth || s->exhausted)
        return;
    cost = &s->row[s->open[s->depth - 1]].cost;
    if (product) {
        cost->multiply_adds += product->n * product->m * product->k;
        cost->result_bytes += product->n * product->m * dvt_dtype_size(product->dtype);
        return;
    }
    products = dvti_multiply_adds(event->launch);
    dvti_summary_add(&cost->multiply_adds, products < 9e18 ? (int64_t)products : INT64_MAX);
    for (i = 0; i < event->launch->n_out; i++) {
        const dvti_view *out = &event->launch->out[i];
        dvti_summary_add(&cost->result_bytes,
                         dvti_extents(out->dim, out->ndim) * dvt_dtype_size(out->dtype));
    }
}

/* Formats a number with separators: "60,170". */
static const char *dvti_nn_grouped(int64_t number) {
    char *buffer = dvti_name_buffer(), digits[24];
    dvti_text text = dvti_text_begin(buffer, DVTI_NAME_SIZE);
    int i, n = snprintf(digits, sizeof digits, "%lld", (long long)number);
    for (i = 0; i < n; i++)
        dvti_text_add(&text, "%s%c", i && (n - i) % 3 == 0 ? "," : "", digits[i]);
    return buffer;
}

/* Formats bytes: "235.0 KiB". Integers only, which ignore the locale. */
static const char *dvti_nn_size(int64_t bytes) {
    static const char *const units[] = {"KiB", "MiB", "GiB", "TiB"};
    char *buffer = dvti_name_buffer();
    int unit = 0;
    if (bytes < 1024)
        snprintf(buffer, DVTI_NAME_SIZE, "%lld B", (long long)bytes);
    else {
        for (; bytes >= 1024 * 1024 && unit < 3; unit++)
            bytes /= 1024;
        snprintf(buffer, DVTI_NAME_SIZE, "%lld.%d %s", (long long)(bytes / 1024),
                 (int)(bytes % 1024 * 10 / 1024), units[unit]);
    }
    return buffer;
}

#define DVTI_SUMMARY_WIDTH 98

static void dvti_summary_line(dvti_text *text, const char *name, const char *shape,
                              const char *trained, const char *fixed, const char *outputs,
                              const char *products) {
    dvti_text_add(text, "%-29s %-20s %11s %9s %10s %14s\n", name, shape, trained, fixed, outputs,
                  products);
}

static size_t dvti_summary_format(const void *user, char *buffer, size_t size) {
    const dvti_summary *s = (const dvti_summary *)user;
    const dvt_block_cost *total = &s->total;
    dvti_text text = dvti_text_begin(buffer, size);
    size_t i;
    dvti_summary_line(&text, "Block", "Output shape", "Trained", "Fixed", "Results",
                      "Multiply-adds");
    dvti_text_char(&text, '=', DVTI_SUMMARY_WIDTH);
    dvti_text_add(&text, "\n%-29s %s\n", "Input", dvti_shape_text(s->input));
    for (i = 0; i < s->count; i++) {
        const dvti_summary_row *row = &s->row[i];
        const dvt_block_cost *cost = &row->cost;
        char *name = dvti_name_buffer();
        dvti_text line = dvti_text_begin(name, DVTI_NAME_SIZE);
        dvti_text_char(&line, ' ', 2 * row->depth);
        if (row->index >= 0)
            dvti_text_add(&line, "(%lld): ", (long long)row->index);
        dvti_text_add(&line, "%s", row->block->desc.kind);
        dvti_summary_line(&text, name, dvti_shape_text(row->shape), dvti_nn_grouped(cost->trained),
                          dvti_nn_grouped(cost->fixed), dvti_nn_size(cost->result_bytes),
                          dvti_nn_grouped(cost->multiply_adds));
    }
    dvti_text_char(&text, '=', DVTI_SUMMARY_WIDTH);
    dvti_text_add(&text, "\nParameters: %s (each counted once)\n",
                  dvti_nn_grouped(total->trained + total->fixed));
    dvti_text_add(&text, "  trained: %s\n", dvti_nn_grouped(total->trained));
    dvti_text_add(&text, "  not trained: %s\n", dvti_nn_grouped(total->fixed));
    dvti_text_add(&text, "Memory: %s of parameters, %s of results\n",
                  dvti_nn_size(total->param_bytes), dvti_nn_size(total->result_bytes));
    dvti_text_add(&text, "Multiply-adds: %s", dvti_nn_grouped(total->multiply_adds));
    return text.length;
}

#undef DVTI_SUMMARY_WIDTH

static bool dvti_params_all_ready(const dvt_params *params) {
    size_t i;
    for (i = 0; i < params->count; i++)
        if (!dvti_param_ready(params->item[i]))
            return false;
    return true;
}

/* Runs the net on zeros, for forward functions that read values. Running statistics stay unchanged.
   Initial values are drawn in a pass of their own, whose operations do not count. */
static dvt_status dvti_summary_compute(dvti_summary *s, dvt_block *net, dvt_params *params,
                                       dvti_tracer tracer) {
    dvt_record_guard record = dvt_record_begin(DVT_OFF, DVT_OFF);
    dvti_tracer before;
    dvt_ctx ctx = dvt_default_ctx();
    dvt_array *x, *y;
    int passes = dvti_params_all_ready(params) ? 1 : 2;
    if (params->count && params->item[0]->ctxs.n)
        ctx = params->item[0]->ctxs.ctx[0];
    x = dvti_array_new(s->function, s->input, DVT_F32, ctx);
    x = x ? dvt_fill(x, 0) : NULL;
    before = dvti_set_tracer(tracer);
    do {
        s->count = s->depth = 0;
        y = x ? dvt_block_forward(net, x) : NULL;
    } while (y && --passes);
    dvti_set_tracer(before);
    dvt_record_end(&record);
    return y ? DVT_OK : dvti_failure();
}

/* Records the result and the operations of every block. */
static dvt_status dvti_summary_run(dvti_summary *s, dvt_block *net, dvt_params *params) {
    dvti_listener listener, heard;
    dvti_tracer tracer;
    dvt_status status;
    bool needs_values = false;
    tracer.visit = dvti_summary_visit;
    tracer.user = s;
    tracer.function = s->function;
    listener.hear = dvti_summary_hear;
    listener.user = s;
    heard = dvti_listen_here(listener);
    status = dvti_infer_net(net, s->input, DVT_F32, tracer, NULL, &needs_values);
    if (needs_values)
        status = dvti_summary_compute(s, net, params, tracer);
    dvti_listen_here(heard);
    if (status == DVT_OK && s->exhausted)
        return dvti_fail_memory(s->function, (int64_t)(sizeof *s->row * s->count));
    return status;
}

/* Fills rows and totals; the caller frees the rows. */
static dvt_status dvti_summary_make(dvti_summary *s, const char *function, dvt_block *net,
                                    dvt_shape input) {
    dvt_scope_guard scope;
    dvt_params *params;
    dvt_status status;
    size_t i;
    memset(s, 0, sizeof *s);
    s->function = function;
    s->input = input;
    if (!net)
        return dvti_null(function, "net");
    scope = dvt_scope_begin();
    params = dvt_block_collect_params(net, NULL);
    status = params ? dvti_summary_run(s, net, params) : dvti_failure();
    for (i = 0; status == DVT_OK && i < params->count; i++)
        dvti_summary_param(&s->total, params->item[i]);
    for (i = 0; status == DVT_OK && i < s->count; i++) {
        dvti_summary_add(&s->total.result_bytes, s->row[i].cost.result_bytes);
        dvti_summary_add(&s->total.multiply_adds, s->row[i].cost.multiply_adds);
    }
    dvt_scope_end(&scope);
    return status;
}

static void dvti_summary_free(dvti_summary *s) {
    dvti_free(s->row);
    dvti_free(s->open);
}

DVT_API dvt_status dvt_block_print_summary(dvt_block *net, dvt_shape input) {
    static const char *const function = "dvt_block_print_summary";
    dvti_summary s;
    dvt_status status = dvti_summary_make(&s, function, net, input);
    if (status == DVT_OK)
        status = dvti_nn_print_text(function, dvti_summary_format, &s);
    dvti_summary_free(&s);
    return status;
}

DVT_API dvt_status dvt_block_measure(dvt_block *net, dvt_shape input, dvt_block_cost *out) {
    dvti_summary s;
    dvt_status status;
    if (!out)
        return dvti_null("dvt_block_measure", "out");
    status = dvti_summary_make(&s, "dvt_block_measure", net, input);
    if (status == DVT_OK)
        *out = s.total;
    dvti_summary_free(&s);
    return status;
}
