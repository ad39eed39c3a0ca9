/* Returns exp(x - largest) for x <= largest. The rounding of the difference in float32 would cost
   40 ulp far below the largest. The rounding error is computed exactly (Knuth's two-sum), and exp(d
   + error) is approximated by exp(d) * (1 + error). */

__device__ inline float dvti_exp_below(float x, float largest) {
    const float d = x - largest, b = d - x;
    const float error = (x - (d - b)) + (-largest - b), e = dvti_gpu_exp(d);
    return e > 0 && d < 0 ? e + e * error : e;
}
