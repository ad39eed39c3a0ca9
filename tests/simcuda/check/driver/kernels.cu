// The kernels of compiled.c. Those of the first part are correct, each of the second has one
// mistake.
template <typename T> __device__ T warp_sum(T v) {
    for (int d = 16; d > 0; d /= 2)
        v += __shfl_down_sync(0xffffffffu, v, d);
    return v;
}

__device__ float block_sum(float v) {
    __shared__ float part[32];
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    v = warp_sum(v);
    if (lane == 0)
        part[warp] = v;
    __syncthreads();
    v = threadIdx.x < blockDim.x / 32 ? part[lane] : 0;
    if (warp == 0)
        v = warp_sum(v);
    return v;
}

extern "C" __global__ void add(float *x, const float *y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        x[i] += y[i];
}

__device__ unsigned finished;

// The last block adds the partial sums of all blocks and resets the counter for the next launch.
extern "C" __global__ void total(const float *x, float *sums, float *out, int n) {
    __shared__ bool last;
    float v = 0;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        v += x[i];
    v = block_sum(v);
    if (threadIdx.x == 0) {
        sums[blockIdx.x] = v;
        __threadfence();
        last = atomicAdd(&finished, 1) == gridDim.x - 1;
    }
    __syncthreads();
    if (!last)
        return;
    v = threadIdx.x < gridDim.x ? ((volatile float *)sums)[threadIdx.x] : 0;
    v = block_sum(v);
    if (threadIdx.x == 0) {
        *out = v;
        finished = 0;
    }
}

extern "C" __global__ void matmul(const float *a, const float *b, float *c, int n) {
    __shared__ float as[16][16], bs[16][16];
    int i = blockIdx.y * 16 + threadIdx.y, j = blockIdx.x * 16 + threadIdx.x;
    float sum = 0;
    for (int t = 0; t < n; t += 16) {
        int column = t + threadIdx.x, row = t + threadIdx.y;
        as[threadIdx.y][threadIdx.x] = i < n && column < n ? a[i * n + column] : 0;
        bs[threadIdx.y][threadIdx.x] = j < n && row < n ? b[row * n + j] : 0;
        __syncthreads();
        for (int k = 0; k < 16; k++)
            sum += as[threadIdx.y][k] * bs[k][threadIdx.x];
        __syncthreads();
    }
    if (i < n && j < n)
        c[i * n + j] = sum;
}

// Inclusive prefix sum of one block in dynamic shared memory; ushort, so that accesses have two
// bytes.
extern "C" __global__ void scan(unsigned short *x) {
    extern __shared__ unsigned short s[];
    int i = threadIdx.x;
    s[i] = x[i];
    __syncthreads();
    for (int d = 1; d < blockDim.x; d *= 2) {
        unsigned short v = i >= d ? s[i - d] : 0;
        __syncthreads();
        s[i] += v;
        __syncthreads();
    }
    x[i] = s[i];
}

extern "C" __global__ void transpose_warp(float *x) {
    __shared__ float s[32 * 33];
    int l = threadIdx.x;
    for (int r = 0; r < 32; r++)
        s[33 * r + l] = x[32 * r + l];
    __syncwarp();
    for (int r = 0; r < 32; r++)
        x[32 * r + l] = s[33 * l + r];
}

// A hand-written barrier of the whole grid, only for cooperative launches.
extern "C" __global__ void rotate(float *x, unsigned *arrived, int steps) {
    int n = gridDim.x * blockDim.x, i = blockIdx.x * blockDim.x + threadIdx.x;
    for (int s = 1; s <= steps; s++) {
        float v = x[(i + 1) % n];
        for (int half = 0; half < 2; half++) {
            __syncthreads();
            if (threadIdx.x == 0) {
                __threadfence();
                atomicAdd(arrived, 1);
                while (*(volatile unsigned *)arrived < gridDim.x * (2 * s - 1 + half))
                    ;
                __threadfence();
            }
            __syncthreads();
            if (half == 0)
                x[i] = v;
        }
    }
}

// One block writes, the other waits for its flag. The blocks must be resident together, or run in
// order.
extern "C" __global__ void producer_consumer(int *data, int *flag, int *out) {
    if (blockIdx.x == gridDim.x - 1) {
        data[threadIdx.x] = 3 * threadIdx.x;
        __threadfence();
        __syncthreads();
        if (threadIdx.x == 0)
            atomicExch(flag, 1);
    } else if (blockIdx.x == 0) {
        if (threadIdx.x == 0)
            while (atomicAdd(flag, 0) == 0)
                ;
        __syncthreads();
        __threadfence();
        out[threadIdx.x] = data[threadIdx.x];
    }
}

// ---- one mistake each ----

extern "C" __global__ void no_barrier(float *x) {
    __shared__ float s[64];
    s[threadIdx.x] = x[threadIdx.x];
    x[threadIdx.x] = s[63 - threadIdx.x];
}

extern "C" __global__ void warp_synchronous(float *x) {
    __shared__ float s[32];
    s[threadIdx.x] = x[threadIdx.x];
    x[threadIdx.x] = s[31 - threadIdx.x];
}

extern "C" __global__ void divergent_barrier(float *x) {
    if (threadIdx.x < 32) {
        x[threadIdx.x] = 1;
        __syncthreads();
        x[threadIdx.x + 1000] = 2;
    } else {
        x[threadIdx.x] = 3;
        __syncthreads();
        x[threadIdx.x + 2000] = 4;
    }
}

extern "C" __global__ void barrier_after_exit(float *x) {
    if (threadIdx.x >= 40)
        return;
    __syncthreads();
    x[threadIdx.x] = 1;
}

extern "C" __global__ void bad_mask(float *x) {
    if (threadIdx.x < 16)
        x[threadIdx.x] = __shfl_down_sync(0xffffffffu, x[threadIdx.x], 1);
}

extern "C" __global__ void beyond(float *x) { x[4096 + threadIdx.x] = 1; }

extern "C" __global__ void before(float *x, float *y) { y[threadIdx.x] = x[(int)threadIdx.x - 1]; }

extern "C" __global__ void blocks_overlap(float *x) {
    float v = x[blockIdx.x * blockDim.x + threadIdx.x + 1];
    x[blockIdx.x * blockDim.x + threadIdx.x] = v;
}

extern "C" __global__ void blocks_write(int *x) { x[threadIdx.x] = blockIdx.x; }

extern "C" __global__ void no_fence(float *x, float *sums, unsigned *ticket) {
    if (threadIdx.x == 0) {
        sums[blockIdx.x] = 1;
        if (atomicAdd(ticket, 1) == gridDim.x - 1)
            for (int i = 0; i < gridDim.x; i++)
                x[0] += sums[i];
    }
}

extern "C" __global__ void spin(volatile int *flag) {
    while (*flag != 12345)
        ;
}
