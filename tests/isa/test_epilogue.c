/* Checks the epilogue of a product, bias and relu, against the separate operations, to the bit.
   Covers every way to compute a product and any number of threads. */
#include "launches.h"

enum { MOST = 300 * 300 };

static dvti_view matrix(float *data, int64_t rows, int64_t cols, bool transposed) {
    dvti_view view;
    memset(&view, 0, sizeof view);
    view.data = data;
    view.dtype = DVT_F32;
    view.ndim = 2;
    view.dim[0] = rows;
    view.dim[1] = cols;
    view.stride[0] = transposed ? 1 : cols;
    view.stride[1] = transposed ? rows : 1;
    return view;
}

static void fill(float *to, int64_t n, uint32_t seed) {
    int64_t i;
    for (i = 0; i < n; i++) {
        seed = seed * 1664525u + 1013904223u;
        to[i] = (float)(int)(seed >> 8) / 8388608 - 1;
    }
}

static void check_product(const char *isa, float *const *memory, int64_t n, int64_t m, int64_t k,
                          bool transposed) {
    float *plain = memory[3];
    dvti_launch launch;
    int64_t i;
    int form;
    memset(&launch, 0, sizeof launch);
    launch.kernel = dvti_kernel_matmul();
    launch.op = DVTI_OP_matmul;
    launch.compute = DVTI_F32;
    launch.name = "product";
    launch.n_out = 1;
    launch.in[0] = matrix(memory[0], n, k, false);
    launch.in[1] = matrix(memory[1], k, m, transposed);
    launch.out[0] = matrix(memory[2], n, m, false);
    launch.n_in = 2;
    run(&launch, isa);
    memcpy(plain, memory[2], (size_t)(n * m) * sizeof *plain);
    for (form = 1; form < 4; form++) {
        launch.epilogue.activation = form & 2 ? DVTI_RELU : DVTI_NO_ACTIVATION;
        launch.epilogue.bias = matrix(form & 1 ? memory[4] : NULL, 1, m, false);
        launch.epilogue.bias.ndim = 1;
        launch.epilogue.bias.dim[0] = m;
        launch.epilogue.bias.stride[0] = 1;
        run(&launch, isa);
        for (i = 0; i < n * m; i++) {
            float want = plain[i] + (form & 1 ? memory[4][i % m] : 0);
            if (form & 2 && want <= 0)
                want = 0;
            if (memcmp(&want, &memory[2][i], sizeof want) != 0)
                break;
        }
        dvt_test_check(i == n * m, __FILE__, __LINE__, "%s: %dx%dx%d, form %d, element %d", isa,
                       (int)n, (int)m, (int)k, form, (int)i);
    }
}

DVT_TEST(bias_and_relu_follow_products) {
    static const int64_t shapes[][3] = {{1, 120, 400},  {1, 17, 5},   {40, 1, 33},
                                        {8, 10, 84},    {70, 45, 50}, {256, 120, 90},
                                        {300, 150, 70}, {3, 5, 0},    {40, 300, 200}};
    float *memory[5];
    int s, threads, k;
    for (k = 0; k < 5; k++) {
        memory[k] = (float *)malloc(MOST * sizeof(float));
        fill(memory[k], MOST, 7 + (uint32_t)k);
    }
    memory[0][2] = NAN;
    for (s = 0; s < (int)(sizeof shapes / sizeof *shapes); s++)
        for (threads = 1; threads <= 2; threads++) {
            CHECK(dvt_set_num_threads(threads) == DVT_OK);
            for (k = 0; k < 2; k++) {
                FOR_EACH_TARGET(check_product(target->name, memory, shapes[s][0], shapes[s][1],
                                              shapes[s][2], k != 0));
                check_product("reference", memory, shapes[s][0], shapes[s][1], shapes[s][2],
                              k != 0);
            }
        }
    CHECK(dvt_set_num_threads(0) == DVT_OK);
    for (k = 0; k < 5; k++)
        free(memory[k]);
}
