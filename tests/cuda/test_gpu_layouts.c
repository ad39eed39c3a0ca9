/* Elementwise operations on a GPU over every layout: contiguous, strided, transposed, broadcast,
   unaligned, in place. Sizes are around those that matter to the kernels: 16-byte vectors, blocks
   of 256 threads, tiles of 32 x 32. */
#include "on_gpu.h"

/* The same values on both devices. */
typedef struct pair {
    dvt_array *gpu, *cpu;
} pair;

static pair pair_of(dvt_array *cpu) {
    pair p;
    p.cpu = cpu;
    p.gpu = dvt_copyto(cpu, dvt_gpu(0));
    return p;
}

/* Operands of shape (rows, columns), by layout. */
enum {
    PLAIN,
    TRANSPOSED,
    REVERSED,
    EVERY_SECOND,
    SHIFTED,
    ONE_ROW,
    ONE_COLUMN,
    ONE_ELEMENT,
    LAYOUTS
};

static dvt_array *laid_out(int layout, dvt_array *x, int64_t rows, int64_t columns) {
    switch (layout) {
    case TRANSPOSED:
        return dvt_transpose(x, DVT_ALL);
    case REVERSED:
        return dvt_slice(x, 1, -1, DVT_END, -1);
    case EVERY_SECOND:
        return dvt_slice(x, 1, 0, 2 * columns, 2);
    case SHIFTED: /* one element away from alignment */
        return dvt_slice(x, 1, 1, columns + 1, 1);
    case ONE_ROW:
    case ONE_COLUMN:
    case ONE_ELEMENT:
        return dvt_broadcast_to(x, DVT_SHAPE(rows, columns));
    default:
        return x;
    }
}

static pair operand(int layout, int64_t rows, int64_t columns, dvt_dtype dtype) {
    dvt_shape shape = DVT_SHAPE(rows, columns);
    pair p;
    if (layout == TRANSPOSED)
        shape = DVT_SHAPE(columns, rows);
    if (layout == EVERY_SECOND)
        shape = DVT_SHAPE(rows, 2 * columns);
    if (layout == SHIFTED)
        shape = DVT_SHAPE(rows, columns + 1);
    if (layout == ONE_ROW || layout == ONE_ELEMENT)
        shape.dim[0] = 1;
    if (layout == ONE_COLUMN || layout == ONE_ELEMENT)
        shape.dim[1] = 1;
    p = pair_of(random_on_cpu(shape, dtype, -100, 100));
    p.cpu = laid_out(layout, p.cpu, rows, columns);
    p.gpu = laid_out(layout, p.gpu, rows, columns);
    return p;
}

static void same_sum(int left, int right, int64_t rows, int64_t columns, dvt_dtype dtype) {
    char what[96];
    snprintf(what, sizeof what, "%s (%d, %d) of layouts %d and %d", dvt_dtype_name(dtype),
             (int)rows, (int)columns, left, right);
    DVT_SCOPE {
        pair a = operand(left, rows, columns, dtype), b = operand(right, rows, columns, dtype);
        SAME_ON_GPU(dvt_add(a.gpu, b.gpu), dvt_add(a.cpu, b.cpu), 0, what);
    }
}

DVT_TEST(gpu_layouts_of_two_operands) {
    int left, right;
    NEEDS_GPU;
    for (left = 0; left < LAYOUTS; left++)
        for (right = 0; right < LAYOUTS; right++) {
            same_sum(left, right, 33, 70, DVT_F32);
            same_sum(left, right, 8, 64, DVT_F32);
            same_sum(left, right, 1, 5, DVT_F32);
        }
}

DVT_TEST(gpu_layouts_of_every_element_size) {
    static const dvt_dtype dtypes[] = {DVT_F64, DVT_BF16, DVT_I8};
    int layout, i;
    NEEDS_GPU;
    for (i = 0; i < 3; i++)
        for (layout = 0; layout < LAYOUTS; layout++) {
            same_sum(layout, PLAIN, 48, 32, dtypes[i]);
            same_sum(layout, TRANSPOSED, 31, 65, dtypes[i]);
        }
}

DVT_TEST(gpu_sizes_around_vectors_and_blocks) {
    static const int64_t sizes[] = {1,   2,    3,    4,    5,    15,   16,   17,    255,  256,
                                    257, 1023, 1024, 1025, 4095, 4096, 4097, 16389, 70001};
    int i;
    NEEDS_GPU;
    for (i = 0; i < (int)(sizeof sizes / sizeof sizes[0]); i++) {
        same_sum(PLAIN, PLAIN, 1, sizes[i], DVT_F32);
        same_sum(PLAIN, ONE_ELEMENT, 1, sizes[i], DVT_I8);
        same_sum(SHIFTED, PLAIN, 1, sizes[i], DVT_F16);
    }
}

