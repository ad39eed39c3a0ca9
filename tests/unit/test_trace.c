/* Tests of traces: valid JSON at any time, what its events say, the table of copies. */
#include "dvt_faults.h"
#include "dvt_test.h"
#include "in_threads.h"
#include "json_check.h"
#if !defined(DEVTENSOR_NO_FILES)
#include <unistd.h>
#endif

typedef struct traced {
    char *text;
    size_t length, parts;
} traced;

static void traced_write(void *user, const char *text, size_t bytes) {
    traced *t = (traced *)user;
    t->text = (char *)realloc(t->text, t->length + bytes + 1);
    memcpy(t->text + t->length, text, bytes);
    t->length += bytes;
    t->text[t->length] = 0;
    t->parts++;
}

static int times(const char *text, const char *part) {
    int n = 0;
    for (; text && (text = strstr(text, part)) != NULL; text += strlen(part))
        n++;
    return n;
}

/* Returns the event of that name and category with that text, as a line of its own; NULL if there
   is none. */
static const char *event_of(const traced *t, const char *name, const char *category,
                            const char *part) {
    static char line[1024];
    char head[128];
    const char *at = t->text, *end;
    snprintf(head, sizeof head, "{\"name\":\"%s\",\"cat\":\"%s\"", name, category);
    while (at && (at = strstr(at, head)) != NULL) {
        end = strchr(at, '\n');
        snprintf(line, sizeof line, "%.*s", (int)(end - at), at);
        if (strstr(line, part))
            return line;
        at = end;
    }
    return NULL;
}

/* Tells whether the event is of that line of this file. */
static int at_line(const char *event, int line) {
    char part[64];
#if defined(DEVTENSOR_NO_CALL_SITES)
    (void)line;
    snprintf(part, sizeof part, "\"args\"");
#else
    snprintf(part, sizeof part, "test_trace.c:%d\"}", line);
#endif
    return event && strstr(event, part) != NULL;
}

DVT_TEST(trace_of_operations) {
    traced t = {NULL, 0, 0};
    dvt_array *x, *y, *k;
    int line;
    CHECK_INT(dvt_trace_begin_to(traced_write, &t), DVT_OK);
    x = dvt_ones(DVT_SHAPE(2, 3), DVT_F32, dvt_cpu());
    y = dvt_add(x, dvt_ones(DVT_SHAPE(3), DVT_I32, dvt_cpu())), line = __LINE__;
    dvt_matmul(y, dvt_t(x));
    k = dvt_ones(DVT_SHAPE(4, 3, 5, 5), DVT_F32, dvt_cpu());
    dvt_conv2d(dvt_ones(DVT_SHAPE(2, 3, 8, 8), DVT_F32, dvt_cpu()), k, NULL, NULL);
    CHECK(t.length > 0 && t.length < 200); /* the names of rows, before anything happens */
    CHECK_INT(dvt_trace_end(), DVT_OK);
    CHECK(json_whole(t.text));
    CHECK(at_line(event_of(&t, "dvt_add", "operation",
                           "\"ctx\":\"cpu(0)\",\"kernel\":\"elementwise\",\"dtype\":\"float32\","
                           "\"shape\":\"(2, 3)\",\"inputs\":\"float32 (2, 3), int32 (2, 3)\""),
                  line));
    CHECK(event_of(&t, "dvt_matmul", "operation", "\"shape\":\"(2, 2)\"") != NULL);
    CHECK(event_of(&t, "dvt_matmul", "operation", "\"multiply_adds\":12") != NULL);
    CHECK(event_of(&t, "dvt_conv2d", "operation", "\"multiply_adds\":9600") != NULL);
    CHECK(strstr(t.text, "\"name\":\"thread_name\"") && strstr(t.text, "\"thread 1\""));
    CHECK(!strstr(t.text, "\"cat\":\"transfer\"") && !strstr(t.text, "\"cat\":\"wait\""));
    t.parts = 0;
    dvt_add(x, x);
    CHECK_INT(t.parts, 0);
    free(t.text);
}

