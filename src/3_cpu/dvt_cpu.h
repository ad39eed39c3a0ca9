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
/* n elements, `step` apart, from or to a plain row of a class. */
DVTI_FN void dvti_load_row_f32(const void *src, dvt_dtype dtype, int64_t step, int64_t n,
                               float *dst);
DVTI_FN void dvti_load_row_f64(const void *src, dvt_dtype dtype, int64_t step, int64_t n,
                               double *dst);
DVTI_FN void dvti_load_row_i64(const void *src, dvt_dtype dtype, int64_t step, int64_t n,
                               int64_t *dst);
DVTI_FN void dvti_store_row_f32(void *dst, dvt_dtype dtype, int64_t step, int64_t n,
                                const float *src);
DVTI_FN void dvti_store_row_f64(void *dst, dvt_dtype dtype, int64_t step, int64_t n,
                                const double *src);
DVTI_FN void dvti_store_row_i64(void *dst, dvt_dtype dtype, int64_t step, int64_t n,
                                const int64_t *src);

DVTI_FN int64_t dvti_view_size(const dvti_view *view);
/* Blocks of a view that dvti_merge_axes has prepared: n positions from `first` on, in C order. */
DVTI_FN void dvti_merge_axes(dvti_view *view);
DVTI_FN void dvti_load_block(const dvti_view *view, int64_t first, int64_t n, dvti_class compute,
                             void *dst);
DVTI_FN void dvti_store_block(const dvti_view *view, int64_t first, int64_t n, dvti_class compute,
                              const void *src);
/* The memory itself when it is contiguous and of the class's own dtype, so that no block is needed; else NULL. */
DVTI_FN void *dvti_block_direct(const dvti_view *view, dvti_class compute, int64_t first);
#define DVTI_BLOCK 512 /* elements: four operands of 8 bytes stay in the first-level cache */

#endif
