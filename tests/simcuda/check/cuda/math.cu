// The math library as NVRTC expands it: one row of results per function, in the order of
// check_math.c.

extern "C" __global__ void singles(const float *x, const float *y, float *r, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x, k = 0;
    if (i >= n)
        return;
    float a = x[i], b = y[i];
#define ROW(value) r[n * k++ + i] = (value)
    ROW(expf(a));
    ROW(exp2f(a));
    ROW(expm1f(a));
    ROW(logf(a));
    ROW(log2f(a));
    ROW(log1pf(a));
    ROW(sinf(a));
    ROW(cosf(a));
    ROW(tanf(a));
    ROW(sinhf(a));
    ROW(tanhf(a));
    ROW(asinf(a));
    ROW(atan2f(a, b));
    ROW(erff(a));
    ROW(erfcf(a));
    ROW(powf(a, b));
    ROW(sqrtf(a));
    ROW(cbrtf(a));
    ROW(rsqrtf(a));
    ROW(hypotf(a, b));
    ROW(fmodf(a, b));
    ROW(a / b);
    ROW(floorf(a));
    ROW(rintf(a));
    ROW(roundf(a));
    ROW(fmaf(a, b, a));
    ROW(fminf(a, b));
    ROW(copysignf(a, b));
    ROW((float)(int)a);
}

extern "C" __global__ void doubles(const double *x, const double *y, double *r, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x, k = 0;
    if (i >= n)
        return;
    double a = x[i], b = y[i];
    ROW(exp(a));
    ROW(log(a));
    ROW(sin(a));
    ROW(cos(a));
    ROW(tanh(a));
    ROW(erf(a));
    ROW(pow(a, b));
    ROW(sqrt(a));
    ROW(cbrt(a));
    ROW(atan2(a, b));
    ROW(fmod(a, b));
    ROW(a / b);
    ROW(log1p(a));
    ROW(rsqrt(a));
    ROW(floor(a));
}
