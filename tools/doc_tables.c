/* Prints the tables of the documents: the statuses; the support of every operation of the op table
   for every dtype and kind of context; the error bounds of functions that the tests check. The
   support is not stored anywhere: the program calls each operation.
   usage: doc_tables errors | operations | summary | accuracy */
#define DEVTENSOR_NO_CALL_SITES /* keeps the names below those of the functions */
#include "devtensor.h"
#include "2_core/dvt_optimizer_table.h"
#include "2_core/dvt_reduce_table.h"
#include "2_core/dvt_op_table.h"
#include "tests/isa/math_rows.h"
#include <stdio.h>
#include <string.h>

/* ---- how to call each operation on small positive arrays ---- */
typedef struct sample {
    dvt_array *x, *y;     /* both (1, 1, 4, 4) of the dtype */
    dvt_array *small;     /* (1, 1, 2, 2) of the dtype: weights */
    dvt_array *condition; /* bool, like x */
    dvt_array *index;     /* int64 zeros, like x */
    dvt_dtype dtype;
    dvt_ctx ctx;
} sample;

typedef dvt_array *(*call)(const sample *s);

typedef struct row {
    const char *name; /* the source text of the call, from the function's name on */
    const char *doc, *gradient, *vector;
    call run;
} row;

static dvt_pool2d_options window(void) {
    dvt_pool2d_options p;
    memset(&p, 0, sizeof p);
    p.size[0] = 2;
    return p;
}

static dvt_array *call_dvt_concat(const sample *s) {
    dvt_array *both[2];
    both[0] = s->x;
    both[1] = s->y;
    return dvt_concat(both, 2, 0);
}

static dvt_array *call_dvt_max_pool2d(const sample *s) {
    dvt_pool2d_options p = window();
    return dvt_max_pool2d(s->x, &p);
}

static dvt_array *call_dvt_avg_pool2d(const sample *s) {
    dvt_pool2d_options p = window();
    return dvt_avg_pool2d(s->x, &p);
}

/* Returns NULL for integers. */
static dvt_array *call_dvt_batch_norm(const sample *s) {
    dvt_array *one = dvt_ones(DVT_SHAPE(1), s->dtype, s->ctx);
    return dvt_batch_norm(s->x, one, one, dvt_copy(one), dvt_copy(one), 1, 0.5, 1e-5);
}

/* Calls of the rows that are neither unary nor binary. Rows that only other operations launch have
   no call of their own. */
#define CALL_copy dvt_copy(s->x)
#define CALL_where dvt_where(s->condition, s->x, s->y)
#define CALL_clip dvt_clip(s->x, 0, 1)
#define CALL_reshape dvt_reshape(s->x, DVT_SHAPE(-1))
#define CALL_transpose dvt_transpose(s->x, DVT_AXES(3, 2, 1, 0))
#define CALL_slice dvt_slice(s->x, 2, 0, 2, 1)
#define CALL_unslice NULL
#define CALL_broadcast_to dvt_broadcast_to(s->x, DVT_SHAPE(2, 1, 4, 4))
#define CALL_cumsum dvt_cumsum(s->x, -1)
#define CALL_sort dvt_sort(s->x, -1, DVT_ASCENDING)
#define CALL_argsort dvt_argsort(s->x, -1, DVT_ASCENDING)
#define CALL_topk dvt_topk(s->x, 2, -1, DVT_LARGEST, NULL)
#define CALL_softmax dvt_softmax(s->x, -1)
#define CALL_log_softmax dvt_log_softmax(s->x, -1)
#define CALL_matmul dvt_matmul(s->x, s->y)
#define CALL_concat call_dvt_concat(s)
#define CALL_take dvt_take(s->x, s->index, 0)
#define CALL_take_add NULL
#define CALL_take_along dvt_take_along_axis(s->x, s->index, -1)
#define CALL_take_along_add NULL
#define CALL_one_hot dvt_one_hot(s->index, 3, s->dtype)
#define CALL_conv2d dvt_conv2d(s->x, s->small, NULL, NULL)
#define CALL_cross_entropy dvt_loss_softmax_cross_entropy(s->x, dvt_sum(s->index, DVT_AXES(-1)))
#define CALL_cross_entropy_data NULL
#define CALL_conv2d_data NULL
#define CALL_conv2d_weight NULL
#define CALL_max_pool2d call_dvt_max_pool2d(s)
#define CALL_max_pool2d_data NULL
#define CALL_max_pool2d_pick NULL
#define CALL_avg_pool2d call_dvt_avg_pool2d(s)
#define CALL_avg_pool2d_data NULL
#define CALL_uniform dvt_uniform(0, 1, DVT_SHAPE(2), s->dtype, s->ctx)
#define CALL_normal dvt_normal(0, 1, DVT_SHAPE(2), s->dtype, s->ctx)
#define CALL_randint dvt_randint(0, 2, DVT_SHAPE(2), s->dtype, s->ctx)
#define CALL_bernoulli dvt_bernoulli(0.5, DVT_SHAPE(2), s->dtype, s->ctx)
#define CALL_permutation NULL /* always int64 */
#define CALL_variance NULL    /* dvt_var */
#define CALL_layer_norm dvt_layer_norm(s->x, NULL, NULL, 1e-5)
#define CALL_layer_norm_data NULL
#define CALL_batch_norm call_dvt_batch_norm(s)
#define CALL_batch_norm_data NULL
#define CALL_fill dvt_full(DVT_SHAPE(2), 1, s->dtype, s->ctx)
#define CALL_arange dvt_arange(0, 2, 1, s->dtype, s->ctx)
#define CALL_eye dvt_eye(2, 2, 0, s->dtype, s->ctx)
#define CALL_custom NULL /* dvt_kernel_launch, dvt_kernel_apply */

