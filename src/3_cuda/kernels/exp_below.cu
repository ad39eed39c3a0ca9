/* exp(x - largest) for x <= largest. A float's difference is rounded, which far below the largest would cost 40 units in the last
   place; the error is known exactly (Knuth's two-sum), and exp(d + error) is exp(d) * (1 + error). */

__device__ inline float dvti_exp_below(float x, float largest) {
    const float d = x - largest, b = d - x;
    const float error = (x - (d - b)) + (-largest - b), e = dvti_gpu_exp(d);
    return e > 0 && d < 0 ? e + e * error : e;
}
