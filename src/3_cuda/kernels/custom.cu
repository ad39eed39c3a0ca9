/* An expression of the program (dvt_kernel_expression): out[i] = expression(in0[..], in1[..], ...)
   for every position of a shape. One thread per element, 256 threads in a block, grid-stride loops;
   neighboring threads access neighboring elements of the result.

   Variant: T the type to compute in; DVTI_OUT the dtype of the result; DVTI_N_IN inputs; I the type
   of offsets; DVTI_VALUE the call of dvti_expression with the inputs at the offsets at[].
   DVTI_FLAT: one axis, so that an offset is a product. */

extern "C" __global__ void dvti_custom(const dvti_kcustom p) {
    for (int64_t i = dvti_thread(); i < p.n; i += dvti_threads()) {
        I at[DVTI_N_IN];
        I left = (I)i;
#pragma unroll
        for (int k = 0; k < DVTI_N_IN; k++)
            at[k] = DVTI_FLAT ? left * (I)p.stride[k][0] : 0;
        for (int axis = DVTI_FLAT ? -1 : (int)p.ndim - 1; axis >= 0; axis--) {
            const I next = dvti_divide(left, p.axis[axis]);
            const I place = left - next * (I)p.axis[axis].divisor;
#pragma unroll
            for (int k = 0; k < DVTI_N_IN; k++)
                at[k] += place * (I)p.stride[k][axis];
            left = next;
        }
        dvti_store<DVTI_OUT>(p.out, i, DVTI_VALUE);
    }
}
