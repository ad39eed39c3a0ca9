/* Tests of internals that no public function shows alone: random number generators, checked
   sizes, 16-bit floats, parsing. A private copy of the library in this file makes the internals
   visible. */
#include "private_copy.h"
#include "dvt_host.h"
#include "dvt_test.h"

/* ---- published vectors ---- */
/* Source: the known-answer tests of Random123 (D. E. Shaw Research). */
DVT_TEST(base_philox_vectors) {
    static const uint32_t in[3][6] = {
        {0, 0, 0, 0, 0, 0},
        {0xffffffffu, 0xffffffffu, 0xffffffffu, 0xffffffffu, 0xffffffffu, 0xffffffffu},
        {0x243f6a88u, 0x85a308d3u, 0x13198a2eu, 0x03707344u, 0xa4093822u, 0x299f31d0u}};
    static const uint32_t expected[3][4] = {{0x6627e8d5u, 0xe169c58du, 0xbc57ac4cu, 0x9b00dbd8u},
                                            {0x408f276du, 0x41c83b0eu, 0xa20bc7c6u, 0x6d5451fdu},
                                            {0xd16cfe09u, 0x94fdccebu, 0x5001e420u, 0x24126ea1u}};
    int i, k;
    for (i = 0; i < 3; i++) {
        uint32_t out[4];
        dvti_philox4x32(in[i], in[i] + 4, out);
        for (k = 0; k < 4; k++)
            CHECK_INT(out[k], expected[i][k]);
    }
}

DVT_TEST(base_threefry_vectors) {
    static const uint32_t in[3][4] = {{0, 0, 0, 0},
                                      {0xffffffffu, 0xffffffffu, 0xffffffffu, 0xffffffffu},
                                      {0x243f6a88u, 0x85a308d3u, 0x13198a2eu, 0x03707344u}};
    static const uint32_t expected[3][2] = {
        {0x6b200159u, 0x99ba4efeu}, {0x1cb996fcu, 0xbb002be7u}, {0xc4923a9cu, 0x483df7a0u}};
    int i;
    for (i = 0; i < 3; i++) {
        uint32_t out[2];
        dvti_threefry2x32(in[i] + 2, in[i], out);
        CHECK_INT(out[0], expected[i][0]);
        CHECK_INT(out[1], expected[i][1]);
    }
}

/* The C++ standard specifies the 10000th output of the default seed. */
DVT_TEST(base_mt19937_vectors) {
    dvti_mt19937 state;
    int i;
    dvti_mt19937_seed(&state, 5489);
    CHECK_INT(dvti_mt19937_next(&state), 3499211612u);
    for (i = 1; i < 9999; i++)
        dvti_mt19937_next(&state);
    CHECK_INT(dvti_mt19937_next(&state), 4123659995u);
}

DVT_TEST(base_mulhi64) {
    CHECK(dvti_mulhi64(0, UINT64_MAX) == 0);
    CHECK(dvti_mulhi64(UINT64_MAX, UINT64_MAX) == UINT64_MAX - 1);
    CHECK(dvti_mulhi64((uint64_t)1 << 63, 2) == 1);
    CHECK(dvti_mulhi64(0x123456789abcdef0u, 0xfedcba9876543210u) == 0x121fa00ad77d7422u);
    CHECK(dvti_mulhi64(UINT64_MAX, 10) == 9);
}

/* Checks words of arrays with more than 2^32 - 1 words, which no test can allocate. Each block has
   its own key. */
DVT_TEST(base_jax_words_of_huge_arrays) {
    const int64_t block = 0xffffffff, n = 2 * block + 10;
    uint32_t key[2] = {0, 42}, own[2], counter[2], out[2];
    own[0] = dvti_jax_word(key, 6, 2);
    own[1] = dvti_jax_word(key, 6, 3);
    /* the second block has an odd number of counters; its last pair is padded with 0 */
    counter[0] = 0x7fffffffu;
    counter[1] = 0;
    dvti_threefry2x32(own, counter, out);
    CHECK_INT(dvti_jax_word(key, n, block + 0x7fffffff), out[0]);
    counter[0] = 5;
    counter[1] = 5u + 0x80000000u;
    dvti_threefry2x32(own, counter, out);
    CHECK_INT(dvti_jax_word(key, n, block + 5), out[0]);
    CHECK_INT(dvti_jax_word(key, n, block + 0x80000000 + 5), out[1]);
    own[0] = dvti_jax_word(key, 6, 4);
    own[1] = dvti_jax_word(key, 6, 5);
    CHECK_INT(dvti_jax_word(key, n, 2 * block + 7), dvti_jax_word(own, 10, 7));
}

