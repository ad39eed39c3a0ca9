/* Tests of gzip through the IDX reader: files that zlib wrote in all its modes, files with one
   error each (tests/golden/make_files.py), and damage at every byte. */
#include "dvt_golden.h"

/* Computes byte i by the rules in tests/golden/make_files.py. */
static void fill(const char *rule, unsigned char *out, int64_t n) {
    uint32_t x = 1;
    int64_t i = 0, a = 1, b = 1, left;
    unsigned char symbol = 0;
    memset(out, 0, (size_t)n);
    if (strcmp(rule, "pattern") == 0)
        for (; i < n; i++)
            out[i] = (unsigned char)(i * 7919 % 251);
    else if (strcmp(rule, "random") == 0)
        for (; i < n; i++) {
            x = x * 1664525u + 1013904223u;
            out[i] = (unsigned char)(x >> 24);
        }
    else if (strcmp(rule, "skewed") == 0)
        for (; i < n; symbol++) {
            for (left = a; left && i < n; left--)
                out[i++] = symbol;
            left = a + b;
            a = b;
            b = left;
        }
}

static void expect_good(const char *rule, const char *count, const char *hex) {
    size_t n_file;
    int64_t n = strtoll(count, NULL, 10);
    unsigned char *file = golden_bytes(hex, &n_file),
                  *expected = (unsigned char *)malloc((size_t)n + 1);
    fill(rule, expected, n);
    DVT_SCOPE {
        dvt_array *x = dvt_read_idx(file, n_file, dvt_cpu());
        if (dvt_test_check(x != NULL, __FILE__, __LINE__, "%s %s: %s", rule, count, dvt_error())) {
            CHECK_INT(dvt_ndim(x), 1);
            CHECK_INT(dvt_size(x), n);
            CHECK_INT(dvt_dtype_of(x), DVT_U8);
            CHECK(memcmp(dvt_data(x), expected, (size_t)n) == 0);
        }
    }
    free(file);
    free(expected);
}

static void expect_bad(const char *reason, const char *unused, const char *hex) {
    char words[64];
    size_t n, i;
    unsigned char *file = golden_bytes(hex, &n);
    (void)unused;
    snprintf(words, sizeof words, "%s", reason);
    for (i = 0; words[i]; i++)
        if (words[i] == '_')
            words[i] = ' ';
    CHECK(dvt_read_idx(file, n, dvt_cpu()) == NULL);
    CHECK_INT(dvt_error_code(), DVT_ERR_FORMAT);
    dvt_test_check(strstr(dvt_error(), words) != NULL, __FILE__, __LINE__, "expected \"%s\" in: %s",
                   words, dvt_error());
    dvt_clear_error();
    free(file);
}

DVT_TEST(inflate_what_zlib_writes) {
    CHECK(golden_lines(__FILE__, "gz_ok", expect_good) >= 49);
}

DVT_TEST(inflate_refuses_with_reason) {
    CHECK(golden_lines(__FILE__, "gz_bad", expect_bad) >= 34);
}

static void load(const void *bytes, size_t n) {
    dvt_read_idx(bytes, n, dvt_cpu());
}

static int damaged;

static void damage(const char *rule, const char *count, const char *hex) {
    size_t n;
    unsigned char *file = golden_bytes(hex, &n);
    (void)rule;
    (void)count;
    if (n < 400) {
        golden_damage(file, n, load);
        damaged++;
    }
    free(file);
}

DVT_TEST(inflate_survives_damage) {
    damaged = 0;
    golden_lines(__FILE__, "gz_ok", damage);
    CHECK(damaged >= 20);
}
