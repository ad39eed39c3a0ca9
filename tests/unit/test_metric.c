/* Tests of metrics: compared with loops over host values, on every context and dtype. */
#include "../dvt_test.h"
#if !defined(DEVTENSOR_NO_NN)

DVT_TEST(metric_accuracy) {
    dvt_metric *m = dvt_metric_accuracy();
    dvt_array *p = DVT_ARRAY(float, DVT_SHAPE(4, 3), dvt_cpu(), 0.1f, 0.7f, 0.2f, 0.9f, 0, 0.1f,
                             0.3f, 0.3f, 0.4f, 0.5f, 0.5f, 0);
    CHECK_STR(dvt_metric_name(m), "accuracy");
    CHECK(isnan(dvt_metric_get(m)));
    CHECK_INT(dvt_metric_update(m, DVT_ARRAY(int, DVT_SHAPE(4), dvt_cpu(), 1, 0, 1, 0), p), DVT_OK);
    CHECK_CLOSE(dvt_metric_get(m), 0.75, 0);
    /* Labels of any dtype; class numbers instead of scores; both update the same counts. */
    CHECK_INT(dvt_metric_update(m, DVT_ARRAY(float, DVT_SHAPE(4), dvt_cpu(), 1, 1, 2, 0), p),
              DVT_OK);
    CHECK_CLOSE(dvt_metric_get(m), 6.0 / 8, 0);
    CHECK_INT(dvt_metric_update(m, DVT_ARRAY(unsigned char, DVT_SHAPE(2), dvt_cpu(), 7, 8),
                                DVT_ARRAY(double, DVT_SHAPE(2), dvt_cpu(), 7, 9)),
              DVT_OK);
    CHECK_CLOSE(dvt_metric_get(m), 7.0 / 10, 0);
    dvt_metric_reset(m);
    CHECK(isnan(dvt_metric_get(m)));
    /* Sequences: (2, 2) labels and (2, 2, 3) scores; an empty batch; labels out of range. */
    CHECK_INT(dvt_metric_update(m, DVT_ARRAY(int, DVT_SHAPE(2, 2), dvt_cpu(), 1, 0, 0, 0),
                                dvt_reshape(p, DVT_SHAPE(2, 2, 3))),
              DVT_OK);
    CHECK_CLOSE(dvt_metric_get(m), 0.75, 0);
    CHECK_INT(dvt_metric_update(m, dvt_zeros(DVT_SHAPE(0), DVT_I32, dvt_cpu()),
                                dvt_zeros(DVT_SHAPE(0, 3), DVT_F32, dvt_cpu())),
              DVT_OK);
    CHECK_INT(dvt_metric_update(m, DVT_ARRAY(int, DVT_SHAPE(4), dvt_cpu(), -1, 3, 99, -3), p),
              DVT_OK);
    CHECK_CLOSE(dvt_metric_get(m), 3.0 / 8, 0);
}

DVT_TEST(metric_of_gpu_arrays_and_views) {
    dvt_metric *m = dvt_metric_accuracy(), *top = dvt_metric_top_k_accuracy(2);
    dvt_stats before, after;
    CHECK_INT(dvt_set_virtual_gpus(2, 0), DVT_OK);
    DVT_SCOPE {
        int i;
        /* Transposed scores, every second label. */
        dvt_array *p = DVT_ARRAY(float, DVT_SHAPE(3, 2), dvt_gpu(1), 1, 5, 2, 4, 3, 6);
        dvt_array *l = DVT_ARRAY(int, DVT_SHAPE(4), dvt_gpu(1), 2, 9, 0, 9);
        before = dvt_get_stats();
        CHECK_INT(dvt_metric_update(m, dvt_slice(l, 0, 0, DVT_END, 2), dvt_t(p)), DVT_OK);
        after = dvt_get_stats();
        CHECK_INT(after.to_host_bytes - before.to_host_bytes, 8);
        CHECK_INT(after.to_device_count - before.to_device_count, 0);
        CHECK_CLOSE(dvt_metric_get(m), 0.5, 0);
        CHECK_INT(dvt_metric_update(top, dvt_slice(l, 0, 0, DVT_END, 2), dvt_t(p)), DVT_OK);
        CHECK_CLOSE(dvt_metric_get(top), 1, 0);
        CHECK_ERROR(dvt_metric_update(m, dvt_as_in_ctx(l, dvt_gpu(0)), dvt_t(p)), DVT_ERR_CONTEXT);
        /* Reading is an implicit transfer. If the guard forbids it, nothing is counted. */
        dvt_set_transfer_guard(DVT_TRANSFER_FORBID);
        CHECK_ERROR(dvt_metric_update(m, dvt_rows(l, 0, 2), dvt_t(p)), DVT_ERR_CONTEXT);
        dvt_set_transfer_guard(DVT_TRANSFER_ALLOW);
        CHECK_CLOSE(dvt_metric_get(m), 0.5, 0);
        /* Metrics are not recorded. */
        dvt_attach_grad(p, DVT_GRAD_WRITE);
        DVT_RECORD {
            for (i = 0; i < 2; i++)
                CHECK_INT(dvt_metric_update(m, dvt_rows(l, 0, 2), dvt_t(p)), DVT_OK);
        }
    }
    dvt_set_virtual_gpus(0, 0);
}