/* erf inverts it. The points reach the tails of both polynomials. */
DVT_TEST(base_erfinv) {
    double x;
    int i;
    for (i = 1; i < 2000; i++) {
        x = i / 2000.0;
        CHECK_CLOSE(erf(dvti_erfinv_f64(x)), x, 1e-15);
        CHECK_CLOSE(erf((double)dvti_erfinv_f32((float)x)), (double)(float)x, 2e-7);
        CHECK(dvti_erfinv_f64(-x) == -dvti_erfinv_f64(x));
    }
    for (i = 4; i < 52; i++) {
        x = ldexp(1, -i);
        CHECK_CLOSE(erfc(dvti_erfinv_f64(1 - x)) / x, 1, 1e-13);
        if (i < 24)
            CHECK_CLOSE(erfc((double)dvti_erfinv_f32((float)(1 - x))) / x, 1, 1e-4);
    }
    CHECK(dvti_erfinv_f64(0) == 0 && dvti_erfinv_f32(0) == 0);
    CHECK(isinf(dvti_erfinv_f64(1)) && dvti_erfinv_f64(-1) < 0);
    CHECK(isinf(dvti_erfinv_f32(1)) && dvti_erfinv_f32(-1) < 0);
}

/* ---- sizes ---- */
DVT_TEST(base_checked_sizes) {
    int64_t out = 7;
    CHECK(dvti_mul(0, INT64_MAX, &out) && out == 0);
    CHECK(dvti_mul(INT64_MAX, 0, &out) && out == 0);
    CHECK(dvti_mul(INT64_MAX, 1, &out) && out == INT64_MAX);
    CHECK(dvti_mul(3037000499, 3037000499, &out) && out == INT64_C(9223372030926249001));
    CHECK(!dvti_mul(3037000500, 3037000500, &out));
    CHECK(!dvti_mul((int64_t)1 << 32, (int64_t)1 << 31, &out));
    CHECK(!dvti_mul(-1, 5, &out) && !dvti_mul(5, -1, &out));
    CHECK_INT(out, INT64_C(9223372030926249001)); /* refused products leave `out` unchanged */
    CHECK(dvti_sum(INT64_MAX, 0, &out) && out == INT64_MAX);
    CHECK(dvti_sum(1, 2, &out) && out == 3);
    CHECK(!dvti_sum(INT64_MAX, 1, &out) && !dvti_sum(-1, 1, &out) && !dvti_sum(1, -1, &out));
}

DVT_TEST(base_memory) {
    void *items = NULL, *block;
    size_t capacity = 0;
    CHECK(dvti_grow(&items, &capacity, 3, 8) && capacity >= 3);
    ((int64_t *)items)[2] = 77;
    CHECK(dvti_grow(&items, &capacity, 1000, 8) && capacity >= 1000);
    CHECK_INT(((int64_t *)items)[2], 77);
    block = items;
    CHECK(dvti_grow(&items, &capacity, 1000, 8) && items == block);
    CHECK(!dvti_grow(&items, &capacity, SIZE_MAX, 8) && items == block);
    CHECK(!dvti_grow(&items, &capacity, SIZE_MAX / 8, 16) && items == block);
    dvti_free(items);
    dvti_free(NULL);
    block = dvti_alloc(0);
    CHECK(block != NULL);
    dvti_free(block);
}

DVT_TEST(base_text) {
    char buffer[8];
    dvti_text text = dvti_text_begin(buffer, sizeof buffer);
    dvti_text_add(&text, "abc%d", 45);
    CHECK_STR(buffer, "abc45");
    dvti_text_char(&text, '.', 5);
    CHECK_STR(buffer, "abc45..");
    CHECK_INT(text.length, 10);
    dvti_text_add(&text, "more");
    CHECK_STR(buffer, "abc45..");
    CHECK_INT(text.length, 14);
    text = dvti_text_begin(NULL, 100);
    dvti_text_add(&text, "xyz");
    dvti_text_char(&text, 'x', 2);
    CHECK_INT(text.length, 5);
}

/* ---- 16-bit floats: all codes, both ways ---- */
/* Compares the emulation of fma, which replaces C libraries that round twice, with correct C
   libraries. */
