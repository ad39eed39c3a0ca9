/* Running sums of floats in float64, 16 lines side by side: out = what stands before them + their own so far. Row after row, so that
   no addition waits for its neighbour; lines that lie along memory are turned first (cpu_scan.c). */
static void V(running)(const dvti_running *p) {
    int64_t c, r;
    for (c = 0; c < p->columns; c += 16) {
        const int64_t n = p->columns - c;
        V(d) low = V(dload)(p->sum + c), high = V(dload)(p->sum + c + 8);
        const V(d) before_low = V(dload)(p->before + c), before_high = V(dload)(p->before + c + 8);
        for (r = 0; r < p->rows; r++) {
            const float *x = p->x + r * p->x_step + c;
            const V(f) v = n < 16 ? V(load_n)(x, n) : V(load)(x);
            low = V(dadd)(low, V(widen_low)(v));
            high = V(dadd)(high, V(widen_high)(v));
            if (p->y) {
                float *y = p->y + r * p->y_step + c;
                const V(f) w = V(narrow)(V(dadd)(before_low, low), V(dadd)(before_high, high));
                if (n < 16)
                    V(store_n)(y, n, w);
                else
                    V(store)(y, w);
            }
        }
        V(dstore)(p->sum + c, low);
        V(dstore)(p->sum + c + 8, high);
    }
}
