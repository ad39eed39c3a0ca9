/* Formats arrays as text: brackets, line breaks and summaries by NumPy's rules, and the text that
   each style adds around them. Copies only the printed elements from the array's context. */
#include "1_base/dvt_float_mode.h"
#include "5_io/dvt_io_internal.h"

/* ---- the printed elements ---- */
/* shape: extents as printed. A cut axis shows its first and its last `gap` elements. */
typedef struct dvti_shown {
    dvt_shape shape;
    bool cut[DVT_MAX_DIMS];
    int64_t gap;
} dvti_shown;

static dvti_shown dvti_shown_of(const dvt_array *x, const dvti_print_rules *rules) {
    dvti_shown shown;
    int i;
    memset(&shown, 0, sizeof shown);
    shown.shape = x->shape;
    shown.gap = rules->edge_items;
    if (dvt_size(x) > rules->threshold)
        for (i = 0; i < x->shape.ndim; i++)
            if (x->shape.dim[i] > 2 * rules->edge_items) {
                shown.cut[i] = true;
                shown.shape.dim[i] = 2 * rules->edge_items;
            }
    return shown;
}

/* Copies one corner. Bit i of `far_side` selects the last `gap` elements of axis i. */
static bool dvti_copy_corner(dvt_array *packed, dvt_array *x, const dvti_shown *shown,
                             unsigned far_side) {
    dvt_shape shape = shown->shape;
    int64_t from = x->offset, to = 0;
    dvt_array *source, *target;
    int i;
    for (i = 0; i < shape.ndim; i++)
        if (shown->cut[i]) {
            shape.dim[i] = shown->gap;
            if (far_side & 1u << i) {
                from += (x->shape.dim[i] - shown->gap) * x->stride[i];
                to += shown->gap * packed->stride[i];
            }
        }
    source = dvti_view_new("dvt_print", x, shape, x->stride, from);
    target = source ? dvti_view_new("dvt_print", packed, shape, packed->stride, to) : NULL;
    return target && dvti_copy_elements("dvt_print", target, source) == DVT_OK;
}

/* Returns the printed elements, contiguous in host memory, as an array of the innermost scope; NULL
   with the error set. Packs a summary on x's own context, so that only the summary is copied. */
static dvt_array *dvti_fetch_shown(dvt_array *x, const dvti_shown *shown) {
    dvt_array *packed = x, *host;
    unsigned cuts = 0, side = 0;
    int i;
    for (i = 0; i < shown->shape.ndim; i++)
        cuts |= shown->cut[i] ? 1u << i : 0;
    if (cuts) {
        packed = dvti_array_new("dvt_print", shown->shape, x->dtype, x->storage->ctx);
        do {
            if (!packed || !dvti_copy_corner(packed, x, shown, side))
                return NULL;
            side = (side - cuts) & cuts; /* the next subset of cuts */
        } while (side);
    }
    if (dvti_is_host_memory(packed->storage->ctx) && dvt_is_contiguous(packed))
        return dvt_wait(packed) == DVT_OK ? packed : NULL;
    host = dvti_array_new("dvt_print", shown->shape, x->dtype, dvt_cpu());
    if (!host || dvti_copy_elements("dvt_print", host, packed) != DVT_OK ||
        dvt_wait(host) != DVT_OK)
        return NULL;
    return host;
}

/* ---- layout ---- */
typedef struct dvti_layout {
    dvti_writer *out;
    const dvti_print_rules *rules;
    const dvti_shown *shown;
    dvti_element_format format;
    const char *at; /* the next element, in C order */
    const char *separator;
    bool torch_like;
} dvti_layout;

static int64_t dvti_next_element(dvti_layout *layout, char *text) {
    int n = dvti_element_text(text, &layout->format, layout->at);
    layout->at += dvt_dtype_size(layout->format.dtype);
    return n;
}

static void dvti_trim_blanks(dvti_writer *out) {
    while (out->length && out->at[out->length - 1] == ' ')
        out->length--;
}