DVT_TEST(base_fused_sums_are_rounded_once) {
    const float x = 1.000244140625f; /* its square lies between two floats */
    int i;
    CHECK(dvti_fma_emulated(-0x1.69c3a27688795p-17, -0x1.eb0354df4a45bp+4,
                            -0x1.5aef76e9fd696p-12) == -0x1.167a5f7f0b412p-66);
    CHECK(dvti_fma_emulated(-0x1.6a3f7fb9fcd42p+12, 0x1.62184fdaeffa9p-2, 0x1.f50e35928f1ep+10) ==
          -0x1.e3b641b3cfa48p-44);
    CHECK(dvti_fmaf_emulated(x, x, 0x1p-60f) == 0x1.002002p+0f);
    CHECK(dvti_fmaf_emulated(x, x, -0x1p-60f) == 0x1.002p+0f);
    CHECK(dvti_fmaf_emulated(x, x, 0) == 0x1.002p+0f);
    CHECK(dvti_fma(x, x, 0x1p-90) == (double)x * x);
    CHECK(isinf(dvti_fmaf_emulated(INFINITY, 1, 2)) && isnan(dvti_fmaf_emulated(INFINITY, 0, 2)));
#if !defined(__MINGW64__)
    for (i = 0; i < 100000; i++) {
        double a = dvt_test_random(-3, 3), b = dvt_test_random(-3, 3),
               c = i & 1 ? -a * b * (1 + 1e-16 * (i % 100)) : dvt_test_random(-1e6, 1e6);
        float f = (float)a, g = (float)b, h = (float)c;
        if (dvti_fma_emulated(a, b, c) != fma(a, b, c) ||
            dvti_fmaf_emulated(f, g, h) != fmaf(f, g, h)) {
            dvt_test_check(false, __FILE__, __LINE__, "%a * %a + %a", a, b, c);
            break;
        }
    }
#else
    (void)i;
#endif
}

static double f16_value(unsigned code) {
    double fraction = code & 1023, value;
    int exponent = (int)(code >> 10 & 31);
    if (exponent == 31)
        value = code & 1023 ? (double)NAN : (double)INFINITY;
    else if (exponent == 0)
        value = ldexp(fraction, -24);
    else
        value = ldexp(1024 + fraction, exponent - 25);
    return code & 0x8000 ? -value : value;
}

static double bf16_value(unsigned code) {
    double fraction = code & 127, value;
    int exponent = (int)(code >> 7 & 255);
    if (exponent == 255)
        value = code & 127 ? (double)NAN : (double)INFINITY;
    else if (exponent == 0)
        value = ldexp(fraction, -133);
    else
        value = ldexp(128 + fraction, exponent - 134);
    return code & 0x8000 ? -value : value;
}

DVT_TEST(base_float16_codes_to_values) {
    unsigned code;
    for (code = 0; code < 65536; code++) {
        float h = dvti_f16_to_f32((uint16_t)code), b = dvti_bf16_to_f32((uint16_t)code);
        double eh = f16_value(code), eb = bf16_value(code);
        int nan_h = eh != eh, nan_b = eb != eb;
        if (nan_h ? h == h : (double)h != eh || !signbit(h) != !signbit(eh))
            CHECK_INT(code, -1);
        if (nan_b ? b == b : (double)b != eb || !signbit(b) != !signbit(eb))
            CHECK_INT(code, -2);
        /* back to the same code; NaN stays NaN */
        if (nan_h ? !isnan(f16_value(dvti_f32_to_f16(h)))
                  : dvti_f32_to_f16(h) != code || dvti_f64_to_f16(eh) != code)
            CHECK_INT(code, -3);
        if (nan_b ? !isnan(bf16_value(dvti_f32_to_bf16(b)))
                  : dvti_f32_to_bf16(b) != code || dvti_f64_to_bf16(eb) != code)
            CHECK_INT(code, -4);
    }
    CHECK_INT(code, 65536);
}

/* Checks points between every two neighbors: a quarter, the midpoint (ties to even), and one step
   to either side of it. */
