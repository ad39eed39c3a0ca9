/* Running sums in float64 of neighboring lines: out = before + the sum of the line so far. It
   advances row by row, so that additions of different columns do not wait for each other:

              x                      out
     row 0    a0 b0 c0 ..  ---->     before + a0         before + b0         ..
     row 1    a1 b1 c1 ..  ---->     before + a0 + a1    before + b0 + b1    .. */
static void V(running)(const dvti_running *p) {
    int64_t c, r;
    for (c = 0; c < p->columns; c += 16) {
        const int64_t n = p->columns - c;
        const float *x = (const float *)p->x + c;
        float *y = p->y ? (float *)p->y + c : NULL;
        V(d) low = V(dload)(p->sum + c), high = V(dload)(p->sum + c + 8);
        const V(d) before_low = V(dload)(p->before + c), before_high = V(dload)(p->before + c + 8);
        for (r = 0; r < p->rows; r++) {
            const V(f) v = V(load_partial)(x + r * p->step, n);
            low = V(dadd)(low, V(widen_low)(v));
            high = V(dadd)(high, V(widen_high)(v));
            if (y)
                V(store_partial)
                (y + r * p->step, n,
                 V(narrow)(V(dadd)(before_low, low), V(dadd)(before_high, high)));
        }
        V(dstore)(p->sum + c, low);
        V(dstore)(p->sum + c + 8, high);
    }
}

static void V(running64)(const dvti_running *p) {
    int64_t c, r;
    for (c = 0; c < p->columns; c += 8) {
        const int64_t n = p->columns - c;
        const double *x = (const double *)p->x + c;
        double *y = p->y ? (double *)p->y + c : NULL;
        V(d) sum = V(dload)(p->sum + c);
        const V(d) before = V(dload)(p->before + c);
        for (r = 0; r < p->rows; r++) {
            sum = V(dadd)(sum, V(dload_partial)(x + r * p->step, n));
            if (y && n >= 8)
                V(dstore)(y + r * p->step, V(dadd)(before, sum));
            else if (y)
                V(dstore_n)(y + r * p->step, n, V(dadd)(before, sum));
        }
        V(dstore)(p->sum + c, sum);
    }
}

/* Rounds to odd at float32's precision: the bits that are cut off set the last bit that remains.
   Then a second rounding to 16 bits gives the same result as a single one. */
DVTI_INLINE V(d) V(odd_bits)(V(d) a) {
    const int64_t cut = ((int64_t)1 << 29) - 1;
    const V(l) bits = V(as_l)(a), rest = V(land)(bits, V(lset)(cut));
    return V(as_d)(V(land)(V(lor)(bits, V(ladd)(rest, V(lset)(cut))), V(lset)(~cut)));
}

/* Stores n sums plus `before` as floats of any dtype. Sums of 16-bit floats are exact in double
   where float32 has too few bits. */
static void V(store_sums)(void *dst, dvt_dtype dtype, int64_t n, const double *from,
                          double before) {
    const V(d) b = V(dset)(before);
    const int64_t size = dvt_dtype_size(dtype);
    char *to = (char *)dst;
    for (; n > 0; n -= 16, from += 16, to += 16 * size) {
        uint16_t *half = (uint16_t *)(void *)to;
        double *wide = (double *)(void *)to;
        const V(d) low = V(dadd)(b, V(dload_partial)(from, n)),
                   high = V(dadd)(b, V(dload_partial)(from + 8, n - 8));
        const V(f) odd = V(narrow)(V(odd_bits)(low), V(odd_bits)(high));
        if (dtype == DVT_F32)
            V(store_partial)((float *)(void *)to, n, V(narrow)(low, high));
        else if (dtype == DVT_F64 && n >= 16) {
            V(dstore)(wide, low);
            V(dstore)(wide + 8, high);
        } else if (dtype == DVT_F64) {
            V(dstore_n)(wide, DVTI_MIN(n, 8), low);
            V(dstore_n)(n > 8 ? wide + 8 : wide, n - 8, high);
        } else if (dtype == DVT_F16 && n >= 16)
            V(store_f16)(half, odd);
        else if (dtype == DVT_F16)
            V(store_f16_n)(half, n, odd);
        else if (n >= 16)
            V(store_bf16)(half, odd);
        else
            V(store_bf16_n)(half, n, odd);
    }
}