/* Wraps a row before an element that would exceed `width`, unless wrapping would not help. */
static void dvti_row_numpy(dvti_layout *layout, int64_t indent, int64_t width) {
    int axis = layout->shown->shape.ndim - 1;
    int64_t n = layout->shown->shape.dim[axis], column = indent, i, length;
    int64_t separator = (int64_t)strlen(layout->separator);
    char text[DVTI_NUMBER_SIZE];
    bool dots = layout->shown->cut[axis];
    for (i = 0; i < n; i++) {
        bool ellipsis = dots && i == layout->shown->gap;
        if (ellipsis) {
            memcpy(text, "...", 4);
            length = 3;
            dots = false;
            i--;
        } else
            length = dvti_next_element(layout, text);
        if (column + length > width && column > indent) {
            dvti_trim_blanks(layout->out);
            dvti_writer_text(layout->out, "\n");
            dvti_writer_repeat(layout->out, ' ', indent);
            column = indent;
        }
        dvti_writer_bytes(layout->out, text, (size_t)length);
        column += length;
        if (i < n - 1) {
            dvti_writer_text(layout->out, layout->separator);
            column += separator;
        }
    }
}

/* Writes a row in PyTorch's style: a fixed number of elements per line, of which the ellipsis is
   one. */
static void dvti_row_torch(dvti_layout *layout, int64_t indent) {
    int axis = layout->shown->shape.ndim - 1;
    int64_t n = layout->shown->shape.dim[axis], place = 0, i;
    int64_t per_line = (layout->rules->line_width - indent + 1) / (layout->format.width + 2);
    char text[DVTI_NUMBER_SIZE];
    bool dots = layout->shown->cut[axis];
    per_line = DVTI_MAX(per_line, 1);
    for (i = 0; i < n; i++, place++) {
        int64_t length = 4;
        if (dots && i == layout->shown->gap) {
            memcpy(text, " ...", 5);
            dots = false;
            i--;
        } else
            length = dvti_next_element(layout, text);
        if (place && place % per_line == 0) {
            dvti_writer_text(layout->out, ",\n");
            dvti_writer_repeat(layout->out, ' ', indent);
        } else if (place)
            dvti_writer_text(layout->out, ", ");
        dvti_writer_bytes(layout->out, text, (size_t)length);
    }
}

/* Writes one block from its opening bracket, at column indent - 1. `width` limits its lines. */
static void dvti_block_text(dvti_layout *layout, int axis, int64_t indent, int64_t width) {
    int left = layout->shown->shape.ndim - axis;
    int64_t n = layout->shown->shape.dim[axis], i;
    bool dots = layout->shown->cut[axis];
    dvti_writer_text(layout->out, "[");
    if (left == 1) {
        if (layout->torch_like)
            dvti_row_torch(layout, indent);
        else
            dvti_row_numpy(layout, indent, width - 1);
    } else
        for (i = 0; i < n; i++) {
            if (dots && i == layout->shown->gap) {
                dvti_writer_text(layout->out, "...");
                dots = false;
                i--;
            } else
                dvti_block_text(layout, axis + 1, indent + 1, width - 1);
            if (i == n - 1)
                break;
            dvti_writer_bytes(layout->out, layout->separator,
                              layout->separator[0] == ',' ? (size_t)1 : 0);
            dvti_writer_repeat(layout->out, '\n', left - 1);
            dvti_writer_repeat(layout->out, ' ', indent);
        }
    dvti_writer_text(layout->out, "]");
}

/* Writes the values. `prefix` columns of the first line and `suffix` of the last are occupied. */
static void dvti_values_text(dvti_writer *out, const dvti_print_rules *rules,
                             const dvti_shown *shown, const dvt_array *host, int64_t prefix,
                             int64_t suffix, const char *separator) {
    dvti_layout layout;
    memset(&layout, 0, sizeof layout);
    layout.out = out;
    layout.rules = rules;
    layout.shown = shown;
    layout.separator = separator;
    layout.torch_like = rules->style == DVT_PRINT_TORCH;
    if (dvt_size(host) == 0) {
        dvti_writer_text(out, "[]");
        return;
    }
    layout.at = (const char *)dvti_view_of(host).data;
    layout.format =
        dvti_element_plan(rules, host->dtype, layout.at, dvt_size(host), shown->shape.ndim);
    if (shown->shape.ndim == 0) {
        char text[DVTI_NUMBER_SIZE];
        int64_t n = dvti_next_element(&layout, text);
        dvti_writer_bytes(out, text, (size_t)n);
    } else
        dvti_block_text(&layout, 0, prefix + 1, rules->line_width - suffix);
}

