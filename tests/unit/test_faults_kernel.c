/* Allocations that fail in kernels of the program and events (dvt_faults.h). */
#include "dvt_faults.h"

static void set_two(void *user, const dvt_kernel_call *call) {
    (void)user;
    ((float *)call->arg[0].data)[0] = (float)call->arg[1].f;
}

static double plus_one(void *user, const double *value) {
    (void)user;
    return value[0] + 1;
}

static dvt_array *expression_of(dvt_array *x) {
    dvt_kernel *plus = dvt_kernel_expression("x", "x + 1");
    return dvt_kernel_set_element(plus, plus_one, NULL) == DVT_OK
               ? dvt_kernel_apply(plus, DVT_ARGS(DVT_IN(x)))
               : NULL;
}

DVT_FAULTS(kernels_of_the_program) {
    dvt_array *x = dvt_ones(DVT_SHAPE(2), DVT_F32, dvt_cpu());
    dvt_kernel *set =
        dvt_kernel_new("extern \"C\" __global__ void set(float *x, float v) {}", "set");
    dvt_event *event;
    FAULTS_OK(dvt_kernel_set_host(set, set_two, NULL));
    FAULTS_OK(dvt_kernel_launch(set, DVT_SHAPE(1), DVT_SHAPE(1), 0,
                                DVT_ARGS(DVT_INOUT(x), DVT_FLOAT(2))));
    FAULTS_ADD(x);
    FAULTS_ADD(expression_of(x));
    event = dvt_event_record(dvt_cpu());
    FAULTS_TRUE(event && dvt_event_done(event));
}

DVT_FAULTS(virtual_gpus_kernels) {
    FAULTS_OK(dvt_set_virtual_gpus(1, 0));
    if (!run->failed) {
        DVT_SCOPE {
            dvt_array *x = dvt_ones(DVT_SHAPE(2, 3), DVT_F32, dvt_gpu(0));
            FAULTS_ADD(expression_of(x));
            FAULTS_TRUE(dvt_event_record(dvt_gpu(0)) != NULL);
        }
        dvt_discard_all();
        FAULTS_OK(dvt_set_virtual_gpus(0, 0));
    }
}
