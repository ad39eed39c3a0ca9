/* Detects callers inside OpenMP parallel regions. All their threads compute already, so a thread
   pool would only compete for processors. Nothing is linked. A loaded runtime is found by its
   library name. Programs without shared libraries need the weak reference. */
#include "1_base/dvt_base.h"

#if DVTI_THREADS

#if defined(__ELF__) && (defined(__GNUC__) || defined(__clang__))
static int dvti_linked_in_parallel(void)
    __attribute__((__weakref__("omp_in_parallel"), __unused__));
#define DVTI_OPENMP_LINKED 1
#else
#define DVTI_OPENMP_LINKED 0
#endif

typedef int (*dvti_in_parallel_fn)(void);

/* The runtimes in this process; a Python program may have two. */
static dvti_in_parallel_fn dvti_in_parallel[4];
static dvti_atomic dvti_openmp_known; /* 0: unknown, 1: a thread searches, 2: search done */

static void dvti_openmp_find(void) {
    static const char *const names[] = {
#if defined(_WIN32)
        "vcomp140.dll",
        "libiomp5md.dll",
        "libomp140.x86_64.dll",
        "libomp.dll",
        "libgomp-1.dll"
#elif defined(__APPLE__)
        "@rpath/libomp.dylib",
        "libomp.dylib",
        "libiomp5.dylib"
#else
        "libgomp.so.1",
        "libomp.so.5",
        "libomp.so",
        "libiomp5.so"
#endif
    };
    int i, n = 0;
#if DVTI_OPENMP_LINKED
    if (dvti_linked_in_parallel)
        dvti_in_parallel[n++] = dvti_linked_in_parallel;
#endif
    for (i = 0; i < DVTI_LENGTH(names) && n < DVTI_LENGTH(dvti_in_parallel); i++) {
        void *library = dvti_library_loaded(names[i]), *symbol;
        if (!library)
            continue;
        symbol = dvti_library_symbol(library, "omp_in_parallel");
        if (symbol && (n == 0 || memcmp(&dvti_in_parallel[0], &symbol, sizeof symbol) != 0))
            memcpy(&dvti_in_parallel[n++], &symbol, sizeof symbol);
        /* Never closed: the function is called until the process ends. */
    }
}

DVTI_FN bool dvti_openmp_busy(void) {
    int i;
    if (dvti_atomic_load(&dvti_openmp_known) != 2) {
        if (!dvti_atomic_swap(&dvti_openmp_known, 0, 1))
            return true; /* another thread searches now: run without the pool once */
        dvti_openmp_find();
        dvti_atomic_store(&dvti_openmp_known, 2);
    }
    for (i = 0; i < DVTI_LENGTH(dvti_in_parallel) && dvti_in_parallel[i]; i++)
        if (dvti_in_parallel[i]())
            return true;
    return false;
}

#undef DVTI_OPENMP_LINKED

#else

DVTI_FN bool dvti_openmp_busy(void) {
    return false;
}

#endif
