/* PTX text to a container: translate, look up the cache, else run the C compiler. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../sim_module.h"
#include "ptx_cache.h"
#include "ptx_translate.h"

extern char **environ;

static const char *const flags_after[] = {"-std=gnu11",
                                          "-w",
                                          "-fPIC",
                                          "-shared",
                                          "-fvisibility=hidden",
                                          "-ffp-contract=off",
                                          "-fno-math-errno",
                                          "-fwrapv",
                                          "-fno-strict-aliasing",
                                          "-nostdlib",
                                          NULL};

static const char *compiler(void) {
    const char *cc = getenv("SIMNVRTC_CC");
    return cc && *cc ? cc : "cc";
}

static int checks_memory(void) {
    const char *check = getenv("SIMCUDA_CHECK");
    return !(check && !strcmp(check, "0"));
}

int ptx_counts(void) {
    const char *count = getenv("SIMCUDA_COUNT");
    return count && !strcmp(count, "1");
}

static char *message(const char *format, ...) {
    char *text = NULL;
    va_list list;
    va_start(list, format);
    if (vasprintf(&text, format, list) < 0)
        text = NULL;
    va_end(list);
    return text;
}

/* ---- the directory of one compilation ---- */

typedef struct workplace {
    char folder[PATH_MAX];
    char source[PATH_MAX + 16], object[PATH_MAX + 16], errors[PATH_MAX + 16];
} workplace;

static int open_workplace(workplace *w) {
    const char *temporary = getenv("TMPDIR");
    int n = snprintf(w->folder, sizeof w->folder, "%s/simcudaXXXXXX",
                     temporary && *temporary ? temporary : "/tmp");
    if (n < 0 || (size_t)n >= sizeof w->folder || !mkdtemp(w->folder))
        return 0;
    snprintf(w->source, sizeof w->source, "%s/module.c", w->folder);
    snprintf(w->object, sizeof w->object, "%s/module.so", w->folder);
    snprintf(w->errors, sizeof w->errors, "%s/errors", w->folder);
    return 1;
}

static void close_workplace(const workplace *w) {
    if (getenv("SIMNVRTC_KEEP")) {
        fprintf(stderr, "simcuda: kept %s\n", w->folder);
        return;
    }
    unlink(w->source);
    unlink(w->object);
    unlink(w->errors);
    rmdir(w->folder);
}

/* Builds the command line: the words of the compiler ("gcc -O2" has two), then our flags. -Og comes
   first, so that the compiler's words can override it. */
static char **command(char *words, const workplace *w) {
    size_t count = 0, capacity = strlen(words) / 2 + sizeof flags_after / sizeof *flags_after + 8;
    char **argv = calloc(capacity, sizeof *argv), *rest = NULL;
    if (!argv)
        return NULL;
    for (char *word = strtok_r(words, " ", &rest); word; word = strtok_r(NULL, " ", &rest)) {
        argv[count++] = word;
        if (count == 1)
            argv[count++] = "-Og";
    }
    for (size_t i = 0; flags_after[i]; i++)
        argv[count++] = (char *)flags_after[i];
    const char *const files[] = {"-o", w->object, w->source, "-lm", "-lgcc", NULL};
    for (size_t i = 0; files[i]; i++)
        argv[count++] = (char *)files[i];
    return argv;
}

/* Returns the compiler's exit status, or -1 when it could not be run. */
static int run_compiler(const workplace *w) {
    posix_spawn_file_actions_t actions;
    pid_t child;
    int status = -1;
    char *words = strdup(compiler()), **argv = words ? command(words, w) : NULL;
    if (argv && argv[0] && posix_spawn_file_actions_init(&actions) == 0) {
        posix_spawn_file_actions_addopen(&actions, 2, w->errors, O_WRONLY | O_CREAT | O_TRUNC,
                                         0600);
        posix_spawn_file_actions_adddup2(&actions, 2, 1);
        if (posix_spawnp(&child, argv[0], &actions, NULL, argv, environ) == 0) {
            int got;
            while ((got = waitpid(child, &status, 0)) < 0 && errno == EINTR)
                ;
            /* a program that ignores SIGCHLD reaps its children itself: check the object file
               instead */
            status = got == child ? (WIFEXITED(status) ? WEXITSTATUS(status) : 128)
                                  : access(w->object, R_OK);
        }
        posix_spawn_file_actions_destroy(&actions);
    }
    free(argv);
    free(words);
    return status;
}

