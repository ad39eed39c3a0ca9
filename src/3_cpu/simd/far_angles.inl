/* Angles that are reduced one after the other: they are rare. */
DVTI_INLINE void V(far_angles)(V(f) x, uint32_t done, V(f) * rest, V(f) * low, V(i) * quarters) {
    float lanes[3][16];
    int32_t turns[16];
    V(store)(lanes[0], x);
    V(store)(lanes[1], *rest);
    V(store)(lanes[2], *low);
    V(istore)(turns, *quarters);
    dvti_reduce_angles(lanes[0], done, lanes[1], lanes[2], turns);
    *rest = V(load)(lanes[1]);
    *low = V(load)(lanes[2]);
    *quarters = V(iload)(turns);
}
