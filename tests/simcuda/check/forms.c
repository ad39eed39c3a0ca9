/* Writes a module with one kernel per form, runs it over all operands, and compares. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "forms.h"

float f32_of(uint64_t bits) {
    uint32_t low = (uint32_t)bits;
    float x;
    memcpy(&x, &low, 4);
    return x;
}

double f64_of(uint64_t bits) {
    double x;
    memcpy(&x, &bits, 8);
    return x;
}

uint64_t bits_of_f32(float x) {
    uint32_t bits = 0x7fffffff;
    if (x == x)
        memcpy(&bits, &x, 4);
    return bits;
}

uint64_t bits_of_f64(double x) {
    uint64_t bits;
    memcpy(&bits, &x, 8);
    return bits;
}

static uint64_t cut(uint64_t value, unsigned width) {
    return width < 64 ? value & ((1ull << width) - 1) : value;
}

uint64_t integers(unsigned width, unsigned index, unsigned n) {
    static const int64_t corners[] = {0, 1, -1, 2, -2, 31, 32, 33, 7, 15, 16, 63, 64, 255, 256};

    enum { CORNERS = sizeof corners / sizeof *corners };

    uint64_t choice = check_random() % (CORNERS + 6);
    (void)index;
    (void)n;
    if (choice < CORNERS)
        return cut((uint64_t)corners[choice], width);
    if (choice == CORNERS)
        return 1ull << (width - 1); /* the smallest signed number */
    if (choice == CORNERS + 1)
        return (1ull << (width - 1)) - 1;
    if (choice == CORNERS + 2)
        return cut(check_random() >> (check_random() % 64), width);
    return cut(check_random(), width);
}

static uint64_t float_corner(unsigned width, uint64_t choice) {
    static const uint32_t corners32[] = {
        0x00000000, 0x80000000, 0x00000001, 0x807fffff, 0x00800000, 0x3f800000, 0xbf800000,
        0x7f800000, 0xff800000, 0x7fc00000, 0x7f7fffff, 0xff7fffff, 0x3f000000, 0x3fc00000,
        0x40200000, 0x4effffff, 0x4f000000, 0xcf000000, 0x5f000000, 0x477fe000, 0x477ff000,
        0x33800000, 0x33000000, 0x33000001, 0x38800000, 0x387fffff, 0x3f7fffff, 0x3f800001};
    static const uint16_t corners16[] = {0x0000, 0x8000, 0x0001, 0x83ff, 0x0400, 0x3c00, 0xbc00,
                                         0x7c00, 0xfc00, 0x7e00, 0x7bff, 0xfbff, 0x3800, 0x3e00};
    if (width == 16)
        return corners16[choice % (sizeof corners16 / sizeof *corners16)];
    uint32_t bits = corners32[choice % (sizeof corners32 / sizeof *corners32)];
    if (width == 32)
        return bits;
    if (choice % 3)
        return bits_of_f64((double)f32_of(bits));
    return (uint64_t)(bits & 0xff800000) << 32 | (choice & 1); /* special values of double itself */
}

uint64_t floats(unsigned width, unsigned index, unsigned n) {
    uint64_t choice = check_random();
    (void)index;
    (void)n;
    switch (choice % 4) {
    case 0:
        return float_corner(width, choice >> 8);
    case 1: /* any pattern, including NaN */
        return cut(check_random(), width);
    case 2: { /* small numbers with few bits: sums are exact or ties */
        double x = (double)((int64_t)(check_random() % 4096) - 2048) / 8;
        return width == 64   ? bits_of_f64(x)
               : width == 32 ? bits_of_f32((float)x)
                             : cut(0x3c00 + check_random() % 0x1000, 16);
    }
    default: { /* close to one, with all bits */
        double x = ldexp((double)(check_random() >> 11), (int)(check_random() % 20) - 60);
        x = choice & 256 ? -x : x;
        return width == 64   ? bits_of_f64(x)
               : width == 32 ? bits_of_f32((float)x)
                             : cut(check_random(), 16);
    }
    }
}

/* ---- the module ---- */

enum { CONSTANTS = 4 }; /* values of a constant */

/* A form with its constants, if any. */
typedef struct instance {
    const form *form;
    uint64_t constant[3];
    char mark[3]; /* '$', '#' or 0: in memory */
} instance;

static void find_constants(instance *it) {
    for (const char *at = it->form->code; (at = strpbrk(at, "$#")); at++)
        if (at[1] >= 'a' && at[1] <= 'c')
            it->mark[at[1] - 'a'] = at[0];
}

static int has_constants(const instance *it) {
    return it->mark[0] || it->mark[1] || it->mark[2];
}

/* Creates one instance of each form, or several when it has constants. */
static instance *make_instances(const form *forms, size_t *count) {
    instance *all = calloc(*count * CONSTANTS, sizeof *all);
    size_t n = 0;
    if (!all)
        abort();
    for (size_t i = 0; i < *count; i++) {
        const unsigned char widths[] = {forms[i].a, forms[i].b, forms[i].c};
        instance first = {.form = &forms[i]};
        find_constants(&first);
        for (unsigned k = 0; k < (has_constants(&first) ? CONSTANTS : 1); k++) {
            for (unsigned j = 0; j < 3; j++)
                first.constant[j] = first.mark[j] == '#' ? floats(widths[j], j, k)
                                    : first.mark[j]      ? integers(widths[j], j, k)
                                                         : 0;
            all[n++] = first;
        }
    }
    *count = n;
    return all;
}

