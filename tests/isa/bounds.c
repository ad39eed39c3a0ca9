/* See bounds.h. Each operand has memory of its own that all calls share, because guarded pages are
   slow to map. */
#include "bits.h"
#include "bounds.h"

enum { PLACES = 18, CAPACITY = 1 << 18, ZONE = 128 };

static guard memory[BOUNDS_MOST];
static unsigned char seen[BOUNDS_TABLES][64];
static uint64_t all_results = BITS_BEGIN;

bounds_call bounds_of(const char *name, void (*run)(const dvti_simd *, void *const *, const void *),
                      const void *how) {
    bounds_call call;
    memset(&call, 0, sizeof call);
    call.name = name;
    call.run = run;
    call.how = how;
    return call;
}

bounds_operand *bounds_writes(bounds_call *call, dvt_dtype dtype, int64_t n, int64_t results) {
    bounds_operand *operand = &call->operand[call->operands++];
    operand->dtype = dtype;
    operand->n = n;
    operand->results = results;
    return operand;
}

bounds_operand *bounds_reads(bounds_call *call, dvt_dtype dtype, int64_t n) {
    return bounds_writes(call, dtype, n, -1);
}

static size_t bytes_of(const bounds_operand *operand) {
    return (size_t)(operand->n * dvt_dtype_size(operand->dtype));
}

/* Returns the address of operand k at one of the places. */
static char *place(const bounds_call *call, int k, int which) {
    const bounds_operand *operand = &call->operand[k];
    const size_t size = (size_t)dvt_dtype_size(operand->dtype), bytes = bytes_of(operand);
    const uintptr_t align = operand->align ? (uintptr_t)operand->align : size;
    char *at = (char *)guard_start(memory[k]);
    if (which == 0)
        at = (char *)guard_end(memory[k], bytes);
    if (which > 1)
        at += CAPACITY / 2 + size * (size_t)((which - 2) * (2 * k + 1) % 16);
    return at - ((uintptr_t)at & (align - 1));
}

/* Returns the accessible bytes around an operand. */
static void zone(int k, char *at, size_t bytes, char **from, char **to) {
    char *first = (char *)guard_start(memory[k]), *end = first + memory[k].bytes;
    *from = DVTI_MAX(first, at - DVTI_MIN((ptrdiff_t)ZONE, at - first));
    *to = at + bytes + DVTI_MIN((ptrdiff_t)ZONE, end - (at + bytes));
}

static void put(const bounds_operand *operand, int k, char *at, const char *values) {
    char *from, *to;
    zone(k, at, bytes_of(operand), &from, &to);
    memset(from, 0xa5, (size_t)(to - from));
    memcpy(at, values, bytes_of(operand));
}

static bool untouched(int k, char *at, size_t bytes) {
    static char clean[ZONE];
    char *from, *to;
    zone(k, at, bytes, &from, &to);
    memset(clean, 0xa5, sizeof clean);
    return memcmp(from, clean, (size_t)(at - from)) == 0 &&
           memcmp(at + bytes, clean, (size_t)(to - at) - bytes) == 0;
}

/* Returns the first of n elements that differs; -1: none. All NaN count as one. */
static int64_t differs(dvt_dtype dtype, int64_t n, const char *a, const char *b) {
    const int64_t size = dvt_dtype_size(dtype);
    int64_t i;
    if (memcmp(a, b, (size_t)(n * size)) == 0)
        return -1;
    for (i = 0; i < n; i++)
        if (memcmp(a + i * size, b + i * size, (size_t)size) != 0 &&
            !(dvt_dtype_is_float(dtype) && isnan(dvti_load_f64(a, dtype, i)) &&
              isnan(dvti_load_f64(b, dtype, i))))
            return i;
    return -1;
}

static void check_operand(const bounds_call *call, int k, char *at, const char *values,
                          char *results, bool first, const char *target, int which) {
    const bounds_operand *operand = &call->operand[k];
    const int64_t n = operand->results < 0 ? operand->n : operand->results;
    int64_t bad = -1;
    if (operand->results < 0)
        bad = differs(operand->dtype, n, at, values);
    else if (first) {
        memcpy(results, at, bytes_of(operand));
        all_results = bits_add(all_results, operand->dtype, n, at);
    } else
        bad = differs(operand->dtype, n, at, results);
    if (bad >= 0)
        dvt_test_check(false, __FILE__, __LINE__, "%s, %s, place %d: operand %d, element %d of %d",
                       target, call->name, which, k, (int)bad, (int)operand->n);
    if (!untouched(k, at, bytes_of(operand)))
        dvt_test_check(false, __FILE__, __LINE__,
                       "%s, %s, place %d: bytes around operand %d changed", target, call->name,
                       which, k);
}

