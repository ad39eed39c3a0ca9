/* Conversions between dtypes on a GPU give the bytes of cpu(). The inputs are all values of the
   narrow dtypes, and dense samples of the others around every rounding, clamping or wrapping
   boundary; NaN with its sign and payload. */
#include "on_gpu.h"
#include <stdint.h>

/* Compares x converted to every dtype on both devices. Each pair is a program. By default every
   float is converted to every float, and other pairs are every second one. */
static void same_bytes(dvt_array *x) {
    int to;
    for (to = 0; to < DVT_DTYPE_COUNT; to++) {
        dvt_dtype from = dvt_dtype_of(x);
        bool floats = from <= DVT_BF16 && to <= DVT_BF16; /* which are rounded */
        if (!floats && !EACH((int)from + to, 2))
            continue;
        DVT_SCOPE {
            dvt_array *want = dvt_astype(x, (dvt_dtype)to);
            dvt_array *got = dvt_astype(dvt_copyto(x, dvt_gpu(0)), (dvt_dtype)to);
            int64_t bytes = want ? dvt_nbytes(want) : 0, size = dvt_dtype_size((dvt_dtype)to),
                    i = 0;
            char *a = (char *)malloc((size_t)bytes + 1), *b = (char *)malloc((size_t)bytes + 1);
            CHECK(got && want);
            CHECK_INT(dvt_to_host(got, a, bytes), DVT_OK);
            CHECK_INT(dvt_to_host(want, b, bytes), DVT_OK);
            while (i < bytes && a[i] == b[i])
                i++;
            if (i < bytes)
                dvt_test_check(0, __FILE__, __LINE__,
                               "%s to %s: element %lld (%.17g): %.17g on the GPU, %.17g on cpu()",
                               dvt_dtype_name(dvt_dtype_of(x)), dvt_dtype_name((dvt_dtype)to),
                               (long long)(i / size), dvt_item_at(x, DVT_SHAPE(i / size)),
                               dvt_item_at(got, DVT_SHAPE(i / size)),
                               dvt_item_at(want, DVT_SHAPE(i / size)));
            free(a);
            free(b);
        }
    }
}

static dvt_array *of_bytes(const void *values, int64_t n, dvt_dtype dtype) {
    return dvt_from_host(values, DVT_SHAPE(n), dtype, dvt_cpu());
}

DVT_TEST(gpu_all_float16_and_bfloat16) {
    uint16_t *all = (uint16_t *)malloc(65536 * sizeof *all);
    int i;
    if (dvt_num_gpus() > 0) {
        for (i = 0; i < 65536; i++)
            all[i] = (uint16_t)i;
        same_bytes(of_bytes(all, 65536, DVT_F16));
        same_bytes(of_bytes(all, 65536, DVT_BF16));
    }
    free(all);
    NEEDS_GPU;
}

DVT_TEST(gpu_all_bytes) {
    uint8_t all[256];
    int i;
    NEEDS_GPU;
    for (i = 0; i < 256; i++)
        all[i] = (uint8_t)i;
    same_bytes(of_bytes(all, 256, DVT_U8));
    same_bytes(of_bytes(all, 256, DVT_I8));
}

/* Generates for every pattern of float16 and bfloat16: the float32 halfway to the next pattern, and
   its neighbors. */
static int64_t float_bits(uint32_t *bits) {
    int64_t n = 0;
    uint32_t i;
    int k;
    for (i = 0; i < 65536; i += 3)
        for (k = -1; k <= 1; k++) {
            bits[n++] = (i << 16 | 0x8000) + (uint32_t)k; /* bfloat16 */
            if ((i & 0x7c00) != 0x7c00)                   /* float16, 2^-14 and above */
                bits[n++] =
                    (((i & 0x8000) << 16) | (((i & 0x7fff) << 13) + 0x38001000u)) + (uint32_t)k;
            /* float16 below: integer multiples of 2^-25 */
            bits[n++] =
                ((uint32_t)(i & 0x8000) << 16 | ((i >> 4 & 31) + 98) << 23 | (i & 0x7ff) << 12) +
                (uint32_t)k;
        }
    for (k = 0; k < 32; k++) /* NaN: quiet and signaling, with payloads in every bit */
        for (i = 0; i < 23; i++)
            bits[n++] = 0x7f800000u | (uint32_t)(k & 1) << 31 | (uint32_t)1 << i |
                        (uint32_t)k * 0x1357u % 0x7fffffu;
    return n;
}

DVT_TEST(gpu_dense_float32) {
    uint32_t *bits = (uint32_t *)malloc(250000 * sizeof *bits);
    if (dvt_num_gpus() > 0)
        same_bytes(of_bytes(bits, float_bits(bits), DVT_F32));
    free(bits);
    NEEDS_GPU;
}

/* The same numbers in float64, moved by one float32 step and by one float64 step, to expose double
   rounding. Then every magnitude, and NaN. */
DVT_TEST(gpu_dense_float64) {
    uint32_t *bits = (uint32_t *)malloc(250000 * sizeof *bits);
    uint64_t *wide = (uint64_t *)malloc(250000 * sizeof *wide);
    int64_t n = float_bits(bits), i;
    if (dvt_num_gpus() > 0) {
        for (i = 0; i < n; i++) {
            float f;
            double d;
            memcpy(&f, &bits[i], sizeof f);
            d = (double)f;
            memcpy(&wide[i], &d, sizeof d);
            wide[i] += (uint64_t)(i % 5 - 2);
            if (i % 11 == 0)
                wide[i] = wide[i] * 0x9e3779b97f4a7c15u;
        }
        for (i = 0; i < 2 * 52 * 52; i++)
            wide[i] = 0x7ff0000000000000u | (uint64_t)(i & 1) << 63 | (uint64_t)1 << (i / 2 % 52) |
                      (uint64_t)1 << (i / 104);
        same_bytes(of_bytes(wide, n, DVT_F64));
    }
    free(bits);
    free(wide);
    NEEDS_GPU;
}

/* Generates values around each power of two and each half step of the floats there: ties and their
   neighbors. */
static int64_t whole_numbers(int64_t *values) {
    int64_t n = 0, i;
    int power, digits, k;
    for (power = 0; power < 64; power++)
        for (digits = 0; digits <= 54; digits++)
            for (k = -2; k <= 2; k++) {
                uint64_t v = ((uint64_t)1 << power) +
                             (digits <= power ? (uint64_t)1 << (power - digits) : 0);
                values[n++] = (int64_t)(v + (uint64_t)(int64_t)k);
                values[n++] = (int64_t)((uint64_t)0 - v + (uint64_t)(int64_t)k);
            }
    for (i = 0; i < 2000; i++)
        values[n++] = (int64_t)((uint64_t)i * 0x9e3779b97f4a7c15u);
    return n;
}

DVT_TEST(gpu_dense_integers) {
    int64_t *values = (int64_t *)malloc(40000 * sizeof *values), n = whole_numbers(values), i;
    int32_t *narrow = (int32_t *)malloc(40000 * sizeof *narrow);
    if (dvt_num_gpus() > 0) {
        same_bytes(of_bytes(values, n, DVT_I64));
        for (i = 0; i < n; i++)
            narrow[i] = (int32_t)((uint64_t)values[i] >> (i & 1 ? 32 : 0));
        same_bytes(of_bytes(narrow, n, DVT_I32));
    }
    free(values);
    free(narrow);
    NEEDS_GPU;
}