/* Defines a function and a row for each operation. */
#define DEFINE_UNARY(name, rule, cost, f, i, vector, math, grad, reads, lo, hi, doc)               \
    static dvt_array *call_##name(const sample *s) {                                               \
        return dvt_##name(s->x);                                                                   \
    }
#define DEFINE_BINARY(name, rule, cost, f, i, vector, math, ga, reads_a, gb, reads_b, la, ha, lb,  \
                      hb, doc)                                                                     \
    static dvt_array *call_##name(const sample *s) {                                               \
        return dvt_##name(s->x, s->y);                                                             \
    }
#define DEFINE_OTHER(name, ...)                                                                    \
    static dvt_array *call_##name(const sample *s) {                                               \
        (void)s;                                                                                   \
        return CALL_##name;                                                                        \
    }
DVTI_UNARY_TABLE(DEFINE_UNARY)
DVTI_BINARY_TABLE(DEFINE_BINARY)
DVTI_SPECIAL_TABLE(DEFINE_OTHER)
DVTI_OTHER_TABLE(DEFINE_OTHER)
/* Calls a reduction over all axes, or of positions along one. */
#define CALL_SUM(name) dvt_##name(s->x, DVT_ALL)
#define CALL_FLOAT(name) CALL_SUM(name)
#define CALL_SAME(name) CALL_SUM(name)
#define CALL_BOOL(name) CALL_SUM(name)
#define CALL_PLACE(name) dvt_##name(s->x, DVT_AXES(0))
#define DEFINE_REDUCE(name, rule, method, none, term, join, finish, reads, grad, lo, hi, doc)      \
    static dvt_array *call_##name(const sample *s) {                                               \
        return CALL_##rule(name);                                                                  \
    }
DVTI_REDUCE_TABLE(DEFINE_REDUCE)