/* Draws without dvt_test_random, whose numbers are the operands' on every machine. */
static int draw_pair(void) {
    static uint32_t state;
    state = state * 1664525u + 1013904223u;
    return (int)(state >> 29);
}

void bounds_check(const bounds_call *call) {
    static char values[BOUNDS_MOST][CAPACITY / 4], results[BOUNDS_MOST][CAPACITY / 4];
    static const dvti_simd *target[4];
    static int targets;
    void *at[BOUNDS_MOST];
    const bool sampled = EMULATED;
    const int pair = draw_pair();
    int k, which;
    int64_t i;
    for (k = 0; k < call->operands; k++) {
        const bounds_operand *operand = &call->operand[k];
        if (!memory[k].pages)
            memory[k] = guard_new(CAPACITY);
        if (!CHECK(bytes_of(operand) <= sizeof values[k]))
            return;
        if (operand->set)
            memcpy(values[k], operand->set, bytes_of(operand));
        for (i = 0; !operand->set && i < operand->n; i++)
            dvti_store_f64(values[k], operand->dtype, i, dvt_test_random(-4, 4));
    }
    if (!targets)
        targets = dvti_simd_targets(target); /* cpuid takes longer than a kernel */
    for (i = 0; i < PLACES * targets; i++) {
        which = (int)(i % PLACES);
        if (sampled && which > 1 && which % 8 != pair)
            continue;
        for (k = 0; k < call->operands; k++) {
            at[k] = place(call, k, which);
            put(&call->operand[k], k, (char *)at[k], values[k]);
        }
        call->run(target[i / PLACES], at, call->how);
        for (k = 0; k < call->operands; k++)
            check_operand(call, k, (char *)at[k], values[k], results[k], i == 0,
                          target[i / PLACES]->name, which);
    }
}

void bounds_seen(bounds_table table, size_t offset, size_t bytes) {
    const size_t word = sizeof(void *), end = (offset + bytes + word - 1) / word;
    size_t member;
    for (member = offset / word; member < end; member++)
        seen[table][member] = 1;
}

void bounds_report(const char *what) {
    bits_report(what, all_results);
    all_results = BITS_BEGIN;
}

/* Fails for a new kernel of a table that has no call here yet. */
static void check_table(bounds_table table, const char *name, size_t bytes) {
    size_t member;
    CHECK(bytes <= sizeof seen[table] * sizeof(void *));
    for (member = 0; member < bytes / sizeof(void *); member++)
        dvt_test_check(seen[table][member], __FILE__, __LINE__,
                       "member %d of %s is not run at the edge of memory", (int)member, name);
}

void bounds_all_seen(void) {
    int k;
    check_table(BOUNDS_SIMD, "dvti_simd", sizeof(dvti_simd));
    check_table(BOUNDS_GEMM, "dvti_simd_gemm", sizeof(dvti_simd_gemm));
    check_table(BOUNDS_CONV, "dvti_simd_conv", sizeof(dvti_simd_conv));
    check_table(BOUNDS_WINOGRAD, "dvti_simd_winograd", sizeof(dvti_simd_winograd));
    check_table(BOUNDS_F64, "dvti_simd_f64", sizeof(dvti_simd_f64));
    check_table(BOUNDS_REDUCE, "dvti_simd_reduce", sizeof(dvti_simd_reduce));
    check_table(BOUNDS_PRODUCTS, "dvti_simd_products", sizeof(dvti_simd_products));
    check_table(BOUNDS_RANDOM, "dvti_simd_random", sizeof(dvti_simd_random));
    check_table(BOUNDS_SOFTMAX, "dvti_simd_softmax", sizeof(dvti_simd_softmax));
    check_table(BOUNDS_POOL, "dvti_simd_pool", sizeof(dvti_simd_pool));
    check_table(BOUNDS_SCAN, "dvti_simd_scan", sizeof(dvti_simd_scan));
    check_table(BOUNDS_ORDER, "dvti_simd_order", sizeof(dvti_simd_order));
    check_table(BOUNDS_OPTIMIZER, "dvti_simd_optimizer", sizeof(dvti_simd_optimizer));
    for (k = 0; k < BOUNDS_MOST; k++)
        if (memory[k].pages)
            guard_free(memory[k]);
    memset(memory, 0, sizeof memory);
}
