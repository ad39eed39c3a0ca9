/* softmax and log_softmax of a row of floats: its maximum, the sum of the exponentials below it in double, the values. A NaN or an
   infinite maximum makes NaN of the whole row by itself. */

/* The first n elements; beyond them minus infinity, whose exponential adds nothing. */
DVTI_INLINE V(f) V(soft_load)(const float *x, int64_t n) {
#define DVTI_NO -INFINITY
    static const float beyond[32] = {0,       0,       0,       0,       0,       0,       0,
                                     0,       0,       0,       0,       0,       0,       0,
                                     0,       0,       DVTI_NO, DVTI_NO, DVTI_NO, DVTI_NO, DVTI_NO,
                                     DVTI_NO, DVTI_NO, DVTI_NO, DVTI_NO, DVTI_NO, DVTI_NO, DVTI_NO,
                                     DVTI_NO, DVTI_NO, DVTI_NO, DVTI_NO};
#undef DVTI_NO
    return n >= 16 ? V(load)(x) : V(add)(V(load_n)(x, n), V(load)(beyond + 16 - n));
}

/* n > 0; y may be x. */
static void V(softmax)(const float *x, float *y, int64_t n, bool logarithm) {
    V(f) most = V(set)(-INFINITY), other = most, e, factor;
    V(d) low = V(dzero)(), high = V(dzero)();
    double sum;
    int64_t at;
    for (at = 0; at + 32 <= n; at += 32) {
        most = V(max)(V(load)(x + at), most);
        other = V(max)(V(load)(x + at + 16), other);
    }
    for (; at < n; at += 16)
        most = V(max)(V(soft_load)(x + at, n - at), most);
    most = V(set)(V(fold_max)(V(max)(most, other)));
    for (at = 0; at < n; at += 32) {
        e = V(exp)(V(sub)(V(soft_load)(x + at, n - at), most));
        if (!logarithm)
            V(store_upto)(y + at, n - at, e);
        if (n - at > 16) {
            other = V(exp)(V(sub)(V(soft_load)(x + at + 16, n - at - 16), most));
            if (!logarithm)
                V(store_upto)(y + at + 16, n - at - 16, other);
            e = V(add)(e, other);
        }
        low = V(dadd)(low, V(widen_low)(e));
        high = V(dadd)(high, V(widen_high)(e));
    }
    sum = V(dfold_add)(V(dadd)(low, high));
    factor = V(set)((float)(logarithm ? log(sum) : 1 / sum));
    for (at = 0; at < n; at += 16) {
        e = V(load_upto)((logarithm ? x : y) + at, n - at);
        /* most + factor would lose factor beside a huge value */
        e = logarithm ? V(sub)(V(sub)(e, most), factor) : V(mul)(e, factor);
        V(store_upto)(y + at, n - at, e);
    }
}
