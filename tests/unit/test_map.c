/* Tests of files as memory: which arrays are on the pages of the file, and which are copied. Writes
   stay private, and the mapping lives as long as its last array. */
#include "dvt_golden.h"
#include "dvt_faults.h"

#if defined(DEVTENSOR_NO_FILES)
DVT_TEST(map_without_files) {
    CHECK_ERROR(dvt_map_arrays("a.npz", dvt_cpu()), DVT_ERR_NOT_BUILT);
    CHECK_ERROR(dvt_map_npy("a.npy", dvt_cpu()), DVT_ERR_NOT_BUILT);
    CHECK_ERROR(dvt_map_bytes("a", dvt_cpu()), DVT_ERR_NOT_BUILT);
}
#else
static char map_path[600];

static const char *at_path(const char *end) {
    snprintf(map_path, sizeof map_path, "%s", golden_temporary(end));
    return map_path;
}

/* Returns the bytes that arrays of the library's own memory use on the CPU. */
static long long own_bytes(void) {
    dvt_memory_stats info;
    CHECK(dvt_memory_query(dvt_cpu(), &info) == DVT_OK);
    return (long long)info.used;
}

/* Returns how many mappings of the file this process has; -1 where the system does not say. */
static int mappings(const char *path) {
    char line[1200];
    int n = 0;
    FILE *file = fopen("/proc/self/maps", "r");
    if (!file)
        return -1;
    while (fgets(line, sizeof line, file))
        n += strstr(line, path) != NULL;
    fclose(file);
    return n;
}

#define MAPPED(path, expected)                                                                     \
    do {                                                                                           \
        int mapped_ = mappings(path);                                                              \
        CHECK(mapped_ == -1 || mapped_ == (expected));                                             \
    } while (0)

static dvt_array *pair[3];
static const char *const pair_names[3] = {"one", "two", "three"};

static void make_pair(void) {
    pair[0] = dvt_arange(0, 1000, 1, DVT_F32, dvt_cpu());
    pair[1] = dvt_arange(0, 6, 1, DVT_I64, dvt_cpu());
    pair[2] = DVT_ARRAY(bool, DVT_SHAPE(3), dvt_cpu(), 1, 0, 1);
}

static dvt_status save_pair(const char *path) {
    return dvt_save_arrays(path, pair, pair_names, 3);
}

/* The bytes between two arrays are those between their elements in the file. */
DVT_TEST(map_arrays) {
    static const char *const ends[2] = {"m.safetensors", "m.npz"};
    int way;
    make_pair();
    for (way = 0; way < 2; way++)
        DVT_SCOPE {
            const char *path = at_path(ends[way]);
            dvt_array_list *list;
            dvt_array *one, *two, *three;
            unsigned char *file;
            long long before, first = 0, second = 0;
            size_t n, i;
            CHECK(save_pair(path) == DVT_OK);
            file = golden_file(path, &n);
            for (i = 0; file && i + 9 <= n; i++) {
                if (!first && memcmp(file + i, "\0\0\x80\x3f\0\0\0\x40", 8) == 0)
                    first = (long long)i - 4;
                if (memcmp(file + i, "\1\0\0\0\0\0\0\0\2", 9) == 0)
                    second = (long long)i - 8;
            }
            free(file);
            before = own_bytes();
            list = dvt_map_arrays(path, dvt_cpu());
            one = dvt_array_list_find(list, "one");
            two = dvt_array_list_find(list, "two");
            three = dvt_array_list_find(list, "three");
            CHECK(first && second);
            CHECK_INT((char *)dvt_data(two) - (char *)dvt_data(one), second - first);
            CHECK(own_bytes() - before < 1000); /* only the bools are copied */
            MAPPED(path, 1);
            CHECK_CLOSE(dvt_item(dvt_sum(one, DVT_ALL)), 499500, 0);
            CHECK_VALUES(two, 0, 0, 1, 2, 3, 4, 5);
            CHECK_VALUES(three, 0, 1, 0, 1);
            CHECK(remove(path) == 0);
        }
}