/* The first row is aligned, and rows have whole groups of 16 bytes; the next rows are unaligned. */
DVT_TEST(gpu_rows_of_odd_strides) {
    static const dvt_dtype dtypes[] = {DVT_F32, DVT_F16, DVT_I8};
    int i;
    NEEDS_GPU;
    for (i = 0; i < 3; i++)
        DVT_SCOPE {
            pair x = pair_of(random_on_cpu(DVT_SHAPE(5, 33), dtypes[i], -9, 9)), y;
            y.gpu = dvt_slice(x.gpu, 1, 0, 32, 1);
            y.cpu = dvt_slice(x.cpu, 1, 0, 32, 1);
            SAME_ON_GPU(dvt_add(y.gpu, y.gpu), dvt_add(y.cpu, y.cpu), 0, "rows of odd strides");
        }
}

DVT_TEST(gpu_copies_of_transposed_matrices) {
    static const int64_t sizes[] = {15, 16, 31, 32, 33, 64, 97};
    int i, j;
    NEEDS_GPU;
    for (i = 0; i < 7; i++)
        for (j = 0; j < 7; j++)
            DVT_SCOPE {
                pair x = pair_of(random_on_cpu(DVT_SHAPE(sizes[i], sizes[j]), DVT_F32, -1, 1));
                SAME_ON_GPU(dvt_contiguous(dvt_t(x.gpu)), dvt_contiguous(dvt_t(x.cpu)), 0,
                            "transposed");
            }
}

DVT_TEST(gpu_permuted_axes) {
    int order[4], i;
    NEEDS_GPU;
    for (i = 0; i < 256; i++) {
        order[0] = i & 3, order[1] = i >> 2 & 3, order[2] = i >> 4 & 3, order[3] = i >> 6;
        if ((1 << order[0] | 1 << order[1] | 1 << order[2] | 1 << order[3]) != 15)
            continue;
        DVT_SCOPE {
            pair x = pair_of(random_on_cpu(DVT_SHAPE(3, 20, 5, 35), DVT_F32, -1, 1)), y;
            y.gpu = dvt_transpose(x.gpu, DVT_AXES(order[0], order[1], order[2], order[3]));
            y.cpu = dvt_transpose(x.cpu, DVT_AXES(order[0], order[1], order[2], order[3]));
            SAME_ON_GPU(dvt_contiguous(y.gpu), dvt_contiguous(y.cpu), 0, "permuted copy");
            SAME_ON_GPU(dvt_mul(y.gpu, dvt_contiguous(y.gpu)),
                        dvt_mul(y.cpu, dvt_contiguous(y.cpu)), 0, "permuted and plain");
        }
    }
}

/* Eight axes that cannot be merged, and the same axes in another order. */
DVT_TEST(gpu_eight_axes) {
    pair x, y;
    NEEDS_GPU;
    x = pair_of(random_on_cpu(DVT_SHAPE(2, 3, 2, 3, 2, 3, 2, 6), DVT_F32, -1, 1));
    y = pair_of(random_on_cpu(DVT_SHAPE(2, 1, 2, 1, 2, 1, 2, 1), DVT_F32, -1, 1));
    SAME_ON_GPU(dvt_add(x.gpu, y.gpu), dvt_add(x.cpu, y.cpu), 0, "every second axis repeated");
    x.gpu = dvt_slice(dvt_slice(x.gpu, 7, 0, 6, 2), 5, -1, DVT_END, -2);
    x.cpu = dvt_slice(dvt_slice(x.cpu, 7, 0, 6, 2), 5, -1, DVT_END, -2);
    SAME_ON_GPU(dvt_neg(x.gpu), dvt_neg(x.cpu), 0, "slices");
    x.gpu = dvt_transpose(x.gpu, DVT_AXES(7, 6, 5, 4, 3, 2, 1, 0));
    x.cpu = dvt_transpose(x.cpu, DVT_AXES(7, 6, 5, 4, 3, 2, 1, 0));
    SAME_ON_GPU(dvt_contiguous(x.gpu), dvt_contiguous(x.cpu), 0, "reversed axes");
}

DVT_TEST(gpu_no_axes) {
    pair x, y;
    NEEDS_GPU;
    x = pair_of(dvt_full(DVT_SCALAR, 3, DVT_F32, dvt_cpu()));
    y = pair_of(random_on_cpu(DVT_SHAPE(4, 9), DVT_F32, -1, 1));
    SAME_ON_GPU(dvt_square(x.gpu), dvt_square(x.cpu), 0, "a scalar");
    SAME_ON_GPU(dvt_mul(y.gpu, x.gpu), dvt_mul(y.cpu, x.cpu), 0, "a scalar on the right");
    SAME_ON_GPU(dvt_sub(x.gpu, y.gpu), dvt_sub(x.cpu, y.cpu), 0, "a scalar on the left");
    SAME_ON_GPU(dvt_add(x.gpu, x.gpu), dvt_add(x.cpu, x.cpu), 0, "two scalars");
}

