/* The CPU backend's rooms and what they offer each other. Kernels run a whole launch in the calling thread, helped by the pool
   where that pays; they never allocate (dvti_cpu_workspace says what they need) and never fail. */
#ifndef DVTI_CPU_H
#define DVTI_CPU_H
#include "2_core/dvt_core.h"

/* Runs one launch to its end. */
DVTI_FN void dvti_cpu_run(const dvti_launch *launch);
DVTI_FN int64_t dvti_cpu_workspace(dvti_device *device, const dvti_launch *launch);

/* One per family, in ref/. */
DVTI_FN void dvti_ref_fill(const dvti_launch *launch);
DVTI_FN void dvti_ref_elementwise(const dvti_launch *launch);
DVTI_FN void dvti_ref_reduce(const dvti_launch *launch);
DVTI_FN void dvti_ref_softmax(const dvti_launch *launch);
DVTI_FN void dvti_ref_matmul(const dvti_launch *launch);
DVTI_FN int64_t dvti_ref_matmul_workspace(const dvti_launch *launch);
DVTI_FN void dvti_ref_conv2d(const dvti_launch *launch);
DVTI_FN int64_t dvti_ref_conv2d_workspace(const dvti_launch *launch);
DVTI_FN void dvti_ref_pool2d(const dvti_launch *launch);
DVTI_FN void dvti_ref_index(const dvti_launch *launch);
DVTI_FN void dvti_ref_random(const dvti_launch *launch);
DVTI_FN void dvti_ref_optimizer(const dvti_launch *launch);

/* One element of a view, converted; the plain way that every family may use. `at` counts elements from view.data. */
DVTI_FN double dvti_load_f64(const void *data, dvt_dtype dtype, int64_t at);
DVTI_FN int64_t dvti_load_i64(const void *data, dvt_dtype dtype, int64_t at);
DVTI_FN void dvti_store_f64(void *data, dvt_dtype dtype, int64_t at, double value);
DVTI_FN void dvti_store_i64(void *data, dvt_dtype dtype, int64_t at, int64_t value);

#endif
