/* The interface between the files of the CPU backend. A kernel runs a whole launch in the calling
   thread and uses the thread pool for launches that are large enough. Kernels never fail and never
   allocate: their plan states the workspace that they need. */
#ifndef DVTI_CPU_H
#define DVTI_CPU_H
#include "1_base/dvt_heap.h"
#include "2_core/dvt_core.h"

/* The implementation of a kernel on the CPU: the column `cpu` of its row in
   3_kernels/dvt_kernels.h. */
typedef struct dvti_cpu_kernel {
    /* Returns whether the kernel has the feature. NULL: DVTI_CAN_RUN is its only feature. */
    bool (*supports)(dvti_op op, dvt_dtype dtype, dvti_feature feature);
    /* Fills launch->plan and returns the bytes of workspace for `threads` threads. 0 means
       dvti_cpu_threads, which plans of small launches need not call. Called once for each launch;
       `run` finds the plan in a copy of the launch, maybe in another thread, and may complete it.
       NULL: no workspace; `run` decides everything. */
    int64_t (*plan)(dvti_launch *launch, int threads);
    void (*run)(const dvti_launch *launch);
    /* dvti_backend.multiply_small. NULL for all kernels but matmul. */
    bool (*multiply_small)(const dvti_matrices *product);
} dvti_cpu_kernel;

DVTI_FN const dvti_backend_kind *dvti_cpu_kind(void);
/* Writes the ISA target, the caches and the blocks of products. */
DVTI_FN void dvti_cpu_notes(dvti_text *text);
DVTI_FN const dvti_backend_kind *dvti_virtual_kind(void);

/* Implement `supports` and `plan` of both backends, cpu() and virtual GPUs. dvti_cpu_plan plans
   with all threads. */
DVTI_FN bool dvti_cpu_supports(const dvti_device *device, const dvti_kernel *kernel, dvti_op op,
                               dvt_dtype dtype, dvti_feature feature);
DVTI_FN int64_t dvti_cpu_plan(dvti_device *device, dvti_launch *launch);
DVTI_FN int64_t dvti_cpu_plan_for(dvti_launch *launch, int threads);
/* Runs one launch; the result is complete when it returns. */
DVTI_FN void dvti_cpu_run(const dvti_launch *launch);

static inline int dvti_cpu_threads(int threads) {
    return threads ? threads : dvti_parallel_width();
}

/* Returns launch->plan for `run`, which completes it with pointers into the launch and its
   workspace. Only `run` reads it from then on. A copy would take 6 ns more (Zen 5). */
static inline void *dvti_cpu_plan_at(const dvti_launch *launch) {
    return (void *)(uintptr_t)&launch->plan;
}

/* ---- the column `cpu` of the kernels' rows ---- */
DVTI_FN void dvti_cpu_elementwise(const dvti_launch *launch);
DVTI_FN int64_t dvti_cpu_reduce_plan(dvti_launch *launch, int threads);
DVTI_FN void dvti_cpu_reduce(const dvti_launch *launch);
DVTI_FN bool dvti_cpu_variance_supports(dvti_op op, dvt_dtype dtype, dvti_feature feature);
DVTI_FN void dvti_cpu_softmax(const dvti_launch *launch);
DVTI_FN void dvti_cpu_cross_entropy(const dvti_launch *launch);
DVTI_FN bool dvti_cpu_layer_norm_supports(dvti_op op, dvt_dtype dtype, dvti_feature feature);
DVTI_FN void dvti_cpu_layer_norm(const dvti_launch *launch);
DVTI_FN bool dvti_cpu_batch_norm_supports(dvti_op op, dvt_dtype dtype, dvti_feature feature);
DVTI_FN int64_t dvti_cpu_scan_plan(dvti_launch *launch, int threads);
DVTI_FN void dvti_cpu_scan(const dvti_launch *launch);
DVTI_FN int64_t dvti_cpu_order_plan(dvti_launch *launch, int threads);
DVTI_FN void dvti_cpu_order(const dvti_launch *launch);
DVTI_FN bool dvti_cpu_matmul_supports(dvti_op op, dvt_dtype dtype, dvti_feature feature);
DVTI_FN int64_t dvti_cpu_matmul_plan(dvti_launch *launch, int threads);
DVTI_FN void dvti_cpu_matmul(const dvti_launch *launch);
DVTI_FN bool dvti_cpu_matmul_small(const dvti_matrices *product);
DVTI_FN bool dvti_cpu_conv2d_supports(dvti_op op, dvt_dtype dtype, dvti_feature feature);
DVTI_FN int64_t dvti_cpu_conv2d_plan(dvti_launch *launch, int threads);
DVTI_FN void dvti_cpu_conv2d(const dvti_launch *launch);
DVTI_FN void dvti_cpu_pool2d(const dvti_launch *launch);
DVTI_FN int64_t dvti_cpu_take_plan(dvti_launch *launch, int threads);
DVTI_FN bool dvti_cpu_random_supports(dvti_op op, dvt_dtype dtype, dvti_feature feature);
DVTI_FN int64_t dvti_cpu_random_plan(dvti_launch *launch, int threads);
DVTI_FN void dvti_cpu_optimizer(const dvti_launch *launch);
DVTI_FN void dvti_cpu_custom(const dvti_launch *launch);

