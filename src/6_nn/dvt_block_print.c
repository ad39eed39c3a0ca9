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
} dvti_summary_row;

typedef struct dvti_summary {
    dvti_summary_row *row;
    size_t count, capacity;
    size_t *open; /* rows of the blocks that are running */
    size_t depth, open_capacity;
    bool exhausted;
    dvt_shape input;
    int64_t trainable, fixed;
} dvti_summary;

static int64_t dvti_child_index(const dvt_block *parent, const dvt_block *child) {
    size_t i;
    for (i = 0; i < parent->n_child; i++)
        if (parent->child[i] == child)
            return (int64_t)i;
    return -1;
}

static void dvti_summary_visit(void *user, dvt_block *block, dvt_array *y) {
    dvti_summary *s = (dvti_summary *)user;
    dvti_summary_row *row;
    if (s->exhausted)
        return;
    if (y) {
        s->row[s->open[--s->depth]].shape = y->shape;
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

/* Formats a number with separators: "60,170". */
static const char *dvti_nn_grouped(int64_t number) {
    char *buffer = dvti_name_buffer(), digits[24];
    dvti_text text = dvti_text_begin(buffer, DVTI_NAME_SIZE);
    int i, n = snprintf(digits, sizeof digits, "%lld", (long long)number);
    for (i = 0; i < n; i++)
        dvti_text_add(&text, "%s%c", i && (n - i) % 3 == 0 ? "," : "", digits[i]);
    return buffer;
}

static void dvti_summary_line(dvti_text *text, const char *name, const char *shape,
                              const char *number) {
    dvti_text_add(text, "%-34s %-24s %14s\n", name, shape, number);
}

static int64_t dvti_block_own_count(const dvt_block *block) {
    int64_t count = 0;
    size_t i;
    for (i = 0; i < block->n_param; i++)
        count += dvt_shape_size(block->param[i]->shape);
    return count;
}

static size_t dvti_summary_format(const void *user, char *buffer, size_t size) {
    const dvti_summary *s = (const dvti_summary *)user;
    dvti_text text = dvti_text_begin(buffer, size);
    size_t i;
    dvti_summary_line(&text, "Block", "Output shape", "Parameters");
    dvti_text_char(&text, '=', 74);
    dvti_text_add(&text, "\n");
    dvti_summary_line(&text, "Input", dvti_shape_text(s->input), "0");
    for (i = 0; i < s->count; i++) {
        const dvti_summary_row *row = &s->row[i];
        char *name = dvti_name_buffer();
        dvti_text line = dvti_text_begin(name, DVTI_NAME_SIZE);
        dvti_text_char(&line, ' ', 2 * row->depth);
        if (row->index >= 0)
            dvti_text_add(&line, "(%lld): ", (long long)row->index);
        dvti_text_add(&line, "%s", row->block->desc.kind);
        dvti_summary_line(&text, name, dvti_shape_text(row->shape),
                          dvti_nn_grouped(dvti_block_own_count(row->block)));
    }
    dvti_text_char(&text, '=', 74);
    dvti_text_add(&text, "\nParameters: %s (each counted once)\n",
                  dvti_nn_grouped(s->trainable + s->fixed));
    dvti_text_add(&text, "  trained: %s\n", dvti_nn_grouped(s->trainable));
    dvti_text_add(&text, "  not trained: %s", dvti_nn_grouped(s->fixed));
    return text.length;
}

/* Runs the net on zeros and records the result of every block. Running statistics stay
   unchanged. */
static dvt_status dvti_summary_run(dvti_summary *s, dvt_block *net, dvt_params *params) {
    dvt_record_guard record = dvt_record_begin(DVT_OFF, DVT_OFF);
    dvti_tracer tracer, before;
    dvt_ctx ctx = dvt_default_ctx();
    dvt_array *x, *y;
    if (params->count && params->item[0]->ctxs.n)
        ctx = params->item[0]->ctxs.ctx[0];
    tracer.visit = dvti_summary_visit;
    tracer.user = s;
    x = dvti_array_new("dvt_block_print_summary", s->input, DVT_F32, ctx);
    x = x ? dvt_fill(x, 0) : NULL;
    before = dvti_set_tracer(tracer);
    y = x ? dvt_block_forward(net, x) : NULL;
    dvti_set_tracer(before);
    dvt_record_end(&record);
    if (y && s->exhausted)
        return dvti_fail_memory("dvt_block_print_summary", (int64_t)(sizeof *s->row * s->count));
    return y ? DVT_OK : dvti_failure();
}

DVT_API dvt_status dvt_block_print_summary(dvt_block *net, dvt_shape input) {
    dvti_summary s;
    dvt_scope_guard scope;
    dvt_params *params;
    dvt_status status;
    size_t i;
    if (!net)
        return dvti_null("dvt_block_print_summary", "net");
    memset(&s, 0, sizeof s);
    s.input = input;
    scope = dvt_scope_begin();
    params = dvt_block_collect_params(net, NULL);
    status = params ? dvti_summary_run(&s, net, params) : dvti_failure();
    for (i = 0; status == DVT_OK && i < params->count; i++)
        *(params->item[i]->grad_req == DVT_GRAD_NULL ? &s.fixed : &s.trainable) +=
            dvt_shape_size(params->item[i]->shape);
    if (status == DVT_OK)
        status = dvti_nn_print_text("dvt_block_print_summary", dvti_summary_format, &s);
    dvt_scope_end(&scope);
    dvti_free(s.row);
    dvti_free(s.open);
    return status;
}
