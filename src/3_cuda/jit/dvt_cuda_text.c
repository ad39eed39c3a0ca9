/* The text of programs: args.h, base.cu, the definitions of a variant, the functions that it needs, a family's file. */
#include "3_cuda/dvt_cuda.h"

/* Lines; each file begins with its #line. */
static const char *const dvti_cuda_lines[] = {
#include "devtensor_kernels.cu.inc"
};

#define DVTI_CUDA_FAMILY_FILE(name, fuse) #name ".cu",
static const char *const dvti_cuda_files[] = {DVTI_CUDA_FAMILY_TABLE(DVTI_CUDA_FAMILY_FILE)};
#undef DVTI_CUDA_FAMILY_FILE

DVTI_FN const char *dvti_cuda_function_text(dvti_op op, const char **files) {
    switch ((int)op) {
#define DVTI_CUDA_FUNCTION1(name, needs)                                                           \
    case DVTI_OP_##name:                                                                           \
        *files = needs;                                                                            \
        return "dvti_card_" #name "(x)";
#define DVTI_CUDA_FUNCTION2(name, needs)                                                           \
    case DVTI_OP_##name:                                                                           \
        *files = needs;                                                                            \
        return "dvti_card_" #name "(a, b)";
        DVTI_FUNCTIONS1(DVTI_CUDA_FUNCTION1)
        DVTI_FUNCTIONS2(DVTI_CUDA_FUNCTION2)
#undef DVTI_CUDA_FUNCTION1
#undef DVTI_CUDA_FUNCTION2
    default:
        return NULL;
    }
}

DVTI_FN const char *dvti_cuda_op_text(dvti_op op, bool integer) {
#define DVTI_CUDA_TEXT_UNARY(name, rule, f, i, grad, lo, hi, doc) {#f, #i},
#define DVTI_CUDA_TEXT_BINARY(name, rule, f, i, ga, gb, la, ha, lb, hb, doc) {#f, #i},
    /* in the order of dvti_op */
    static const char *const text[][2] = {DVTI_UNARY_TABLE(DVTI_CUDA_TEXT_UNARY)
                                              DVTI_BINARY_TABLE(DVTI_CUDA_TEXT_BINARY)};
#undef DVTI_CUDA_TEXT_UNARY
#undef DVTI_CUDA_TEXT_BINARY
    return (int)op < DVTI_LENGTH(text) ? text[op][integer] : NULL;
}

static void dvti_cuda_add_file(dvti_text *text, const char *name) {
    char marker[64];
    size_t length = (size_t)snprintf(marker, sizeof marker, "#line 1 \"%s\"\n", name);
    int i = 0;
    while (dvti_cuda_lines[i] && strncmp(dvti_cuda_lines[i], marker, length) != 0)
        i++;
    for (; dvti_cuda_lines[i]; i++) {
        if (strncmp(dvti_cuda_lines[i], "#line 1 ", 8) == 0 &&
            strncmp(dvti_cuda_lines[i], marker, length) != 0)
            break;
        dvti_text_add(text, "%s", dvti_cuda_lines[i]);
    }
}

DVTI_FN void dvti_cuda_add_functions(dvti_text *text, const char *files) {
    char name[32];
    dvti_cuda_add_file(text, "words.cu");
    dvti_cuda_add_file(text, "basics.inl");
    while (*files) {
        size_t length = strcspn(files, " ");
        snprintf(name, sizeof name, "%.*s", (int)length, files);
        dvti_cuda_add_file(text, name);
        files += length + strspn(files + length, " ");
    }
    dvti_cuda_add_file(text, "words_end.cu");
}

DVTI_FN void dvti_cuda_add_exp_below(dvti_text *text, dvt_dtype dtype) {
    if (dtype == DVT_F64 || !dvt_dtype_is_float(dtype))
        return;
    dvti_cuda_add_functions(text, "exp.inl");
    dvti_cuda_add_file(text, "exp_below.cu");
}

static void dvti_cuda_write_source(dvti_cuda_program program, dvti_text *text) {
    static const char *const dtype[DVT_DTYPE_COUNT] = {"F32", "F64", "F16", "BF16", "I8",
                                                       "U8",  "I32", "I64", "BOOL"};
    int i;
    dvti_text_add(text, "#line 1 \"head\"\n"
                        "typedef long long int64_t;\n"
                        "typedef unsigned long long uint64_t;\n");
    for (i = 0; i < DVT_DTYPE_COUNT; i++)
        dvti_text_add(text, "#define DVT_%s %d\n", dtype[i], i);
    dvti_cuda_add_file(text, "args.h");
    dvti_cuda_add_file(text, "base.cu");
    dvti_text_add(text, "#line 1 \"variant\"\n");
    switch (program.family) {
#define DVTI_CUDA_DESCRIBE_CASE(name, fuse)                                                        \
    case DVTI_CUDA_FAMILY_##name:                                                                  \
        dvti_cuda_describe_##name(program.variant, text);                                          \
        break;
        DVTI_CUDA_FAMILY_TABLE(DVTI_CUDA_DESCRIBE_CASE)
#undef DVTI_CUDA_DESCRIBE_CASE
    case DVTI_CUDA_FAMILY_COUNT:
        break;
    }
    if (program.family == DVTI_CUDA_FAMILY_conv || program.family == DVTI_CUDA_FAMILY_conv_mma)
        dvti_cuda_add_file(text, "conv_patch.cu");
    dvti_cuda_add_file(text, dvti_cuda_files[program.family]);
}

DVTI_FN char *dvti_cuda_source(dvti_cuda_program program) {
    dvti_text text = dvti_text_begin(NULL, 0);
    char *source;
    dvti_cuda_write_source(program, &text);
    source = (char *)dvti_alloc(text.length + 1);
    if (source) {
        text = dvti_text_begin(source, text.length + 1);
        dvti_cuda_write_source(program, &text);
    }
    return source;
}
