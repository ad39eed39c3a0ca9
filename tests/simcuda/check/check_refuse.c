/* PTX that the translator does not support must give an error that names instruction, function and
   line, never wrong code. Also malformed text. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../ptx/ptx_translate.h"
#include "check.h"
#include "expect.h"
#include "kernels.h"

static const struct {
    const char *instruction, *why;
} refused[] = {
    {"wgmma.fence;", "the form"},
    {"wgmma.mma_async.sync.aligned.m64n8k16.f32.tf32.tf32 {%r0, %r1, %r2, %r3}, %w0, %w1, %q0, 1, "
     "1;",
     "the shape"},
    {"wgmma.mma_async.sync.aligned.m64n8k8.f32.tf32.tf32 {%r0, %r1, %r2, %r3}, %w0, %w1, %q0, 1, "
     "1, 0, 0;",
     "the shape"},
    {"setmaxnreg.inc.sync.aligned.u32 20;", "number of registers"},
    {"tex.2d.v4.f32.s32 {%r0, %r1, %r2, %r3}, [t, {%r4, %r5}];", "PTX line"},
    {"add.rn.f32.extra %r0, %r1, %r2;", "\".extra\" is not known"},
    {"add.sat.u32 %r0, %r1, %r2;", ".sat"},
    {"add.cc.u16 %h0, %h1, %h2;", "carry"},
    {"mul.u32 %r0, %r1, %r2;", "missing"},
    {"div.f16 %h0, %h1, %h2;", "the type"},
    {"add.rz.f16 %h0, %h1, %h2;", "directed rounding"},
    {"setp.foo.u32 %q0, %r0, %r1;", "the comparison"},
    {"setp.lt.b32 %q0, %r0, %r1;", "the comparison of this type"},
    {"setp.hi.f32 %q0, %r0, %r1;", "the comparison of this type"},
    {"cvt.s32.f32 %r0, %r1;", "rounding"},
    {"cvt.f16.f32 %h0, %r1;", "rounding"},
    {"shfl.up.b32 %r0, %r1, 1, 0;", "the form"},
    {"redux.sync.add.f32 %r0, %r1, -1;", "the form"},
    {"mma.sync.aligned.m16n8k64.row.col.s32.s4.s4.s32 {%r0}, {%r1}, {%r2}, {%r3};", "the shape"},
    {"mma.sync.aligned.m16n8k16.row.col.f32.f16.bf16.f32 {%r0, %r1, %r2, %r3}, {%r4, %r5, %r6, "
     "%r7}, {%r8, %r9}, {%r0, %r1, %r2, %r3};",
     "the types"},
    {"mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%r0, %r1, %r2}, {%r4, %r5, %r6, %r7}, "
     "{%r8, %r9}, {%r0, %r1, %r2, %r3};",
     "number of registers"},
    {"ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r0, %r1}, [%r2];", "number of registers"},
    {"atom.global.add.v2.f32 {%r0, %r1}, [%p0], {%r2, %r3};", "PTX line"},
    {"atom.global.and.u16 %h0, [%p0], %h1;", "the operation"},
    {"atom.global.min.f32 %r0, [%p0], %r1;", "the type"},
    {"cp.async.bulk.commit_group;", "the form"},
    {"cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%p0, {%r0, %r1}], [%r2];", "the form"},
    {"cp.async.ca.shared.global [%r0], [%p0], 12;", "the operands"},
    {"barrier.cluster.arrive.aligned;", "PTX line"},
    {"fence.proxy.alias;", "the scope"},
    {"mov.u32 %r0, %nothing;", "%nothing is not known"},
    {"mov.u32 %r0, undeclared;", "undeclared is not known"},
    {"ld.global.u32 %r0, [undeclared];", "not declared"},
    {"ld.param.u64 %w0, [p0+8];", "outside the parameter p0"},
    {"ld.global.u32 %r0, [p0];", "another state space"},
    {"ld.global.v2.u32 %r0, [%p0];", "length of the vector"},
    {"st.const.u32 [%p0], %r0;", "constant memory"},
    {"bra nowhere;", "nowhere is no label"},
    {"call missing;", "no function"},
    {"add.u32 %r0, %r1;", "number of operands"},
    {"mov.u32 5, %r0;", "no register"},
    {"@%nothing mov.u32 %r0, 1;", "the guard"},
    {"lop3.b32 %r0, %r1, %r2, %r3, %r4;", "the operands"},
    {"match.any.sync.b32 %r0|%q0, %r1, -1;", "predicate of match.any"},
    {"mbarrier.pending_count.b64 %r0, %w0;", "PTX line"},
    {"cvta.const.u32 %r0, %r1;", "the form"},
};

static char *refusal(const char *ptx) {
    char *c, *log;
    int arch;
    ptx_result result = ptx_translate(ptx, (ptx_mode){.checked = 1}, &c, &arch, &log);
    check_that(result == PTX_UNSUPPORTED && !c, "translated: %.200s", ptx);
    free(c);
    return log;
}

static void check_refusals(void) {
    for (size_t i = 0; i < COUNT(refused); i++) {
        char *ptx = NULL;
        size_t size;
        FILE *out = open_memstream(&ptx, &size);
        if (!out)
            abort();
        fprintf(out, "%s%s", HEAD("sm_90"), KERNEL("guilty", "\n\nHERE\n"));
        fclose(out);
        char *here = strstr(ptx, "HERE"), *text = NULL;
        int before = (int)(here - ptx), line = 1;
        for (char *s = ptx; s < here; s++)
            line += *s == '\n';
        if (asprintf(&text, "%.*s%s%s", before, ptx, refused[i].instruction, here + 4) < 0)
            abort();
        char *log = refusal(text), place[32];
        snprintf(place, sizeof place, "line %d", line);
        check_message(log, refused[i].why, refused[i].instruction);
        check_message(log, place, refused[i].instruction);
        check_message(log, "guilty", refused[i].instruction);
        free(log);
        free(text);
        free(ptx);
    }
}

static const struct {
    const char *ptx, *why;
} malformed[] = {
    {"", "without .target"},
    {".version 9.0\n.target compute_80\n", "a target"},
    {".target sm_80\n.address_size 32\n", "64-bit"},
    {".target sm_80\n.visible .entry k() {", "without an end"},
    {".target sm_80\n.visible .entry k( {}", "a declaration"},
    {".target sm_80\n.entry k() { add.u32 %r0 }", "expected"},
    {".target sm_80\n.entry k() { .reg .b32 %r; mov.u32 %r, 0f12; }", "too few digits"},
    {".target sm_80\n.entry k() { .reg .b32 %r; mov.u32 %r, 99999999999999999999; }", "a number"},
    {".target sm_80\n/"
     "* no end",
     "comment"},
    {".target sm_80\n.global .b32 x[2] = {1, 2, 3};", "too many"},
    {".target sm_80\n.global .b32 x[2][2] = {{1, 2}, {3, 4}};", "braces"},
    {".target sm_80\n.global .b8 x[2] = {0xff(y), 1};", "initializer"},
    {".target sm_80\n.global .u32 x = y;\n", "initializer y"},
    {".target sm_80\n.global .texref t;\n", "texref"},
    {".target sm_80\n.entry k() { ret; }\n.entry k() { ret; }", "twice"},
    {".target sm_80\n.extern .global .u32 x;\n.entry k() { .reg .b64 %r; mov.u64 %r, x; ret; }",
     "external"},
    {".target sm_80\n.file 1 \"unended", "string"},
    {".target sm_80\n.func f(.reg .b32 x) { ret; }", "registers"},
};

/* All errors are counted, and the log stays readable. */
static void check_many(void) {
    char *ptx = NULL;
    size_t size;
    FILE *out = open_memstream(&ptx, &size);
    if (!out)
        abort();
    fprintf(out, ".target sm_80\n.entry k() {\n");
    for (int i = 0; i < 70; i++)
        fprintf(out, "nonsense%d;\n", i);
    fprintf(out, "}\n");
    fclose(out);
    char *log = refusal(ptx);
    check_message(log, "nonsense49", "70 errors");
    check_message(log, "and 20 more", "70 errors");
    free(log);
    free(ptx);
}

int main(void) {
    check_refusals();
    check_many();
    for (size_t i = 0; i < COUNT(malformed); i++) {
        char *log = refusal(malformed[i].ptx);
        check_message(log, malformed[i].why, malformed[i].ptx);
        free(log);
    }
    return check_end();
}
