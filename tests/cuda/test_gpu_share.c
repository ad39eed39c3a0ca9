/* Memory and streams of other CUDA code: arrays on its memory, the order of its streams, DLPack.
   The driver is called directly, as another library would. */
#include "on_gpu.h"
#include <dlfcn.h>

#define N (1 << 16)

typedef struct driver {
    int (*retain)(void **context, int device);
    int (*push)(void *context);
    int (*pop)(void **context);
    int (*alloc)(unsigned long long *address, size_t bytes);
    int (*release)(unsigned long long address);
    int (*stream)(void **stream, unsigned flags);
    int (*end_stream)(void *stream);
    int (*copy)(unsigned long long to, unsigned long long from, size_t bytes, void *stream);
    int (*wait)(void *stream);
    void *context, *other; /* another stream */
} driver;

static void find(void *library, const char *name, void *function) {
    void *symbol = library ? dlsym(library, name) : NULL;
    CHECK(symbol != NULL);
    memcpy(function, &symbol, sizeof symbol);
}

/* Finds the driver that the library has loaded, makes the context of GPU 0 current, and creates a
   stream there that does not wait for others. */
static int driver_open(driver *d) {
    void *library = dlopen("libcuda.so.1", RTLD_NOW);
    memset(d, 0, sizeof *d);
    find(library, "cuDevicePrimaryCtxRetain", &d->retain);
    find(library, "cuCtxPushCurrent_v2", &d->push);
    find(library, "cuCtxPopCurrent_v2", &d->pop);
    find(library, "cuMemAlloc_v2", &d->alloc);
    find(library, "cuMemFree_v2", &d->release);
    find(library, "cuStreamCreate", &d->stream);
    find(library, "cuStreamDestroy_v2", &d->end_stream);
    find(library, "cuMemcpyDtoDAsync_v2", &d->copy);
    find(library, "cuStreamSynchronize", &d->wait);
    return CHECK(d->wait != NULL) && CHECK(d->retain(&d->context, 0) == 0) &&
           CHECK(d->push(d->context) == 0) && CHECK(d->stream(&d->other, 1) == 0);
}

static void driver_close(driver *d) {
    void *context;
    CHECK(d->end_stream(d->other) == 0);
    CHECK(d->pop(&context) == 0);
}

/* ---- memory ---- */
typedef struct lent {
    const driver *driver;
    unsigned long long at;
    int released;
} lent;

/* Overwrites the memory in another stream, with what new memory of the GPU contains: work that is
   still queued would read that. Freeing would not show it, because it waits for all streams. */
static void give_back(void *user) {
    lent *l = (lent *)user;
    const driver *d = l->driver;
    unsigned long long junk = 0;
    CHECK(d->alloc(&junk, N * sizeof(float)) == 0);
    CHECK(d->copy(l->at, junk, N * sizeof(float), d->other) == 0);
    CHECK(d->wait(d->other) == 0);
    CHECK(d->release(junk) == 0 && d->release(l->at) == 0);
    l->released++;
}

static dvt_array *lent_array(const driver *d, lent *l) {
    memset(l, 0, sizeof *l);
    l->driver = d;
    CHECK(d->alloc(&l->at, N * sizeof(float)) == 0);
    return dvt_from_memory((void *)(uintptr_t)l->at, DVT_SHAPE(N), NULL, DVT_F32, give_back, l,
                           dvt_gpu(0));
}

