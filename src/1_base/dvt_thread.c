/* Threads, time, the process id, dynamic libraries. */
#include "1_base/dvt_base.h"
#include "1_base/dvt_float_mode.h"

static DVTI_NOINLINE double dvti_now_in_mode(void) {
#if defined(_WIN32)
    LARGE_INTEGER ticks, rate;
    QueryPerformanceCounter(&ticks);
    QueryPerformanceFrequency(&rate);
    return (double)ticks.QuadPart / (double)rate.QuadPart;
#else
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
#endif
}

DVTI_FN double dvti_now(void) {
    const dvti_float_mode mode = dvti_float_mode_begin();
    const double now = dvti_now_in_mode();
    dvti_float_mode_end(&mode);
    return now;
}

DVTI_FN void dvti_sleep(double seconds) {
#if defined(_WIN32)
    if (seconds > 2e-3)
        Sleep((DWORD)(DVTI_MIN(seconds, 1.0) * 1e3) - 1);
#else
    const double wakes_late = 150e-6; /* by which sleeping takes longer than requested */
    struct timespec t;
    seconds = DVTI_MIN(seconds - wakes_late, 1.0);
    t.tv_sec = 0;
    t.tv_nsec = (long)(seconds * 0.999e9);
    if (seconds > 0)
        nanosleep(&t, NULL);
#endif
}

DVT_API double dvt_seconds(void) {
    return dvti_now();
}

#if DVTI_LINUX && defined(MADV_WIPEONFORK)
/* The id, in a page that a forked child finds full of zeros. Asking the system takes 0.3 us in some
   virtual machines, and operations on a GPU ask three times. A fork handler would miss children
   that are made by a bare system call. */
static dvti_atomic dvti_process_page; /* the address; 0: not mapped yet; 1: not available */

static DVTI_RARE int64_t dvti_process_ask(void) {
    const int64_t id = (int64_t)getpid();
    const size_t bytes = (size_t)sysconf(_SC_PAGESIZE);
    int64_t page = dvti_atomic_load(&dvti_process_page);
    if (!page) {
        void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        const bool wiped = at != MAP_FAILED && madvise(at, bytes, MADV_WIPEONFORK) == 0;
        page = wiped ? (int64_t)(uintptr_t)at : 1;
        if (!dvti_atomic_swap(&dvti_process_page, 0, page) || !wiped) {
            if (at != MAP_FAILED)
                munmap(at, bytes);
            return id;
        }
    }
    if (page != 1)
        dvti_atomic_store((dvti_atomic *)(uintptr_t)page, id);
    return id;
}

DVTI_FN int64_t dvti_process_id(void) {
    const int64_t page = dvti_atomic_load(&dvti_process_page);
    const int64_t id = page > 1 ? dvti_atomic_load((dvti_atomic *)(uintptr_t)page) : 0;
    return id ? id : dvti_process_ask();
}
#else
DVTI_FN int64_t dvti_process_id(void) {
#if defined(_WIN32)
    return (int64_t)GetCurrentProcessId();
#else
    return (int64_t)getpid();
#endif
}
#endif

DVTI_FN void *dvti_library_open(const char *name) {
#if defined(_WIN32)
    bool path = strpbrk(name, "/\\") != NULL; /* its dependencies may be in its directory */
    return (void *)LoadLibraryExA(
        name, NULL, LOAD_LIBRARY_SEARCH_SYSTEM32 | (path ? LOAD_LIBRARY_SEARCH_DLL_LOAD_DIR : 0));
#else
    return dlopen(name, RTLD_NOW | RTLD_LOCAL);
#endif
}

DVTI_FN void *dvti_library_loaded(const char *name) {
#if defined(_WIN32)
    HMODULE library = NULL;
    return GetModuleHandleExA(0, name, &library) ? (void *)library : NULL;
#elif defined(RTLD_NOLOAD)
    return dlopen(name, RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD);
#else
    (void)name;
    return NULL;
#endif
}

DVTI_FN void dvti_library_close(void *library) {
#if defined(_WIN32)
    FreeLibrary((HMODULE)library);
#else
    dlclose(library);
#endif
}

DVTI_FN void *dvti_library_symbol(void *library, const char *name) {
#if defined(_WIN32)
    FARPROC symbol = GetProcAddress((HMODULE)library, name);
    void *result;
    memcpy(&result, &symbol, sizeof result);
    return result;
#else
    return dlsym(library, name);
#endif
}

/* ---- nested calls ---- */
/* Not inlined, so that the order of frames on a stack is the order of calls. Stacks grow downwards.
   On another stack, of a coroutine for example, calls that still run may be dropped. */
DVTI_FN DVTI_NOINLINE int dvti_nesting_enter(dvti_nesting *nesting) {
#if defined(__GNUC__) || defined(__clang__)
    const uintptr_t frame = (uintptr_t)__builtin_frame_address(0);
#else
    volatile char local = 0;
    const uintptr_t frame = (uintptr_t)&local;
#endif
    while (nesting->depth > 0 && nesting->frame[nesting->depth - 1] <= frame)
        nesting->depth--;
    if (nesting->depth > DVTI_MOST_NESTED)
        return -1;
    nesting->frame[nesting->depth] = frame;
    return nesting->depth++;
}

DVTI_FN void dvti_nesting_leave(dvti_nesting *nesting, int depth) {
    if (depth >= 0)
        nesting->depth = depth;
}

