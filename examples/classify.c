/* Names the class of images with a convolutional net that PyTorch has trained on Fashion-MNIST:

     classify [weights [image...]]

   Images are .png, .pgm, .ppm or IDX files, light on black. Without any, the program classifies
   those in the file of the weights and compares all results with PyTorch's. */
#define DEVTENSOR_IMPLEMENTATION
#include "devtensor.h"
#include <stdio.h>
#include <string.h>

enum { SIZE = 28 };

static dvt_block *convolution(int64_t channels, int kernel) {
    dvt_nn_conv2d_desc desc = {0};
    desc.channels = channels;
    desc.kernel[0] = desc.kernel[1] = kernel;
    desc.options.padding[0] = desc.options.padding[1] = kernel / 2;
    desc.no_bias = true;
    return dvt_nn_conv2d_with(&desc);
}

/* Creates the net and loads its weights. The map leads from PyTorch's names to those of the net. */
static dvt_block *load(const char *path, dvt_ctx dev) {
    static const char *const map[] = {"conv1.*",
                                      "0.*",
                                      "conv2.*",
                                      "4.*",
                                      "fc1.*",
                                      "8.*",
                                      "fc2.*",
                                      "9.*",
                                      "norm1.weight",
                                      "1.gamma",
                                      "norm1.bias",
                                      "1.beta",
                                      "norm2.weight",
                                      "5.gamma",
                                      "norm2.bias",
                                      "5.beta",
                                      "norm1.running_*",
                                      "1.running_*",
                                      "test.*",
                                      "",
                                      "*_tracked",
                                      "",
                                      "norm2.running_*",
                                      "5.running_*",
                                      NULL};
    dvt_load_options options = {0};
    dvt_block *net = dvt_nn_sequential();
    DVT_NN_ADD(net, convolution(8, 5), dvt_nn_batch_norm(), dvt_nn_activation(DVT_RELU),
               dvt_nn_max_pool2d(2, 2), convolution(16, 3), dvt_nn_batch_norm(),
               dvt_nn_activation(DVT_RELU), dvt_nn_max_pool2d(2, 2), dvt_nn_dense(32, DVT_RELU),
               dvt_nn_dense(10, DVT_IDENTITY));
    options.map = map;
    options.cast_dtype = true; /* from float16 */
    return dvt_block_load_with(net, path, &options, DVT_CONTEXTS(dev)) == DVT_OK ? net : NULL;
}

/* Returns the images of a file as (N, SIZE, SIZE, 1), uint8. */
static dvt_array *read_images(const char *path) {
    const char *end = strrchr(path, '.');
    dvt_array *x;
    if (!end || (strcmp(end, ".png") && strcmp(end, ".pgm") && strcmp(end, ".ppm")))
        return dvt_reshape(dvt_load_idx(path, dvt_cpu()), DVT_SHAPE(-1, SIZE, SIZE, 1));
    x = dvt_load_image(path, dvt_cpu());
    if (x && dvt_dtype_of(x) != DVT_U8) /* 16 bits per channel */
        x = dvt_astype(dvt_div_scalar(x, 257), DVT_U8);
    if (x && dvt_dim(x, 2) > 1) /* the mean of the colors; alpha does not count */
        x = dvt_astype(dvt_mean(dvt_slice(x, 2, 0, dvt_dim(x, 2) < 3 ? 1 : 3, 1), DVT_KEEPDIMS(2)),
                       DVT_U8);
    return dvt_expand_dims(dvt_transform_apply(dvt_transform_resize(SIZE, SIZE), x), 0);
}

/* Returns the logits (N, classes) of images (N, SIZE, SIZE, 1). */
static dvt_array *classify(dvt_block *net, dvt_array *images, dvt_ctx dev) {
    dvt_array *x = dvt_div_scalar(dvt_as_in_ctx(images, dev), 255);
    return dvt_block_forward(net, dvt_transpose(x, DVT_AXES(0, 3, 1, 2)));
}

/* Prints the most probable class of each image. `classes` has one name on each line. */
static void print_classes(const char *path, dvt_array *logits, const char *classes) {
    dvt_array *index = NULL, *best = dvt_topk(dvt_softmax(logits, 1), 1, 1, DVT_LARGEST, &index);
    int64_t i, j;
    for (i = 0; best && i < dvt_dim(best, 0); i++) {
        const char *name = classes;
        for (j = dvt_item_int(dvt_index(index, i)); j > 0 && strchr(name, '\n'); j--)
            name = strchr(name, '\n') + 1;
        printf("%s[%d]: %.*s (%.1f %%)\n", path, (int)i, (int)strcspn(name, "\n"), name,
               100 * dvt_item(dvt_index(best, i)));
    }
}

int main(int argc, char **argv) {
    const char *path = argc > 1 ? argv[1] : "tests/golden/torch/classify.safetensors", *classes;
    dvt_ctx dev = dvt_try_gpu(0);
    dvt_array_list *file = dvt_load_safetensors(path, dvt_cpu());
    dvt_block *net = file ? load(path, dev) : NULL;
    int i;
    classes = file ? dvt_array_list_metadata(file, "classes") : NULL;
    if (!net || !classes) {
        if (!file) {
            fprintf(stderr, "classify: %s\n", dvt_error());
            return 1;
        }
        fprintf(stderr,
                "classify: %s is not a classifier of images; expected a file of "
                "tests/golden/make_torch_trained.py. %s\n",
                path, dvt_error());
        return 1;
    }
    for (i = 2; i < argc; i++) {
        dvt_array *images = read_images(argv[i]);
        print_classes(argv[i], images ? classify(net, images, dev) : NULL, classes);
    }
    if (argc <= 2) {
        dvt_array *expected = dvt_array_list_find(file, "test.logits");
        dvt_array *logits = classify(net, dvt_array_list_find(file, "test.images"), dev);
        double difference;
        print_classes("image", logits, classes);
        logits = dvt_as_in_ctx(logits, dvt_cpu());
        difference = dvt_item(dvt_max(dvt_abs(dvt_sub(logits, expected)), DVT_ALL));
        printf("%d logits, largest difference from PyTorch's %.2g\n", (int)dvt_size(logits),
               difference);
        if (!dvt_allclose(logits, expected, 1e-5, 1e-4, DVT_NAN_DIFFERS))
            return 1;
    }
    if (dvt_error_code() != DVT_OK)
        fprintf(stderr, "classify: %s\n", dvt_error());
    return dvt_error_code() != DVT_OK;
}
