/* The platform: the only file of the implementation that includes system headers. Defines the
   linkage of internals, thread-local storage, atomics, mutexes, condition variables, threads, time,
   dynamic libraries. */
#ifndef DVTI_PLATFORM_H
#define DVTI_PLATFORM_H

#include <errno.h>
#include <float.h>
#include <limits.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#if defined(_WIN32)
#ifndef WIN32_LEAN_AND_MEAN
#define WIN32_LEAN_AND_MEAN
#endif
#ifndef NOMINMAX
#define NOMINMAX
#endif
#include <windows.h>
#include <fcntl.h>
#include <io.h>
#include <sys/stat.h>
#include <sys/types.h>
#else
#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>
#if defined(__APPLE__)
#include <sys/sysctl.h>
#endif
#if defined(__linux__)
#include <sys/auxv.h>
#include <sys/syscall.h>
#endif
#if defined(__GLIBC__) && !defined(__USE_XOPEN2K)
#error "devtensor: include devtensor.h before any system header in this file, or use -std=gnu99"
#endif
#endif
#if defined(DEVTENSOR_MPI)
#define OMPI_SKIP_MPICXX 1 /* the C++ bindings, which MPI 3 has removed */
#define MPICH_SKIP_MPICXX 1
#include <mpi.h>
#endif
/* The generated header includes itself for each ISA target (tools/amalgamate.py). */
#if !defined(DEVTENSOR_FILE)
#define DEVTENSOR_FILE "devtensor.h"
#endif

/* The program's own optimization level. GCC redefines its macros at every #pragma GCC optimize and
   does not restore them after all of those that follow; platform_end.inl does. */
#if defined(__OPTIMIZE__)
#define DVTI_OPTIMIZED 1
#else
#define DVTI_OPTIMIZED 0
#endif
#if defined(__OPTIMIZE_SIZE__)
#define DVTI_OPTIMIZED_FOR_SIZE 1
#else
#define DVTI_OPTIMIZED_FOR_SIZE 0
#endif
/* The same for the macros of -ffast-math and its parts. */
#if defined(__GNUC__) && !defined(__clang__)
#pragma push_macro("__FAST_MATH__")
#pragma push_macro("__FINITE_MATH_ONLY__")
#pragma push_macro("__NO_MATH_ERRNO__")
#pragma push_macro("__NO_SIGNED_ZEROS__")
#pragma push_macro("__NO_TRAPPING_MATH__")
#pragma push_macro("__ASSOCIATIVE_MATH__")
#pragma push_macro("__RECIPROCAL_MATH__")
#endif
/* 1 if level_plan.inl and level_cold.inl change the optimization level. They do not if the program
   is compiled for size or without optimization. */
#if defined(__GNUC__) || defined(__clang__)
#define DVTI_LEVELS (DVTI_OPTIMIZED && !DVTI_OPTIMIZED_FOR_SIZE)
#else
#define DVTI_LEVELS 0
#endif

/* Clang warns of unused static inline functions if the header itself is compiled. */
#if defined(__clang__)
#pragma clang diagnostic push
#pragma clang diagnostic ignored "-Wunused-function"
#endif

/* 64-bit x86 with a compiler that provides intrinsics. */
#if (defined(__x86_64__) || defined(_M_X64)) &&                                                    \
    (defined(__GNUC__) || defined(__clang__) || defined(_MSC_VER))
#define DVTI_X86 1
#else
#define DVTI_X86 0
#endif
/* 1 if MXCSR, the control register of SSE, holds the floating-point mode. Reading it needs no
   call. */
#define DVTI_MXCSR DVTI_X86
#if !DVTI_MXCSR
#include <fenv.h>
#endif
#if DVTI_X86 && defined(_MSC_VER) && !defined(__clang__)
#include <intrin.h>
#endif
#if DVTI_X86 && defined(DEVTENSOR_NO_SIMD)
#include <xmmintrin.h>
#elif DVTI_X86
#include <immintrin.h>
#elif defined(__aarch64__) && (defined(__GNUC__) || defined(__clang__))
#include <arm_neon.h>
#endif

/* Internal functions: static in the generated header, extern in the split build. */
#ifndef DVTI_FN
#if defined(__GNUC__) || defined(__clang__)
#define DVTI_FN static __attribute__((__unused__))
#else
#define DVTI_FN static
#endif
#endif
#if defined(__GNUC__) || defined(__clang__)
#define DVTI_UNUSED __attribute__((__unused__))
#else
#define DVTI_UNUSED
#endif

#if defined(__GNUC__) || defined(__clang__)
#define DVTI_NOINLINE __attribute__((__noinline__))
#elif defined(_MSC_VER)
#define DVTI_NOINLINE __declspec(noinline)
#else
#define DVTI_NOINLINE
#endif

