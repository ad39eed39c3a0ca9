/* Tests of the exchange by DLPack: round trips of every dtype and layout, the rules of ownership,
   and every refusal. tests/dlpack exchanges arrays with other libraries. */
#include "dvt_faults.h"

/* ---- tensors of another library ---- */
typedef struct foreign {
    dvt_dl_managed managed;
    int64_t shape[DVT_MAX_DIMS + 1], strides[DVT_MAX_DIMS + 1];
    int deleted;
} foreign;

typedef struct foreign_versioned {
    dvt_dl_versioned managed;
    int64_t shape[DVT_MAX_DIMS], strides[DVT_MAX_DIMS];
    int deleted;
} foreign_versioned;

static void foreign_delete(dvt_dl_managed *self) {
    foreign *f = (foreign *)self->manager;
    CHECK(&f->managed == self);
    f->deleted++;
}

static void foreign_delete_versioned(dvt_dl_versioned *self) {
    foreign_versioned *f = (foreign_versioned *)self->manager;
    CHECK(&f->managed == self);
    f->deleted++;
}

/* Fills a float32 tensor (2, 3) on the CPU, in C order without strides. */
static void foreign_set(dvt_dl_tensor *tensor, int64_t *shape, void *data) {
    memset(tensor, 0, sizeof *tensor);
    shape[0] = 2;
    shape[1] = 3;
    tensor->data = data;
    tensor->device.type = DVT_DL_CPU;
    tensor->ndim = 2;
    tensor->dtype.code = DVT_DL_FLOAT;
    tensor->dtype.bits = 32;
    tensor->dtype.lanes = 1;
    tensor->shape = shape;
}

static dvt_dl_managed *foreign_make(foreign *f, void *data) {
    memset(f, 0, sizeof *f);
    foreign_set(&f->managed.tensor, f->shape, data);
    f->managed.manager = f;
    f->managed.deleter = foreign_delete;
    return &f->managed;
}

static dvt_dl_versioned *foreign_make_versioned(foreign_versioned *f, void *data) {
    memset(f, 0, sizeof *f);
    foreign_set(&f->managed.tensor, f->shape, data);
    f->managed.major = 1;
    f->managed.manager = f;
    f->managed.deleter = foreign_delete_versioned;
    return &f->managed;
}

/* ---- import ---- */
DVT_TEST(dlpack_import_shares) {
    float v[6] = {1, 2, 3, 4, 5, 6};
    foreign f;
    foreign_versioned g;
    dvt_array *x = dvt_from_dlpack(foreign_make(&f, v)), *y, *row = NULL;
    CHECK(dvt_data(x) == v);
    CHECK(dvt_ctx_equal(dvt_ctx_of(x), dvt_cpu()));
    CHECK_VALUES(x, 0, 1, 2, 3, 4, 5, 6);
    CHECK(dvt_fill(x, 7) == x);
    CHECK_CLOSE(v[5], 7, 0);
    DVT_SCOPE {
        y = dvt_from_dlpack_versioned(foreign_make_versioned(&g, v));
        row = (dvt_array *)dvt_retain(dvt_index(y, 1));
    }
    CHECK_INT(g.deleted, 0);
    CHECK_VALUES(row, 0, 7, 7, 7);
    dvt_release(row);
    CHECK_INT(g.deleted, 1);
    CHECK_INT(f.deleted, 0);
    dvt_discard(x);
    CHECK_INT(f.deleted, 1);
}

/* Ends a case: the tensor is given up with its last array. */
static void given_up(const foreign *f) {
    dvt_discard_all();
    CHECK_INT(f->deleted, 1);
}