/* Returns the number of characters since the last newline. */
static int64_t dvti_last_line(const dvti_writer *out, size_t start) {
    size_t i = out->length;
    while (i > start && out->at[i - 1] != '\n')
        i--;
    return (int64_t)(out->length - i);
}

/* ---- the text around the values ---- */
/* Writes NumPy's repr up to its closing parenthesis, with or without the dtype. A dtype that does
   not fit on the line starts a new one if may_wrap. */
static void dvti_numpy_repr(dvti_writer *out, const dvti_print_rules *rules,
                            const dvti_shown *shown, dvt_array *x, const dvt_array *host,
                            bool with_dtype, bool may_wrap) {
    const char *name = dvt_dtype_name(x->dtype);
    dvti_writer_text(out, "array(");
    dvti_values_text(out, rules, shown, host, 6, 1, ", ");
    if (dvt_size(x) == 0 && x->shape.ndim != 1) {
        dvti_writer_text(out, ", shape=");
        dvti_writer_text(out, dvti_shape_text(x->shape));
    }
    if (with_dtype) {
        int64_t line = dvti_last_line(out, 0) + 1;
        bool wrap = may_wrap && line + 7 + (int64_t)strlen(name) + 1 > rules->line_width;
        dvti_writer_text(out, wrap ? ",\n      dtype=" : ", dtype=");
        dvti_writer_text(out, name);
    }
}

/* Writes MXNet's np style, which is NumPy's repr with other rules. It omits the dtype for float32
   and bool, and adds it for the other defaults of NumPy. It adds the context unless it is a CPU. */
static void dvti_style_np(dvti_writer *out, const dvti_print_rules *rules, const dvti_shown *shown,
                          dvt_array *x, const dvt_array *host) {
    bool empty = dvt_size(x) == 0, implied = x->dtype == DVT_F64 || x->dtype == DVT_I64;
    dvti_numpy_repr(out, rules, shown, x, host,
                    x->dtype != DVT_F32 && (x->dtype != DVT_BOOL || empty), !implied || empty);
    if (x->storage->ctx.type != DVT_DEVICE_CPU) {
        dvti_writer_text(out, ", ctx=");
        dvti_writer_text(out, dvt_ctx_name(x->storage->ctx));
    }
    dvti_writer_text(out, ")");
}

/* Writes TensorFlow's style: NumPy's repr, on separate lines if it has several. */
static void dvti_style_tf(dvti_writer *out, const dvti_print_rules *rules, const dvti_shown *shown,
                          dvt_array *x, const dvt_array *host) {
    dvti_writer repr = dvti_writer_begin();
    bool implied = x->dtype == DVT_F64 || x->dtype == DVT_I64 || x->dtype == DVT_BOOL;
    if (x->shape.ndim == 0) { /* a NumPy scalar */
        dvti_print_rules of_scalars = *rules;
        of_scalars.style = DVT_PRINT_STR;
        dvti_values_text(&repr, &of_scalars, shown, host, 0, 0, " ");
    } else {
        dvti_numpy_repr(&repr, rules, shown, x, host, !implied || dvt_size(x) == 0, true);
        dvti_writer_text(&repr, ")");
    }
    dvti_writer_text(out, "<tf.Tensor: shape=");
    dvti_writer_text(out, dvti_shape_text(x->shape));
    dvti_writer_text(out, ", dtype=");
    dvti_writer_text(out, dvt_dtype_name(x->dtype));
    dvti_writer_text(out, ", numpy=");
    if (!repr.failed) {
        if (memchr(repr.at, '\n', repr.length))
            dvti_writer_text(out, "\n");
        dvti_writer_bytes(out, repr.at, repr.length);
    }
    out->failed = out->failed || repr.failed;
    dvti_writer_text(out, ">");
    dvti_writer_free(&repr);
}

/* Writes JAX's style. JAX measures one line without "Array(". If the dtype does not fit, it adds
   blanks, no newline. */