static void check_rounding(double (*value)(unsigned), uint16_t (*from32)(float),
                           uint16_t (*from64)(double), unsigned largest, int line) {
    unsigned code;
    for (code = 0; code <= largest; code++) {
        double low = value(code),
               high = code < largest ? value(code + 1) : 2 * low - value(code - 1);
        double middle = (low + high) / 2, hair = (high - low) * 0x1p-30;
        unsigned even = code & 1 ? code + 1 : code;
        int good = from64(low + (high - low) / 4) == code &&
                   from64(high - (high - low) / 4) == code + 1 && from64(middle) == even &&
                   from64(middle - hair) == code && from64(middle + hair) == code + 1 &&
                   from64(-middle) == (even | 0x8000);
        if ((double)(float)middle == middle)
            good = good && from32((float)middle) == even &&
                   from32(-(float)middle) == (even | 0x8000) &&
                   from32(nextafterf((float)middle, 0)) == code &&
                   from32(nextafterf((float)middle, (float)INFINITY)) == code + 1;
        if (!good)
            dvt_test_check(0, __FILE__, line, "code %u: %.17g is rounded wrong", code, middle);
    }
    CHECK_INT(code, largest + 1);
}

DVT_TEST(base_float16_rounding) {
    check_rounding(f16_value, dvti_f32_to_f16, dvti_f64_to_f16, 0x7bff, __LINE__);
    check_rounding(bf16_value, dvti_f32_to_bf16, dvti_f64_to_bf16, 0x7f7f, __LINE__);
    CHECK_INT(dvti_f32_to_f16(65519.99609375f), 0x7bff);
    CHECK_INT(dvti_f32_to_f16(65520), 0x7c00);
    CHECK_INT(dvti_f64_to_f16(65519.9999999), 0x7bff);
    CHECK_INT(dvti_f64_to_f16(1e300), 0x7c00);
    CHECK_INT(dvti_f64_to_f16(-1e300), 0xfc00);
    CHECK_INT(dvti_f64_to_f16(1e-300), 0);
    CHECK_INT(dvti_f64_to_f16(-1e-300), 0x8000);
    CHECK_INT(dvti_f64_to_bf16(1e300), 0x7f80);
    CHECK_INT(dvti_f64_to_bf16(1e-300), 0);
    CHECK_INT(dvti_f64_to_f16((double)INFINITY), 0x7c00);
    CHECK(isnan(f16_value(dvti_f64_to_f16((double)NAN))));
    CHECK(isnan(bf16_value(dvti_f64_to_bf16((double)NAN))));
}

DVT_TEST(base_largest_below) {
    static const dvt_dtype dtypes[] = {DVT_F64, DVT_F32, DVT_F16, DVT_BF16};
    static const double points[] = {1, -1, 0, 0.1, -0.1, 65504, 3, 1e-7, -1e-7, 2.0009765625};
    int i, k;
    for (i = 0; i < 4; i++)
        for (k = 0; k < 10; k++) {
            double x = points[k], below = dvti_below(dtypes[i], x);
            double up = below + (fabs(below) + ldexp(1, -24)) * ldexp(1, -7);
            CHECK(below < x);
            CHECK(dvti_round_as(dtypes[i], below) == below);
            CHECK(up > below && x - below <= fmax(fabs(x) * ldexp(1, -7), ldexp(1, -24)));
        }
    CHECK(dvti_below(DVT_F32, 1) == 1 - ldexp(1, -24));
    CHECK(dvti_below(DVT_F16, 1) == 1 - ldexp(1, -11));
    CHECK(dvti_below(DVT_BF16, -1) == -1 - ldexp(1, -7));
    CHECK(dvti_below(DVT_F16, 0) == -ldexp(1, -24));
}

/* ---- the environment is read once; the private copy has not read it yet ---- */
static int base_warnings, base_messages;

static void base_count_warnings(void *user, dvt_log_level level, const char *message) {
    (void)user;
    (void)message;
    base_messages++;
    base_warnings += level == DVT_LOG_WARNING;
}

DVT_TEST(base_sizes) {
    static const struct {
        const char *text;
        int64_t bytes;
    } cases[] = {
        {"0", 0},
        {"7", 7},
        {"7B", 7},
        {"2K", 2048},
        {"2k", 2048},
        {"3M", INT64_C(3) << 20},
        {"3m", INT64_C(3) << 20},
        {"3MB", INT64_C(3) << 20},
        {"3MiB", INT64_C(3) << 20},
        {"5G", INT64_C(5) << 30},
        {"5gB", INT64_C(5) << 30},
        {"8589934591G", INT64_C(8589934591) << 30},
        {"8589934592G", -1}, /* 2^63 */
        {"9223372036854775808", -1},
        {"-1", -1},
        {"64MB", INT64_C(64) << 20},
        {"1GiB", INT64_C(1) << 30},
        {"99999999999999999999", -1},
        {"", -1},
        {"M", -1},
        {"x", -1},
        {"5X", -1},
        {"5K5", -1},
        {"3T", -1},
        {"3Mi", -1},
        {"3MM", -1},
        {"3.5M", -1},
        {"3 M", -1},
    };

    size_t i;
    for (i = 0; i < sizeof cases / sizeof cases[0]; i++)
        dvt_test_check(dvti_parse_bytes(cases[i].text) == cases[i].bytes, __FILE__, __LINE__,
                       "\"%s\" is %lld bytes, expected %lld", cases[i].text,
                       (long long)dvti_parse_bytes(cases[i].text), (long long)cases[i].bytes);
}