#define ROW_UNARY(name, rule, cost, f, i, vector, math, grad, reads, lo, hi, doc)                  \
    {"dvt_" #name, doc, #grad, #vector, call_##name},
#define ROW_BINARY(name, rule, cost, f, i, vector, math, ga, reads_a, gb, reads_b, la, ha, lb, hb, \
                   doc)                                                                            \
    {"dvt_" #name, doc, #ga, #vector, call_##name},
#define TEXT(...) TEXT_(__VA_ARGS__)
#define TEXT_(...) #__VA_ARGS__
#define ROW_SPECIAL(name, operands, rule, cost, f, i, vector, reads, doc)                          \
    {TEXT(CALL_##name), doc, "", #vector, call_##name},
#define ROW_OTHER(name, family, reads, doc) {TEXT(CALL_##name), doc, "", "", call_##name},
#define ROW_REDUCE(name, rule, method, none, term, join, finish, reads, grad, lo, hi, doc)         \
    {"dvt_" #name, doc, "", "", call_##name},
static const row rows[] = {DVTI_UNARY_TABLE(ROW_UNARY) DVTI_BINARY_TABLE(ROW_BINARY)
                               DVTI_SPECIAL_TABLE(ROW_SPECIAL) DVTI_OTHER_TABLE(ROW_OTHER)
                                   DVTI_REDUCE_TABLE(ROW_REDUCE)};

enum { ROWS = sizeof rows / sizeof rows[0] };

/* ---- calling each operation ---- */
typedef struct answer {
    int made
        [DVT_DTYPE_COUNT]; /* the dtype of the result for each dtype of the input; -1: refused */
    int devices;           /* bit 0: cpu(), bit 1: a virtual GPU */
    int gradient;          /* 0: none, 1: zero everywhere, 2: yes */
} answer;

static sample sample_of(dvt_dtype dtype, dvt_ctx ctx) {
    dvt_shape shape = DVT_SHAPE(1, 1, 4, 4);
    sample s;
    s.x = dvt_ones(shape, dtype, ctx);
    s.y = dvt_ones(shape, dtype, ctx);
    s.small = dvt_ones(DVT_SHAPE(1, 1, 2, 2), dtype, ctx);
    s.condition = dvt_ones(shape, DVT_BOOL, ctx);
    s.index = dvt_zeros(shape, DVT_I64, ctx);
    s.dtype = dtype;
    s.ctx = ctx;
    return s;
}

static int gradient_of(const row *r) {
    int has = 0;
    if (strcmp(r->gradient, "0") == 0)
        return 0;
    DVT_SCOPE {
        sample s = sample_of(DVT_F64, dvt_cpu());
        dvt_array *y = NULL;
        dvt_attach_grad(s.x, DVT_GRAD_WRITE);
        DVT_RECORD {
            y = r->run(&s);
        }
        has = dvt_has_history(y) && dvt_backward(y) == DVT_OK;
    }
    dvt_clear_error();
    return !has ? 0 : strstr(r->gradient, "no_gradient") ? 1 : 2;
}

static answer ask(const row *r) {
    answer a;
    int device, dtype;
    memset(&a, 0, sizeof a);
    for (device = 0; device < 2; device++)
        for (dtype = 0; dtype < DVT_DTYPE_COUNT; dtype++)
            DVT_SCOPE {
                sample s = sample_of((dvt_dtype)dtype, device ? dvt_gpu(0) : dvt_cpu());
                dvt_array *y = r->run(&s);
                if (y && dvt_wait(y) == DVT_OK)
                    a.devices |= 1 << device;
                if (!device)
                    a.made[dtype] = y ? (int)dvt_dtype_of(y) : -1;
                dvt_clear_error();
            }
    a.gradient = gradient_of(r);
    return a;
}

/* ---- Markdown ---- */
static const int floats[] = {DVT_F32, DVT_F64, DVT_F16, DVT_BF16};
static const int integers[] = {DVT_I8, DVT_U8, DVT_I32, DVT_I64};
static const int booleans[] = {DVT_BOOL};

/* Returns the result dtypes of a group: one word if the group agrees, else each dtype by name. */
static const char *cell(const answer *a, const int *group, int n, char *text) {
    int i, same = 1, equal = 1, none = 1;
    for (i = 0; i < n; i++) {
        same &= a->made[group[i]] == group[i];
        equal &= a->made[group[i]] == a->made[group[0]];
        none &= a->made[group[i]] < 0;
    }
    text[0] = 0;
    if (none)
        return strcpy(text, "–");
    if (same)
        return strcpy(text, "same");
    if (equal)
        return strcpy(text, dvt_dtype_name((dvt_dtype)a->made[group[0]]));
    for (i = 0; i < n; i++)
        if (a->made[group[i]] >= 0)
            sprintf(text + strlen(text), "%s%s → %s", text[0] ? ", " : "",
                    dvt_dtype_name((dvt_dtype)group[i]),
                    dvt_dtype_name((dvt_dtype)a->made[group[i]]));
    return text;
}

/* Returns whether an ISA target computes it with vectors. */
static const char *vectors_of(const row *r) {
    return strcmp(r->vector, "DVTI_NO_VECTOR") == 0 ? "none" : r->vector[0] ? "yes" : "–";
}

static void describe(const answer *a, char *text) {
    static const char *const gradients[] = {"–", "zero", "yes"};
    char part[3][200];
    sprintf(text, "%s | %s | %s | %s | %s | %s |", cell(a, floats, 4, part[0]),
            cell(a, integers, 4, part[1]), cell(a, booleans, 1, part[2]), gradients[a->gradient],
            a->devices & 1 ? "yes" : "–", a->devices & 2 ? "yes" : "–");
}

/* Returns "exp" for "dvt_exp", "full" for "dvt_full(...)", "concat" for "call_dvt_concat(s)". */
static const char *public_name(const row *r) {
    static char name[64];
    const char *begin = strstr(r->name, "dvt_") + 4;
    size_t n = strcspn(begin, "(");
    sprintf(name, "%.*s", (int)n, begin);
    return name;
}

static int public_row(const answer *a) {
    return a->devices != 0;
}

static void print_operations(void) {
    char text[800];
    int i;
    puts("| operation | result | vectors | floats | integers | bool | gradient | `cpu(i)` | "
         "`gpu(i)`, virtual |\n|---|---|---|---|---|---|---|---|---|");
    for (i = 0; i < ROWS; i++) {
        answer a = ask(&rows[i]);
        const char *c;
        if (!public_row(&a))
            continue;
        describe(&a, text);
        printf("| `%s` | ", public_name(&rows[i]));
        for (c = rows[i].doc; *c; c++)
            printf(*c == '|' || *c == '*' || *c == '_' ? "\\%c" : "%c", *c);
        printf(" | %s | %s\n", vectors_of(&rows[i]), text);
    }
}

/* Prints one line for all operations with the same answers. */
static void print_summary(void) {
    static char texts[ROWS][800];
    int i, k;
    for (i = 0; i < ROWS; i++) {
        answer a = ask(&rows[i]);
        if (public_row(&a))
            describe(&a, texts[i]);
    }
    puts("| operations | floats | integers | bool | gradient | `cpu(i)` | `gpu(i)`, virtual "
         "|\n|---|---|---|---|---|---|---|");
    for (i = 0; i < ROWS; i++) {
        char text[800];
        if (!texts[i][0])
            continue;
        strcpy(text, texts[i]);
        printf("| ");
        for (k = i; k < ROWS; k++)
            if (strcmp(texts[k], text) == 0) {
                printf("%s`%s`", k > i ? " " : "", public_name(&rows[k]));
                texts[k][0] = 0;
            }
        printf(" | %s\n", text);
    }
}

static void print_errors(void) {
    puts("| code | number | meaning | usual fix |\n|---|---|---|---|");
#define PRINT_STATUS(name, number, meaning, fix)                                                   \
    printf("| `%s` | %d | %s | %s |\n", dvt_status_name(DVT_ERR_##name), number, meaning, fix);
    DVT_STATUS_TABLE(PRINT_STATUS)
#undef PRINT_STATUS
}

/* Leaves out the 0.001 ulp that tests add for the error of their own expected value. */
static void print_accuracy(void) {
    static const struct {
        const char *name;
        double float32, float64;
    } functions[] = {

#define BOUND(name, exact, bound) {#name, bound, 0},
#define BOUND64(name, exact, bound) {#name, 0, bound},
        MATH_TABLE(BOUND) MATH2_TABLE(BOUND) MATH64_TABLE(BOUND64) MATH64_2_TABLE(BOUND64)
#undef BOUND
#undef BOUND64
    };

    int n = (int)(sizeof functions / sizeof functions[0]), i, k;
    puts("| function | float32 | float64 |\n|---|---|---|");
    for (i = 0; i < n / 2; i++)
        for (k = n / 2; k < n; k++)
            if (strcmp(functions[i].name, functions[k].name) == 0)
                printf("| `%s` | %.3g | %.3g |\n", functions[i].name,
                       floor(functions[i].float32 * 100) / 100,
                       floor(functions[k].float64 * 100) / 100);
}

int main(int argc, char **argv) {
    const char *what = argc > 1 ? argv[1] : "";
    dvt_set_log_level(DVT_LOG_OFF);
    dvt_set_virtual_gpus(1, 0);
    if (strcmp(what, "errors") == 0)
        print_errors();
    else if (strcmp(what, "operations") == 0)
        print_operations();
    else if (strcmp(what, "summary") == 0)
        print_summary();
    else if (strcmp(what, "accuracy") == 0)
        print_accuracy();
    else
        return 2;
    return 0;
}
