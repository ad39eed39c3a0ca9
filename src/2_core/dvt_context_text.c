/* Contexts as text: reads and writes the device names of MXNet, PyTorch, TensorFlow and JAX. Also
   the style of printing, which follows one of these libraries. */
#include "2_core/dvt_core.h"

DVT_API const char *dvt_ctx_name(dvt_ctx ctx) {
    char *buffer = dvti_name_buffer();
    ctx = dvti_ctx(ctx);
    snprintf(buffer, DVTI_NAME_SIZE, "%s(%d)",
             ctx.type == DVT_DEVICE_CPU    ? "cpu"
             : ctx.type == DVT_DEVICE_GPU  ? "gpu"
             : ctx.type == DVT_DEVICE_TPU  ? "tpu"
             : ctx.type == DVT_DEVICE_META ? "meta"
                                           : "unknown",
             ctx.id);
    return buffer;
}

/* ---- the style of printing ---- */
static dvti_atomic dvti_style_chosen; /* 1 + the style; 0: none */

DVTI_FN dvt_print_style dvti_print_style_chosen(void) {
    int64_t chosen = dvti_atomic_load(&dvti_style_chosen);
    return chosen ? (dvt_print_style)(chosen - 1) : DVT_PRINT_DEFAULT;
}

DVT_API dvt_print_style dvt_set_print_style(dvt_print_style style) {
    dvt_print_style previous = dvti_print_style_chosen();
    if ((int)style < 0 || (int)style > (int)DVT_PRINT_DEFAULT)
        dvti_fail(DVT_ERR_RANGE,
                  "dvt_set_print_style: %d is not a style; use one of dvt_print_style", (int)style);
    else
        dvti_atomic_store(&dvti_style_chosen, style == DVT_PRINT_DEFAULT ? 0 : 1 + (int64_t)style);
    return previous;
}

/* ---- writing ---- */
/* Names of one device type. */
typedef struct dvti_device_words {
    dvt_device_type type;
    const char *torch, *tf, *jax;
} dvti_device_words;

static const dvti_device_words dvti_words[] = {{DVT_DEVICE_CPU, "cpu", "CPU", "Cpu"},
                                               {DVT_DEVICE_GPU, "cuda", "GPU", "Cuda"},
                                               {DVT_DEVICE_TPU, "xla", "TPU", "Tpu"},
                                               {DVT_DEVICE_META, "meta", "META", "Meta"}};
#define DVTI_READ_WORDS 3 /* all but the last, which is never read */

DVT_API size_t dvt_ctx_format(dvt_ctx ctx, dvt_print_style style, char *buffer, size_t size) {
    dvti_text text = dvti_text_begin(buffer, size);
    const dvti_device_words *words = dvti_words;
    ctx = dvti_ctx(ctx);
    if (style == DVT_PRINT_DEFAULT)
        style = dvti_print_style_chosen();
    if ((int)ctx.type > (int)DVT_DEVICE_CPU && (int)ctx.type <= (int)DVT_DEVICE_META)
        words += (int)ctx.type - (int)DVT_DEVICE_CPU;
    if ((int)style < 0 || (int)style > (int)DVT_PRINT_DEFAULT)
        dvti_fail(DVT_ERR_RANGE, "dvt_ctx_format: %d is not a style; use one of dvt_print_style",
                  (int)style);
    else if (style == DVT_PRINT_TORCH && ctx.type == DVT_DEVICE_CPU && ctx.id == 0)
        dvti_text_add(&text, "device(type='cpu')");
    else if (style == DVT_PRINT_TORCH)
        dvti_text_add(&text, "device(type='%s', index=%d)", words->torch, ctx.id);
    else if (style == DVT_PRINT_TF)
        dvti_text_add(&text, "/job:localhost/replica:0/task:0/device:%s:%d", words->tf, ctx.id);
    else if (style == DVT_PRINT_JAX)
        dvti_text_add(&text, "%sDevice(id=%d)", words->jax, ctx.id);
    else
        dvti_text_add(&text, "%s", dvt_ctx_name(ctx));
    return text.length;
}

DVT_API size_t dvt_ctx_list_format(dvt_ctx_list list, char *buffer, size_t size) {
    dvti_text text = dvti_text_begin(buffer, size);
    int i;
    dvti_text_add(&text, "[");
    for (i = 0; i < list.n && i < DVT_MAX_CONTEXTS; i++)
        dvti_text_add(&text, "%s%s", i ? ", " : "", dvt_ctx_name(list.ctx[i]));
    dvti_text_add(&text, "]");
    return text.length;
}

/* ---- reading: each function advances *at past the text it recognizes, otherwise returns false
   ---- */
static bool dvti_skip(const char **at, const char *word) {
    size_t n = strlen(word);
    if (strncmp(*at, word, n) != 0)
        return false;
    *at += n;
    return true;
}