static void dvti_style_jax(dvti_writer *out, const dvti_print_rules *rules, const dvti_shown *shown,
                           dvt_array *x, const dvt_array *host) {
    const char *name = dvt_dtype_name(x->dtype);
    int64_t line;
    dvti_writer_text(out, "Array(");
    dvti_values_text(out, rules, shown, host, 6, 1, ", ");
    if (dvt_size(x) == 0) {
        dvti_writer_text(out, ", shape=");
        dvti_writer_text(out, dvti_shape_text(x->shape));
    }
    line = dvti_last_line(out, 6) + 2;
    dvti_writer_text(out, ",");
    dvti_writer_repeat(out, ' ', line + 7 + (int64_t)strlen(name) + 1 > rules->line_width ? 6 : 1);
    dvti_writer_text(out, "dtype=");
    dvti_writer_text(out, name);
    dvti_writer_text(out, ")");
}

static void dvti_torch_suffix(dvti_writer *out, const dvti_print_rules *rules, int64_t *line,
                              const char *text) {
    int64_t n = (int64_t)strlen(text);
    if (*line + n + 2 > rules->line_width) {
        dvti_writer_text(out, ",\n       ");
        *line = 7 + n;
    } else {
        dvti_writer_text(out, ", ");
        *line += n + 2;
    }
    dvti_writer_text(out, text);
}

static void dvti_style_torch(dvti_writer *out, const dvti_print_rules *rules,
                             const dvti_shown *shown, dvt_array *x, const dvt_array *host) {
    bool empty = dvt_size(x) == 0;
    char *text = dvti_name_buffer();
    int64_t line;
    dvti_writer_text(out, "tensor(");
    dvti_values_text(out, rules, shown, host, 7, 0, ", ");
    line = dvti_last_line(out, 0) + 2;
    if (x->storage->ctx.type == DVT_DEVICE_GPU) {
        snprintf(text, DVTI_NAME_SIZE, "device='cuda:%d'", x->storage->ctx.id);
        dvti_torch_suffix(out, rules, &line, text);
    }
    if (empty && x->shape.ndim != 1) {
        snprintf(text, DVTI_NAME_SIZE, "size=%.140s", dvti_shape_text(x->shape));
        dvti_torch_suffix(out, rules, &line, text);
    }
    if (x->dtype != DVT_F32 && (empty || (x->dtype != DVT_I64 && x->dtype != DVT_BOOL))) {
        snprintf(text, DVTI_NAME_SIZE, "dtype=torch.%s", dvt_dtype_name(x->dtype));
        dvti_torch_suffix(out, rules, &line, text);
    }
    dvti_writer_text(out, ")");
}

static void dvti_style_mxnet(dvti_writer *out, const dvti_print_rules *rules,
                             const dvti_shown *shown, dvt_array *x, const dvt_array *host) {
    int i;
    dvti_values_text(out, rules, shown, host, 0, 0, " ");
    dvti_writer_text(out, "\n<NDArray ");
    for (i = 0; i < x->shape.ndim; i++) {
        dvti_writer_text(out, i ? "x" : "");
        dvti_writer_int(out, x->shape.dim[i]);
    }
    dvti_writer_text(out, " @");
    dvti_writer_text(out, dvt_ctx_name(x->storage->ctx));
    dvti_writer_text(out, ">");
}

/* ---- the call ---- */
static bool dvti_print_rules_of(const dvt_print_options *options, dvti_print_rules *rules) {
    static const dvt_print_options standard = {DVT_PRINT_DEFAULT, 0, 0, 0, 0, false, false};
    const dvt_print_options *o = options ? options : &standard;
    dvt_print_style style = o->style == DVT_PRINT_DEFAULT ? dvti_print_style_chosen() : o->style;
    bool torch_like = style == DVT_PRINT_TORCH;
    if ((int)o->style < 0 || (int)o->style > (int)DVT_PRINT_DEFAULT || o->precision < -1 ||
        o->precision > DVTI_MAX_PRECISION || o->threshold < 0 || o->edge_items < 0 ||
        o->line_width < 0) {
        dvti_fail(
            DVT_ERR_RANGE,
            "dvt_format: options with style %d, precision %d, threshold %lld, edge_items %d, "
            "line_width %d; expected a style of dvt_print_style, a precision of -1 to %d, and "
            "no other negative number: start from options of all zeros",
            (int)o->style, o->precision, (long long)o->threshold, o->edge_items, o->line_width,
            DVTI_MAX_PRECISION);
        return false;
    }
    rules->style = style == DVT_PRINT_DEFAULT ? DVT_PRINT_MXNET : style;
    rules->precision = o->precision ? o->precision : torch_like ? 4 : 8;
    rules->threshold = o->threshold ? o->threshold : 1000;
    rules->edge_items = o->edge_items ? o->edge_items : 3;
    rules->line_width = o->line_width ? o->line_width : torch_like ? 80 : 75;
    rules->suppress = o->suppress;
    return true;
}

