/* Needs exp.inl and log.inl; see basics.inl. */

/* Returns max(x, 0) + log1p(exp(-|x|)). */
DVTI_INLINE V(f) V(softplus)(V(f) x) {
    return V(add)(V(max)(V(zero)(), x), V(log1p)(V(exp_below)(V(bit_or)(V(set)(-0.f), x))));
}