/* Sorts by hand: larger first, NaN largest, ties in order of position. */
static int in_top_k(const double *row, int classes, int label, int k) {
    int c, rank = 0;
    if (label < 0 || label >= classes)
        return 0;
    for (c = 0; c < classes; c++) {
        double a = row[c], b = row[label];
        int larger = isnan(b) ? 0 : isnan(a) ? 1 : a > b;
        int equal = (isnan(a) && isnan(b)) || a == b;
        rank += larger || (equal && c < label);
    }
    return rank < k;
}

DVT_TEST(metric_top_k) {
    int k, i, round;
    CHECK_STR(dvt_metric_name(dvt_metric_top_k_accuracy(5)), "top_k_accuracy_5");
    for (k = 1; k < 9; k++) {
        dvt_metric *m = dvt_metric_top_k_accuracy(k), *first = dvt_metric_accuracy();
        double right = 0, total = 0;
        for (round = 0; round < 10; round++) {
            DVT_SCOPE {
                double scores[6][7];
                int labels[6];
                dvt_array *p, *l;
                for (i = 0; i < 42; i++) {
                    double v = floor(dvt_test_random(0, 6)); /* many ties */
                    scores[i / 7][i % 7] = v == 5 && round % 2 ? (double)NAN : v;
                }
                for (i = 0; i < 6; i++) {
                    labels[i] = (int)dvt_test_random(-1, 8);
                    right += in_top_k(scores[i], 7, labels[i], k);
                }
                total += 6;
                p = dvt_astype(dvt_from_host(scores, DVT_SHAPE(6, 7), DVT_F64, dvt_cpu()),
                               round % 3 ? DVT_F32 : DVT_F16);
                l = dvt_from_host(labels, DVT_SHAPE(6), DVT_I32, dvt_cpu());
                CHECK_INT(dvt_metric_update(m, l, p), DVT_OK);
                CHECK_INT(dvt_metric_update(first, l, p), DVT_OK);
            }
        }
        CHECK_CLOSE(dvt_metric_get(m), right / total, 1e-15);
        if (k == 1)
            CHECK_CLOSE(dvt_metric_get(m), dvt_metric_get(first), 0);
    }
}

DVT_TEST(metric_mean_loss) {
    dvt_metric *m = dvt_metric_mean_loss();
    CHECK_STR(dvt_metric_name(m), "loss");
    CHECK_INT(dvt_metric_update(m, NULL, DVT_ARRAY(float, DVT_SHAPE(3), dvt_cpu(), 1, 2, 6)),
              DVT_OK);
    CHECK_CLOSE(dvt_metric_get(m), 3, 0);
    CHECK_INT(dvt_metric_update(m, NULL, dvt_scalar(5, DVT_F64, dvt_cpu())), DVT_OK);
    CHECK_CLOSE(dvt_metric_get(m), 3.5, 0);
    /* A float16 sum would overflow at 65504. */
    dvt_metric_reset(m);
    CHECK_INT(dvt_metric_update(m, NULL, dvt_full(DVT_SHAPE(100), 1000, DVT_F16, dvt_cpu())),
              DVT_OK);
    CHECK_CLOSE(dvt_metric_get(m), 1000, 0);
    CHECK_INT(dvt_metric_update(m, NULL, dvt_scalar((double)NAN, DVT_F32, dvt_cpu())), DVT_OK);
    CHECK(isnan(dvt_metric_get(m)));
}

DVT_TEST(metric_errors) {
    dvt_metric *m = dvt_metric_accuracy(), *loss = dvt_metric_mean_loss();
    dvt_array *l = dvt_zeros(DVT_SHAPE(4), DVT_I32, dvt_cpu());
    dvt_array *p = dvt_zeros(DVT_SHAPE(4, 3), DVT_F32, dvt_cpu());
    CHECK_ERROR(dvt_metric_update(NULL, l, p), DVT_ERR_NULL_ARGUMENT);
    CHECK_ERROR(dvt_metric_update(m, NULL, p), DVT_ERR_NULL_ARGUMENT);
    CHECK_ERROR(dvt_metric_update(m, l, NULL), DVT_ERR_NULL_ARGUMENT);
    CHECK_ERROR(dvt_metric_update(loss, NULL, NULL), DVT_ERR_NULL_ARGUMENT);
    CHECK_ERROR(dvt_metric_update(m, l, dvt_zeros(DVT_SHAPE(5, 3), DVT_F32, dvt_cpu())),
                DVT_ERR_SHAPE);
    CHECK_ERROR(dvt_metric_update(m, dvt_zeros(DVT_SHAPE(4, 1), DVT_I32, dvt_cpu()), p),
                DVT_ERR_SHAPE);
    CHECK_ERROR(dvt_metric_update(m, l, dvt_zeros(DVT_SHAPE(4, 0), DVT_F32, dvt_cpu())),
                DVT_ERR_SHAPE);
    CHECK_ERROR(dvt_metric_update(dvt_metric_top_k_accuracy(2), l, l), DVT_ERR_SHAPE);
    CHECK_ERROR(dvt_metric_top_k_accuracy(0), DVT_ERR_RANGE);
    CHECK_ERROR(dvt_metric_get(NULL), DVT_ERR_NULL_ARGUMENT);
    CHECK_STR(dvt_metric_name(NULL), "");
    dvt_metric_reset(NULL);
    CHECK(isnan(dvt_metric_get(m)));
}
#endif
