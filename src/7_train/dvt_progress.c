/* Progress of a run on standard error: a bar that redraws itself on a terminal, occasional plain
   lines elsewhere. A pure function of state, time and width formats the line. */
#include "1_base/dvt_float_mode.h"
#include "7_train/dvt_train_internal.h"

#define DVTI_PROGRESS_BAR 40
#define DVTI_PROGRESS_LINES 10

struct dvt_progress {
    dvti_object object;
    dvti_mutex lock;
    char *title;
    int64_t total, done;
    double loss;
    double start, drawn; /* in seconds: start, and time of the last line (-1: none) */
    int64_t drawn_at;    /* `done` at that line */
    bool terminal, finished;
};

/* Returns the columns of a text: 0 for continuation bytes of UTF-8, 2 for characters from U+3000
   on. */
static int dvti_progress_columns(const char *text, size_t bytes) {
    int columns = 0;
    size_t i;
    for (i = 0; i < bytes; i++) {
        unsigned char c = (unsigned char)text[i];
        columns += (c & 0xC0) == 0x80 ? 0 : c >= 0xE3 ? 2 : 1;
    }
    return columns;
}

/* Returns the bytes of the longest prefix that fits, in complete characters. */
static size_t dvti_progress_fit(const char *text, size_t bytes, int columns) {
    while (bytes > 0 && dvti_progress_columns(text, bytes) > columns) {
        bytes--;
        while (bytes > 0 && ((unsigned char)text[bytes] & 0xC0) == 0x80)
            bytes--;
    }
    return bytes;
}

static void dvti_progress_add_duration(dvti_text *text, double seconds) {
    int64_t s = seconds < 3.6e8 ? (int64_t)(seconds + 0.5) : (int64_t)360000000;
    if (s >= 3600)
        dvti_text_add(text, "%lld:%02d:%02d", (long long)(s / 3600), (int)(s / 60 % 60),
                      (int)(s % 60));
    else
        dvti_text_add(text, "%d:%02d", (int)(s / 60), (int)(s % 60));
}

/* Appends "27000/60000 1234/s loss 0.4321 0:12 left". */
static void dvti_progress_add_numbers(dvti_text *text, const dvt_progress *p, double seconds) {
    double rate = seconds > 0 ? (double)p->done / seconds : 0;
    dvti_text_add(text, "%lld/%lld", (long long)p->done, (long long)p->total);
    if (rate > 0)
        dvti_text_add(text, "  %.*f/s", rate >= 100 ? 0 : rate >= 10 ? 1 : 2, rate);
    if (p->loss == p->loss)
        dvti_text_add(text, "  loss %.4f", p->loss);
    if (p->done >= p->total) {
        dvti_text_add(text, "  in ");
        dvti_progress_add_duration(text, seconds);
    } else if (rate > 0) {
        dvti_text_add(text, "  ");
        dvti_progress_add_duration(text, (double)(p->total - p->done) / rate);
        dvti_text_add(text, " left");
    }
}

static void dvti_progress_add_bar(dvti_text *text, double part, int columns) {
    int filled = (int)(part * columns);
    dvti_text_char(text, '[', 1);
    dvti_text_char(text, '=', filled < columns ? filled : columns);
    if (filled < columns)
        dvti_text_char(text, '>', 1);
    dvti_text_char(text, ' ', columns - filled - 1);
    dvti_text_char(text, ']', 1);
}

static DVTI_NOINLINE size_t dvti_progress_format(const dvt_progress *p, double seconds, int width,
                                                 char *buffer, size_t size) {
    dvti_text text = dvti_text_begin(buffer, size), numbers;
    char tail[160];
    double part;
    int columns;
    size_t title;
    if (!p || p->total <= 0)
        return 0;
    part = (double)p->done / (double)p->total;
    numbers = dvti_text_begin(tail, sizeof tail);
    dvti_progress_add_numbers(&numbers, p, seconds > 0 ? seconds : 0);
    title = strlen(p->title);
    if (width <= 0) {
        dvti_text_add(&text, "%s%s%3d%%  %s", p->title, title ? " " : "", (int)(part * 100), tail);
        return text.length;
    }
    /* The numbers have priority, then the title, then the bar. */
    columns = width - 4 - 2 - (int)strlen(tail);
    if (columns < 0) {
        dvti_text_add(&text, "%.*s", width, tail);
        return text.length;
    }
    title = dvti_progress_fit(p->title, title, columns - 1);
    if (title) {
        dvti_text_add(&text, "%.*s ", (int)title, p->title);
        columns -= dvti_progress_columns(p->title, title) + 1;
    }
    dvti_text_add(&text, "%3d%%", (int)(part * 100));
    if (columns >= 8) {
        dvti_text_char(&text, ' ', 1);
        dvti_progress_add_bar(&text, part, DVTI_MIN(columns - 3, DVTI_PROGRESS_BAR));
    }
    dvti_text_add(&text, "  %s", tail);
    return text.length;
}

DVT_API size_t dvt_progress_format(const dvt_progress *p, double seconds, int width, char *buffer,
                                   size_t size) {
    const dvti_float_mode mode = dvti_float_mode_begin(); /* printf follows the rounding mode */
    size_t length = dvti_progress_format(p, seconds, width, buffer, size);
    dvti_float_mode_end(&mode);
    return length;
}

