/* A program that loads plug-ins, computes with them, and unloads them; it does not use the library
   itself.
   usage: host PLUGIN PLUGIN IDLE_PLUGIN */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

typedef int (*compute_fn)(int, int);
typedef int (*idle_fn)(void);

static const char *paths[3];
static int failures;

#define CHECK(what)                                                                                \
    ((what) ? (void)0                                                                              \
            : (void)(__atomic_add_fetch(&failures, 1, __ATOMIC_SEQ_CST),                           \
                     printf("FAIL line %d: %s\n", __LINE__, #what)))

static void *load(const char *path) {
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library)
        printf("%s\n", dlerror());
    CHECK(library);
    return library;
}

static int call(void *library, int seed, int gpus) {
    void *symbol = library ? dlsym(library, "plugin_compute") : NULL;
    compute_fn compute;
    memcpy(&compute, &symbol, sizeof compute);
    return compute ? compute(seed, gpus) : 1;
}

static void load_and_call(int which, int seed, int gpus) {
    void *library = load(paths[which]);
    CHECK(call(library, seed, gpus) == 0);
    CHECK(library && dlclose(library) == 0);
}

static void sleep_ms(int milliseconds) {
    struct timespec pause = {0, milliseconds * 1000000L};
    nanosleep(&pause, NULL);
}

static void in_child(int which) {
    int status = 1;
    pid_t child = fork();
    if (child == 0) {
        load_and_call(which, 5, 0);
        _exit(failures != 0);
    }
    CHECK(child > 0 && waitpid(child, &status, 0) == child);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static void *repeat(void *user) {
    int i, which = (int)(size_t)user;
    for (i = 0; i < 20; i++)
        load_and_call((i + which) & 1, i, 2);
    return NULL;
}

static pthread_barrier_t computed, unloaded;

/* Computes, and ends only after the main thread has unloaded the plug-in. */
static void *wait_for_unload(void *user) {
    int here = open(".", O_RDONLY);
    CHECK(here >= 0 && chdir("/") == 0); /* the path of the plug-in may be relative */
    CHECK(call(user, 7, 2) == 0);
    CHECK(fchdir(here) == 0);
    close(here);
    pthread_barrier_wait(&computed);
    pthread_barrier_wait(&unloaded);
    return NULL;
}

static int is_loaded(const char *path) {
    void *library = dlopen(path, RTLD_NOW | RTLD_NOLOAD);
    if (library)
        dlclose(library);
    return library != NULL;
}

int main(int argc, char **argv) {
    pthread_t threads[4];
    void *library, *symbol;
    idle_fn idle;
    int i;
    if (argc != 4)
        return 2;
    memcpy(paths, argv + 1, sizeof paths);
    setbuf(stdout, NULL);

    library = load(paths[2]); /* a library without threads can be unloaded */
    symbol = library ? dlsym(library, "plugin_idle") : NULL;
    memcpy(&idle, &symbol, sizeof idle);
    CHECK(idle && idle() == 0);
    CHECK(library && dlclose(library) == 0 && !is_loaded(paths[2]));

    pthread_barrier_init(&computed, NULL, 2);
    pthread_barrier_init(&unloaded, NULL, 2);
    library = load(paths[0]);
    CHECK(pthread_create(&threads[0], NULL, wait_for_unload, library) == 0);
    pthread_barrier_wait(&computed);
    dlclose(library);
    pthread_barrier_wait(&unloaded);
    pthread_join(threads[0], NULL);

    for (i = 0; i < 100; i++) {
        load_and_call(i & 1, i, 2);
        if (i % 25 == 0) {
            sleep_ms(2); /* workers have become idle and sleep */
            in_child(0);
        }
    }
    for (i = 0; i < 4; i++)
        CHECK(pthread_create(&threads[i], NULL, repeat, (void *)(size_t)i) == 0);
    in_child(1);
    for (i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    sleep_ms(2);
    if (!failures)
        puts("ok");
    return failures != 0;
}