DVT_TEST(gpu_arrays_on_borrowed_memory) {
    driver d;
    lent l;
    dvt_array *x, *y;
    dvt_memory_stats before, after;
    NEEDS_GPU;
    dvt_wait(dvt_zeros(DVT_SHAPE(1), DVT_F32, dvt_gpu(0)));
    if (!driver_open(&d))
        return;
    CHECK_INT(dvt_memory_query(dvt_gpu(0), &before), DVT_OK);
    x = lent_array(&d, &l);
    CHECK_INT(dvt_memory_query(dvt_gpu(0), &after), DVT_OK);
    CHECK_INT(after.used, before.used);
    CHECK(dvt_cuda_address(x) == l.at);
    CHECK(dvt_fill(x, 3) == x);
    y = dvt_sum(dvt_add_scalar(dvt_slice(x, 0, 0, N, 2), 1), DVT_ALL);
    dvt_discard_all();
    CHECK_INT(l.released, 1);
    x = lent_array(&d, &l);
    dvt_fill(x, 2);
    CHECK_INT(dvt_wait(x), DVT_OK);
    y = dvt_exp(x);
    dvt_discard(x); /* waits until y is computed */
    CHECK_INT(l.released, 1);
    CHECK_CLOSE(dvt_item_at(y, DVT_SHAPE(N - 1)), exp(2), 1e-6);
    driver_close(&d);
}

/* Large uploads and copies to another GPU use other streams; the release waits for these too. */
DVT_TEST(gpu_borrowed_memory_and_copies) {
    static float values[N];
    driver d;
    lent l;
    dvt_array *x, *there;
    int i;
    NEEDS_GPU;
    dvt_wait(dvt_zeros(DVT_SHAPE(1), DVT_F32, dvt_gpu(0)));
    if (!driver_open(&d))
        return;
    for (i = 0; i < N; i++)
        values[i] = (float)i;
    x = lent_array(&d, &l);
    CHECK_INT(dvt_set_from_host(x, values, sizeof values), DVT_OK);
    dvt_discard(x);
    CHECK_INT(l.released, 1);
    x = lent_array(&d, &l);
    CHECK_INT(dvt_set_from_host(x, values, sizeof values), DVT_OK);
    there = dvt_copyto(x, dvt_gpu(dvt_num_gpus() - 1));
    dvt_discard(x);
    CHECK_INT(l.released, 1);
    CHECK_CLOSE(dvt_item_at(there, DVT_SHAPE(N - 7)), N - 7, 0);
    driver_close(&d);
}

DVT_TEST(gpu_borrowed_memory_is_checked) {
    static float host[4];
    dvt_array *x;
    NEEDS_GPU;
    CHECK_ERROR(dvt_from_memory(host, DVT_SHAPE(4), NULL, DVT_F32, NULL, NULL, dvt_gpu(0)),
                DVT_ERR_VALUE);
    if (dvt_num_gpus() < 2 || getenv("DEVTENSOR_VIRTUAL_GPUS"))
        SKIP("one GPU only; memory of the host was refused, that of another GPU was not tried");
    x = dvt_ones(DVT_SHAPE(4), DVT_F32, dvt_gpu(1));
    CHECK_ERROR(dvt_from_memory((void *)(uintptr_t)dvt_cuda_address(x), DVT_SHAPE(4), NULL, DVT_F32,
                                NULL, NULL, dvt_gpu(0)),
                DVT_ERR_VALUE);
}