DVT_TEST(map_lives_with_its_last_array) {
    const char *path = at_path("l.npz");
    dvt_array *kept = NULL;
    make_pair();
    CHECK(save_pair(path) == DVT_OK);
    DVT_SCOPE {
        dvt_array_list *list = dvt_map_arrays(path, dvt_cpu());
        kept = (dvt_array *)dvt_retain(dvt_slice(dvt_array_list_find(list, "one"), 0, 10, 12, 1));
    }
    MAPPED(path, 1);
    CHECK_VALUES(kept, 0, 10, 11);
    dvt_release(kept);
    MAPPED(path, 0);
    CHECK(remove(path) == 0);
}

/* Every operation that writes works, and the file keeps its bytes. */
DVT_TEST(map_writes_are_private) {
    const char *path = at_path("w.npy");
    dvt_array *x, *again;
    CHECK(dvt_save_npy(path, dvt_arange(0, 4, 1, DVT_F32, dvt_cpu())) == DVT_OK);
    x = dvt_map_npy(path, dvt_cpu());
    again = dvt_map_npy(path, dvt_cpu());
    CHECK(!dvt_shares_memory(x, again));
    dvt_copy_into(dvt_slice(x, 0, 1, 2, 1), dvt_full(DVT_SHAPE(1), 9, DVT_F32, dvt_cpu()));
    ((float *)dvt_data(x))[2] = 7;
    CHECK_VALUES(x, 0, 0, 9, 7, 3);
    CHECK_VALUES(again, 0, 0, 1, 2, 3);
    CHECK_VALUES(dvt_load_npy(path, dvt_cpu()), 0, 0, 1, 2, 3);
    CHECK(dvt_fill(x, 5) != NULL);
    /* a new file under the same name leaves the pages of the old one */
    CHECK(dvt_save_npy(path, dvt_zeros(DVT_SHAPE(4), DVT_F32, dvt_cpu())) == DVT_OK);
    CHECK_VALUES(again, 0, 0, 1, 2, 3);
    CHECK(remove(path) == 0);
}

static void write_npy(const char *path, const char *descr, const char *order, const char *shape,
                      int padding, const void *bytes, size_t n) {
    char file[400], *at = file + 10;
    int length = snprintf(at, 300, "{'descr': '%s', 'fortran_order': %s, 'shape': %s, }%*s\n",
                          descr, order, shape, padding, "");
    memcpy(file, "\x93NUMPY\1\0", 8);
    file[8] = (char)length;
    file[9] = 0;
    memcpy(at + length, bytes, n);
    CHECK(golden_write(path, file, (size_t)(10 + length) + n));
}

/* Fortran order becomes strides; another byte order and unaligned elements are copied. */
DVT_TEST(map_npy_orders) {
    const char *path = at_path("f.npy");
    static const float f[6] = {1, 2, 3, 4, 5, 6};
    static const char big[8] = {0, 0, 0, 7, 0, 0, 1, 0};
    dvt_array *x;
    long long before = own_bytes();
    int padding, shared = 0;
    for (padding = 0; padding < 4; padding++) {
        write_npy(path, "<f4", "True", "(2, 3)", padding, f, sizeof f);
        x = dvt_map_npy(path, dvt_cpu());
        CHECK_VALUES(x, 0, 1, 3, 5, 2, 4, 6);
        CHECK((uintptr_t)dvt_data(x) % 4 == 0);
        shared += own_bytes() == before && dvt_stride(x, 0) == 1 && dvt_stride(x, 1) == 2;
        before = own_bytes();
    }
    CHECK_INT(shared, 1);
    write_npy(path, ">i4", "False", "(2,)", 0, big, sizeof big);
    CHECK_VALUES(dvt_map_npy(path, dvt_cpu()), 0, 7, 256);
    write_npy(path, "<i2", "False", "(4,)", 0, big, sizeof big);
    x = dvt_map_npy(path, dvt_cpu());
    CHECK_INT(dvt_dtype_of(x), DVT_I32);
    CHECK_VALUES(x, 0, 0, 0x700, 0, 1);
    CHECK(golden_write(path, "plain", 5));
    before = own_bytes();
    x = dvt_map_bytes(path, dvt_cpu());
    CHECK_INT(own_bytes(), before);
    CHECK_VALUES(x, 0, 'p', 'l', 'a', 'i', 'n');
    CHECK(golden_write(path, "", 0));
    CHECK_INT(dvt_size(dvt_map_bytes(path, dvt_cpu())), 0);
    CHECK(remove(path) == 0);
}

