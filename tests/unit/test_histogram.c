/* Tests of histograms and of grids of images. */
#include "dvt_test.h"
#include <float.h>

DVT_TEST(histogram_of_values) {
    dvt_array *x = DVT_ARRAY(float, DVT_SHAPE(2, 4), dvt_cpu(), 0, 1, 2, 3, 4, 1.5f, 4, 0.5f);
    dvt_histogram h;
    CHECK_INT(dvt_histogram_of(x, 4, &h), DVT_OK);
    CHECK_INT(h.count, 8);
    CHECK_INT(h.nan + h.positive_infinities + h.negative_infinities, 0);
    CHECK(h.low == 0 && h.high == 4 && h.sum == 16 && h.sum_squares == 48.5);
    CHECK_INT(h.bins, 4);
    CHECK(h.edge[0] == 0 && h.edge[1] == 1 && h.edge[2] == 2 && h.edge[3] == 3 && h.edge[4] == 4);
    CHECK_INT(h.bin[0], 2); /* the lower edge belongs to a bin, the last upper edge too */
    CHECK_INT(h.bin[1], 2);
    CHECK_INT(h.bin[2], 1);
    CHECK_INT(h.bin[3], 3);
}

/* Values of numpy.histogram(numpy.arange(11) / 10, 7): a quotient rounded up must not move 0.3. */
DVT_TEST(histogram_edges_as_numpy) {
    dvt_array *x = DVT_ARRAY(double, DVT_SHAPE(11), dvt_cpu(), 0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6,
                             0.7, 0.8, 0.9, 1.0);
    dvt_histogram h;
    int i, bins;
    CHECK_INT(dvt_histogram_of(x, 10, &h), DVT_OK);
    for (i = 0; i < 10; i++)
        CHECK_INT(h.bin[i], i == 9 ? 2 : 1);
    for (bins = 1; bins <= 64; bins++) {
        int64_t all = 0, below;
        CHECK_INT(dvt_histogram_of(x, bins, &h), DVT_OK);
        for (i = 0; i < bins; i++) {
            int k;
            for (k = 0, below = 0; k <= 10; k++) {
                double v = k / 10.0;
                below += v >= h.edge[i] && (v < h.edge[i + 1] || i + 1 == bins);
            }
            CHECK_INT(h.bin[i], below);
            all += h.bin[i];
        }
        CHECK_INT(all, 11);
    }
}

DVT_TEST(histogram_corners) {
    dvt_histogram h, before;
    dvt_array *x = DVT_ARRAY(double, DVT_SHAPE(6), dvt_cpu(), (double)NAN, (double)INFINITY,
                             -(double)INFINITY, (double)INFINITY, -DBL_MAX, DBL_MAX);
    dvt_array *one = DVT_ARRAY(int, DVT_SHAPE(3), dvt_cpu(), 7, 7, 7);
    char text[8192];
    CHECK_INT(dvt_histogram_of(x, 2, &h), DVT_OK);
    CHECK_INT(h.count, 2);
    CHECK_INT(h.nan, 1);
    CHECK_INT(h.positive_infinities, 2);
    CHECK_INT(h.negative_infinities, 1);
    CHECK(h.edge[0] == -DBL_MAX && h.edge[1] == 0 && h.edge[2] == DBL_MAX);
    CHECK(h.bin[0] == 1 && h.bin[1] == 1);
    CHECK_INT(dvt_histogram_of(one, 3, &h), DVT_OK); /* as NumPy: half a unit around the value */
    CHECK(h.edge[0] == 6.5 && h.edge[3] == 7.5 && h.bin[1] == 3);
    CHECK_INT(dvt_histogram_of(dvt_full(DVT_SHAPE(2), 1e300, DVT_F64, dvt_cpu()), 5, &h), DVT_OK);
    CHECK_INT(h.bin[0] + h.bin[1] + h.bin[2] + h.bin[3] + h.bin[4], 2);
    CHECK_INT(dvt_histogram_of(dvt_zeros(DVT_SHAPE(0, 3), DVT_F32, dvt_cpu()), 1, &h), DVT_OK);
    CHECK(h.count == 0 && h.bin[0] == 0 && h.low == 0 && h.high == 0);
    CHECK_INT(dvt_histogram_format(&h, text, sizeof text), strlen(text));
    CHECK_STR(text, "0 finite elements; 0 NaN, 0 inf, 0 -inf\n");
    before = h;
    CHECK_ERROR(dvt_histogram_of(one, 0, &h), DVT_ERR_RANGE);
    CHECK_ERROR(dvt_histogram_of(one, 65, &h), DVT_ERR_RANGE);
    CHECK_ERROR(dvt_histogram_of(NULL, 1, &h), DVT_ERR_NULL_ARGUMENT);
    CHECK_ERROR(dvt_histogram_of(one, 1, NULL), DVT_ERR_NULL_ARGUMENT);
    CHECK_ERROR(dvt_histogram_format(NULL, text, 1), DVT_ERR_NULL_ARGUMENT);
    CHECK_ERROR(dvt_print_histogram(NULL, 1), DVT_ERR_NULL_ARGUMENT);
    CHECK(memcmp(&before, &h, sizeof h) == 0);
    CHECK_INT(dvt_set_virtual_gpus(1, 0), DVT_OK);
    DVT_SCOPE {
        dvt_array *far_away = dvt_ones(DVT_SHAPE(3), DVT_F16, dvt_gpu(0));
        dvt_set_transfer_guard(DVT_TRANSFER_FORBID);
        CHECK_ERROR(dvt_histogram_of(far_away, 1, &h), DVT_ERR_CONTEXT);
        dvt_set_transfer_guard(DVT_TRANSFER_ALLOW);
        CHECK_INT(dvt_histogram_of(far_away, 1, &h), DVT_OK);
        CHECK_INT(h.bin[0], 3);
    }
    CHECK_INT(dvt_set_virtual_gpus(0, 0), DVT_OK);
}

