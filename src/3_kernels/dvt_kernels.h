/* The list of all kernels, with the arguments and the result of each. It names functions of the
   backends, so it is above them. Operations launch the kernels, so it is below 4_ops. */
#ifndef DVTI_KERNELS_H
#define DVTI_KERNELS_H
#include "2_core/dvt_core.h"

/* "Contiguous" is a promise of the caller; other views have any strides. f[] and i[] are
   parameters; unused ones are 0. Every view of an output has the dtype that is to be stored.
   "Optional" kernels may be missing on a backend: call dvti_supports first.

   fill
       out[0] = f[0] (i[0] for integer dtypes).
   arange
       out[0] contiguous, 1-d: f[0] + index * f[1]; integer dtypes i[0] + index * i[1].
       i[2] = 1: the last one is f[2].
   eye
       out[0] (n, m): 1 where column - row == i[0].

   elementwise
       op is a row of the op table, copy, where or clip. in[0..n_in) have out[0]'s shape (by
       strides of 0). Computed in the class `compute`: DVTI_F32, DVTI_F64 or DVTI_I64. Operand
       number i[0] - 1, when i[0] > 0, is no array but the scalar f[0] (i[1] in class I64).
       clip: bounds f[1], f[2] (NaN-free). in and out may be the same memory with the same
       strides, and never overlap otherwise.

   reduce
       op: a row of the table of reductions (dvt_reduce_table.h). The first i[0] axes of in[0] are
       kept, in order, and are the axes of out[0], which is contiguous; the others are reduced.
       f[0]: the number of elements of each result. Accumulates in float64 or int64, in a fixed tree
       that shape and strides determine. Four float32 or eight 16-bit floats may be added in
       float32 first (squares never). Without elements: finish(initial value).
   variance (optional)
       op: variance. As reduce: the sum of (in[0] - in[1])^2, where in[1], like out[0], has one
       float of in[0]'s dtype for each result. float32 or float64; differences and squares are
       rounded to it.

   softmax
       op: softmax, log_softmax. Along the last axis of in[0] and out[0], same shape.
   cross_entropy
       All contiguous; float32 or float64 except in labels, which are any integers: negative ones
       count from the end, clamped to 0..n-1.
       op cross_entropy: out[1] (rows..., n) = log_softmax of in[0] along the last axis; out[0]
       (rows...): minus its element at the label in[1] (rows...).
       op cross_entropy_data: out[0] (rows..., n) = the gradient of in[0] above, from that of
       out[0], g = in[0] (rows..., or data NULL: 1 everywhere), the labels in[1] and out[1] =
       in[2]. With s = 0 - g:
       (s at the label, else 0) - exp(in[2]) * s, each rounded.
   layer_norm (optional)
       All contiguous, along the last axis, of n elements. Computed in `compute`. A view with data
       NULL: no such operand, or a result that nobody needs.
       op layer_norm: out[0] y = (in[0] - mean) * scale * in[1] + in[2], scale = 1 / sqrt(variance
       + f[0]); in[1], in[2] (n), of one dtype. i[0] = 1: of RMSNorm, whose mean is 0 and whose
       variance is the mean square. out[1], optional (rows..., 2): mean and scale in `compute`.
       On cpu(): float32, rows of at most 32768 elements, no out[1], i[0] = 0.
       op layer_norm_data (optional): the gradients. in[0] dy, in[1] x, in[2] gamma, in[3] out[1]
       above; out[0] dx, out[1] dgamma, out[2] dbeta; i[0] as above.
   batch_norm (optional)
       All contiguous: arrays like x (a, c, b), others (c). Computed in `compute`. NULL as above.
       op batch_norm: out[0] y = (x - mean) * scale * gamma + beta, scale = 1 / sqrt(variance +
       f[0]); in[0] x, in[1] gamma, in[2] beta, of one dtype. out[1] (2, c) in `compute`: mean and
       scale. out[2], out[3] running mean and variance, in `compute`. i[0] = 1: mean and variance
       of x over a and b are used, and the running ones become f[1] * running + (1 - f[1]) *
       batch. Otherwise the running ones are used and stay.
       op batch_norm_data: the gradients. in[0] dy, in[1] x, in[2] gamma, in[3] out[1] above;
       out[0] dx, out[1] dgamma, out[2] dbeta; i[0] as above.

   scan
       op: cumsum. in[0] and out[0] (A, N, B), contiguous: out[a][j][b] is the sum of
       in[a][0..j][b]; i[0] = 1: of in[a][j..N-1][b]. In float64 or int64, in an order that the
       shape and the device determine. On cpu(): one addition after the other, in chunks of 1024
       positions from the beginning of the sums. The sum of all chunks before is added to each
       element of a chunk.
   sort
       op: sort, argsort, topk. in[0] (rows, n) and out[0] (rows, k), contiguous: each row's
       elements in order, or their positions (int64). k is n; for topk, which gives positions,
       1 to n: the first k of argsort. i[0] = 1: descending. Stable both ways: equal elements,
       to which -0 and +0 and any two NaN belong, keep their order. NaN is the largest.

   matmul
       out[0] (batch..., n, m) contiguous = in[0] (batch..., n, k) * in[1] (batch..., k, m),
       all of one ndim >= 2, batch axes already broadcast by strides of 0; any strides; one
       dtype, except with DVTI_CAN_WIDEN. Accumulates in float32 for float32, float16 and
       bfloat16, in float64 for float64, in int64 for integers. Shapes, strides and the device
       determine the order. On cpu() k ascends; a vector times a matrix that is contiguous in k
       uses 64 bytes of partial sums. A GPU may sum ranges of k separately. i[0] = 1: float32
       factors may be rounded to 10 bits of mantissa (TF32); 2: they may be split into two such
       numbers. Has an epilogue: bias and activation.

   conv2d
       All contiguous. i[0..1] stride, i[2..3] padding, i[4..5] dilation, i[6] groups, i[7] & 1:
       TF32, as i[0] of matmul; & 2: Winograd's method is allowed.
       op conv2d: out[0] y (N,O,OH,OW); in x (N,C,H,W), w (O,C/g,KH,KW), and b (O) when n_in is
       3. Has an epilogue: activation alone, since the bias is an operand.
       op conv2d_data: out[0] dx; in dy, w. op conv2d_weight: out[0] dw; in x, dy.
   pool2d
       All contiguous, NCHW. i[0..1] window, i[2..3] stride, i[4..5] padding, i[6] = 1: divide
       by the elements inside.
       op max_pool2d, avg_pool2d: out[0] y; in x.
       op max_pool2d_data: out[0] dx; in dy, x. The first maximum of a window gets dy. i[7] = 1:
       x is the result of relu, and dx includes relu's gradient: a maximum of 0 gets nothing.
       op avg_pool2d_data: out[0] dx; in dy.
       op max_pool2d_pick: out[0] like y; in v (like x), x: v at the position of each window's
       first maximum.

   take
       All contiguous; index int64, negative ones from the end, clamped to 0..n-1.
       op take: out[0] (A, M, B) = in[0] (A, N, B) at in[1] (M).
       op take_add: out[0] (A, N, B) zeroed, then in[0] (A, M, B) added at in[1] (M), in the
       order of M.
   take_along
       i[0] axis. out[0] and in[1] (index, int64) have one shape; in[0] agrees on the other axes
       by strides.
       op take_along: out[0][..j..] = in[0][..index[..j..]..]
       op take_along_add: out[0] (contiguous) zeroed, then in[0] added at in[1], where in[0] and
       in[1] have one shape.
   one_hot
       out[0] (..., depth) contiguous; in[0] (...) contiguous int64; zeros for an index outside
       0..depth-1.

   random
       out[0] contiguous, of i[6] > 0 elements. i[0] generator (dvti_rng in 1_base/dvt_rng.h),
       i[1] key (word 0 above word 1), i[2] first counter, i[3] words 2 and 3 of every counter
       (word 2 above word 3).
       op uniform: f[0] low, f[1] high, f[2] the largest result, all exact in out's dtype.
       normal: f[0] mean, f[1] deviation. randint: i[4] low, i[5] high - low modulo 2^64.
       bernoulli: f[0] p. permutation: out int64.
       Philox: word k of counter i[2] + g gives element 4g + k. Element 2g + k of randint and of
       float64 uniform, and draw 2g + k of permutation, take two words, the upper one first. A
       pair of float64 normals takes all four words.
       Threefry: JAX's layout, which needs no counter.
       MT19937, uniform only, with DVTI_CAN_HOST_STATE: out[1] (i[4], 625) int32 are the states
       (dvti_mt19937) in host memory, which the launch changes; state t gives elements t * step
       .. with step = ceil(i[6] / i[4]).
       cuRAND, uniform only: the same with i[4] subsequences, which begin at word i[2], or at
       in[0][t] when there is in[0] (int64).

   optimizer
       op: a row of the table of optimizers (dvt_optimizer_table.h). One step, in place, all
       contiguous and of one shape. out[0] weight, out[1..] state; in[0] gradient. f: 0 rate,
       1 weight decay, 2 rescale, 3 clip (<= 0: none), 4..7 the row's p0 .. p3; i[0] its flag.
       With DVTI_CAN_MANY and n_updates > 0: a step of each array in `updates`, with f of its own,
       instead of that of out and in, whose dtypes all of them have.

   custom
       A kernel of the program, by `custom`. With an entry: as its source says; in[] and out[] are
       the first of its arrays. An expression: out[0], contiguous, is its value in `compute`.
       Without DVTI_CAN_SOURCE a function of `custom` computes, and must be given.

   Each row: the name, then for each backend the functions of its column (dvti_cpu_kernel,
   dvti_cuda_kernel). */