static DVTI_NOINLINE void dvti_print_styled(dvti_writer *out, const dvti_print_rules *rules,
                                            const dvti_shown *shown, dvt_array *x,
                                            dvt_array *host) {
    if (rules->style == DVT_PRINT_MXNET)
        dvti_style_mxnet(out, rules, shown, x, host);
    else if (rules->style == DVT_PRINT_NP)
        dvti_style_np(out, rules, shown, x, host);
    else if (rules->style == DVT_PRINT_JAX)
        dvti_style_jax(out, rules, shown, x, host);
    else if (rules->style == DVT_PRINT_TORCH)
        dvti_style_torch(out, rules, shown, x, host);
    else if (rules->style == DVT_PRINT_TF)
        dvti_style_tf(out, rules, shown, x, host);
    else
        dvti_values_text(out, rules, shown, host, 0, 0, " ");
}

/* Formats the whole text. The caller frees the writer, also on failure. */
static dvt_status dvti_print_text(dvti_writer *out, const char *function, dvt_array *x,
                                  const dvt_print_options *options) {
    dvti_print_rules rules;
    dvti_float_mode mode;
    dvti_shown shown;
    dvt_array *host;
    dvt_status status;
    dvt_scope_guard scope;
    if (!dvti_print_rules_of(options, &rules))
        return DVT_ERR_RANGE;
    if (!x)
        dvti_writer_text(out, "(null)");
    else {
        status = dvti_check_guard(function, x);
        if (status != DVT_OK)
            return status;
        shown = dvti_shown_of(x, &rules);
        scope = dvt_scope_begin();
        host = dvti_fetch_shown(x, &shown);
        if (!host)
            status = dvti_failure();
        else {
            mode = dvti_float_mode_begin();
            dvti_print_styled(out, &rules, &shown, x, host);
            dvti_float_mode_end(&mode);
        }
        dvt_scope_end(&scope);
        if (!host)
            return status;
    }
    if (!options || !options->no_newline)
        dvti_writer_text(out, "\n");
    return out->failed ? dvti_fail_memory(function, (int64_t)out->capacity * 2) : DVT_OK;
}

DVT_API dvt_status dvt_format(dvt_array *x, const dvt_print_options *options, char *buffer,
                              size_t size, size_t *length) {
    dvti_writer out = dvti_writer_begin();
    dvt_status status = dvti_print_text(&out, "dvt_format", x, options);
    if (status == DVT_OK) {
        size_t n = out.length < size ? out.length : size ? size - 1 : 0;
        if (buffer && size) {
            memcpy(buffer, out.at, n);
            buffer[n] = 0;
        }
        if (length)
            *length = out.length;
    }
    dvti_writer_free(&out);
    return status;
}

static dvt_status dvti_print_to(const char *function, FILE *file, dvt_array *x) {
    dvti_writer out = dvti_writer_begin();
    dvt_status status = dvti_print_text(&out, function, x, NULL);
    if (status == DVT_OK && fwrite(out.at, 1, out.length, file) != out.length)
        status = dvti_fail(DVT_ERR_IO, "%s: %lld bytes could not be written: %s", function,
                           (long long)out.length, strerror(errno));
    dvti_writer_free(&out);
    return status;
}

DVT_API dvt_status dvt_print(dvt_array *x) {
    return dvti_print_to("dvt_print", stdout, x);
}

DVT_API dvt_status dvt_print_file(void *file, dvt_array *x) {
    if (!file)
        return dvti_null("dvt_print_file", "file");
    return dvti_print_to("dvt_print_file", (FILE *)file, x);
}