DVT_TEST(histogram_text) {
    dvt_array *x = DVT_ARRAY(float, DVT_SHAPE(9), dvt_cpu(), -0.01f, 0.001f, 0.002f, 0.003f, 0.004f,
                             0.02f, (float)NAN, 1.99f, 1.5e-3f);
    dvt_histogram h;
    char text[1024], small[5];
    CHECK_INT(dvt_histogram_of(x, 2, &h), DVT_OK);
    dvt_histogram_format(&h, text, sizeof text);
    CHECK_STR(text,
              "8 finite elements from -0.01 to 1.99, mean 0.25144, deviation 0.65716; 1 NaN, 0 "
              "inf, 0 -inf\n"
              "[      -0.01,        0.99)          7 ########################################\n"
              "[       0.99,        1.99]          1 ######\n");
    CHECK_INT(dvt_histogram_format(&h, small, sizeof small), strlen(text));
    CHECK_STR(small, "8 fi");
    CHECK_INT(dvt_histogram_format(&h, NULL, 0), strlen(text));
    h.edge[0] = -1.25e-7;
    h.edge[2] = 123456789;
    dvt_histogram_format(&h, text, sizeof text);
    CHECK(strstr(text, "[  -1.25e-07,        0.99)") != NULL);
    CHECK(strstr(text, "[       0.99,  1.2346e+08]") != NULL);
}

/* ---- grids ---- */
DVT_TEST(image_grid_of_gray_images) {
    dvt_array *x = dvt_arange(1, 13, 1, DVT_U8, dvt_cpu());
    x = dvt_reshape(x, DVT_SHAPE(3, 2, 2));
    CHECK_VALUES(dvt_image_grid(x, 2, 0), 0, 1, 2, 5, 6, 3, 4, 7, 8, 9, 10, 0, 0, 11, 12, 0, 0);
    CHECK(dvt_shape_equal(dvt_shape_of(dvt_image_grid(x, 0, 0)), DVT_SHAPE(4, 4, 1)));
    CHECK(dvt_dtype_of(dvt_image_grid(x, 0, 0)) == DVT_U8);
    CHECK(dvt_shape_equal(dvt_shape_of(dvt_image_grid(x, 100, 0)), DVT_SHAPE(2, 6, 1)));
    CHECK_VALUES(dvt_image_grid(x, 1, 1), 0, 0, 0, 0, 0, 0, 1, 2, 0, 0, 3, 4, 0, 0, 0, 0, 0, 0, 5,
                 6, 0, 0, 7, 8, 0, 0, 0, 0, 0, 0, 9, 10, 0, 0, 11, 12, 0, 0, 0, 0, 0);
}

DVT_TEST(image_grid_of_layouts) {
    dvt_array *x = dvt_reshape(dvt_arange(0, 60, 1, DVT_F32, dvt_cpu()), DVT_SHAPE(2, 2, 5, 3));
    dvt_array *planes = dvt_transpose(x, DVT_AXES(0, 3, 1, 2)), *grid;
    CHECK_INT(dvt_set_virtual_gpus(1, 0), DVT_OK);
    grid = dvt_image_grid(x, 2, 2);
    CHECK(dvt_shape_equal(dvt_shape_of(grid), DVT_SHAPE(6, 16, 3)));
    CHECK(dvt_item_at(grid, DVT_SHAPE(3, 6, 1)) == 28); /* image 0, row 1, column 4 */
    CHECK(dvt_item_at(grid, DVT_SHAPE(2, 9, 2)) == 32); /* image 1, row 0, column 0 */
    CHECK(dvt_sum(grid, DVT_ALL) && dvt_item(dvt_sum(grid, DVT_ALL)) == 59 * 30);
    CHECK(dvt_array_equal(dvt_image_grid(planes, 2, 2), grid, DVT_NAN_DIFFERS));
    DVT_SCOPE {
        dvt_array *far_away = dvt_image_grid(dvt_copyto(planes, dvt_gpu(0)), 2, 2);
        CHECK(dvt_ctx_equal(dvt_ctx_of(far_away), dvt_gpu(0)));
        CHECK(dvt_array_equal(dvt_copyto(far_away, dvt_cpu()), grid, DVT_NAN_DIFFERS));
    }
    CHECK_INT(dvt_set_virtual_gpus(0, 0), DVT_OK);
    CHECK_ERROR(dvt_image_grid(NULL, 1, 1), DVT_ERR_NULL_ARGUMENT);
    CHECK_ERROR(dvt_image_grid(x, -1, 1), DVT_ERR_RANGE);
    CHECK_ERROR(dvt_image_grid(x, 1, -1), DVT_ERR_RANGE);
    CHECK_ERROR(dvt_image_grid(dvt_zeros(DVT_SHAPE(2, 5, 5, 5), DVT_F32, dvt_cpu()), 1, 1),
                DVT_ERR_SHAPE);
    CHECK_ERROR(dvt_image_grid(dvt_zeros(DVT_SHAPE(5, 5), DVT_F32, dvt_cpu()), 1, 1),
                DVT_ERR_SHAPE);
    CHECK_ERROR(dvt_image_grid(dvt_zeros(DVT_SHAPE(0, 5, 5), DVT_F32, dvt_cpu()), 1, 1),
                DVT_ERR_SHAPE);
}
