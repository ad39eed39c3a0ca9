/* From PTX text to C text: parse, emit, and paste the prelude in front. */
#include <stdlib.h>
#include <string.h>

#include "emit.h"
#include "ptx_prelude.h"
#include "ptx_translate.h"

/* A piece without its includes: everything is pasted already. */
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

static void translate(ptx_context *context, const char *ptx, int checked, ptx_text **out,
                      int *arch) {
    ptx_module *module = ptx_parse(context, ptx);
    const char *body = emit_module(module);
    if (context->errors)
        ptx_leave(context, PTX_UNSUPPORTED);
    *arch = module->arch;
    *out = ptx_text_new(context);
    ptx_put(*out, "#define SIM_CHECK %d\n", checked);
    for (const ptx_piece *piece = ptx_prelude; piece->name; piece++)
        paste(*out, piece);
    ptx_put(*out, "#line 1 \"module.c\"\n%s", body);
}

ptx_result ptx_translate(const char *ptx, int checked, char **c, int *arch, char **log) {
    ptx_context context = {0};
    *c = *log = NULL;
    if (setjmp(context.leave) == 0) {
        ptx_text *out;
        context.log = ptx_text_new(&context);
        translate(&context, ptx, checked, &out, arch);
        *c = strdup(out->data);
        if (!*c)
            context.reason = PTX_NO_MEMORY;
    } else if (context.reason == PTX_UNSUPPORTED) {
        if (context.errors > 50)
            ptx_put(context.log, "and %d more\n", context.errors - 50);
        *log = strdup(context.log->data);
    }
    ptx_end(&context);
    return context.reason;
}