/* Durations are not negative, and events of one thread do not begin before the trace. */
DVT_TEST(trace_times) {
    traced t = {NULL, 0, 0};
    dvt_array *x = dvt_ones(DVT_SHAPE(100), DVT_F32, dvt_cpu());
    const char *at;
    char row[300];
    double last = 0;
    int i, n = 0;
    dvt_trace_begin_to(traced_write, &t);
    for (i = 0; i < 5; i++)
        dvt_exp_(x);
    CHECK_INT(dvt_trace_end(), DVT_OK);
    for (at = t.text; (at = strstr(at, "\"cat\":\"operation\"")) != NULL; at++, n++) {
        double begin = atof(strstr(at, "\"ts\":") + 5), time = atof(strstr(at, "\"dur\":") + 6);
        CHECK(begin >= last && time >= 0);
        last = begin + time;
    }
    CHECK_INT(n, 5);
    CHECK(last < 60e6);                                          /* microseconds */
    CHECK(dvt_transfers_format(row, sizeof row) == strlen(row)); /* all was on cpu(0) */
    CHECK(strstr(row, "No copies since dvt_trace_begin, which starts the counts.") != NULL);
    free(t.text);
}

/* A crash loses the end of the text. Readers then see an array of whole objects without an end. */
DVT_TEST(trace_opens_after_any_event) {
    traced t = {NULL, 0, 0};
    dvt_array *x = dvt_ones(DVT_SHAPE(2), DVT_F32, dvt_cpu());
    const char *at;
    char *cut;
    dvt_trace_begin_to(traced_write, &t);
    dvt_note_site(dvt_add(dvt_mul(x, x), x), "a \"b\"\\c\n.c", 1);
    CHECK_INT(dvt_trace_end(), DVT_OK);
    CHECK(json_whole(t.text));
    CHECK(strstr(t.text, "\n]\n") == t.text + t.length - 3);
    cut = (char *)malloc(t.length + 8);
    for (at = strchr(t.text, '\n'); (at = strchr(at + 1, '\n')) != NULL && at[1] != ']';) {
        size_t n = (size_t)(at - t.text);
        memcpy(cut, t.text, n);
        memcpy(cut + n, "{}]", 4);
        CHECK(json_whole(cut));
    }
    free(cut);
    free(t.text);
}

#if !defined(DEVTENSOR_NO_CALL_SITES)
/* A call of several operations is a slice around them. */
DVT_TEST(trace_of_a_call_with_several_operations) {
    traced t = {NULL, 0, 0};
    dvt_array *x = dvt_ones(DVT_SHAPE(4, 4), DVT_F32, dvt_cpu()), *y = NULL;
    char name[64];
    const char *at;
    int line;
    dvt_attach_grad(x, DVT_GRAD_WRITE);
    DVT_RECORD {
        y = dvt_sum(dvt_mul(x, dvt_exp(x)), DVT_ALL);
    }
    dvt_trace_begin_to(traced_write, &t);
    CHECK(dvt_backward(y) == DVT_OK), line = __LINE__;
    CHECK_INT(dvt_trace_end(), DVT_OK);
    snprintf(name, sizeof name, "test_trace.c:%d\",\"cat\":\"line\"", line);
    at = strstr(t.text, name);
    CHECK(at != NULL);
    CHECK(times(t.text, "\"cat\":\"operation\"") > 2);
    CHECK_INT(times(t.text, "\"cat\":\"line\""), 1);
    snprintf(name, sizeof name, "test_trace.c:%d\"}", line);
    CHECK_INT(times(t.text, name), times(t.text, "\"cat\":\"operation\""));
    free(t.text);
}
#endif