/* ---- virtual GPUs ---- */

/* Makes the next launch of a virtual GPU fail with this reason (for tests). */
DVTI_FN void dvti_virtual_fail_next(dvti_device *device, const char *reason);

/* The model of dvt_set_virtual_model (dvt_virtual_model.c). dvti_model returns false if no model is
   set, after one atomic load. */
DVTI_FN void dvti_model_ready(void); /* reads the environment, once */
DVTI_FN bool dvti_model_parse(const char *text, dvt_virtual_model *out);
DVTI_FN bool dvti_model(dvt_virtual_model *out);
/* Returns the address of this thread's modeled time in seconds. */
DVTI_FN double *dvti_model_clock(void);
/* Sleeps until `seconds` have passed since `begin` (a dvti_now time). Returns at once if the model
   is clock_only. */
DVTI_FN void dvti_model_wait(const dvt_virtual_model *model, double begin, double seconds);
/* Return the modeled seconds of a copy, and of a launch on the GPU. */
DVTI_FN double dvti_model_copy(const dvt_virtual_model *model, int64_t bytes);
DVTI_FN double dvti_model_launch(const dvt_virtual_model *model, const dvti_launch *launch);

/* Kernels of the families. dvti_ref_* are the portable ones, in ref/. */
DVTI_FN void dvti_cpu_fill(const dvti_launch *launch);
DVTI_FN void dvti_ref_elementwise(const dvti_launch *launch);
/* Returns a bound of clip as an integer: truncated, and clamped to the range of the dtype. */
DVTI_FN int64_t dvti_clip_bound(double bound, dvt_dtype dtype);
DVTI_FN void dvti_cpu_reduce(const dvti_launch *launch);
DVTI_FN void dvti_cpu_variance(const dvti_launch *launch);
DVTI_FN void dvti_cpu_softmax(const dvti_launch *launch);
DVTI_FN void dvti_cpu_cross_entropy(const dvti_launch *launch);
DVTI_FN void dvti_cpu_layer_norm(const dvti_launch *launch);
/* Compute the reference results for tests. Softmax and layer norm take rows begin..end-1. */
DVTI_FN void dvti_oracle_reduce(const dvti_launch *launch);
DVTI_FN void dvti_oracle_variance(const dvti_launch *launch);
DVTI_FN void dvti_oracle_softmax(const dvti_launch *launch, int64_t begin, int64_t end);
DVTI_FN void dvti_oracle_layer_norm(const dvti_launch *launch, int64_t begin, int64_t end);
DVTI_FN void dvti_ref_matmul(const dvti_launch *launch);
DVTI_FN void dvti_ref_conv2d(const dvti_launch *launch);
DVTI_FN void dvti_ref_pool2d(const dvti_launch *launch);
DVTI_FN void dvti_cpu_index(const dvti_launch *launch);
DVTI_FN int64_t dvti_cpu_index_workspace(const dvti_launch *launch);
DVTI_FN void dvti_cpu_random(const dvti_launch *launch);
/* Converts two random 32-bit words to two normal float32 numbers. */
DVTI_FN void dvti_normal_pair(uint32_t first, uint32_t second, const dvti_launch *launch,
                              double out[2]);
DVTI_FN int64_t dvti_cpu_random_workspace(const dvti_launch *launch);
DVTI_FN void dvti_cpu_optimizer(const dvti_launch *launch);

DVTI_FN int64_t dvti_sort_plan_of(dvti_launch *launch, int threads);
DVTI_FN void dvti_cpu_sort(const dvti_launch *launch);
/* Convert elements to unsigned keys of the same order, with all bits XORed by `flip`. Return
   whether there is a NaN or a -0. Shared by cpu_sort.c and cpu_topk.c. dvti_keys_32 is for dtypes
   of up to 32 bits. */
DVTI_FN bool dvti_keys_32(const void *src, dvt_dtype dtype, int64_t n, uint32_t flip,
                          uint32_t *key);
DVTI_FN bool dvti_keys_64(const void *src, dvt_dtype dtype, int64_t n, uint64_t flip,
                          uint64_t *key);

typedef struct dvti_sort_pair {
    uint64_t key, at;
} dvti_sort_pair;

/* Sorts by key, stably, with y as the second buffer. Returns x or y, whichever has the result. */
DVTI_FN dvti_sort_pair *dvti_sort_pairs(dvti_sort_pair *x, dvti_sort_pair *y, int64_t n, int bits);
/* Returns whether k is small enough for selection (dvti_cpu_topk); otherwise rows are sorted. */
DVTI_FN bool dvti_topk_pays(const dvti_launch *launch);
DVTI_FN int64_t dvti_topk_plan_of(dvti_launch *launch, int threads);
DVTI_FN void dvti_cpu_topk(const dvti_launch *launch);