DVT_TEST(dlpack_import_layouts) {
    float v[12] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11};
    foreign f;
    dvt_dl_tensor *t = &f.managed.tensor;
    dvt_array *x;
    foreign_make(&f, v);
    t->byte_offset = 8;
    CHECK_VALUES(dvt_from_dlpack(&f.managed), 0, 2, 3, 4, 5, 6, 7);
    given_up(&f);
    foreign_make(&f, v); /* Fortran order */
    t->strides = f.strides;
    f.strides[0] = 1;
    f.strides[1] = 2;
    CHECK_VALUES(dvt_from_dlpack(&f.managed), 0, 0, 2, 4, 1, 3, 5);
    given_up(&f);
    foreign_make(&f, v); /* backward, from an offset */
    t->strides = f.strides;
    t->byte_offset = 11 * 4;
    f.strides[0] = -6;
    f.strides[1] = -2;
    CHECK_VALUES(dvt_from_dlpack(&f.managed), 0, 11, 9, 7, 5, 3, 1);
    given_up(&f);
    foreign_make(&f, v); /* repeated: for reading only */
    t->strides = f.strides;
    f.strides[1] = 1;
    x = dvt_from_dlpack(&f.managed);
    CHECK_VALUES(x, 0, 0, 1, 2, 0, 1, 2);
    CHECK_ERROR(dvt_fill(x, 1), DVT_ERR_VALUE);
    given_up(&f);
    foreign_make(&f, v); /* pinned host memory */
    t->device.type = DVT_DL_CUDA_HOST;
    t->device.id = 1;
    CHECK(dvt_data(dvt_from_dlpack(&f.managed)) == v);
    given_up(&f);
}

DVT_TEST(dlpack_import_corners) {
    float v[6] = {1, 2, 3, 4, 5, 6};
    foreign f;
    dvt_dl_tensor *t = &f.managed.tensor;
    dvt_array *x;
    foreign_make(&f, v + 3); /* no axes */
    t->ndim = 0;
    t->shape = NULL;
    CHECK_CLOSE(dvt_item(dvt_from_dlpack(&f.managed)), 4, 0);
    given_up(&f);
    foreign_make(&f, NULL); /* no elements */
    f.shape[1] = 0;
    x = dvt_from_dlpack(&f.managed);
    CHECK(dvt_shape_equal(dvt_shape_of(x), DVT_SHAPE(2, 0)));
    given_up(&f);
    foreign_make(&f, v); /* no deleter */
    f.managed.deleter = NULL;
    CHECK_VALUES(dvt_from_dlpack(&f.managed), 0, 1, 2, 3, 4, 5, 6);
    dvt_discard_all();
    CHECK_INT(f.deleted, 0);
}

/* Such memory must not be written, so the array gets its own. */
DVT_TEST(dlpack_import_copies_read_only_tensors) {
    float v[6] = {1, 2, 3, 4, 5, 6};
    foreign_versioned f;
    dvt_array *x;
    foreign_make_versioned(&f, v);
    f.managed.flags = DVT_DL_READ_ONLY;
    f.managed.minor = 7; /* a later minor version has the same layout */
    x = dvt_from_dlpack_versioned(&f.managed);
    CHECK(dvt_data(x) != v);
    CHECK_INT(f.deleted, 1);
    CHECK(dvt_fill(x, 7) == x);
    CHECK_CLOSE(v[0], 1, 0);
    foreign_make_versioned(&f, v);
    f.managed.flags = DVT_DL_IS_COPIED | 4;
    x = dvt_from_dlpack_versioned(&f.managed);
    CHECK(dvt_data(x) == v);
    CHECK_INT(f.deleted, 0);
    dvt_discard(x);
    CHECK_INT(f.deleted, 1);
}

/* Checks a failure: its status, a part of the message, and that the caller keeps the tensor. */
#define REFUSED(status, part)                                                                      \
    do {                                                                                           \
        CHECK(dvt_from_dlpack(&f.managed) == NULL);                                                \
        CHECK_INT(dvt_error_code(), status);                                                       \
        if (!strstr(dvt_error(), part))                                                            \
            CHECK_STR(dvt_error(), part);                                                          \
        CHECK_INT(f.deleted, 0);                                                                   \
        dvt_clear_error();                                                                         \
        foreign_make(&f, v);                                                                       \
    } while (0)

