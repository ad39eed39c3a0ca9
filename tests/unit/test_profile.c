/* Events and ranges on cpu() and virtual GPUs, page-locked arrays where there is no CUDA GPU. */
#include "dvt_test.h"
#include "json_check.h"

static void events_on(dvt_ctx ctx) {
    dvt_array *x = dvt_ones(DVT_SHAPE(200, 200), DVT_F32, ctx);
    dvt_event *first = dvt_event_record(ctx), *second;
    int i;
    for (i = 0; i < 20; i++)
        dvt_matmul(x, x);
    second = dvt_event_record(ctx);
    CHECK_INT(dvt_event_wait(second), DVT_OK);
    CHECK(dvt_event_done(first) && dvt_event_done(second));
    CHECK(dvt_event_elapsed(first, second) > 0);
    CHECK_CLOSE(dvt_event_elapsed(first, second), -dvt_event_elapsed(second, first), 0);
    CHECK_CLOSE(dvt_event_elapsed(first, first), 0, 0);
}

DVT_TEST(events_on_cpu) {
    events_on(dvt_cpu());
}

DVT_TEST(events_on_virtual_gpus) {
    dvt_virtual_model model;
    dvt_event *begin, *end, *other;
    dvt_array *x;
    if (dvt_set_virtual_gpus(2, 0) != DVT_OK)
        return;
    events_on(dvt_gpu(1));
    memset(&model, 0, sizeof model);
    model.flops = 1e8;
    CHECK_INT(dvt_set_virtual_model(&model), DVT_OK);
    x = dvt_ones(DVT_SHAPE(100, 100), DVT_F32, dvt_gpu(0));
    begin = dvt_event_record(dvt_gpu(0));
    dvt_matmul(x, x); /* 2 million operations: at least 20 ms */
    end = dvt_event_record(dvt_gpu(0));
    CHECK(dvt_event_elapsed(begin, end) >= 19.9);
    other = dvt_event_record(dvt_gpu(1));
    CHECK_ERROR(dvt_event_elapsed(begin, other), DVT_ERR_CONTEXT);
    dvt_matmul(x, x);
    dvt_discard(dvt_event_record(dvt_gpu(0))); /* before the queue comes to it */
    CHECK_INT(dvt_set_virtual_model(NULL), DVT_OK);
    dvt_discard(x);
    CHECK_ERROR(dvt_set_virtual_gpus(0, 0), DVT_ERR_VALUE); /* events exist */
    dvt_discard_all();
    CHECK_INT(dvt_set_virtual_gpus(0, 0), DVT_OK);
}

DVT_TEST(events_wrong) {
    dvt_event *event = dvt_event_record(dvt_cpu());
    CHECK_ERROR(dvt_event_record(dvt_gpu(15)), DVT_ERR_NO_DEVICE);
    CHECK_ERROR(dvt_event_wait(NULL), DVT_ERR_NULL_ARGUMENT);
    CHECK_ERROR(dvt_event_done(NULL), DVT_ERR_NULL_ARGUMENT);
    CHECK_ERROR(dvt_event_elapsed(event, NULL), DVT_ERR_NULL_ARGUMENT);
    CHECK_ERROR(dvt_event_elapsed(NULL, event), DVT_ERR_NULL_ARGUMENT);
    CHECK(dvt_event_done(event));
}

/* ---- ranges ---- */
static char text[1 << 16];
static size_t length;

static void keep_text(void *user, const char *more, size_t bytes) {
    (void)user;
    if (length + bytes < sizeof text) {
        memcpy(text + length, more, bytes);
        length += bytes;
        text[length] = 0;
    }
}

static int count(const char *what) {
    const char *at = text;
    int n = 0;
    while ((at = strstr(at, what)) != NULL) {
        n++;
        at += strlen(what);
    }
    return n;
}

DVT_TEST(ranges_in_a_trace) {
    const char *inner, *outer;
    int i;
    length = 0;
    CHECK_INT(dvt_range_push("before the trace"), DVT_OK);
    CHECK_INT(dvt_trace_begin_to(keep_text, NULL), DVT_OK);
    CHECK_INT(dvt_range_push("a \"step\""), DVT_OK);
    CHECK_INT(dvt_range_push("forward"), DVT_OK);
    dvt_ones(DVT_SHAPE(3), DVT_F32, dvt_cpu());
    CHECK_INT(dvt_range_pop(), DVT_OK);
    CHECK_INT(dvt_range_pop(), DVT_OK);
    for (i = 0; i < 40; i++)
        dvt_range_push("deep");
    for (i = 0; i < 40; i++)
        CHECK_INT(dvt_range_pop(), DVT_OK);
    CHECK_INT(dvt_range_pop(), DVT_OK);
    CHECK_INT(dvt_trace_end(), DVT_OK);
    CHECK(json_whole(text));
    inner = strstr(text, "{\"name\":\"forward\",\"cat\":\"range\"");
    outer = strstr(text, "{\"name\":\"a \\u0022step\\u0022\",\"cat\":\"range\"");
    CHECK(inner && outer && inner < outer);
    CHECK_INT(count("\"deep\""), 15); /* 16 with the one around */
    CHECK_INT(count("before the trace"), 0);
    CHECK_ERROR(dvt_range_pop(), DVT_ERR_VALUE);
    CHECK_ERROR(dvt_range_push(NULL), DVT_ERR_NULL_ARGUMENT);
}

/* ---- page-locked arrays ---- */
DVT_TEST(pinned_without_cuda) {
    dvt_array *x = dvt_empty_pinned(DVT_SHAPE(3, 4), DVT_F64, dvt_cpu());
    CHECK(x && dvt_ctx_of(x).type == DVT_DEVICE_CPU && dvt_dtype_of(x) == DVT_F64);
    dvt_fill(x, 2);
    CHECK_CLOSE(dvt_item(dvt_sum(x, DVT_ALL)), 24, 0);
    if (dvt_num_gpus() == 0)
        CHECK_ERROR(dvt_empty_pinned(DVT_SHAPE(3), DVT_F32, dvt_gpu(0)), DVT_ERR_NO_DEVICE);
    CHECK_ERROR(dvt_empty_pinned(DVT_SHAPE(-3), DVT_F32, dvt_cpu()), DVT_ERR_SHAPE);
    CHECK_ERROR(dvt_empty_pinned(DVT_SHAPE(3), (dvt_dtype)77, dvt_cpu()), DVT_ERR_DTYPE);
    if (dvt_set_virtual_gpus(1, 0) != DVT_OK)
        return;
    x = dvt_empty_pinned(DVT_SHAPE(3), DVT_F32, dvt_gpu(0));
    dvt_fill(x, 1);
    CHECK_CLOSE(dvt_item(dvt_sum(dvt_copyto(x, dvt_gpu(0)), DVT_ALL)), 3, 0);
    dvt_discard_all();
    CHECK_INT(dvt_set_virtual_gpus(0, 0), DVT_OK);
}