/* Load or store one element with conversion. `at` is the element's number, counted from `data`. */
DVTI_FN double dvti_load_f64(const void *data, dvt_dtype dtype, int64_t at);
DVTI_FN int64_t dvti_load_i64(const void *data, dvt_dtype dtype, int64_t at);
DVTI_FN void dvti_store_f64(void *data, dvt_dtype dtype, int64_t at, double value);
DVTI_FN void dvti_store_i64(void *data, dvt_dtype dtype, int64_t at, int64_t value);
/* Load or store n elements, `step` elements apart, from or to a contiguous row of a class. */
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
/* Load or store n positions in C order, from number `first` on. dvti_merge_axes must have prepared
   the view. */
DVTI_FN void dvti_merge_axes(dvti_view *view);
DVTI_FN void dvti_load_block(const dvti_view *view, int64_t first, int64_t n, dvti_class compute,
                             void *dst);
DVTI_FN void dvti_store_block(const dvti_view *view, int64_t first, int64_t n, dvti_class compute,
                              const void *src);

/* A position of a merged view: the index on every axis, and the element's offset from view.data. */
typedef struct dvti_cursor {
    int64_t index[DVT_MAX_DIMS];
    int64_t at;
} dvti_cursor;

DVTI_FN dvti_cursor dvti_cursor_at(const dvti_view *view, int64_t position);
/* Advances by n positions, not beyond the end of the last axis. */
DVTI_FN void dvti_cursor_advance(dvti_cursor *cursor, const dvti_view *view, int64_t n);
#define DVTI_BLOCK 512 /* elements: four operands of 8 bytes each fit in the L1 cache */
/* The largest number of neighboring results of a reduction in one block. With float32 that is a
   page of 4 KiB, the largest range that hardware prefetchers cover. */
#define DVTI_ACROSS 1024

/* ---- the packed product of integers (cpu_gemm_int.c) ----
   Integers are uint64_t, so that sums wrap. A product is cut into tiles. The sums of a tile are
   added up in steps of at most plan.depth multiply-adds. Before a step, both matrices are packed
   into the tile's area:

     A: panels of 6 rows                 B: rows of k
          +--------------------+              +--------+--------+---------+------+
     k=0  | r0 r1 r2 r3 r4 r5  |         k=0  | panel0 | panel1 | ...     | gap  |
     k=1  | r0 r1 r2 r3 r4 r5  |         k=1  | panel0 | panel1 | ...     | gap  |
     ...  |                    |         ...  |                           |      |
          +--------------------+              +---------------------------+------+
     k=0  | r6 r7 r8 r9 0  0   |              <----- plan.cols ----->
     ...  |                    |              <----- plan.ld, elements ----------->

   acc, the sums, is [column panel][row panel][row][column]. Zeros pad A and B to whole panels. */
#define DVTI_GEMM_ROWS 6
#define DVTI_GEMM_DEPTH 256

typedef struct dvti_gemm {
    int64_t rows, cols, depth; /* of the largest tile and step */
    int64_t ld; /* an odd number of cache lines: consecutive rows lie in different cache sets */
    int64_t b_at, acc_at, row_at; /* byte offsets of B, acc and one row in the area; A is at 0 */
    int64_t bytes;                /* of the area */
} dvti_gemm;

DVTI_FN dvti_gemm dvti_gemm_plan(int64_t rows, int64_t cols, int64_t depth);
/* Pack A and B from strided matrices of any integer dtype. */
DVTI_FN void dvti_gemm_pack_a(uint64_t *a, int64_t rows, int64_t depth, const void *data,
                              dvt_dtype dtype, int64_t row_stride, int64_t k_stride);
DVTI_FN void dvti_gemm_pack_b(const dvti_gemm *plan, uint64_t *b, int64_t cols, int64_t depth,
                              const void *data, dvt_dtype dtype, int64_t col_stride,
                              int64_t k_stride);
/* Computes acc += A * B, or acc = A * B if `first`. */
DVTI_FN void dvti_gemm_multiply(const dvti_gemm *plan, int64_t rows, int64_t cols, int64_t depth,
                                const uint64_t *a, const uint64_t *b, uint64_t *acc, bool first);
/* Copies row r of acc to `out`. */
DVTI_FN void dvti_gemm_row(int64_t rows, int64_t cols, const uint64_t *acc, int64_t r,
                           uint64_t *out);

/* Tasks that each need an area of the workspace while they run. At most as many run at once as
   there are areas. */
typedef void (*dvti_task_fn)(void *user, int64_t task, void *area);
/* Nanoseconds of one multiply-add, including its share of packing. Decides whether threads pay. */
#define DVTI_MULTIPLY_ADD_NS 0.076
/* Returns the number of areas for `tasks` with this total of multiply-adds: 1 if threads do not
   pay. */
DVTI_FN int64_t dvti_task_areas(int64_t tasks, double multiply_adds, int threads);
DVTI_FN void dvti_run_tasks(int64_t tasks, double multiply_adds, void *workspace, int64_t areas,
                            int64_t area_bytes, dvti_task_fn run, void *user);

#endif