/* Marks code that rarely runs: compilers move the branches to it out of the hot path. */
#if defined(__GNUC__) || defined(__clang__)
#define DVTI_RARE __attribute__((__cold__, __noinline__))
#else
#define DVTI_RARE DVTI_NOINLINE
#endif

#if defined(__cplusplus)
#define DVTI_TLS thread_local
#elif defined(__GNUC__) || defined(__clang__)
#define DVTI_TLS __thread
#elif defined(_MSC_VER)
#define DVTI_TLS __declspec(thread)
#elif defined(DEVTENSOR_NO_THREADS)
#define DVTI_TLS /* C99 has no thread-local storage */
#else
#define DVTI_TLS _Thread_local
#endif
/* GCC of MinGW emulates thread-local variables, and frees them before the thread-end callback. */
#if defined(_WIN32) && defined(__GNUC__) && !defined(__clang__)
#define DVTI_TLS_ENDS_EARLY 1
#else
#define DVTI_TLS_ENDS_EARLY 0
#endif

/* Sequentially consistent counters; GCC and Clang have the builtins in every language mode. */
#if defined(_MSC_VER) && !defined(__clang__)
typedef volatile LONG64 dvti_atomic;
#define dvti_atomic_load(p) InterlockedCompareExchange64((p), 0, 0)
#define dvti_atomic_store(p, v) ((void)InterlockedExchange64((p), (v)))
#define dvti_atomic_add(p, v) (InterlockedExchangeAdd64((p), (v)) + (v))
#define dvti_atomic_swap(p, from, to) (InterlockedCompareExchange64((p), (to), (from)) == (from))
#define dvti_atomic_publish(p, v) ((void)InterlockedExchange64((p), (v)))
#define dvti_atomic_bump(p, v) ((void)(*(p) += (v)))
#define dvti_atomic_peek(p) (*(p))
#elif !defined(__GNUC__) && !defined(__clang__)
#if !defined(DEVTENSOR_NO_THREADS)
#error "devtensor: no known atomics in this compiler: compile with -DDEVTENSOR_NO_THREADS"
#endif
typedef int64_t dvti_atomic;
#define dvti_atomic_load(p) (*(p))
#define dvti_atomic_store(p, v) ((void)(*(p) = (v)))
#define dvti_atomic_add(p, v) (*(p) += (v))
#define dvti_atomic_swap(p, from, to) (*(p) == (from) && (*(p) = (to), true))
#define dvti_atomic_publish(p, v) ((void)(*(p) = (v)))
#define dvti_atomic_bump(p, v) ((void)(*(p) += (v)))
#define dvti_atomic_peek(p) (*(p))
#else
typedef int64_t dvti_atomic;
#define dvti_atomic_load(p) __atomic_load_n((p), __ATOMIC_SEQ_CST)
#define dvti_atomic_store(p, v) __atomic_store_n((p), (v), __ATOMIC_SEQ_CST)
#define dvti_atomic_add(p, v) __atomic_add_fetch((p), (v), __ATOMIC_SEQ_CST)
/* Compare and swap: if *p == from, sets it to `to`. Returns whether it did. */
#define dvti_atomic_swap(p, from, to) __sync_bool_compare_and_swap((p), (from), (to))
/* *p = v as a release store, which is cheaper than a sequentially consistent one. */
#define dvti_atomic_publish(p, v) __atomic_store_n((p), (v), __ATOMIC_RELEASE)
/* *p += v for a single writing thread; other threads may read. */
#define dvti_atomic_bump(p, v)                                                                     \
    __atomic_store_n((p), __atomic_load_n((p), __ATOMIC_RELAXED) + (v), __ATOMIC_RELAXED)
/* A relaxed load: orders nothing. */
#define dvti_atomic_peek(p) __atomic_load_n((p), __ATOMIC_RELAXED)
#endif
#define dvti_atomic_unlock(p) dvti_atomic_publish((p), 0)

/* Aligns an object to a cache line of its own. */
#if defined(_MSC_VER) && !defined(__clang__)
#define DVTI_LINE_ALIGNED __declspec(align(64))
#else
#define DVTI_LINE_ALIGNED __attribute__((__aligned__(64)))
#endif

/* Pauses between two reads of a word that another thread is about to change. */
#if defined(_WIN32)
#define dvti_pause() YieldProcessor()
#elif (defined(__GNUC__) || defined(__clang__)) && (defined(__x86_64__) || defined(__i386__))
#define dvti_pause() __builtin_ia32_pause()
#elif defined(__aarch64__)
#define dvti_pause() __asm__ volatile("isb" ::: "memory") /* `yield` is a no-op on most */
#else
#define dvti_pause() ((void)0)
#endif

/* 1 if syscall() is declared. It reaches system calls that glibc hides or does not wrap. */
#if defined(__linux__) && (!defined(__GLIBC__) || defined(__USE_MISC))
#define DVTI_LINUX 1
#else
#define DVTI_LINUX 0
#endif