DVT_TEST(dlpack_import_refuses) {
    static const struct {
        int type;
        const char *name;
    } devices[] = {{4, "OpenCL"},  {7, "Vulkan"},  {8, "Metal"},    {10, "ROCm"},
                   {14, "OneAPI"}, {15, "WebGPU"}, {99, "kind 99"}, {-1, "kind -1"}};

    float v[6] = {1, 2, 3, 4, 5, 6};
    foreign f;
    dvt_dl_tensor *t = &f.managed.tensor;
    int i;
    CHECK_ERROR(dvt_from_dlpack(NULL), DVT_ERR_NULL_ARGUMENT);
    foreign_make(&f, v);
    for (i = 0; i < (int)(sizeof devices / sizeof *devices); i++) {
        t->device.type = devices[i].type;
        REFUSED(DVT_ERR_UNSUPPORTED, devices[i].name);
    }
    t->device.type = DVT_DL_CUDA;
    t->device.id = 99;
    REFUSED(DVT_ERR_NO_DEVICE, "CUDA, device 99");
    t->device.type = DVT_DL_CUDA_MANAGED;
    t->device.id = -1;
    REFUSED(DVT_ERR_NO_DEVICE, "CUDA managed memory, device -1");
    t->ndim = 9;
    REFUSED(DVT_ERR_SHAPE, "9 axes");
    t->ndim = -1;
    REFUSED(DVT_ERR_SHAPE, "-1 axes");
    t->shape = NULL;
    REFUSED(DVT_ERR_VALUE, "no shape");
    f.shape[1] = -3;
    REFUSED(DVT_ERR_SHAPE, "negative extent");
    f.shape[0] = f.shape[1] = INT64_MAX;
    REFUSED(DVT_ERR_SHAPE, "2^63");
    t->data = NULL;
    REFUSED(DVT_ERR_VALUE, "NULL");
    t->byte_offset = UINT64_MAX;
    REFUSED(DVT_ERR_VALUE, "an offset beyond");
    t->byte_offset = 2;
    REFUSED(DVT_ERR_VALUE, "a multiple of 4");
    t->strides = f.strides;
    f.strides[0] = INT64_MIN;
    REFUSED(DVT_ERR_RANGE, "strides");
}

DVT_TEST(dlpack_import_refuses_dtypes) {
    static const struct {
        int code, bits, lanes;
        const char *name;
    } dtypes[] = {
        {0, 16, 1, "int16"},         {0, 4, 1, "int4"},           {1, 16, 1, "uint16"},
        {1, 32, 1, "uint32"},        {1, 64, 1, "uint64"},        {1, 1, 1, "uint1"},
        {2, 8, 1, "float8"},         {2, 128, 1, "float128"},     {3, 64, 1, "handle64"},
        {4, 32, 1, "bfloat32"},      {5, 64, 1, "complex64"},     {6, 1, 1, "bool"},
        {10, 8, 1, "float8_e4m3fn"}, {17, 4, 1, "float4_e2m1fn"}, {18, 8, 1, "kind 18"},
        {255, 8, 1, "kind 255"},     {2, 32, 4, "float32x4"},     {2, 32, 0, "float32x0"}};

    float v[6] = {1, 2, 3, 4, 5, 6};
    foreign f;
    int i;
    foreign_make(&f, v);
    for (i = 0; i < (int)(sizeof dtypes / sizeof *dtypes); i++) {
        f.managed.tensor.dtype.code = (uint8_t)dtypes[i].code;
        f.managed.tensor.dtype.bits = (uint8_t)dtypes[i].bits;
        f.managed.tensor.dtype.lanes = (uint16_t)dtypes[i].lanes;
        REFUSED(DVT_ERR_DTYPE, dtypes[i].name);
    }
}

#undef REFUSED