/* ---- streams ---- */
/* Another stream reads x after the operations before, and writes y before those after. */
DVT_TEST(gpu_order_with_another_stream) {
    static float values[N];
    driver d;
    void *stream;
    int round, i;
    NEEDS_GPU;
    dvt_wait(dvt_zeros(DVT_SHAPE(1), DVT_F32, dvt_gpu(0)));
    if (!driver_open(&d))
        return;
    stream = d.other;
    for (round = 0; round < 4; round++)
        DVT_SCOPE {
            dvt_array *x, *y = dvt_zeros(DVT_SHAPE(N), DVT_F32, dvt_gpu(0));
            for (i = 0; i < N; i++)
                values[i] = (float)(i + round);
            x = dvt_from_host(values, DVT_SHAPE(N), DVT_F32, dvt_gpu(0)); /* in the upload stream */
            if (round % 2 == 0)
                dvt_add_scalar_(x, 1);
            CHECK_INT(dvt_cuda_order_before(stream, dvt_gpu(0)), DVT_OK);
            CHECK(d.copy(dvt_cuda_address(y), dvt_cuda_address(x), sizeof values, stream) == 0);
            CHECK_INT(dvt_cuda_order_after(stream, dvt_gpu(0)), DVT_OK);
            if (round >= 2) /* runs the other stream first */
                CHECK(d.wait(stream) == 0);
            dvt_fill(x, -1);
            CHECK_CLOSE(dvt_item_at(dvt_mul_scalar(y, 2), DVT_SHAPE(5)),
                        2 * (5 + round + (round % 2 == 0)), 0);
            CHECK_INT(dvt_to_host(y, values, sizeof values), DVT_OK); /* in the download stream */
            CHECK_CLOSE(values[N - 1], N - 1 + round + (round % 2 == 0), 0);
        }
    CHECK_INT(dvt_cuda_order_before(NULL, dvt_gpu(0)), DVT_OK);
    CHECK_INT(dvt_cuda_order_after(NULL, dvt_gpu(0)), DVT_OK);
    CHECK_INT(dvt_cuda_order_after(dvt_cuda_stream(dvt_gpu(0)), dvt_gpu(0)), DVT_OK);
    CHECK_ERROR(dvt_cuda_order_after(NULL, dvt_cpu()), DVT_ERR_UNSUPPORTED);
    CHECK_ERROR(dvt_cuda_order_before(NULL, dvt_cpu()), DVT_ERR_UNSUPPORTED);
    CHECK_ERROR(dvt_cuda_order_before(NULL, dvt_gpu(99)), DVT_ERR_NO_DEVICE);
    CHECK(d.wait(stream) == 0);
    driver_close(&d);
}

/* ---- DLPack ---- */
DVT_TEST(gpu_dlpack) {
    dvt_array *x, *y;
    dvt_dl_versioned *tensor;
    dvt_dl_managed *plain;
    NEEDS_GPU;
    x = dvt_reshape(dvt_arange(0, 12, 1, DVT_F32, dvt_gpu(0)), DVT_SHAPE(3, 4));
    tensor = dvt_to_dlpack_versioned(dvt_t(x), DVT_DL_COPY_NEVER);
    if (!CHECK(tensor != NULL))
        return;
    CHECK_INT(tensor->tensor.device.type, DVT_DL_CUDA);
    CHECK_INT(tensor->tensor.device.id, 0);
    CHECK((uintptr_t)tensor->tensor.data == dvt_cuda_address(x));
    y = dvt_from_dlpack_versioned(tensor);
    CHECK(dvt_ctx_equal(dvt_ctx_of(y), dvt_gpu(0)));
    CHECK(dvt_cuda_address(y) == dvt_cuda_address(x));
    CHECK_VALUES(dvt_index(y, 1), 0, 1, 5, 9);
    dvt_discard(x);
    dvt_fill(y, 4);
    CHECK_VALUES(dvt_sum(y, DVT_ALL), 0, 48);
    plain = dvt_to_dlpack(y);
    plain->tensor.device.type = DVT_DL_CUDA_MANAGED;
    x = dvt_from_dlpack(plain);
    CHECK(dvt_cuda_address(x) == dvt_cuda_address(y));
    tensor = dvt_to_dlpack_versioned(dvt_broadcast_to(dvt_index(y, 0), DVT_SHAPE(2, 3)),
                                     DVT_DL_COPY_NEVER);
    CHECK(tensor->flags == DVT_DL_READ_ONLY);
    x = dvt_from_dlpack_versioned(tensor); /* a copy on the GPU */
    CHECK(dvt_ctx_equal(dvt_ctx_of(x), dvt_gpu(0)));
    CHECK(dvt_cuda_address(x) != dvt_cuda_address(y));
    CHECK_VALUES(x, 0, 4, 4, 4, 4, 4, 4);
    plain = dvt_to_dlpack(dvt_ones(DVT_SHAPE(2), DVT_F32, dvt_gpu(0)));
    plain->tensor.device.id = 77;
    CHECK_ERROR(dvt_from_dlpack(plain), DVT_ERR_NO_DEVICE);
    plain->deleter(plain);
}