DVT_TEST(trace_of_gpus) {
    traced t = {NULL, 0, 0};
    dvt_array *x, *y;
    float host[6] = {1, 2, 3, 4, 5, 6};
    char table[2048], row[200];
    const char *at;
    int line_up, line_add, line_item, line_wait, line_across;
    if (dvt_set_virtual_gpus(2, 0) != DVT_OK) {
        dvt_clear_error();
        SKIP("virtual GPUs are in use");
    }
    {
        DVT_SCOPED;
        dvt_trace_begin_to(traced_write, &t);
        x = dvt_from_host(host, DVT_SHAPE(2, 3), DVT_F32, dvt_gpu(1)), line_up = __LINE__;
        y = dvt_add(x, x), line_add = __LINE__;
        CHECK(dvt_item_at(y, DVT_SHAPE(1, 2)) == 12), line_item = __LINE__;
        CHECK(dvt_item_at(y, DVT_SHAPE(0, 0)) == 2);
        CHECK(dvt_wait(y) == DVT_OK), line_wait = __LINE__;
        y = dvt_copyto(y, dvt_gpu(0)), line_across = __LINE__;
        CHECK(dvt_synchronize(dvt_gpu(0)) == DVT_OK);
        CHECK(dvt_wait_all() == DVT_OK);
        CHECK_INT(dvt_trace_end(), DVT_OK);
    }
    CHECK(json_whole(t.text));
    CHECK(at_line(event_of(&t, "dvt_from_host", "transfer",
                           "\"from\":\"cpu(0)\",\"to\":\"gpu(1)\",\"bytes\":24"),
                  line_up));
    CHECK(at_line(event_of(&t, "dvt_add", "operation", "\"ctx\":\"gpu(1)\""), line_add));
    CHECK(at_line(event_of(&t, "dvt_item_at", "wait", "\"ctx\":\"gpu(1)\""), line_item));
    CHECK(at_line(event_of(&t, "dvt_item_at", "transfer", "\"bytes\":"), line_item));
    CHECK(at_line(event_of(&t, "dvt_wait", "wait", "\"ctx\":\"gpu(1)\""), line_wait));
    CHECK(event_of(&t, "dvt_synchronize", "wait", "\"ctx\":\"gpu(0)\"") != NULL);
    CHECK(event_of(&t, "dvt_wait_all", "wait", "\"ctx\":\"gpu(1)\"") != NULL);
    CHECK(at_line(event_of(&t, "dvt_copyto", "transfer",
                           "\"from\":\"gpu(1)\",\"to\":\"gpu(0)\",\"bytes\":24"),
                  line_across));
    /* process 3 is gpu(1) */
    CHECK(event_of(&t, "dvt_add", "queue", "\"pid\":3,\"tid\":1") != NULL);
    CHECK(strstr(t.text, "\"gpu(1)\"}") != NULL && strstr(t.text, "\"queue\"}") != NULL);
    /* both ends of the arrow have the number of the launch */
    at = event_of(&t, "launch", "launch", "\"ph\":\"s\"");
    CHECK(at != NULL);
    if (at) {
        snprintf(row, sizeof row, "%.100s", strstr(at, "\"id\":"));
        row[strcspn(row, ",}")] = 0;
        at = event_of(&t, "launch", "launch", "\"ph\":\"f\"");
        CHECK(at && strstr(at, row) && strstr(at, "\"pid\":3"));
    }
    CHECK_INT(times(t.text, "\"ph\":\"s\""), times(t.text, "\"ph\":\"f\""));
    CHECK(dvt_transfers_format(table, sizeof table) == strlen(table));
    CHECK(strstr(table, "No copies") == NULL);
    CHECK(strncmp(table,
                  "         Bytes   Copies  From     To        Function                 Line\n",
                  74) == 0);
    CHECK(strstr(table, "            24        1  cpu(0)   gpu(1)    dvt_from_host            ") !=
          NULL);
    CHECK(strstr(table, "        1  gpu(1)   gpu(0)    dvt_copyto               ") != NULL);
#if !defined(DEVTENSOR_NO_CALL_SITES)
    snprintf(row, sizeof row, "test_trace.c:%d\n", line_across);
    CHECK(strstr(table, row) != NULL);
    CHECK_INT(times(table, "dvt_item_at "), 2);
#else
    CHECK(strstr(table, "not known\n") != NULL);
#endif
    at = strchr(table, '\n') + 1; /* most bytes first */
    for (; strchr(at, '\n')[1]; at = strchr(at, '\n') + 1)
        CHECK(atoll(at) >= atoll(strchr(at, '\n') + 1));
    CHECK_INT(dvt_set_virtual_gpus(0, 0), DVT_OK);
    free(t.text);
}

