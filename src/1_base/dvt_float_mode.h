/* The floating-point mode of a thread: rounding direction, flush-to-zero, unmasked exceptions. A
   program may change its own. The library computes in the default mode: to nearest, subnormals
   preserved, exceptions masked. So the bits of a result depend neither on the caller's mode nor on
   the thread.

     dvti_float_mode mode = dvti_float_mode_begin();
     ...
     dvti_float_mode_end(&mode);

   In the default mode the cost is one read of the control register. A compiler may move
   computations across these calls. So they belong in a function that is called through a pointer
   or is not inlined. If that function only computes a number from its arguments, it begins with
   DVTI_NOT_PURE(), because compilers move calls without side effects. */
#ifndef DVTI_FLOAT_MODE_H
#define DVTI_FLOAT_MODE_H
#include "1_base/dvt_base.h"

#if defined(__GNUC__) || defined(__clang__)
#define DVTI_NOT_PURE() __asm__ volatile("" : : : "memory")
#else
#define DVTI_NOT_PURE() ((void)0)
#endif

#if DVTI_MXCSR
/* MXCSR: flags in bits 0 to 5, then DAZ, masks, rounding, FTZ. The control word of the x87 unit is
   set too where the compiler can access it, except its precision bits. C libraries read it in
   printf and strtod, and fesetround sets both. */
#define DVTI_MXCSR_CONTROL 0xffc0u
#define DVTI_MXCSR_DEFAULT 0x1f80u
#if defined(__GNUC__) || defined(__clang__)
#define DVTI_X87 1
#else
#define DVTI_X87 0
#endif

typedef struct dvti_float_mode {
    bool changed;
    uint16_t x87;
    uint32_t mxcsr;
} dvti_float_mode;

static DVTI_RARE DVTI_UNUSED void dvti_float_mode_change(dvti_float_mode *mode) {
    mode->changed = true;
#if DVTI_X87
    {
        uint16_t control;
        __asm__ volatile("fnstcw %0" : "=m"(mode->x87) : : "memory");
        control = (uint16_t)((mode->x87 & ~0x0c00u) | 0x3fu);
        __asm__ volatile("fldcw %0" : : "m"(control) : "memory");
    }
#endif
    _mm_setcsr(DVTI_MXCSR_DEFAULT);
}

static DVTI_RARE DVTI_UNUSED void dvti_float_mode_restore(const dvti_float_mode *mode) {
#if DVTI_X87
    __asm__ volatile("fldcw %0" : : "m"(mode->x87) : "memory");
#endif
    _mm_setcsr(mode->mxcsr);
}

#if DVTI_X87 /* GCC emits calls otherwise, at about 1 ns each */
static inline dvti_float_mode dvti_float_mode_begin(void) __attribute__((__always_inline__));
#endif

static inline dvti_float_mode dvti_float_mode_begin(void) {
    dvti_float_mode mode;
    mode.mxcsr = _mm_getcsr();
    mode.changed = false;
    mode.x87 = 0;
    if ((mode.mxcsr & DVTI_MXCSR_CONTROL) != DVTI_MXCSR_DEFAULT)
        dvti_float_mode_change(&mode);
    return mode;
}

static inline void dvti_float_mode_end(const dvti_float_mode *mode) {
    if (mode->changed)
        dvti_float_mode_restore(mode);
}

#elif defined(__aarch64__) && (defined(__GNUC__) || defined(__clang__))
/* FPCR is 0 by default; the flags have a separate register. */
typedef uint64_t dvti_float_mode;

static inline dvti_float_mode dvti_float_mode_begin(void) {
    uint64_t mode;
    __asm__ volatile("mrs %0, fpcr" : "=r"(mode) : : "memory");
    if (mode)
        __asm__ volatile("msr fpcr, %0" : : "r"((uint64_t)0) : "memory");
    return mode;
}

static inline void dvti_float_mode_end(const dvti_float_mode *mode) {
    if (*mode)
        __asm__ volatile("msr fpcr, %0" : : "r"(*mode) : "memory");
}

#elif defined(__riscv) && defined(__riscv_flen) && (defined(__GNUC__) || defined(__clang__))
/* Only the rounding direction can change: 0 is to nearest. */
typedef unsigned long dvti_float_mode;

static inline dvti_float_mode dvti_float_mode_begin(void) {
    unsigned long mode;
    __asm__ volatile("frrm %0" : "=r"(mode) : : "memory");
    if (mode)
        __asm__ volatile("fsrm zero" : : : "memory");
    return mode;
}

static inline void dvti_float_mode_end(const dvti_float_mode *mode) {
    if (*mode)
        __asm__ volatile("fsrm %0" : : "r"(*mode) : "memory");
}

#elif defined(__arm__) && defined(__ARM_FP) && (defined(__GNUC__) || defined(__clang__))
/* FPSCR: the flags are bits 0 to 7 and 27 to 31. */
#define DVTI_FPSCR_CONTROL 0x07ffff00u
typedef uint32_t dvti_float_mode;

static inline dvti_float_mode dvti_float_mode_begin(void) {
    uint32_t mode;
    __asm__ volatile("vmrs %0, fpscr" : "=r"(mode) : : "memory");
    mode &= DVTI_FPSCR_CONTROL;
    if (mode)
        __asm__ volatile("vmsr fpscr, %0" : : "r"(0) : "memory");
    return mode;
}

static inline void dvti_float_mode_end(const dvti_float_mode *mode) {
    if (*mode)
        __asm__ volatile("vmsr fpscr, %0" : : "r"(*mode) : "memory");
}

#elif defined(FE_TONEAREST)
/* Portable. fesetenv restores the caller's flags, so those raised in between are discarded. */
typedef fenv_t dvti_float_mode;

static inline dvti_float_mode dvti_float_mode_begin(void) {
    fenv_t mode;
    feholdexcept(&mode);
    fesetround(FE_TONEAREST);
    return mode;
}

static inline void dvti_float_mode_end(const dvti_float_mode *mode) {
    fesetenv(mode);
}

#else
/* Software floating point with a single mode. */
typedef int dvti_float_mode;

static inline dvti_float_mode dvti_float_mode_begin(void) {
    return 0;
}

static inline void dvti_float_mode_end(const dvti_float_mode *mode) {
    (void)mode;
}
#endif
#endif
