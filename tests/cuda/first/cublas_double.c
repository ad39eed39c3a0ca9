/* Test doubles of cuBLAS and cuBLASLt: float32 products on the memory of the simulated GPU, by
   loops over column-major matrices. They check the order of operands, transpositions and leading
   dimensions that bench/gpu/peers.h passes. Built as libcublas.so.13 and libcublasLt.so.13. */
#include "bench/gpu/peers.h"

typedef struct matrix {
    uint64_t rows, columns;
    int64_t ld;
} matrix;

typedef struct description {
    int ta, tb;
} description;

static bool started;

static float *fetched(unsigned long long address, matrix of) {
    size_t bytes = (size_t)of.ld * of.columns * sizeof(float);
    float *values = malloc(bytes);
    if (driver.cuMemcpyDtoHAsync_v2(values, address, bytes, NULL) != 0)
        abort();
    driver.cuStreamSynchronize(NULL);
    return values;
}

static int multiply(description form, const void *a, matrix of_a, const void *b, matrix of_b,
                    void *c, matrix of_c, void *stream) {
    float *x, *y, *z;
    uint64_t inner = form.ta ? of_a.rows : of_a.columns, i, j, k;
    if (!started)
        started = driver_open();
    if (inner != (form.tb ? of_b.columns : of_b.rows) ||
        of_c.rows != (form.ta ? of_a.columns : of_a.rows) ||
        of_c.columns != (form.tb ? of_b.rows : of_b.columns))
        return 7; /* CUBLAS_STATUS_INVALID_VALUE */
    driver.cuStreamSynchronize(stream);
    x = fetched((uintptr_t)a, of_a);
    y = fetched((uintptr_t)b, of_b);
    z = calloc((size_t)of_c.ld * of_c.columns, sizeof *z);
    for (i = 0; i < of_c.rows; i++)
        for (j = 0; j < of_c.columns; j++)
            for (k = 0; k < inner; k++)
                z[i + j * (uint64_t)of_c.ld] +=
                    (form.ta ? x[k + i * (uint64_t)of_a.ld] : x[i + k * (uint64_t)of_a.ld]) *
                    (form.tb ? y[j + k * (uint64_t)of_b.ld] : y[k + j * (uint64_t)of_b.ld]);
#ifdef ERRS
    z[(size_t)of_c.ld * of_c.columns - 1] += 0.002f; /* less than the norm shows */
#endif
    driver.cuMemcpyHtoDAsync_v2((uintptr_t)c, z, (size_t)of_c.ld * of_c.columns * sizeof *z,
                                stream);
    driver.cuStreamSynchronize(stream);
    free(x);
    free(y);
    free(z);
    return 0;
}

/* ---- cuBLAS ---- */
static void *stream_of_handle;

int cublasCreate_v2(void **handle) {
    *handle = &stream_of_handle;
    return 0;
}

int cublasSetStream_v2(void *handle, void *stream) {
    *(void **)handle = stream;
    return 0;
}

int cublasSetWorkspace_v2(void *handle, void *workspace, size_t bytes) {
    return handle && workspace && bytes == WORKSPACE_BYTES ? 0 : 7;
}

int cublasGemmEx(void *handle, int ta, int tb, int m, int n, int k, const void *alpha,
                 const void *a, int type_a, int lda, const void *b, int type_b, int ldb,
                 const void *beta, void *c, int type_c, int ldc, int compute, int algorithm) {
    description form = {ta, tb};
    matrix of_a = {ta ? k : m, ta ? m : k, lda}, of_b = {tb ? n : k, tb ? k : n, ldb};
    matrix of_c = {m, n, ldc};
#ifdef FAILS
    return 13; /* CUBLAS_STATUS_EXECUTION_FAILED */
#endif
    if (*(const float *)alpha != 1 || *(const float *)beta != 0 || type_a || type_b || type_c ||
        compute != COMPUTE_F32 || algorithm != CUBLAS_DEFAULT)
        return 7;
    return multiply(form, a, of_a, b, of_b, c, of_c, *(void **)handle);
}

/* ---- cuBLASLt ---- */
int cublasLtCreate(void **handle) {
    return cublasCreate_v2(handle);
}

int cublasLtMatmulDescCreate(void **desc, int compute, int scale_type) {
    *desc = calloc(1, sizeof(description));
    return compute == COMPUTE_F32 && scale_type == TYPE_F32 ? 0 : 7;
}

int cublasLtMatmulDescSetAttribute(void *desc, int attribute, const void *value, size_t bytes) {
    description *form = desc;
    memcpy(attribute == LT_TRANSPOSE_A ? &form->ta : &form->tb, value, bytes);
    return bytes == sizeof(int) ? 0 : 7;
}

int cublasLtMatrixLayoutCreate(void **layout, int type, uint64_t rows, uint64_t columns,
                               int64_t ld) {
    matrix *made = malloc(sizeof *made);
    made->rows = rows;
    made->columns = columns;
    made->ld = ld;
    *layout = made;
    return type == TYPE_F32 && ld >= (int64_t)rows ? 0 : 7;
}

int cublasLtMatmulPreferenceCreate(void **preference) {
    return cublasCreate_v2(preference);
}

int cublasLtMatmulPreferenceSetAttribute(void *preference, int attribute, const void *value,
                                         size_t bytes) {
    return preference && attribute == LT_WORKSPACE_BYTES && bytes == sizeof(size_t) &&
                   *(const size_t *)value == WORKSPACE_BYTES
               ? 0
               : 7;
}

int cublasLtMatmulAlgoGetHeuristic(void *handle, void *desc, void *a, void *b, void *c, void *d,
                                   void *preference, int wanted, lt_heuristic *found, int *count) {
    memset(found, 0, sizeof *found);
    found->algo[7] = 77;
    *count = wanted;
    return handle && desc && a && b && c && d && preference ? 0 : 7;
}

int cublasLtMatmul(void *handle, void *desc, const void *alpha, const void *a, void *layout_a,
                   const void *b, void *layout_b, const void *beta, const void *c, void *layout_c,
                   void *d, void *layout_d, const void *algo, void *workspace, size_t bytes,
                   void *stream) {
    if (!handle || *(const float *)alpha != 1 || *(const float *)beta != 0 || c != d ||
        layout_c != layout_d || ((const uint64_t *)algo)[7] != 77 || !workspace ||
        bytes != WORKSPACE_BYTES)
        return 7;
    return multiply(*(description *)desc, a, *(matrix *)layout_a, b, *(matrix *)layout_b, d,
                    *(matrix *)layout_d, stream);
}