static void *make_container(const void *object, size_t object_size, int arch, unsigned flags,
                            const char *key, size_t *size) {
    sim_container header = {0};
    memcpy(header.magic, SIM_CONTAINER_MAGIC, 8);
    header.abi = SIM_ABI;
    header.header_size = sizeof header;
    header.total_size = sizeof header + object_size;
    header.arch = (uint32_t)arch;
    header.flags = flags;
    snprintf(header.key, sizeof header.key, "%s", key);
    header.checksum = sim_container_sum(object, object_size);
    char *all = malloc(header.total_size);
    if (!all)
        return NULL;
    memcpy(all, &header, sizeof header);
    memcpy(all + sizeof header, object, object_size);
    *size = header.total_size;
    return all;
}

static ptx_result compile_in(const workplace *w, const char *c, int arch, unsigned flags,
                             const char *key, void **container, size_t *size, char **log) {
    size_t object_size, error_size;
    if (!ptx_write_file(w->source, c, strlen(c))) {
        *log = message("cannot write %s: %s", w->source, strerror(errno));
        return PTX_IO;
    }
    int status = run_compiler(w);
    if (status != 0) {
        char *errors = ptx_read_file(w->errors, &error_size);
        *log = message("%s ended with %d on the translated module:\n%.4000s", compiler(), status,
                       errors ? errors : "");
        free(errors);
        return PTX_NO_COMPILER;
    }
    char *object = ptx_read_file(w->object, &object_size);
    if (!object) {
        *log = message("cannot read %s: %s", w->object, strerror(errno));
        return PTX_IO;
    }
    *container = make_container(object, object_size, arch, flags, key, size);
    free(object);
    return *container ? PTX_OK : PTX_NO_MEMORY;
}

/* Makes the key from the C text with its prelude, so any change of the translator changes the
   key. */
static void make_key(char key[40], const char *c, unsigned flags) {
    ptx_hash hash = ptx_hash_begin();
    hash = ptx_hash_add(hash, c, strlen(c));
    hash = ptx_hash_add(hash, compiler(), strlen(compiler()) + 1);
    for (size_t i = 0; flags_after[i]; i++)
        hash = ptx_hash_add(hash, flags_after[i], strlen(flags_after[i]) + 1);
    hash = ptx_hash_add(hash, &flags, sizeof flags);
    ptx_hash_text(hash, key);
}

/* Tells whether the target is one with a suffix, as sm_90a. */
static int is_exact(const char *ptx) {
    const char *at = strstr(ptx, ".target sm_");
    at = at ? at + strlen(".target sm_") : "";
    return at[strspn(at, "0123456789")] == 'a';
}

ptx_result ptx_compile(const char *ptx, unsigned flags, const char *usage, void **container,
                       size_t *size, char **log) {
    char *c, key[40];
    int arch;
    workplace w;
    *container = NULL;
    *size = 0;
    ptx_mode mode = {checks_memory(), ptx_counts(), usage};
    ptx_result result = ptx_translate(ptx, mode, &c, &arch, log);
    if (result != PTX_OK)
        return result;
    flags |= is_exact(ptx) ? SIM_CONTAINER_EXACT : 0;
    make_key(key, c, flags);
    *container = ptx_cache_get(key, size);
    if (*container) {
        free(c);
        return PTX_OK;
    }
    if (open_workplace(&w)) {
        result = compile_in(&w, c, arch, flags, key, container, size, log);
        close_workplace(&w);
    } else {
        *log = message("cannot make a folder for temporary files: %s", strerror(errno));
        result = PTX_IO;
    }
    if (result == PTX_OK)
        ptx_cache_put(key, *container, *size);
    free(c);
    return result;
}
