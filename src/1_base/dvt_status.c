/* This thread's first failure, the table of statuses, and the log. Allocates no memory, so it works
   when memory is exhausted. */
#include "1_base/dvt_base.h"

typedef struct dvti_error_state {
    dvt_status code;
    char text[1024];
    char site[192];
} dvti_error_state;

static DVTI_TLS dvti_error_state dvti_error_kept;
static DVTI_TLS dvt_status dvti_error_latest;
static DVTI_TLS dvti_error_frame dvti_error_framed;
static DVTI_TLS int dvti_attempts;

DVTI_FN dvti_attempt dvti_attempt_begin(void) {
    dvti_attempt attempt;
    attempt.clean = !dvti_error_kept.code;
    attempt.latest = dvti_error_latest;
    dvti_error_latest = DVT_OK;
    dvti_attempts++;
    return attempt;
}

DVTI_FN void dvti_attempt_end(const dvti_attempt *attempt) {
    dvti_attempts--;
    if (attempt->clean)
        dvt_clear_error();
    dvti_error_latest = attempt->latest;
}

DVTI_FN dvt_status dvti_failure(void) {
    return dvti_error_latest;
}

DVT_API dvt_status dvt_error_code(void) {
    return dvti_error_kept.code;
}

DVT_API const char *dvt_error(void) {
    return dvti_error_kept.code ? dvti_error_kept.text : "";
}

DVT_API const char *dvt_error_site(void) {
    return dvti_error_kept.code ? dvti_error_kept.site : "";
}

DVT_API void dvt_clear_error(void) {
    dvti_error_kept.code = dvti_error_latest = DVT_OK;
    dvti_error_kept.text[0] = 0;
    dvti_error_kept.site[0] = 0;
}

/* ---- the table ---- */
typedef struct dvti_status_row {
    int number;
    const char *name, *meaning, *fix;
} dvti_status_row;

#define DVTI_STATUS_ROW(name, number, meaning, fix) {number, "DVT_ERR_" #name, meaning, fix},
static const dvti_status_row dvti_status_rows[] = {DVT_STATUS_TABLE(DVTI_STATUS_ROW)};
#undef DVTI_STATUS_ROW

static const dvti_status_row *dvti_status_find(dvt_status status) {
    static const dvti_status_row unknown = {-1, "DVT_ERR_?", "not a status of devtensor", ""};
    int i;
    for (i = 0; i < DVTI_LENGTH(dvti_status_rows); i++)
        if (dvti_status_rows[i].number == (int)status)
            return &dvti_status_rows[i];
    return &unknown;
}

DVT_API const char *dvt_status_name(dvt_status status) {
    return dvti_status_find(status)->name;
}

DVT_API const char *dvt_status_meaning(dvt_status status) {
    return dvti_status_find(status)->meaning;
}

DVT_API const char *dvt_status_fix(dvt_status status) {
    return dvti_status_find(status)->fix;
}

DVT_API const char *dvt_version(void) {
    return DVT_VERSION_STRING;
}

DVT_API int dvt_version_number(void) {
    return DVT_VERSION;
}

/* ---- the log ---- */
static void dvti_default_logger(void *user, dvt_log_level level, const char *message);
static dvti_mutex dvti_log_lock = DVTI_MUTEX_INIT;
static dvt_log_fn dvti_logger = dvti_default_logger;
static void *dvti_logger_user;
static int dvti_log_level_set = -1;

static void dvti_default_logger(void *user, dvt_log_level level, const char *message) {
    (void)user;
#if defined(DEVTENSOR_NO_STDERR)
    (void)level;
    (void)message;
#else
    {
        static const char *const names[] = {"debug", "info", "warning", "error"};
        if ((int)level >= 0 && (int)level < 4)
            fprintf(stderr, "devtensor %s: %s\n", names[level], message);
    }
#endif
}

/* The caller holds the lock. */
static void dvti_log_level_from_environment(void) {
    static const char *const names[] = {"debug", "info", "warning", "error", "off"};
    const char *value = dvti_env("DEVTENSOR_LOG");
    char text[200];
    int i = 0;
    while (value && i < DVTI_LENGTH(names) && strcmp(value, names[i]) != 0)
        i++;
    dvti_log_level_set = value && i < DVTI_LENGTH(names) ? i : DVT_LOG_WARNING;
    if (!value || i < DVTI_LENGTH(names) || !dvti_logger)
        return;
    snprintf(text, sizeof text,
             "DEVTENSOR_LOG=%.40s is not debug, info, warning, error or off; warning is used",
             value);
    dvti_logger(dvti_logger_user, DVT_LOG_WARNING, text);
}

