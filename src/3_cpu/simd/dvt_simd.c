/* Chooses the ISA target: from the processor, the operating system, the environment and the
   program. */
#include "3_cpu/simd/dvt_simd.h"

#if DVTI_AVX2
/* Returns which registers the operating system saves in a thread switch (XCR0). The caller has
   checked CPUID for xgetbv. */
static uint64_t dvti_saved_registers(void) {
#if defined(_MSC_VER) && !defined(__clang__)
    return _xgetbv(0);
#else
    uint32_t low, high;
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return (uint64_t)high << 32 | low;
#endif
}

static void dvti_x86_has(bool *avx2, bool *avx512) {
    const unsigned fma = 1u << 12, popcnt = 1u << 23, osxsave = 1u << 27, avx = 1u << 28,
                   f16c = 1u << 29;
    const unsigned has_avx2 = 1u << 5, f = 1u << 16, dq = 1u << 17, bw = 1u << 30, vl = 1u << 31;
    const uint64_t ymm = 0x6, zmm = 0xe6;
    unsigned one[4], seven[4], all = fma | popcnt | osxsave | avx | f16c;
    *avx2 = *avx512 = false;
    dvti_cpuid(1, 0, one);
    dvti_cpuid(7, 0, seven);
    if ((one[2] & all) != all || !(seven[1] & has_avx2))
        return;
    *avx2 = (dvti_saved_registers() & ymm) == ymm;
    all = f | dq | bw | vl;
    *avx512 = *avx2 && (seven[1] & all) == all && (dvti_saved_registers() & zmm) == zmm;
}
#endif

#if DVTI_PLAIN
/* Returns whether the target runs. Every 64-bit ARM has NEON; Linux tells whether its registers may
   be used. */
static bool dvti_plain_runs(void) {
#if defined(DVTI_NEON) && DVTI_LINUX && defined(HWCAP_ASIMD)
    return (getauxval(AT_HWCAP) & HWCAP_ASIMD) != 0;
#else
    return true;
#endif
}
#endif

DVTI_FN int dvti_simd_targets(const dvti_simd *target[4]) {
    int n = 0;
    (void)target;
#if DVTI_AVX2
    bool avx2, avx512;
    dvti_x86_has(&avx2, &avx512);
    (void)avx512;
#if DVTI_AVX512
    if (avx512)
        target[n++] = dvti_simd_avx512();
#endif
    if (avx2)
        target[n++] = dvti_simd_avx2();
#endif
#if DVTI_PLAIN
    if (dvti_plain_runs())
        target[n++] = dvti_simd_plain();
#endif
    return n;
}

/* The name that selects the reference. */
static const char dvti_isa_reference[] = "reference";

/* Finds an ISA target by name; "" is the best one. Returns false if this machine or build has none
   of that name. */
static bool dvti_simd_find(const char *name, const dvti_simd **out) {
    const dvti_simd *target[4];
    int n = dvti_simd_targets(target), i;
    *out = n ? target[0] : NULL;
    if (!*name)
        return true;
    for (i = 0; i < n; i++)
        if (strcmp(target[i]->name, name) == 0) {
            *out = target[i];
            return true;
        }
    if (strcmp(name, dvti_isa_reference) != 0)
        return false;
    *out = NULL;
    return true;
}

static void dvti_simd_names(char *buffer, size_t size) {
    const dvti_simd *target[4];
    int n = dvti_simd_targets(target), i;
    dvti_text text = dvti_text_begin(buffer, size);
    for (i = 0; i < n; i++)
        dvti_text_add(&text, "%s, ", target[i]->name);
    dvti_text_add(&text, "%s", dvti_isa_reference);
}

/* The choice: 0 before the first use, then a pointer, or 1 for the reference. Threads that race for
   the first choice make the same one. */
static dvti_atomic dvti_simd_choice;

static void dvti_simd_choose(const dvti_simd *target) {
    dvti_atomic_store(&dvti_simd_choice, target ? (int64_t)(intptr_t)target : 1);
}

#if DVTI_AVX2 || DVTI_PLAIN
static const dvti_simd *dvti_simd_first(void) {
    const char *name = dvti_env("DEVTENSOR_ISA");
    const dvti_simd *target;
    char names[DVTI_NAME_SIZE];
    if (!dvti_simd_find(name ? name : "", &target)) {
        dvti_simd_names(names, sizeof names);
        dvti_log(DVT_LOG_WARNING, "DEVTENSOR_ISA is \"%s\"; expected one of %s; using the best",
                 name, names);
        dvti_simd_find("", &target);
    }
    dvti_simd_choose(target);
    return target;
}

DVTI_FN const dvti_simd *dvti_simd_now(void) {
    int64_t choice = dvti_atomic_load(&dvti_simd_choice);
    if (!choice)
        return dvti_simd_first();
    return choice == 1 ? NULL : (const dvti_simd *)(intptr_t)choice;
}
#endif

#if DVTI_AVX512
#define DVTI_CASE_AVX512(name)                                                                     \
    case DVTI_SIMD_AVX512:                                                                         \
        return dvti_avx512_##name##_family();
#else
#define DVTI_CASE_AVX512(name)
#endif
#if DVTI_AVX2
#define DVTI_CASE_AVX2(name)                                                                       \
    case DVTI_SIMD_AVX2:                                                                           \
        return dvti_avx2_##name##_family();
#else
#define DVTI_CASE_AVX2(name)
#endif
#if DVTI_PLAIN
#define DVTI_CASE_PLAIN(name)                                                                      \
    case DVTI_SIMD_PLAIN:                                                                          \
        return DVTI_PLAIN_FAMILY(name)();
#else
#define DVTI_CASE_PLAIN(name)
#endif
#define DVTI_SIMD_OF(name)                                                                         \
    DVTI_FN const dvti_simd_##name *dvti_simd_##name##_of(const dvti_simd *simd) {                 \
        switch (simd->number) {                                                                    \
            DVTI_CASE_AVX512(name)                                                                 \
            DVTI_CASE_AVX2(name)                                                                   \
            DVTI_CASE_PLAIN(name)                                                                  \
        }                                                                                          \
        return NULL;                                                                               \
    }
DVTI_SIMD_FAMILIES(DVTI_SIMD_OF)
#undef DVTI_SIMD_OF
#undef DVTI_CASE_AVX512
#undef DVTI_CASE_AVX2
#undef DVTI_CASE_PLAIN

DVT_API const char *dvt_cpu_isa(void) {
    const dvti_simd *target = dvti_simd_now();
    return target ? target->name : dvti_isa_reference;
}

DVT_API dvt_status dvt_set_cpu_isa(const char *name) {
    const dvti_simd *target;
    char names[DVTI_NAME_SIZE];
    if (!dvti_simd_find(name ? name : "", &target)) {
        dvti_simd_names(names, sizeof names);
        return dvti_fail(DVT_ERR_VALUE,
                         "dvt_set_cpu_isa: got \"%s\"; expected one of %s, or NULL for the best",
                         name, names);
    }
    dvti_simd_choose(target);
    return DVT_OK;
}