#if !defined(DEVTENSOR_NO_THREADS)
static void *trace_worker(void *user) {
    worker *w = (worker *)user;
    dvt_array *x = dvt_ones(DVT_SHAPE(8), DVT_F32, dvt_cpu());
    int i;
    for (i = 0; i < 20; i++)
        dvt_exp(x);
    w->status = dvt_error_code();
    return NULL;
}

DVT_TEST(trace_of_threads) {
    traced t = {NULL, 0, 0};
    worker workers[THREADS];
    char name[32];
    int i;
    memset(workers, 0, sizeof workers);
    dvt_trace_begin_to(traced_write, &t);
    in_threads(trace_worker, workers);
    CHECK_INT(dvt_trace_end(), DVT_OK);
    CHECK(json_whole(t.text));
    CHECK_INT(times(t.text, "{\"name\":\"dvt_exp\""), 20 * THREADS);
    for (i = 1; i <= THREADS; i++) {
        snprintf(name, sizeof name, "\"thread %d\"", i);
        CHECK_INT(times(t.text, name), 1);
    }
    free(t.text);
}
#endif

DVT_TEST(trace_errors) {
    traced t = {NULL, 0, 0};
    CHECK_ERROR(dvt_trace_end(), DVT_ERR_VALUE);
    CHECK_ERROR(dvt_trace_begin(NULL), DVT_ERR_NULL_ARGUMENT);
    CHECK_ERROR(dvt_trace_begin_to(NULL, NULL), DVT_ERR_NULL_ARGUMENT);
    dvt_trace_begin_to(traced_write, &t);
    CHECK_ERROR(dvt_trace_begin_to(traced_write, &t), DVT_ERR_VALUE);
    CHECK_INT(dvt_trace_end(), DVT_OK);
    CHECK(json_whole(t.text));
    free(t.text);
#if defined(DEVTENSOR_NO_FILES)
    CHECK_ERROR(dvt_trace_begin("trace.json"), DVT_ERR_NOT_BUILT);
#else
    CHECK_ERROR(dvt_trace_begin("/no/such/directory/trace.json"), DVT_ERR_IO);
    CHECK_ERROR(dvt_trace_begin("/"), DVT_ERR_IO);
#endif
    CHECK_ERROR(dvt_trace_end(), DVT_ERR_VALUE);
}

#if !defined(DEVTENSOR_NO_FILES)
/* A file is replaced when a trace begins, and complete when it ends. A full disk is an error. */
DVT_TEST(trace_file) {
    char path[512], *text = (char *)calloc(1, 65536);
    const char *folder = getenv("TMPDIR");
    FILE *file;
    int i;
    snprintf(path, sizeof path, "%s/devtensor-%ld-trace.json",
             folder && folder[0] ? folder : "/tmp", (long)getpid());
    for (i = 0; i < 2; i++) {
        CHECK_INT(dvt_trace_begin(path), DVT_OK);
        dvt_ones(DVT_SHAPE(3 + i), DVT_F32, dvt_cpu());
        CHECK_INT(dvt_trace_end(), DVT_OK);
    }
    file = fopen(path, "rb");
    CHECK(file != NULL);
    if (file) {
        CHECK(fread(text, 1, 65535, file) > 0);
        fclose(file);
    }
    CHECK(json_whole(text));
    CHECK(strstr(text, "\"(4,)\"") && !strstr(text, "\"(3,)\""));
    remove(path);
    free(text);
    file = fopen("/dev/full", "wb");
    if (file) {
        fclose(file);
        CHECK_INT(dvt_trace_begin("/dev/full"), DVT_OK);
        CHECK_ERROR(dvt_trace_end(), DVT_ERR_IO);
    }
}
#endif

static void traced_drop(void *user, const char *text, size_t bytes) {
    (void)user;
    (void)text;
    (void)bytes;
}

DVT_FAULTS(trace) {
    dvt_array *x = dvt_ones(DVT_SHAPE(2, 2), DVT_F32, dvt_cpu());
    FAULTS_OK(dvt_trace_begin_to(traced_drop, NULL));
    FAULTS_ADD(dvt_add(x, x));
    FAULTS_ADD(dvt_matmul(x, x));
    FAULTS_OK(dvt_trace_end()); /* also ends a trace that has begun before a failure */
}