#define DVTI_KERNELS(K)                                                                            \
    K(fill, (NULL, NULL, dvti_cpu_fill, NULL), (NULL, dvti_cuda_fill))                             \
    K(arange, (NULL, NULL, dvti_cpu_fill, NULL), (NULL, dvti_cuda_fill))                           \
    K(eye, (NULL, NULL, dvti_cpu_fill, NULL), (NULL, dvti_cuda_fill))                              \
    K(elementwise, (NULL, NULL, dvti_cpu_elementwise, NULL), (NULL, dvti_cuda_elementwise))        \
    K(reduce, (NULL, dvti_cpu_reduce_plan, dvti_cpu_reduce, NULL),                                 \
      (dvti_cuda_plan_reduce, dvti_cuda_reduce))                                                   \
    K(variance, (dvti_cpu_variance_supports, dvti_cpu_reduce_plan, dvti_cpu_variance, NULL),       \
      (NULL, NULL))                                                                                \
    K(softmax, (NULL, NULL, dvti_cpu_softmax, NULL), (dvti_cuda_plan_softmax, dvti_cuda_softmax))  \
    K(cross_entropy, (NULL, NULL, dvti_cpu_cross_entropy, NULL),                                   \
      (dvti_cuda_plan_softmax, dvti_cuda_cross_entropy))                                           \
    K(layer_norm, (dvti_cpu_layer_norm_supports, NULL, dvti_cpu_layer_norm, NULL),                 \
      (dvti_cuda_plan_layer_norm, dvti_cuda_layer_norm))                                           \
    K(batch_norm, (dvti_cpu_batch_norm_supports, NULL, NULL, NULL),                                \
      (dvti_cuda_plan_batch_norm, dvti_cuda_batch_norm))                                           \
    K(scan, (NULL, dvti_cpu_scan_plan, dvti_cpu_scan, NULL),                                       \
      (dvti_cuda_plan_scan, dvti_cuda_scan))                                                       \
    K(sort, (NULL, dvti_cpu_order_plan, dvti_cpu_order, NULL),                                     \
      (dvti_cuda_plan_order, dvti_cuda_order))                                                     \
    K(matmul,                                                                                      \
      (dvti_cpu_matmul_supports, dvti_cpu_matmul_plan, dvti_cpu_matmul, dvti_cpu_matmul_small),    \
      (dvti_cuda_plan_matmul, dvti_cuda_matmul))                                                   \
    K(conv2d, (dvti_cpu_conv2d_supports, dvti_cpu_conv2d_plan, dvti_cpu_conv2d, NULL),             \
      (dvti_cuda_plan_conv, dvti_cuda_conv))                                                       \
    K(pool2d, (NULL, NULL, dvti_cpu_pool2d, NULL), (dvti_cuda_plan_pool, dvti_cuda_pool))          \
    K(take, (NULL, dvti_cpu_take_plan, dvti_cpu_index, NULL),                                      \
      (dvti_cuda_plan_index, dvti_cuda_index))                                                     \
    K(take_along, (NULL, dvti_cpu_take_plan, dvti_cpu_index, NULL),                                \
      (dvti_cuda_plan_index, dvti_cuda_index))                                                     \
    K(one_hot, (NULL, NULL, dvti_cpu_index, NULL), (NULL, dvti_cuda_index))                        \
    K(random, (dvti_cpu_random_supports, dvti_cpu_random_plan, dvti_cpu_random, NULL),             \
      (dvti_cuda_plan_random, dvti_cuda_random))                                                   \
    K(optimizer, (NULL, NULL, dvti_cpu_optimizer, NULL), (NULL, dvti_cuda_optimizer))              \
    K(custom, (NULL, NULL, dvti_cpu_custom, NULL), (NULL, dvti_cuda_custom))

/* Return the kernels: dvti_kernel_matmul() and so on. They are functions, so that a program links
   only the kernels that its operations name. */
#define DVTI_DECLARE_KERNEL(name, cpu, cuda) DVTI_FN const dvti_kernel *dvti_kernel_##name(void);
DVTI_KERNELS(DVTI_DECLARE_KERNEL)
#undef DVTI_DECLARE_KERNEL

#endif