/* GPUs get copies. Compressed members and models in several files are read. */
DVT_TEST(map_to_gpus_and_indices) {
    const char *path = at_path("g.npz"), *name = NULL;
    char index[700], text[900];
    dvt_array_list *list;
    make_pair();
    CHECK(dvt_set_virtual_gpus(1, 0) == DVT_OK);
    DVT_SCOPE {
        CHECK(save_pair(path) == DVT_OK);
        list = dvt_map_arrays(path, dvt_gpu(0));
        CHECK(dvt_ctx_equal(dvt_ctx_of(dvt_array_list_at(list, 1)), dvt_gpu(0)));
        CHECK_VALUES(dvt_array_list_at(list, 1), 0, 0, 1, 2, 3, 4, 5);
        MAPPED(path, 0);
        CHECK(dvt_save_npz_compressed(path, pair, pair_names, 3) == DVT_OK);
        CHECK_VALUES(dvt_array_list_at(dvt_map_arrays(path, dvt_cpu()), 1), 0, 0, 1, 2, 3, 4, 5);
    }
    CHECK(dvt_set_virtual_gpus(0, 0) == DVT_OK);
    CHECK(remove(path) == 0);
    path = at_path("s.safetensors");
    CHECK(save_pair(path) == DVT_OK);
    name = strrchr(path, '/') + 1;
    snprintf(index, sizeof index, "%s.index.json", path);
    snprintf(text, sizeof text, "{\"weight_map\":{\"one\":\"%s\",\"two\":\"%s\",\"three\":\"%s\"}}",
             name, name, name);
    CHECK(golden_write(index, text, strlen(text)));
    DVT_SCOPE {
        list = dvt_map_arrays(index, dvt_cpu());
        CHECK_INT(dvt_array_list_len(list), 3);
        MAPPED(path, 1);
        CHECK_VALUES(dvt_array_list_find(list, "two"), 0, 0, 1, 2, 3, 4, 5);
    }
    CHECK(remove(path) == 0 && remove(index) == 0);
}

DVT_TEST(map_errors) {
    const char *path = at_path("e.npz");
    make_pair();
    CHECK_ERROR(dvt_map_arrays(path, dvt_cpu()), DVT_ERR_IO);
    CHECK_ERROR(dvt_map_arrays(NULL, dvt_cpu()), DVT_ERR_NULL_ARGUMENT);
    CHECK(golden_write(path, "PK\3\4 and nothing more", 21));
    CHECK_ERROR(dvt_map_arrays(path, dvt_cpu()), DVT_ERR_FORMAT);
    CHECK_ERROR(dvt_map_npy(path, dvt_cpu()), DVT_ERR_FORMAT);
    MAPPED(path, 0);
    CHECK(remove(path) == 0);
}

static const char *damaged_path;

static void map_damaged(const void *bytes, size_t n) {
    CHECK(golden_write(damaged_path, bytes, n));
    dvt_map_arrays(damaged_path, dvt_cpu());
}

DVT_TEST(map_damaged_archives) {
    char path[600];
    unsigned char *bytes;
    size_t n;
    snprintf(path, sizeof path, "%s", at_path("d.npz"));
    make_pair();
    CHECK(dvt_save_npz(path, pair + 1, pair_names, 2) == DVT_OK);
    bytes = golden_file(path, &n);
    damaged_path = path;
    if (CHECK(bytes != NULL))
        golden_damage(bytes, n, map_damaged);
    free(bytes);
    CHECK(remove(path) == 0);
}

DVT_FAULTS(map) {
    const char *path = at_path("o.npz");
    dvt_array *x = dvt_arange(0, 9, 1, DVT_F32, dvt_cpu());
    if (x && dvt_save_npz(path, &x, pair_names, 1) == DVT_OK)
        FAULTS_ADD(dvt_array_list_find(dvt_map_arrays(path, dvt_cpu()), "one"));
    else
        run->failed = 1;
    remove(path);
}
#endif