static void put_constant(FILE *out, char mark, unsigned width, uint64_t value) {
    int64_t extended = (int64_t)(value << (64 - width)) >> (64 - width);
    if (mark == '$')
        fprintf(out, "%lld", (long long)extended);
    else
        fprintf(out, width == 64 ? "0d%016llX" : "0f%08llX", (unsigned long long)value);
}

static void put_code(FILE *out, const instance *it) {
    const unsigned char widths[] = {it->form->a, it->form->b, it->form->c};
    for (const char *at = it->form->code; *at; at++)
        if ((*at == '$' || *at == '#') && at[1] >= 'a' && at[1] <= 'c') {
            int i = *++at - 'a';
            put_constant(out, it->mark[i], widths[i], it->constant[i]);
        } else {
            fputc(*at, out);
        }
}

static const char *load_of(unsigned width) {
    return width == 8 ? "u8" : width == 16 ? "b16" : width == 32 ? "b32" : "b64";
}

static void put_kernel(FILE *out, const instance *it, size_t number) {
    static const char names[] = "abcde";
    const form *f = it->form;
    const unsigned char widths[] = {f->a, f->b, f->c, f->d, f->e};
    fprintf(out, ".visible .entry form%zu(.param .u64 in, .param .u64 out)\n{\n", number);
    fprintf(out, ".reg .pred %%p, %%q;\n.reg .b64 %%in, %%out;\n");
    for (int i = 0; i < 5; i++)
        if (widths[i])
            fprintf(out, ".reg .b%d %%%c;\n", widths[i] == 8 ? 16 : widths[i], names[i]);
    fprintf(out, ".reg .b32 %%i;\n.reg .b32 %%t<4>;\n.reg .b16 %%h<4>;\n.reg .b64 %%w<4>;\n");
    fprintf(out, "ld.param.u64 %%in, [in];\nld.param.u64 %%out, [out];\nmov.u32 %%i, %%tid.x;\n");
    fprintf(out, "mad.wide.u32 %%in, %%i, 32, %%in;\nmad.wide.u32 %%out, %%i, 16, %%out;\n");
    for (int i = 0; i < 3; i++)
        if (widths[i] && !it->mark[i])
            fprintf(out, "ld.global.%s %%%c, [%%in+%d];\n", load_of(widths[i]), names[i], 8 * i);
    put_code(out, it);
    fputc('\n', out);
    for (int i = 3; i < 5; i++)
        if (widths[i])
            fprintf(out, "st.global.%s [%%out+%d], %%%c;\n", load_of(widths[i]), 8 * (i - 3),
                    names[i]);
    fprintf(out, "ret;\n}\n");
}

static char *write_module(const char *target, const instance *all, size_t count) {
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    if (!out)
        abort();
    fprintf(out, ".version 9.0\n.target %s\n.address_size 64\n", target);
    for (size_t i = 0; i < count; i++)
        put_kernel(out, &all[i], i);
    fclose(out);
    return text;
}

/* ---- running and comparing ---- */

static int agrees(const form *f, uint64_t got, uint64_t expected) {
    return f->close ? f->close(got, expected) : got == expected;
}

static void check_instance(exec *e, const instance *it, size_t number, uint64_t (*in)[4],
                           const uint64_t *params, uint64_t (*out)[2], unsigned n) {
    const form *f = it->form;
    char name[32];
    snprintf(name, sizeof name, "form%zu", number);
    memset(out, 0, n * sizeof *out);
    const char *problem = exec_run(e, name, (exec_launch){.grid = 1, .block = n}, params);
    if (!check_that(!problem, "%s: %s", f->code, problem ? problem : ""))
        return;
    for (unsigned i = 0; i < n; i++) {
        uint64_t second = 0;
        uint64_t a = cut(in[i][0], f->a), b = cut(in[i][1], f->b), c = cut(in[i][2], f->c);
        uint64_t expected = cut(f->expected(a, b, c, &second), f->d);
        second = cut(second, f->e);
        if (agrees(f, out[i][0], expected) && (!f->e || out[i][1] == second))
            continue;
        check_that(0, "%s: a %llx b %llx c %llx gave %llx %llx, expected %llx %llx", f->code,
                   (unsigned long long)a, (unsigned long long)b, (unsigned long long)c,
                   (unsigned long long)out[i][0], (unsigned long long)out[i][1],
                   (unsigned long long)expected, (unsigned long long)second);
        return;
    }
    exec_counts(e, name);
    check_that(1, "%s", f->code);
}

static void draw_operands(const instance *it, operand_source *source, uint64_t (*in)[4],
                          unsigned n) {
    const unsigned char widths[] = {it->form->a, it->form->b, it->form->c};
    for (unsigned k = 0; k < n; k++)
        for (unsigned j = 0; j < 3; j++)
            in[k][j] = it->mark[j] ? it->constant[j] : widths[j] ? source(widths[j], j, k) : 0;
}

void check_forms(const char *target, const form *forms, size_t count, operand_source *source,
                 unsigned n) {
    instance *all = make_instances(forms, &count);
    char *text = write_module(target, all, count);
    exec *e = exec_unit(text);
    free(text);
    uint64_t(*in)[4] = exec_buffer(n * sizeof *in);
    uint64_t(*out)[2] = exec_buffer(n * sizeof *out);
    uint64_t params[2] = {(uint64_t)(uintptr_t)in, (uint64_t)(uintptr_t)out};
    for (size_t i = 0; e && i < count; i++) {
        draw_operands(&all[i], source, in, n);
        check_instance(e, &all[i], i, in, params, out, n);
    }
    exec_close(e);
    exec_forget();
    free(all);
}