DVT_TEST(dlpack_import_refuses_other_versions) {
    float v[6] = {1, 2, 3, 4, 5, 6};
    foreign_versioned f;
    CHECK_ERROR(dvt_from_dlpack_versioned(NULL), DVT_ERR_NULL_ARGUMENT);
    foreign_make_versioned(&f, v);
    f.managed.major = 2;
    memset((char *)&f.managed + offsetof(dvt_dl_versioned, flags), 0xff,
           sizeof f.managed - offsetof(dvt_dl_versioned, flags));
    CHECK(dvt_from_dlpack_versioned(&f.managed) == NULL);
    CHECK_INT(dvt_error_code(), DVT_ERR_VALUE);
    CHECK(strstr(dvt_error(), "version 2.0; expected 1") != NULL);
    dvt_clear_error();
    foreign_make_versioned(&f, v);
    f.managed.major = 0;
    CHECK_ERROR(dvt_from_dlpack_versioned(&f.managed), DVT_ERR_VALUE);
    foreign_make_versioned(&f, v);
    f.managed.flags = DVT_DL_READ_ONLY;
    f.managed.tensor.dtype.bits = 24;
    CHECK_ERROR(dvt_from_dlpack_versioned(&f.managed), DVT_ERR_DTYPE);
    CHECK_INT(f.deleted, 0);
}

/* ---- export ---- */
DVT_TEST(dlpack_export_describes) {
    static const uint8_t codes[] = {DVT_DL_FLOAT,  DVT_DL_FLOAT, DVT_DL_FLOAT,
                                    DVT_DL_BFLOAT, DVT_DL_INT,   DVT_DL_UINT,
                                    DVT_DL_INT,    DVT_DL_INT,   DVT_DL_BOOL};
    int d;
    for (d = 0; d < DVT_DTYPE_COUNT; d++)
        DVT_SCOPE {
            dvt_array *x =
                dvt_slice(dvt_ones(DVT_SHAPE(3, 4), (dvt_dtype)d, dvt_cpu_id(1)), 1, 1, 4, 2);
            dvt_dl_managed *plain = dvt_to_dlpack(x);
            dvt_dl_versioned *versioned = dvt_to_dlpack_versioned(x, DVT_DL_COPY_NEVER);
            dvt_dl_tensor *t = &plain->tensor;
            CHECK(t->data == dvt_data(x) && versioned->tensor.data == t->data);
            CHECK_INT(t->dtype.code, codes[d]);
            CHECK_INT(t->dtype.bits, 8 * dvt_dtype_size((dvt_dtype)d));
            CHECK_INT(t->dtype.lanes, 1);
            CHECK_INT(t->device.type, DVT_DL_CPU);
            CHECK_INT(t->device.id, 0);
            CHECK_INT(t->ndim, 2);
            CHECK(t->shape[0] == 3 && t->shape[1] == 2);
            CHECK(t->strides[0] == 4 && t->strides[1] == 2);
            CHECK(t->byte_offset == 0);
            CHECK(versioned->major == DVT_DL_MAJOR && versioned->minor == DVT_DL_MINOR);
            CHECK(versioned->flags == 0);
            CHECK(memcmp(&t->dtype, &versioned->tensor.dtype, sizeof t->dtype) == 0);
            plain->deleter(plain);
            versioned->deleter(versioned);
        }
}

DVT_TEST(dlpack_round_trips) {
    static const float values[] = {-3, 0, 1, 2, 5, 7};
    int d;
    for (d = 0; d < DVT_DTYPE_COUNT; d++)
        DVT_SCOPE {
            dvt_array *host = dvt_from_host(values, DVT_SHAPE(2, 3), DVT_F32, dvt_cpu());
            dvt_array *x = dvt_t(dvt_astype(host, (dvt_dtype)d));
            dvt_array *a = dvt_from_dlpack(dvt_to_dlpack(x));
            dvt_array *b = dvt_from_dlpack_versioned(
                dvt_to_dlpack_versioned(dvt_index(x, 1), DVT_DL_COPY_IF_NEEDED));
            CHECK(dvt_array_equal(a, x, DVT_NAN_DIFFERS));
            CHECK(dvt_array_equal(b, dvt_index(x, 1), DVT_NAN_DIFFERS));
            CHECK_INT(dvt_dtype_of(b), d);
            CHECK(dvt_data(a) == dvt_data(x));
            dvt_discard(x);
            CHECK(dvt_array_equal(dvt_index(a, 1), b, DVT_NAN_DIFFERS));
            CHECK(dvt_fill(b, 1) == b); /* through both exchanges */
            CHECK_CLOSE(dvt_item_at(a, DVT_SHAPE(1, 1)), 1, 0);
        }
}