DVTI_FN void dvti_log_ready(void) {
    dvti_mutex_lock(&dvti_log_lock);
    if (dvti_log_level_set < 0)
        dvti_log_level_from_environment();
    dvti_mutex_unlock(&dvti_log_lock);
}

DVT_API void dvt_set_logger(dvt_log_fn function, void *user) {
    dvti_mutex_lock(&dvti_log_lock);
    dvti_logger = function;
    dvti_logger_user = user;
    dvti_mutex_unlock(&dvti_log_lock);
}

DVT_API void dvt_set_log_level(dvt_log_level level) {
    dvti_mutex_lock(&dvti_log_lock);
    dvti_log_level_set = (int)level;
    dvti_mutex_unlock(&dvti_log_lock);
}

static void dvti_log_text(dvt_log_level level, const char *text) {
    dvti_mutex_lock(&dvti_log_lock);
    if (dvti_log_level_set < 0)
        dvti_log_level_from_environment();
    /* The level filters only the default logger; a user's logger receives everything. */
    if (dvti_logger && (dvti_logger != dvti_default_logger || (int)level >= dvti_log_level_set))
        dvti_logger(dvti_logger_user, level, text);
    dvti_mutex_unlock(&dvti_log_lock);
}

DVTI_FN void dvti_log(dvt_log_level level, const char *format, ...) {
    char text[1024];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    dvti_log_text(level, text);
}

/* ---- failures ---- */
DVTI_FN dvti_error_frame dvti_set_error_frame(dvti_error_frame frame) {
    dvti_error_frame previous = dvti_error_framed;
    dvti_error_framed = frame;
    return previous;
}

/* Writes the frame's text; returns its length. The frame is unset meanwhile, because its function
   may fail too. */
static size_t dvti_error_begin(char *text, size_t size) {
    static const dvti_error_frame none = {NULL, NULL};
    dvti_error_frame frame = dvti_set_error_frame(none);
    text[0] = 0;
    if (frame.write)
        frame.write(frame.object, text, size);
    dvti_set_error_frame(frame);
    return strlen(text);
}

static void dvti_error_keep(dvt_status code, const char *sentence) {
    dvti_error_kept.code = code;
    snprintf(dvti_error_kept.text, sizeof dvti_error_kept.text, "%s", sentence);
    dvti_error_kept.site[0] = 0;
}

DVTI_FN dvt_status dvti_fail_relay(dvt_status code, const char *sentence) {
    dvti_error_latest = code;
    if (!dvti_error_kept.code)
        dvti_error_keep(code, sentence);
    return code;
}

static dvti_atomic dvti_memory_advice; /* a dvti_advice_fn, or 0 */

DVTI_FN void dvti_set_memory_advice(dvti_advice_fn write) {
    dvti_atomic_store(&dvti_memory_advice, (int64_t)(intptr_t)write);
}

DVTI_FN dvt_status dvti_fail(dvt_status code, const char *format, ...) {
    char text[sizeof dvti_error_kept.text];
    bool first = !dvti_error_kept.code;
    size_t begin;
    va_list args;
    if (first) /* a failure in the frame's function must not become the first one */
        dvti_error_kept.code = code;
    begin = dvti_error_begin(text, sizeof text / 2);
    va_start(args, format);
    vsnprintf(text + begin, sizeof text - begin, format, args);
    va_end(args);
    if (code == DVT_ERR_HOST_MEMORY || code == DVT_ERR_DEVICE_MEMORY) {
        const dvti_advice_fn write =
            (dvti_advice_fn)(intptr_t)dvti_atomic_load(&dvti_memory_advice);
        if (write)
            write(text + strlen(text), sizeof text - strlen(text));
    }
    dvti_error_latest = code;
    if (first)
        dvti_error_keep(code, text);
    dvti_log_text(dvti_attempts ? DVT_LOG_DEBUG : DVT_LOG_ERROR, text);
    return code;
}

DVTI_FN dvt_status dvti_fail_memory(const char *function, int64_t bytes) {
    return dvti_fail(
        DVT_ERR_HOST_MEMORY,
        "%s: no host memory left for %lld bytes; free arrays or work in smaller pieces", function,
        (long long)bytes);
}

DVTI_FN dvt_status dvti_null(const char *function, const char *what) {
    if (dvti_error_kept.code)
        return dvti_error_latest = dvti_error_kept.code;
    return dvti_fail(DVT_ERR_NULL_ARGUMENT, "%s: %s is NULL; check the call that made it", function,
                     what);
}

DVTI_FN void dvti_error_at(const char *file, int line) {
    if (dvti_error_kept.code && !dvti_error_kept.site[0])
        snprintf(dvti_error_kept.site, sizeof dvti_error_kept.site, "%s:%d", file, line);
}
