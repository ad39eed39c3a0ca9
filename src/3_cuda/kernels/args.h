/* What the host hands to the kernels: one structure per kernel, by value. This file is compiled twice, as C by the host and as CUDA by
   NVRTC, so that both agree on every offset. Only int, unsigned, int64_t, uint64_t, float, double, and pointers into the
   device's memory. */
#ifndef DVTI_KERNEL_ARGS_H
#define DVTI_KERNEL_ARGS_H

/* A strided window, as dvti_view; its dtype is the program's business. Strides in elements. */
typedef struct dvti_kview {
    void *data;
    int64_t ndim;
    int64_t dim[8], stride[8];
} dvti_kview;

/* fill.cu */
typedef struct dvti_kfill {
    dvti_kview out;
    int64_t n;     /* elements */
    double f0, f1; /* fill: the value; arange: first and step */
    double last;   /* arange: the last one, when `fixed` */
    int64_t i0, i1;
    int64_t fixed;
} dvti_kfill;

/* elementwise.cu */

/* reduce.cu */

/* softmax.cu */

/* matmul.cu */

/* matmul_mma.cu */

/* conv.cu */

/* conv_mma.cu */

/* pool.cu */

/* index.cu */

/* random.cu */

/* optimizer.cu */

#endif