DVT_TEST(dlpack_export_of_corners) {
    dvt_ctx cpu = dvt_cpu();
    dvt_dl_versioned *t = dvt_to_dlpack_versioned(dvt_scalar(3, DVT_F64, cpu), DVT_DL_COPY_NEVER);
    CHECK_INT(t->tensor.ndim, 0);
    CHECK_CLOSE(*(double *)t->tensor.data, 3, 0);
    t->deleter(t);
    t = dvt_to_dlpack_versioned(dvt_zeros(DVT_SHAPE(3, 0, 2), DVT_I8, cpu), DVT_DL_COPY_IF_NEEDED);
    CHECK(t->tensor.data == NULL && t->tensor.byte_offset == 0);
    CHECK(t->tensor.shape[0] == 3 && t->tensor.shape[1] == 0 && t->tensor.shape[2] == 2);
    t->deleter(t);
    /* Strides of extents of 1 are those of C order. */
    t = dvt_to_dlpack_versioned(dvt_slice(dvt_ones(DVT_SHAPE(5, 4), DVT_I8, cpu), 1, 1, 2, 1),
                                DVT_DL_COPY_NEVER);
    CHECK(t->tensor.strides[0] == 4 && t->tensor.strides[1] == 1);
    t->deleter(t);
    t = dvt_to_dlpack_versioned(dvt_slice(dvt_ones(DVT_SHAPE(5, 4), DVT_I8, cpu), 0, 2, 3, 1),
                                DVT_DL_COPY_NEVER);
    CHECK(t->tensor.strides[0] == 4 && t->tensor.strides[1] == 1);
    t->deleter(t);
}

DVT_TEST(dlpack_export_copies) {
    dvt_ctx cpu = dvt_cpu();
    dvt_array *x = dvt_arange(0, 4, 1, DVT_F32, cpu), *back = dvt_slice(x, 0, -1, DVT_END, -1);
    dvt_array *wide = dvt_broadcast_to(x, DVT_SHAPE(2, 4));
    dvt_dl_versioned *t = dvt_to_dlpack_versioned(x, DVT_DL_COPY_ALWAYS);
    dvt_dl_managed *plain;
    CHECK(t->flags == DVT_DL_IS_COPIED);
    CHECK(t->tensor.data != dvt_data(x));
    t->deleter(t);
    t = dvt_to_dlpack_versioned(back, DVT_DL_COPY_IF_NEEDED);
    CHECK(t->flags == DVT_DL_IS_COPIED);
    CHECK_INT(t->tensor.strides[0], 1);
    CHECK_CLOSE(*(float *)t->tensor.data, 3, 0);
    t->deleter(t);
    t = dvt_to_dlpack_versioned(wide, DVT_DL_COPY_NEVER);
    CHECK(t->flags == DVT_DL_READ_ONLY);
    CHECK(t->tensor.data == dvt_data(x));
    CHECK(t->tensor.strides[0] == 0 && t->tensor.strides[1] == 1);
    CHECK(dvt_fill(dvt_from_dlpack_versioned(t), 8) != NULL); /* it is a copy */
    CHECK_VALUES(x, 0, 0, 1, 2, 3);
    plain = dvt_to_dlpack(wide);
    CHECK(plain->tensor.data != dvt_data(x));
    CHECK(plain->tensor.strides[0] == 4 && plain->tensor.strides[1] == 1);
    plain->deleter(plain);
    plain = dvt_to_dlpack(back);
    CHECK_CLOSE(*(float *)plain->tensor.data, 3, 0);
    plain->deleter(plain);
    CHECK_ERROR(dvt_to_dlpack_versioned(back, DVT_DL_COPY_NEVER), DVT_ERR_VALUE);
    CHECK_ERROR(dvt_to_dlpack_versioned(x, (dvt_dl_copy)3), DVT_ERR_VALUE);
    CHECK_ERROR(dvt_to_dlpack_versioned(x, (dvt_dl_copy)-1), DVT_ERR_VALUE);
    CHECK_ERROR(dvt_to_dlpack_versioned(NULL, DVT_DL_COPY_NEVER), DVT_ERR_NULL_ARGUMENT);
    CHECK_ERROR(dvt_to_dlpack(NULL), DVT_ERR_NULL_ARGUMENT);
}

