/* Tests of CIFAR's binary files: pixels and labels, refusals with their messages, directories. */
#include "dvt_golden.h"

enum { PIXELS = 3072 };

static unsigned char made[4 * (PIXELS + 2)];

/* Returns the value of a pixel of the images made here. */
static unsigned char pixel(int image, int channel, int row, int column) {
    return (unsigned char)(image * 50 + channel * 70 + row * 3 + column);
}

/* Writes n records with these label bytes. Returns their length. */
static size_t make(int n, int label_bytes, const unsigned char *labels) {
    size_t at = 0;
    int i, c, r, k;
    for (i = 0; i < n; i++) {
        memcpy(made + at, labels + i * label_bytes, (size_t)label_bytes);
        at += (size_t)label_bytes;
        for (c = 0; c < 3; c++)
            for (r = 0; r < 32; r++)
                for (k = 0; k < 32; k++)
                    made[at++] = pixel(i, c, r, k);
    }
    return at;
}

static void check_images(dvt_array *x, int n) {
    const unsigned char *at = x ? (const unsigned char *)dvt_data(x) : NULL;
    int i, r, k, c, wrong = 0;
    CHECK(dvt_shape_equal(dvt_shape_of(x), DVT_SHAPE(n, 32, 32, 3)) && dvt_dtype_of(x) == DVT_U8);
    for (i = 0; at && i < n; i++)
        for (r = 0; r < 32; r++)
            for (k = 0; k < 32; k++)
                for (c = 0; c < 3; c++)
                    wrong += *at++ != pixel(i, c, r, k);
    CHECK_INT(wrong, 0);
}

DVT_TEST(cifar_reads) {
    static const unsigned char ten[] = {9, 0, 4}, hundred[] = {19, 99, 0, 7};
    dvt_array *x, *y;
    CHECK(dvt_read_cifar10(made, make(3, 1, ten), &x, &y) == DVT_OK);
    check_images(x, 3);
    CHECK(dvt_dtype_of(y) == DVT_I32);
    CHECK_VALUES(y, 0, 9, 0, 4);
    CHECK(dvt_read_cifar100(made, make(2, 2, hundred), DVT_CIFAR100_FINE, &x, &y) == DVT_OK);
    check_images(x, 2);
    CHECK_VALUES(y, 0, 99, 7);
    CHECK(dvt_read_cifar100(made, make(2, 2, hundred), DVT_CIFAR100_COARSE, &x, &y) == DVT_OK);
    check_images(x, 2);
    CHECK_VALUES(y, 0, 19, 0);
}

#define REFUSE(n, words) CHECK_REFUSED(dvt_read_cifar10(made, n, &x, &y), DVT_ERR_FORMAT, words)

DVT_TEST(cifar_refuses) {
    static const unsigned char ten[] = {9, 0}, eleven[] = {0, 10}, hundred[] = {0, 100},
                               twenty[] = {20, 0};
    dvt_array *x, *y;
    size_t n = make(2, 1, ten);
    REFUSE(0, "it is empty; expected 3073 bytes for each image");
    REFUSE(1, "it has 1 bytes");
    REFUSE(n - 1, "it has 6145 bytes");
    REFUSE(n + 1, "it has 6147 bytes");
    make(2, 1, eleven);
    REFUSE(n, "the label of image 1 is 10; expected 0 to 9");
    CHECK(x == NULL && y == NULL);
    n = make(1, 2, hundred);
    CHECK_REFUSED(dvt_read_cifar100(made, n, DVT_CIFAR100_FINE, &x, &y), DVT_ERR_FORMAT,
                  "is 100; expected 0 to 99");
    CHECK(dvt_read_cifar100(made, n, DVT_CIFAR100_COARSE, &x, &y) == DVT_OK);
    n = make(1, 2, twenty);
    CHECK_REFUSED(dvt_read_cifar100(made, n, DVT_CIFAR100_COARSE, &x, &y), DVT_ERR_FORMAT,
                  "is 20; expected 0 to 19");
    CHECK_REFUSED(dvt_read_cifar100(made, n - 1, DVT_CIFAR100_FINE, &x, &y), DVT_ERR_FORMAT,
                  "multiple of 3074");
    CHECK_ERROR(dvt_read_cifar100(made, n, (dvt_cifar100_labels)2, &x, &y), DVT_ERR_VALUE);
    CHECK_ERROR(dvt_read_cifar10(NULL, n, &x, &y), DVT_ERR_NULL_ARGUMENT);
    CHECK_ERROR(dvt_read_cifar10(made, n, NULL, &y), DVT_ERR_NULL_ARGUMENT);
    CHECK_ERROR(dvt_read_cifar10(made, n, &x, NULL), DVT_ERR_NULL_ARGUMENT);
}

static int read_made(void) {
    static const unsigned char ten[] = {9, 0};
    dvt_array *x, *y;
    return dvt_read_cifar10(made, make(2, 1, ten), &x, &y) == DVT_OK;
}

DVT_TEST(cifar_out_of_memory) {
    CHECK(golden_out_of_memory(read_made) >= 2);
}