/* Returns how many lines the default logger writes for one message of each level. */
static int written_lines(void) {
    FILE *file = tmpfile();
    int kept = dup(2), level, c, lines = 0;
    if (!CHECK(file && kept >= 0))
        return -1;
    fflush(stderr);
    dup2(fileno(file), 2);
    dvt_set_logger(dvti_default_logger, NULL);
    for (level = DVT_LOG_DEBUG; level <= DVT_LOG_ERROR; level++)
        dvti_log((dvt_log_level)level, "a message");
    dvt_set_logger(NULL, NULL);
    fflush(stderr);
    dup2(kept, 2);
    close(kept);
    rewind(file);
    while ((c = getc(file)) != EOF)
        lines += c == '\n';
    fclose(file);
    return lines;
}

/* Each value of DEVTENSOR_LOG passes its own level and those above. A user's logger gets every
   message. */
DVT_TEST(base_log_levels) {
    static const char *const values[] = {"debug", "info", "warning", "error", "off"};
    const char *set = getenv("DEVTENSOR_LOG");
    char before[100];
    int i;
    snprintf(before, sizeof before, "%s", set ? set : "");
    for (i = 0; i < 5; i++) {
        setenv("DEVTENSOR_LOG", values[i], 1);
        dvti_log_level_set = -1;
        CHECK_INT(written_lines(), 4 - i);
        CHECK_INT(dvti_log_level_set, i);
    }
    base_messages = base_warnings = 0;
    dvt_set_logger(base_count_warnings, NULL);
    dvti_log(DVT_LOG_DEBUG, "a message");
    CHECK_INT(base_messages, 1);
    setenv("DEVTENSOR_LOG", "Debug", 1); /* refused */
    dvti_log_level_set = -1;
    dvti_log_ready();
    CHECK_INT(base_warnings, 1);
    CHECK_INT(dvti_log_level_set, DVT_LOG_WARNING);
    unsetenv("DEVTENSOR_LOG");
    dvti_log_level_set = -1;
    dvti_log_ready();
    CHECK_INT(base_warnings, 1);
    CHECK_INT(dvti_log_level_set, DVT_LOG_WARNING);
    if (before[0])
        setenv("DEVTENSOR_LOG", before, 1);
    dvti_log_level_set = -1;
    base_warnings = 0;
    dvt_set_logger(NULL, NULL);
}

