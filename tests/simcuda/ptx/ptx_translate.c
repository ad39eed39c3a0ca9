/* PTX text to C text: parses, emits, and prepends the prelude. */
#include <string.h>

#include "emit.h"
#include "ptx_prelude.h"
#include "ptx_translate.h"

/* Appends a piece without its includes, because all pieces are appended already. */
static void paste(ptx_text *out, const ptx_piece *piece) {
    ptx_put(out, "#line 1 \"%s\"\n", piece->name);
    for (const char *line = piece->text; *line;) {
        size_t length = strcspn(line, "\n") + (strchr(line, '\n') != NULL);
        if (strncmp(line, "#include \"", 10) != 0)
            ptx_put_bytes(out, line, length);
        else
            ptx_put(out, "\n");
        line += length;
    }
}

/* Only modules with such instructions contain rt_async.h, because parsing it takes time. */
static int is_asynchronous(const char *ptx) {
    return strstr(ptx, "mbarrier.") || strstr(ptx, "wgmma.");
}

typedef struct translation {
    const char *ptx;
    ptx_mode mode;
    int arch;
    char *c;
} translation;

static void translate(ptx_context *context, void *user) {
    translation *t = user;
    ptx_module *module = ptx_parse(context, t->ptx);
    const char *body = emit_module(module, &t->mode);
    if (context->errors)
        ptx_leave(context, PTX_UNSUPPORTED);
    t->arch = module->arch;
    ptx_text *out = ptx_text_new(context);
    ptx_put(out, "#define SIM_CHECK %d\n", t->mode.checked);
    if (t->mode.counted)
        ptx_put(out, "#define SIM_COUNT 1\n");
    if (is_asynchronous(t->ptx))
        ptx_put(out, "#define SIM_ASYNC 1\n");
    for (const ptx_piece *piece = ptx_prelude; piece->name; piece++)
        if (is_asynchronous(t->ptx) || strcmp(piece->name, "rt_async.h") != 0)
            paste(out, piece);
    ptx_put(out, "#line 1 \"module.c\"\n%s", body);
    t->c = strdup(out->data);
    if (!t->c)
        ptx_leave(context, PTX_NO_MEMORY);
}

ptx_result ptx_translate(const char *ptx, ptx_mode mode, char **c, int *arch, char **log) {
    translation t = {ptx, mode, 0, NULL};
    ptx_result result = ptx_within(translate, &t, log);
    *c = t.c;
    *arch = t.arch;
    return result;
}