#if !defined(DEVTENSOR_NO_NN)
#if defined(DEVTENSOR_NO_FILES)
DVT_TEST(cifar_without_files) {
    CHECK_ERROR(dvt_dataset_cifar10(".", DVT_DATASET_TEST), DVT_ERR_NOT_BUILT);
    CHECK_ERROR(dvt_dataset_cifar100(".", DVT_DATASET_TEST, DVT_CIFAR100_FINE), DVT_ERR_NOT_BUILT);
}
#else
#include "dvt_host.h"
#include <sys/stat.h>
#include <unistd.h>

static char folder[512];

static const char *path_of(const char *name) {
    static char paths[4][700];
    static int next;
    char *path = paths[next++ % 4];
    snprintf(path, sizeof paths[0], "%s/%s", folder, name);
    return path;
}

static void write_batches(const char *below) {
    char name[100];
    int i;
    for (i = 0; i < 5; i++) {
        unsigned char labels[2];
        labels[0] = (unsigned char)i;
        labels[1] = (unsigned char)(9 - i);
        snprintf(name, sizeof name, "%sdata_batch_%d.bin", below, i + 1);
        CHECK(golden_write(path_of(name), made, make(i == 4 ? 1 : 2, 1, labels)));
    }
}

static void remove_batches(const char *below) {
    char name[100];
    int i;
    for (i = 0; i < 5; i++) {
        snprintf(name, sizeof name, "%sdata_batch_%d.bin", below, i + 1);
        CHECK(remove(path_of(name)) == 0);
    }
}

DVT_TEST(cifar_directories) {
    static const unsigned char two[] = {3, 8}, hundred[] = {1, 2, 3, 4};
    dvt_dataset *data;
    dvt_array *x, *y;
    snprintf(folder, sizeof folder, "%s", golden_temporary("cifar"));
    CHECK(mkdir(folder, 0700) == 0);
    CHECK_REFUSED(dvt_dataset_cifar10(folder, DVT_DATASET_TRAIN), DVT_ERR_IO, "data_batch_1.bin");
    CHECK_REFUSED(dvt_dataset_cifar100(folder, DVT_DATASET_TEST, DVT_CIFAR100_FINE), DVT_ERR_IO,
                  "test.bin");
    CHECK(mkdir(path_of("cifar-10-batches-bin"), 0700) == 0);
    write_batches("cifar-10-batches-bin/");
    data = dvt_dataset_cifar10(folder, DVT_DATASET_TRAIN);
    CHECK_INT(dvt_dataset_len(data), 9);
    CHECK(dvt_dataset_get(data, 3, &x, &y) == DVT_OK);
    CHECK(dvt_shape_equal(dvt_shape_of(x), DVT_SHAPE(32, 32, 3)));
    CHECK_INT(dvt_item_int(y), 8);
    CHECK_INT((long long)dvt_item_at(x, DVT_SHAPE(5, 6, 2)), pixel(1, 2, 5, 6));
    CHECK(dvt_dataset_get(data, 8, &x, &y) == DVT_OK);
    CHECK_INT(dvt_item_int(y), 4);
    data = dvt_dataset_cifar10(path_of("cifar-10-batches-bin"), DVT_DATASET_TRAIN);
    CHECK_INT(dvt_dataset_len(data), 9);
    CHECK(golden_write(path_of("cifar-10-batches-bin/data_batch_4.bin"), made, 3000));
    CHECK_REFUSED(dvt_dataset_cifar10(folder, DVT_DATASET_TRAIN), DVT_ERR_FORMAT,
                  "data_batch_4.bin: it has 3000 bytes");
    CHECK(remove(path_of("cifar-10-batches-bin/data_batch_4.bin")) == 0);
    CHECK_REFUSED(dvt_dataset_cifar10(folder, DVT_DATASET_TRAIN), DVT_ERR_IO, "data_batch_4.bin");
    write_batches("cifar-10-batches-bin/");
    remove_batches("cifar-10-batches-bin/");
    CHECK(rmdir(path_of("cifar-10-batches-bin")) == 0);
    CHECK(golden_write(path_of("test_batch.bin"), made, make(2, 1, two)));
    data = dvt_dataset_cifar10(folder, DVT_DATASET_TEST);
    CHECK_INT(dvt_dataset_len(data), 2);
    CHECK(remove(path_of("test_batch.bin")) == 0);
    CHECK(golden_write(path_of("train.bin"), made, make(2, 2, hundred)));
    data = dvt_dataset_cifar100(folder, DVT_DATASET_TRAIN, DVT_CIFAR100_FINE);
    CHECK(dvt_dataset_get(data, 1, &x, &y) == DVT_OK);
    CHECK_INT(dvt_item_int(y), 4);
    data = dvt_dataset_cifar100(folder, DVT_DATASET_TRAIN, DVT_CIFAR100_COARSE);
    CHECK(dvt_dataset_get(data, 1, &x, &y) == DVT_OK);
    CHECK_INT(dvt_item_int(y), 3);
    CHECK_ERROR(dvt_dataset_cifar100(folder, DVT_DATASET_TRAIN, (dvt_cifar100_labels)5),
                DVT_ERR_VALUE);
    CHECK_ERROR(dvt_dataset_cifar10(folder, (dvt_dataset_part)5), DVT_ERR_VALUE);
    CHECK_ERROR(dvt_dataset_cifar10(NULL, DVT_DATASET_TRAIN), DVT_ERR_NULL_ARGUMENT);
    CHECK(remove(path_of("train.bin")) == 0);
    CHECK(rmdir(folder) == 0);
}
#endif
#endif