/* Runs before every test of this file that needs a device, because tests are sorted by name. */
DVT_TEST(base_a_environment) {
    dvt_device_info info;
    dvt_set_logger(base_count_warnings, NULL);
    setenv("DEVTENSOR_VIRTUAL_GPUS", "3", 1);
    setenv("DEVTENSOR_VIRTUAL_GPU_MEMORY", "3M", 1);
    setenv("DEVTENSOR_VIRTUAL_GPU_MODEL", "launch=2ms,flops=3M", 1);
    setenv("DEVTENSOR_NUM_THREADS", "2", 1);
    setenv("DVT_BASE_NUMBER", "17x", 1);
    setenv("DEVTENSOR_LOG", "loud", 1);
    dvti_log_level_set = -1; /* an earlier message may have read the level */
    CHECK_INT(dvt_num_gpus(), 3);
    CHECK_INT(base_warnings, 1);
    CHECK_INT(dvti_log_level_set, DVT_LOG_WARNING);
    base_warnings = 0;
    CHECK_INT(dvt_device_query(dvt_gpu(2), &info), DVT_OK);
    CHECK_INT(info.memory_total, 3 * 1024 * 1024);
    CHECK(fabs(dvt_get_virtual_model().launch - 2e-3) < 1e-12);
    CHECK(fabs(dvt_get_virtual_model().flops - 3e6) < 1e-3);
    DVT_SCOPE {
        CHECK(dvt_zeros(DVT_SHAPE(3 << 18), DVT_F32, dvt_gpu(2)) != NULL);
        CHECK(dvt_zeros(DVT_SHAPE(1), DVT_F32, dvt_gpu(2)) == NULL);
        CHECK_INT(dvt_error_code(), DVT_ERR_DEVICE_MEMORY);
        dvt_clear_error();
    }
    CHECK(dvt_num_threads() == 2 || dvt_num_threads() == 1); /* 1: DEVTENSOR_NO_THREADS */
    CHECK_INT(base_warnings, 0);
    CHECK_INT(dvti_env_int("DVT_BASE_NUMBER", 0, 100, 5), 5);
    CHECK_INT(base_warnings, 1);
    setenv("DVT_BASE_NUMBER", "101", 1);
    CHECK_INT(dvti_env_int("DVT_BASE_NUMBER", 0, 100, 5), 5);
    setenv("DVT_BASE_NUMBER", "", 1);
    CHECK_INT(dvti_env_int("DVT_BASE_NUMBER", 0, 100, 6), 6);
    setenv("DVT_BASE_NUMBER", "-3", 1);
    CHECK_INT(dvti_env_int("DVT_BASE_NUMBER", -3, 100, 6), -3);
    CHECK_INT(base_warnings, 2);
    CHECK(dvti_env("DVT_NO_SUCH_VARIABLE") == NULL);
    unsetenv("DEVTENSOR_VIRTUAL_GPUS");
    unsetenv("DEVTENSOR_VIRTUAL_GPU_MEMORY");
    unsetenv("DEVTENSOR_VIRTUAL_GPU_MODEL");
    dvt_set_virtual_model(NULL);
    unsetenv("DEVTENSOR_NUM_THREADS");
    unsetenv("DEVTENSOR_LOG");
    unsetenv("DVT_BASE_NUMBER");
    CHECK_INT(dvt_num_gpus(), 3); /* the environment is read only once */
    dvt_discard_all();
    CHECK_INT(dvt_set_virtual_gpus(0, 0), DVT_OK);
    dvt_set_logger(NULL, NULL);
}

#if !defined(DEVTENSOR_NO_FILES) && !defined(_WIN32)
/* ---- files that are replaced together ---- */
/* Writes three files over three older ones. Renaming the one at `wrong` fails. Returns the names
   of those that have new content, as bits; files that are missing add 8, 16 and 32. */
static int files_replaced(int wrong) {
    dvti_file_out file[3];
    const char *folder = getenv("TMPDIR");
    char path[3][600];
    int i, bits = 0;
    for (i = 0; i < 3; i++) {
        FILE *f;
        snprintf(path[i], sizeof path[i], "%s/devtensor-%ld-group-%d",
                 folder && *folder ? folder : "/tmp", (long)getpid(), i);
        f = fopen(path[i], "wb");
        CHECK(f && fclose(f) == 0);
        CHECK(dvti_file_begin(&file[i], "test", path[i]));
        dvti_file_write(&file[i], "new", 3);
        CHECK(dvti_file_close(&file[i], true));
    }
    if (wrong >= 0)
        CHECK(remove(path[wrong]) == 0 && mkdir(path[wrong], 0700) == 0);
    CHECK_INT(dvti_files_end(file, 3), wrong < 0 ? DVT_OK : DVT_ERR_IO);
    for (i = 0; i < 3; i++) {
        struct stat state;
        bits |= stat(path[i], &state) != 0 ? 8 << i : state.st_size == 3 ? 1 << i : 0;
        remove(path[i]);
    }
    return bits;
}

DVT_TEST(files_that_belong_together) {
    dvt_set_log_level(DVT_LOG_OFF);
    CHECK_INT(files_replaced(-1), 1 | 2 | 4);
    CHECK_INT(files_replaced(0) & ~(1 | 8), 0); /* the last one is the old one */
    CHECK(strstr(dvt_error(), "could not be replaced") != NULL);
    dvt_clear_error();
    CHECK_INT(files_replaced(1) & ~(2 | 16), 1 | 32); /* the old last one is gone */
    CHECK(strstr(dvt_error(), "other files were replaced, so their old index was removed") != NULL);
    dvt_clear_error();
    dvt_set_log_level(DVT_LOG_WARNING);
}
#endif