static bool dvti_skip_number(const char **at, int *number) {
    const char *digit = *at;
    int64_t value = 0;
    while (*digit >= '0' && *digit <= '9' && value <= INT_MAX)
        value = value * 10 + (*digit++ - '0');
    if (digit == *at || value > INT_MAX)
        return false;
    *at = digit;
    *number = (int)value;
    return true;
}

/* Reads a device type in lower case, as MXNet and PyTorch write it. */
static bool dvti_skip_type(const char **at, dvt_device_type *type) {
    static const struct {
        const char *word;
        dvt_device_type type;
    } words[] = {{"cpu", DVT_DEVICE_CPU},
                 {"gpu", DVT_DEVICE_GPU},
                 {"cuda", DVT_DEVICE_GPU},
                 {"tpu", DVT_DEVICE_TPU},
                 {"xla", DVT_DEVICE_TPU}};

    size_t i;
    for (i = 0; i < sizeof words / sizeof words[0]; i++)
        if (dvti_skip(at, words[i].word)) {
            *type = words[i].type;
            return true;
        }
    return false;
}

/* Reads "GPU:1" and "/GPU:1", with the optional prefix of TensorFlow. */
static bool dvti_read_tf(const char *at, dvt_ctx *out) {
    bool no_slash = *at != '/';
    int i;
    dvti_skip(&at, "/job:localhost");
    dvti_skip(&at, "/replica:0");
    dvti_skip(&at, "/task:0");
    if (!no_slash && !dvti_skip(&at, "/device:") && !dvti_skip(&at, "/physical_device:") &&
        !dvti_skip(&at, "/"))
        return false;
    out->id = 0;
    if (!dvti_skip_type(&at, &out->type)) {
        for (i = 0; i < DVTI_READ_WORDS && !dvti_skip(&at, dvti_words[i].tf); i++)
            ;
        if (i == DVTI_READ_WORDS)
            return false;
        out->type = dvti_words[i].type;
    }
    return (dvti_skip(&at, ":") ? dvti_skip_number(&at, &out->id) : !no_slash) && !*at;
}

/* Reads "CudaDevice(id=1)", "TFRT_CPU_0", "TPU_0". Ignores the location that TPUs append to the
   number. */
static bool dvti_read_jax(const char *at, dvt_ctx *out) {
    int i;
    bool rest;
    for (i = 0; i < DVTI_READ_WORDS; i++) {
        const char *ahead = at;
        if (dvti_skip(&ahead, dvti_words[i].jax) && dvti_skip(&ahead, "Device(id=")) {
            at = ahead;
            break;
        }
    }
    if (i < DVTI_READ_WORDS) {
        out->type = dvti_words[i].type;
        if (!dvti_skip_number(&at, &out->id))
            return false;
        rest = out->type == DVT_DEVICE_TPU && strncmp(at, ", ", 2) == 0;
        return strcmp(at, ")") == 0 || (rest && at[strlen(at) - 1] == ')');
    }
    out->type = DVT_DEVICE_CPU;
    if (!dvti_skip(&at, "TFRT_CPU_")) {
        out->type = DVT_DEVICE_TPU;
        if (!dvti_skip(&at, "TPU_"))
            return false;
    }
    if (!dvti_skip_number(&at, &out->id))
        return false;
    rest = out->type == DVT_DEVICE_TPU && *at == '(';
    return !*at || (rest && at[strlen(at) - 1] == ')');
}

#undef DVTI_READ_WORDS

/* Reads "device(type='cuda', index=1)". */
static bool dvti_read_torch(const char *at, dvt_ctx *out) {
    out->id = 0;
    return dvti_skip(&at, "device(type='") && dvti_skip_type(&at, &out->type) &&
           dvti_skip(&at, "'") &&
           (!dvti_skip(&at, ", index=") || dvti_skip_number(&at, &out->id)) && strcmp(at, ")") == 0;
}

/* Reads "gpu", "gpu(1)", "gpu:1". */
static bool dvti_read_plain(const char *at, dvt_ctx *out) {
    out->id = 0;
    if (!dvti_skip_type(&at, &out->type))
        return false;
    if (dvti_skip(&at, "("))
        return dvti_skip_number(&at, &out->id) && strcmp(at, ")") == 0;
    return (!dvti_skip(&at, ":") || dvti_skip_number(&at, &out->id)) && !*at;
}

DVT_API dvt_status dvt_ctx_parse(const char *name, dvt_ctx *out) {
    dvt_ctx found;
    if (!name || !out)
        return dvti_null("dvt_ctx_parse", name ? "out" : "name");
    if (!dvti_read_plain(name, &found) && !dvti_read_torch(name, &found) &&
        !dvti_read_tf(name, &found) && !dvti_read_jax(name, &found))
        return dvti_fail(DVT_ERR_NAME,
                         "dvt_ctx_parse: \"%.60s\" is not a context; expected cpu, cpu(0), gpu(1), "
                         "cuda:1, /GPU:1, device(type='cuda', index=1) or CudaDevice(id=1): "
                         "devtensor computes on CPUs and NVIDIA GPUs",
                         name);
    *out = found;
    return DVT_OK;
}