/* A word on which threads sleep until it changes: a futex of the kernel, else a condition
   variable. */
#ifndef DVTI_FUTEX
#if DVTI_LINUX && defined(SYS_futex)
#define DVTI_FUTEX 1
#else
#define DVTI_FUTEX 0
#endif
#endif
#if DVTI_FUTEX
typedef int32_t dvti_futex;
#else
typedef dvti_atomic dvti_futex;
#endif

/* 1 if the address sanitizer is active. */
#if defined(__SANITIZE_ADDRESS__) && !defined(_MSC_VER)
#define DVTI_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define DVTI_ASAN 1
#endif
#endif
#if defined(DVTI_ASAN)
#include <sanitizer/asan_interface.h>
#else
#define DVTI_ASAN 0
#endif

/* 1 if the memory sanitizer is active. */
#if defined(__has_feature)
#if __has_feature(memory_sanitizer)
#define DVTI_MSAN 1
#endif
#endif
#if defined(DVTI_MSAN)
#include <sanitizer/msan_interface.h>
#else
#define DVTI_MSAN 0
#endif

/* ---- threads: pthreads or Win32; DEVTENSOR_NO_THREADS makes locks no-ops ---- */
#if defined(DEVTENSOR_NO_THREADS)
#define DVTI_THREADS 0
typedef int dvti_mutex;
typedef int dvti_cond;
#define DVTI_MUTEX_INIT 0
#define DVTI_COND_INIT 0
#define dvti_mutex_lock(m) ((void)(m))
#define dvti_mutex_unlock(m) ((void)(m))
#elif defined(_WIN32)
#define DVTI_THREADS 1
typedef SRWLOCK dvti_mutex;
typedef CONDITION_VARIABLE dvti_cond;
typedef HANDLE dvti_thread;
typedef LPTHREAD_START_ROUTINE dvti_thread_main;
#define DVTI_THREAD_MAIN(name) static DWORD WINAPI name(void *user)
#define DVTI_MUTEX_INIT SRWLOCK_INIT
#define DVTI_COND_INIT CONDITION_VARIABLE_INIT
#define dvti_mutex_lock(m) AcquireSRWLockExclusive(m)
#define dvti_mutex_unlock(m) ReleaseSRWLockExclusive(m)
#define dvti_cond_wait(c, m) ((void)SleepConditionVariableSRW((c), (m), INFINITE, 0))
#define dvti_cond_signal(c) WakeConditionVariable(c)
#define dvti_cond_broadcast(c) WakeAllConditionVariable(c)
#else
#define DVTI_THREADS 1
typedef pthread_mutex_t dvti_mutex;
typedef pthread_cond_t dvti_cond;
typedef pthread_t dvti_thread;
typedef void *(*dvti_thread_main)(void *);
#define DVTI_THREAD_MAIN(name) static void *name(void *user)
#define DVTI_MUTEX_INIT PTHREAD_MUTEX_INITIALIZER
#define DVTI_COND_INIT PTHREAD_COND_INITIALIZER
#define dvti_mutex_lock(m) ((void)pthread_mutex_lock(m))
#define dvti_mutex_unlock(m) ((void)pthread_mutex_unlock(m))
#define dvti_cond_wait(c, m) ((void)pthread_cond_wait((c), (m)))
#define dvti_cond_signal(c) ((void)pthread_cond_signal(c))
#define dvti_cond_broadcast(c) ((void)pthread_cond_broadcast(c))
#endif

/* ---- -ffast-math: the code below is compiled without it; platform_end.inl restores flags ----

   NaN and infinities are valid values here, and sums have a defined order. GCC attaches the
   flags to functions, including inlined ones. The pragma lists each flag, because "no-fast-math"
   does not undo a flag that was given alone. Without optimization it has no effect. Clang
   attaches the flags to instructions, so inlined intrinsics keep the program's flags. */
#if defined(__FAST_MATH__) || defined(__ASSOCIATIVE_MATH__) || defined(__RECIPROCAL_MATH__) ||     \
    defined(__NO_SIGNED_ZEROS__) || defined(_M_FP_FAST)
#define DVTI_FAST_MATH 1
#elif defined(__FINITE_MATH_ONLY__)
#define DVTI_FAST_MATH (__FINITE_MATH_ONLY__ + 0)
#else
#define DVTI_FAST_MATH 0
#endif
#if DVTI_FAST_MATH
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC push_options
#if !DVTI_OPTIMIZED
#pragma GCC optimize("O1")
#endif
#pragma GCC optimize("no-fast-math", "no-finite-math-only", "no-unsafe-math-optimizations")
#pragma GCC optimize("no-associative-math", "no-reciprocal-math", "signed-zeros", "trapping-math")
#elif defined(_MSC_VER) && !defined(__clang__)
#pragma float_control(precise, on, push)
#else
#error "devtensor: this compiler cannot undo -ffast-math: compile the implementation without it"
#endif
#endif

#endif