/* ---- staying loaded ---- */
/* Needed on systems that can unload a shared object. musl never unloads one. */
#if defined(_WIN32)
DVTI_FN void dvti_library_stay(void) {
    static dvti_atomic done;
    HMODULE own;
    if (dvti_atomic_load(&done))
        return;
    (void)GetModuleHandleExA(GET_MODULE_HANDLE_EX_FLAG_PIN | GET_MODULE_HANDLE_EX_FLAG_FROM_ADDRESS,
                             (LPCSTR)(const void *)&done, &own);
    dvti_atomic_store(&done, 1);
}
#elif DVTI_THREADS && defined(RTLD_NOLOAD) && defined(RTLD_NODELETE) &&                            \
    (defined(__GLIBC__) || defined(__APPLE__) || defined(__ANDROID__) || defined(__FreeBSD__) ||   \
     defined(__NetBSD__) || defined(__OpenBSD__))
#if defined(__GLIBC__) && !defined(__USE_GNU) /* dladdr is hidden by <dlfcn.h> */
typedef struct dvti_symbol_place {
    const char *dli_fname;
    void *dli_fbase;
    const char *dli_sname;
    void *dli_saddr;
} dvti_symbol_place;

#if defined(__cplusplus)
extern "C" int dladdr(const void *address, dvti_symbol_place *place);
#else
extern int dladdr(const void *address, dvti_symbol_place *place);
#endif
#else
typedef Dl_info dvti_symbol_place;
#endif

/* Opens the object by the name it was loaded with, so no file search happens. An executable has no
   such name, and needs none. */
DVTI_FN void dvti_library_stay(void) {
    static dvti_atomic done;
    dvti_symbol_place place;
    void *own = NULL;
    if (dvti_atomic_load(&done))
        return;
    if (dladdr(&done, &place) && place.dli_fname)
        own = dlopen(place.dli_fname, RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD | RTLD_NODELETE);
    if (own)
        dlclose(own);
    dvti_atomic_store(&done, 1);
}
#else
DVTI_FN void dvti_library_stay(void) {
}
#endif

/* ---- thread end ---- */
static DVTI_TLS dvti_thread_end *dvti_thread_end_hook;

static void dvti_thread_end_run(dvti_thread_end *end) {
    if (end)
        end->run(end);
    dvti_thread_end_hook = NULL;
}

#if DVTI_TLS_ENDS_EARLY
DVTI_FN void *dvti_thread_block(size_t bytes) {
    return HeapAlloc(GetProcessHeap(), HEAP_ZERO_MEMORY, bytes);
}

DVTI_FN void dvti_thread_block_free(void *block) {
    HeapFree(GetProcessHeap(), 0, block);
}
#endif

#if DVTI_THREADS && !defined(_WIN32)
static pthread_key_t dvti_end_key;
static pthread_once_t dvti_end_once = PTHREAD_ONCE_INIT;
static bool dvti_end_key_made;

static void dvti_run_thread_end(void *end) {
    dvti_thread_end_run((dvti_thread_end *)end);
}

static void dvti_run_exit(void) {
    dvti_thread_end_run(dvti_thread_end_hook);
}

static void dvti_make_end_key(void) {
    dvti_library_stay();
    dvti_end_key_made = pthread_key_create(&dvti_end_key, dvti_run_thread_end) == 0;
    atexit(dvti_run_exit);
}

DVTI_FN void dvti_at_thread_end(dvti_thread_end *end) {
    if (dvti_thread_end_hook)
        return;
    pthread_once(&dvti_end_once, dvti_make_end_key);
    dvti_thread_end_hook = end;
    if (dvti_end_key_made)
        pthread_setspecific(dvti_end_key, end);
}
#else
#if defined(_WIN32)
static DWORD dvti_end_slot = FLS_OUT_OF_INDEXES;
#endif

static void dvti_run_exit(void) {
#if defined(_WIN32)
    if (dvti_end_slot != FLS_OUT_OF_INDEXES)
        FlsSetValue(dvti_end_slot, NULL);
#endif
    dvti_thread_end_run(dvti_thread_end_hook);
}

#if defined(_WIN32)
static void NTAPI dvti_run_fiber_end(void *end) {
    dvti_thread_end_run((dvti_thread_end *)end);
}
#endif

DVTI_FN void dvti_at_thread_end(dvti_thread_end *end) {
    static dvti_mutex lock = DVTI_MUTEX_INIT;
    static bool registered;
    if (dvti_thread_end_hook)
        return;
    dvti_thread_end_hook = end;
    dvti_mutex_lock(&lock);
    if (!registered) {
        registered = true;
        dvti_library_stay();
        atexit(dvti_run_exit);
#if defined(_WIN32)
        dvti_end_slot = FlsAlloc(dvti_run_fiber_end);
#endif
    }
    dvti_mutex_unlock(&lock);
#if defined(_WIN32)
    if (dvti_end_slot != FLS_OUT_OF_INDEXES)
        FlsSetValue(dvti_end_slot, end);
#endif
}
#endif

/* ---- thread start ---- */
#if DVTI_THREADS

DVTI_FN bool dvti_thread_start(dvti_thread *thread, dvti_thread_main run, void *user) {
    dvti_library_stay();
#if defined(_WIN32)
    *thread = CreateThread(NULL, 0, run, user, 0, NULL);
    return *thread != NULL;
#else
    /* Signals belong to the program's threads. A new thread inherits the floating-point mode. */
    sigset_t all, before;
    dvti_float_mode mode;
    bool started;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    mode = dvti_float_mode_begin();
    started = pthread_create(thread, NULL, run, user) == 0;
    dvti_float_mode_end(&mode);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return started;
#endif
}

DVTI_FN void dvti_thread_join(dvti_thread thread) {
#if defined(_WIN32)
    WaitForSingleObject(thread, INFINITE);
    CloseHandle(thread);
#else
    pthread_join(thread, NULL);
#endif
}

DVTI_FN void dvti_thread_detach(dvti_thread thread) {
#if defined(_WIN32)
    CloseHandle(thread);
#else
    pthread_detach(thread);
#endif
}

#endif
