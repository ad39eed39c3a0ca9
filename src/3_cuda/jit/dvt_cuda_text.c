/* The source of programs: args.h, base.cu, the definitions of a variant, the functions that it
   needs, the family's file. */
#include "3_cuda/dvt_cuda.h"

#include "devtensor_kernels.cu.inc"

typedef struct dvti_cuda_row {
    const char *f, *i;           /* expressions of the op table */
    const char *function, *math; /* float32: our own function, and its files; NULL: f is used */
} dvti_cuda_row;

/* Returns NULL if the operation is not elementwise. */
static const dvti_cuda_row *dvti_cuda_row_of(dvti_op op) {
    /* in the order of dvti_op */
    static const dvti_cuda_row rows[] = {
#define DVTI_UNARY(name, rule, cost, f, i, vector, math, ...)                                      \
    {#f, #i, "dvti_gpu_" #name "(x)", math},
#define DVTI_BINARY(name, rule, cost, f, i, vector, math, ...)                                     \
    {#f, #i, "dvti_gpu_" #name "(a, b)", math},
#define DVTI_SPECIAL(name, operands, rule, cost, f, i, ...) {#f, #i, NULL, NULL},
        DVTI_UNARY_TABLE(DVTI_UNARY) DVTI_BINARY_TABLE(DVTI_BINARY) DVTI_SPECIAL_TABLE(DVTI_SPECIAL)
#undef DVTI_UNARY
#undef DVTI_BINARY
#undef DVTI_SPECIAL
    };

    return (int)op < DVTI_LENGTH(rows) ? &rows[op] : NULL;
}

DVTI_FN const char *dvti_cuda_function_text(dvti_op op, const char **files) {
    const dvti_cuda_row *row = dvti_cuda_row_of(op);
    if (!row || !row->math)
        return NULL;
    *files = row->math;
    return row->function;
}

DVTI_FN const char *dvti_cuda_op_text(dvti_op op, bool integer) {
    const dvti_cuda_row *row = dvti_cuda_row_of(op);
    return !row ? NULL : integer ? row->i : row->f;
}

/* Adds the strings from `part` on, up to an empty one. */
static void dvti_cuda_add_parts(dvti_text *text, const char *part) {
    for (; *part; part += strlen(part) + 1)
        dvti_text_add(text, "%s", part);
}

#define DVTI_CUDA_ADD(text, file) dvti_cuda_add_parts(text, (const char *)&dvti_cuda_text_##file)

/* Adds a file of 2_core/math by its name. */
static void dvti_cuda_add_math(dvti_text *text, const char *name, size_t length) {
    char line[64];
    int i;
    snprintf(line, sizeof line, "#line 1 \"%.*s\"\n", (int)length, name);
    for (i = 0; dvti_cuda_math_texts[i]; i++)
        if (strncmp(dvti_cuda_math_texts[i], line, strlen(line)) == 0)
            dvti_cuda_add_parts(text, dvti_cuda_math_texts[i]);
}

DVTI_FN void dvti_cuda_add_row_functions(dvti_text *text) {
    dvti_text_add(text, "#define DVTI_ROW_FN __device__ inline\n");
    DVTI_CUDA_ADD(text, row_functions_inl);
}

DVTI_FN void dvti_cuda_add_functions(dvti_text *text, const char *files) {
    DVTI_CUDA_ADD(text, primitives_cu);
    DVTI_CUDA_ADD(text, basics_inl);
    while (*files) {
        size_t length = strcspn(files, " ");
        dvti_cuda_add_math(text, files, length);
        files += length + strspn(files + length, " ");
    }
    DVTI_CUDA_ADD(text, primitives_end_cu);
}

DVTI_FN void dvti_cuda_add_exp_below(dvti_text *text, dvt_dtype dtype) {
    if (dtype == DVT_F64 || !dvt_dtype_is_float(dtype))
        return;
    dvti_cuda_add_functions(text, "exp.inl");
    DVTI_CUDA_ADD(text, exp_below_cu);
}

DVTI_FN void dvti_cuda_add_conv_patch(dvti_text *text) {
    DVTI_CUDA_ADD(text, conv_patch_cu);
}

DVTI_FN void dvti_cuda_add_matmul_jobs(dvti_text *text) {
    DVTI_CUDA_ADD(text, matmul_jobs_cu);
}

DVTI_FN void dvti_cuda_add_matmul_tiles(dvti_text *text) {
    dvti_cuda_add_matmul_jobs(text);
    DVTI_CUDA_ADD(text, matmul_tiles_cu);
}

DVTI_FN void dvti_cuda_add_matmul_pack(dvti_text *text) {
    DVTI_CUDA_ADD(text, matmul_pack_cu);
}

/* A family's function is the only reference to its text. */
#define DVTI_CUDA_WRITE(name, fuse)                                                                \
    DVTI_FN void dvti_cuda_write_##name(uint64_t variant, dvti_text *text) {                       \
        dvti_cuda_describe_##name(variant, text);                                                  \
        DVTI_CUDA_ADD(text, name##_cu);                                                            \
    }
DVTI_CUDA_FAMILY_TABLE(DVTI_CUDA_WRITE)
#undef DVTI_CUDA_WRITE

static void dvti_cuda_write_source(dvti_cuda_program program, dvti_text *text) {
    static const char *const dtype[DVT_DTYPE_COUNT] = {"F32", "F64", "F16", "BF16", "I8",
                                                       "U8",  "I32", "I64", "BOOL"};
    int i;
    dvti_text_add(text, "#line 1 \"head\"\n"
                        "typedef long long int64_t;\n"
                        "typedef unsigned long long uint64_t;\n");
    for (i = 0; i < DVT_DTYPE_COUNT; i++)
        dvti_text_add(text, "#define DVT_%s %d\n", dtype[i], i);
    DVTI_CUDA_ADD(text, args_h);
    DVTI_CUDA_ADD(text, base_cu);
    dvti_text_add(text, "#line 1 \"variant\"\n");
    program.write(program.variant, text);
}

DVTI_FN char *dvti_cuda_source(dvti_cuda_program program) {
    dvti_text text = dvti_text_begin(NULL, 0);
    char *source;
    if (program.source)
        return dvti_strdup(program.source);
    dvti_cuda_write_source(program, &text);
    source = (char *)dvti_alloc(text.length + 1);
    if (source) {
        text = dvti_text_begin(source, text.length + 1);
        dvti_cuda_write_source(program, &text);
    }
    return source;
}
