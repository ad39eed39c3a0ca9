/* What the products on tensor cores share: jobs, and rows of results. D, and ROWS x COLS of a tile
   are defined by the variant. */

typedef dvti_stored<D>::type dvti_mm_element;

/* Returns a job whose row and column are elements. */
__device__ inline dvti_mm_job dvti_mm_locate(const dvti_kmatmul &p, int64_t job) {
    dvti_mm_job at = dvti_mm_find(p, job);
    at.row *= ROWS;
    at.col *= COLS;
    return at;
}

/* ---- results ---- */
/* Store four adjacent elements with one instruction. NVRTC splits stores of structures and of
   float4 into four. */
__device__ inline void dvti_mm_store(void *to, float4 v) {
    asm volatile("st.global.v4.f32 [%0], {%1, %2, %3, %4};" ::"l"(dvti_global(to)), "f"(v.x),
                 "f"(v.y), "f"(v.z), "f"(v.w)
                 : "memory");
}

__device__ inline void dvti_mm_store(void *to, const float *v) {
    float4 four;
    four.x = v[0];
    four.y = v[1];
    four.z = v[2];
    four.w = v[3];
    dvti_mm_store(to, four);
}

__device__ inline void dvti_mm_store(void *to, const unsigned short *v) {
    asm volatile("st.global.v2.u32 [%0], {%1, %2};" ::"l"(dvti_global(to)),
                 "r"((unsigned)v[0] | (unsigned)v[1] << 16),
                 "r"((unsigned)v[2] | (unsigned)v[3] << 16)
                 : "memory");
}

/* Returns the stored element after the epilogue. Splits store the sum instead, and columns past the
   end nothing. */
__device__ inline dvti_mm_element dvti_mm_result(const dvti_kmatmul &p, int64_t at, int64_t col,
                                                 float sum) {
    if (p.splits > 1 || col >= p.m || (p.mask && dvti_load_global<D, float>(p.mask, at) == 0))
        return dvti_narrow<D>(0.0f);
    return dvti_epilogue<D>(sum, p.bias, col * p.bias_step, p.relu);
}

/* Stores four adjacent elements of a row. Those before column p.m exist; all of them when
   p.wide. */
__device__ inline void dvti_mm_put_four(const dvti_kmatmul &p, int64_t at, int64_t col,
                                        float4 four) {
    const float v[4] = {four.x, four.y, four.z, four.w};
    dvti_mm_element narrow[4];
#pragma unroll
    for (int i = 0; i < 4; i++)
        narrow[i] = dvti_mm_result(p, at + i, col + i, v[i]);
    if (p.wide) {
        if (p.splits > 1)
            dvti_mm_store((float *)p.partial + at, four);
        else
            dvti_mm_store((dvti_mm_element *)p.out + at, narrow);
        return;
    }
#pragma unroll
    for (int i = 0; i < 4; i++)
        if (col + i >= p.m)
            return;
        else if (p.splits > 1)
            ((float *)p.partial)[at + i] = v[i];
        else
            ((dvti_mm_element *)p.out)[at + i] = narrow[i];
}