/* The three operands of where, one of them in each layout. */
DVT_TEST(gpu_layouts_of_three_operands) {
    int layout, at;
    NEEDS_GPU;
    for (layout = 0; layout < LAYOUTS; layout++)
        for (at = 0; at < 3; at++)
            DVT_SCOPE {
                pair c = operand(at == 0 ? layout : PLAIN, 36, 72, DVT_BOOL);
                pair a = operand(at == 1 ? layout : PLAIN, 36, 72, DVT_F32);
                pair b = operand(at == 2 ? layout : TRANSPOSED, 36, 72, DVT_F32);
                SAME_ON_GPU(dvt_where(c.gpu, a.gpu, b.gpu), dvt_where(c.cpu, a.cpu, b.cpu), 0,
                            "where");
            }
}

/* Results with other layouts: in place, and copied into views. */
DVT_TEST(gpu_results_in_every_layout) {
    int layout;
    NEEDS_GPU;
    for (layout = PLAIN; layout <= SHIFTED; layout++)
        DVT_SCOPE {
            pair x = operand(layout, 40, 36, DVT_F32), y = operand(PLAIN, 40, 36, DVT_F32);
            CHECK(dvt_mul_(x.gpu, y.gpu) && dvt_mul_(x.cpu, y.cpu));
            SAME_ON_GPU(x.gpu, x.cpu, 0, "mul_");
            CHECK(dvt_add_scalar_(x.gpu, 2) && dvt_add_scalar_(x.cpu, 2));
            SAME_ON_GPU(x.gpu, x.cpu, 0, "add_scalar_");
            CHECK(dvt_copy_into(x.gpu, y.gpu) && dvt_copy_into(x.cpu, y.cpu));
            SAME_ON_GPU(x.gpu, x.cpu, 0, "copy_into");
            CHECK(dvt_neg_(x.gpu) && dvt_neg_(x.cpu));
            SAME_ON_GPU(x.gpu, x.cpu, 0, "neg_");
        }
}

/* The operand is the result, or another view of its memory, which must be read before it is
   written. */
DVT_TEST(gpu_in_place_on_itself) {
    pair x;
    NEEDS_GPU;
    x = pair_of(random_on_cpu(DVT_SHAPE(45, 45), DVT_F32, -1, 1));
    CHECK(dvt_mul_(x.gpu, x.gpu) && dvt_mul_(x.cpu, x.cpu));
    SAME_ON_GPU(x.gpu, x.cpu, 0, "itself");
    CHECK(dvt_add_(x.gpu, dvt_t(x.gpu)) && dvt_add_(x.cpu, dvt_t(x.cpu)));
    SAME_ON_GPU(x.gpu, x.cpu, 0, "itself transposed");
    CHECK(dvt_sub_(x.gpu, dvt_slice(x.gpu, 0, -1, DVT_END, -1)) &&
          dvt_sub_(x.cpu, dvt_slice(x.cpu, 0, -1, DVT_END, -1)));
    SAME_ON_GPU(x.gpu, x.cpu, 0, "itself backwards");
    CHECK(dvt_add_(x.gpu, dvt_slice(x.gpu, 1, 3, 4, 1)) &&
          dvt_add_(x.cpu, dvt_slice(x.cpu, 1, 3, 4, 1)));
    SAME_ON_GPU(x.gpu, x.cpu, 0, "one column of itself");
}

/* Elements so far apart that offsets need 64 bits: views of a large block, of which nothing else is
   accessed. */
DVT_TEST(gpu_64_bit_offsets) {
    const int64_t far = ((int64_t)1 << 26) + 3;
    dvt_array *block, *window;
    pair x;
    NEEDS_GPU;
    block = dvt_empty(DVT_SHAPE(17, far), DVT_I8, dvt_gpu(0));
    if (!block) {
        dvt_clear_error();
        SKIP("the GPU has less than 1.2 GB to spare");
    }
    x = pair_of(random_on_cpu(DVT_SHAPE(17, 40), DVT_I8, -100, 100));
    window = dvt_slice(block, 1, far - 80, far, 2);
    CHECK(dvt_copy_into(window, x.gpu) != NULL);
    SAME_ON_GPU(dvt_contiguous(window), x.cpu, 0, "there and back");
    SAME_ON_GPU(dvt_add(window, x.gpu), dvt_add(x.cpu, x.cpu), 0, "one far, one near");
    window = dvt_slice(block, 1, 16, 64, 1);
    x = pair_of(random_on_cpu(DVT_SHAPE(48, 40), DVT_I8, -100, 100));
    x.cpu = dvt_slice(x.cpu, 1, 0, 17, 1);
    CHECK(dvt_copy_into(window, dvt_t(dvt_slice(x.gpu, 1, 0, 17, 1))) != NULL);
    SAME_ON_GPU(dvt_contiguous(dvt_t(window)), dvt_contiguous(x.cpu), 0, "across");
    CHECK(dvt_square_(window) && dvt_square_(x.cpu));
    SAME_ON_GPU(dvt_contiguous(window), dvt_contiguous(dvt_t(x.cpu)), 0, "in place");
}