/* The tensor keeps the memory after the array, its scope and its thread. */
DVT_TEST(dlpack_export_outlives_the_array) {
    dvt_dl_managed *plain = NULL;
    dvt_dl_versioned *versioned = NULL;
    int64_t blocks = dvt_get_stats().blocks_of_memory;
    DVT_SCOPE {
        dvt_array *x = dvt_full(DVT_SHAPE(1000), 4, DVT_F32, dvt_cpu());
        plain = dvt_to_dlpack(dvt_slice(x, 0, 500, 1000, 1));
        versioned = dvt_to_dlpack_versioned(x, DVT_DL_COPY_IF_NEEDED);
    }
    CHECK_INT(dvt_get_stats().blocks_of_memory, blocks + 1);
    CHECK_CLOSE(((float *)plain->tensor.data)[499], 4, 0);
    plain->deleter(plain);
    CHECK_CLOSE(((float *)versioned->tensor.data)[999], 4, 0);
    versioned->deleter(versioned);
    CHECK_INT(dvt_get_stats().blocks_of_memory, blocks);
}

#if !defined(DEVTENSOR_NO_THREADS)
static void *export_there(void *user) {
    *(dvt_dl_managed **)user = dvt_to_dlpack(dvt_full(DVT_SHAPE(100), 6, DVT_F32, dvt_cpu()));
    return NULL;
}

static void *delete_there(void *user) {
    dvt_dl_managed *managed = (dvt_dl_managed *)user;
    managed->deleter(managed);
    return NULL;
}

DVT_TEST(dlpack_export_outlives_its_thread) {
    dvt_dl_managed *managed = NULL;
    pthread_t thread;
    if (!CHECK(pthread_create(&thread, NULL, export_there, &managed) == 0))
        return;
    pthread_join(thread, NULL);
    CHECK_CLOSE(((float *)managed->tensor.data)[99], 6, 0);
    if (CHECK(pthread_create(&thread, NULL, delete_there, managed) == 0))
        pthread_join(thread, NULL);
}
#endif

DVT_TEST(dlpack_and_virtual_gpus) {
    float v[6] = {1, 2, 3, 4, 5, 6};
    foreign f;
    NEEDS_NO_GPU("GPUs made of host memory");
    CHECK_INT(dvt_set_virtual_gpus(1, 0), DVT_OK);
    CHECK_ERROR(dvt_to_dlpack(dvt_ones(DVT_SHAPE(2), DVT_F32, dvt_gpu(0))), DVT_ERR_CONTEXT);
    foreign_make(&f, v);
    f.managed.tensor.device.type = DVT_DL_CUDA; /* it is no CUDA GPU */
    CHECK_ERROR(dvt_from_dlpack(&f.managed), DVT_ERR_NO_DEVICE);
    dvt_discard_all();
    CHECK_INT(dvt_set_virtual_gpus(0, 0), DVT_OK);
}

/* A tensor belongs to one side after every failure. */
DVT_FAULTS(dlpack) {
    float v[6] = {1, 2, 3, 4, 5, 6};
    dvt_array *x = dvt_arange(0, 6, 1, DVT_F32, dvt_cpu()), *back;
    foreign_versioned f;
    dvt_dl_managed *plain = x ? dvt_to_dlpack(x) : NULL;
    int made;
    FAULTS_TRUE(plain != NULL);
    if (plain) {
        back = dvt_from_dlpack(plain);
        FAULTS_ADD(back);
        if (!back)
            plain->deleter(plain);
    }
    foreign_make_versioned(&f, v);
    f.managed.flags = DVT_DL_READ_ONLY;
    DVT_SCOPE {
        back = dvt_from_dlpack_versioned(&f.managed);
        made = back != NULL;
        CHECK_INT(f.deleted, made); /* the copy gives it up at once */
        FAULTS_ADD(back);
    }
    CHECK_INT(f.deleted, made);
}