/* ---- drawing ---- */
#if !defined(DEVTENSOR_NO_STDERR)
/* Returns whether standard error is a terminal that can return to the start of the line, which a
   bar needs. */
static bool dvti_stderr_is_terminal(void) {
#if defined(_WIN32)
    return _isatty(2) != 0;
#else
    const char *kind = getenv("TERM");
    return isatty(2) && kind && strcmp(kind, "dumb") != 0;
#endif
}

/* Returns one column less than the terminal has: a full line would wrap. */
static int dvti_stderr_width(void) {
    int width = 0;
#if defined(_WIN32)
    CONSOLE_SCREEN_BUFFER_INFO info;
    if (GetConsoleScreenBufferInfo(GetStdHandle(STD_ERROR_HANDLE), &info))
        width = info.srWindow.Right - info.srWindow.Left + 1;
#elif defined(TIOCGWINSZ)
    struct winsize size;
    if (ioctl(2, TIOCGWINSZ, &size) == 0)
        width = size.ws_col;
#endif
    return width > 1 ? width - 1 : 79;
}

static void dvti_progress_write(const dvt_progress *p, double seconds, bool last) {
    char line[512];
    size_t length =
        dvt_progress_format(p, seconds, p->terminal ? dvti_stderr_width() : 0, line, sizeof line);
    if (length && p->terminal) {
        /* Blanks, not an escape sequence, erase the rest of a longer line. */
        int blank = dvti_stderr_width() - dvti_progress_columns(line, strlen(line));
        fprintf(stderr, "\r%s%*s%s", line, blank > 0 ? blank : 0, "", last ? "\n" : "");
    } else if (length) {
        fprintf(stderr, "%s\n", line);
    }
    fflush(stderr);
}
#else
static bool dvti_stderr_is_terminal(void) {
    return false;
}

/* This build prints nothing; a logger may show the line. */
static void dvti_progress_write(const dvt_progress *p, double seconds, bool last) {
    char line[512];
    (void)last;
    if (dvt_progress_format(p, seconds, 0, line, sizeof line))
        dvti_log(DVT_LOG_INFO, "%s", line);
}
#endif

/* Returns whether to draw now: on a terminal every 0.1 s, elsewhere at every 10 % but at most once
   a second. */
static bool dvti_progress_due(const dvt_progress *p, double now) {
    if (p->done >= p->total)
        return p->drawn_at < p->total;
    if (p->terminal)
        return p->drawn < 0 || now - p->drawn >= 0.1;
    return now - (p->drawn < 0 ? p->start : p->drawn) >= 1 &&
           (double)(p->done - DVTI_MAX(p->drawn_at, 0)) >= (double)p->total / DVTI_PROGRESS_LINES;
}

static void dvti_progress_draw(dvt_progress *p, double now, bool last) {
    dvti_progress_write(p, now - p->start, last);
    p->drawn = now;
    p->drawn_at = p->done;
}

static void dvti_progress_destroy(void *object) {
    dvt_progress *p = (dvt_progress *)object;
    dvti_free(p->title);
    dvti_free(p);
}

DVT_API dvt_progress *dvt_progress_new(const char *title, int64_t total) {
    static const dvti_mutex unlocked = DVTI_MUTEX_INIT;
    dvt_progress *p = (dvt_progress *)dvti_alloc_zero(sizeof *p);
    char *c;
    if (p)
        p->title = dvti_strdup(title ? title : "");
    if (!p || !p->title) {
        dvti_free(p);
        dvti_fail_memory("dvt_progress_new", (int64_t)sizeof *p);
        return NULL;
    }
    if (!dvti_object_begin(p, dvti_progress_destroy, "dvt_progress_new")) {
        dvti_progress_destroy(p);
        return NULL;
    }
    for (c = p->title; *c; c++)
        if ((unsigned char)*c < 0x20 || *c == 0x7F)
            *c = ' ';
    memcpy(&p->lock, &unlocked, sizeof unlocked);
    p->total = total;
    p->loss = (double)NAN;
    p->start = dvti_now();
    p->drawn = -1;
    p->drawn_at = -1;
    p->terminal = dvti_stderr_is_terminal();
    return p;
}

DVT_API void dvt_progress_update(dvt_progress *p, int64_t done, double loss) {
    double now = dvti_now();
    if (!p || p->total <= 0)
        return;
    dvti_mutex_lock(&p->lock);
    p->done = DVTI_MAX(0, DVTI_MIN(done, p->total));
    p->loss = loss;
    if (!p->finished && dvti_progress_due(p, now))
        dvti_progress_draw(p, now, false);
    dvti_mutex_unlock(&p->lock);
}

DVT_API void dvt_progress_finish(dvt_progress *p) {
    if (!p || p->total <= 0)
        return;
    dvti_mutex_lock(&p->lock);
    if (!p->finished && (p->terminal || p->drawn_at != p->done))
        dvti_progress_draw(p, dvti_now(), true);
    p->finished = true;
    dvti_mutex_unlock(&p->lock);
}

#undef DVTI_PROGRESS_BAR
#undef DVTI_PROGRESS_LINES
