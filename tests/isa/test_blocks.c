/* Tests of the caches that cpu() knows, and of the blocks of products that follow from them. */
#include "3_cpu/cpu_matmul.h"
#include "isa.h"

#include <sys/stat.h>

static int64_t random_below(int64_t n) {
    return (int64_t)dvt_test_random(0, (double)n);
}

/* ---- reading ---- */
DVT_TEST(caches_are_read_from_text) {
    static const char *const wrong[] = {"",          "32K",        "32K/8",      "x,512K",
                                        "32K/0,1M",  "32K/7,512K", "1,512K",     "32K,512K,4M,8M",
                                        "32K/8,,4M", "32K;512K",   "32K/8/8,1M", "32K,-1",
                                        "32K,1M,0,5"};
    dvti_caches caches;
    size_t i;
    CHECK(dvti_caches_parse("48K/12,1M/16,32M", &caches));
    CHECK_INT(caches.level[0].bytes, 48 << 10);
    CHECK_INT(caches.level[0].ways, 12);
    CHECK_INT(caches.level[1].bytes, 1 << 20);
    CHECK_INT(caches.level[1].ways, 16);
    CHECK_INT(caches.level[2].bytes, 32 << 20);
    CHECK_INT(caches.level[2].line, 64);
    CHECK(dvti_caches_parse("16K,128K", &caches));
    CHECK_INT(caches.level[0].ways, 8);
    CHECK_INT(caches.level[2].bytes, 0);
    CHECK(dvti_caches_parse("16K,128K,0", &caches));
    CHECK_INT(caches.level[2].bytes, 0);
    for (i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        dvt_test_check(!dvti_caches_parse(wrong[i], &caches), __FILE__, __LINE__,
                       "\"%s\" was accepted", wrong[i]);
    CHECK_INT(caches.level[0].bytes, 16 << 10);
}

static void write_file(const char *directory, const char *name, const char *text) {
    char path[512];
    FILE *file;
    snprintf(path, sizeof path, "%s/%s", directory, name);
    file = fopen(path, "w");
    CHECK(file != NULL);
    if (file) {
        fputs(text, file);
        fclose(file);
    }
}

/* What Linux tells about a Raspberry Pi 4: no index3, instructions at index1. */
DVT_TEST(caches_are_read_from_files) {
    static const char *const text[3][6] = {
        {"1\n", "Data\n", "32K\n", "2\n", "64\n", "0\n"},
        {"1\n", "Instruction\n", "48K\n", "3\n", "64\n", "0\n"},
        {"2\n", "Unified\n", "1024K\n", "16\n", "64\n", "0-2,3\n"}};
    static const char *const file[] = {
        "level", "type", "size", "ways_of_associativity", "coherency_line_size", "shared_cpu_list"};
    char root[] = "/tmp/devtensor-caches-XXXXXX", directory[256], command[300];
    dvti_caches caches;
    int i, k;
    CHECK(mkdtemp(root) != NULL);
    for (i = 0; i < 3; i++) {
        snprintf(directory, sizeof directory, "%s/index%d", root, i);
        CHECK_INT(mkdir(directory, 0700), 0);
        for (k = 0; k < 6; k++)
            write_file(directory, file[k], text[i][k]);
    }
    memset(&caches, 0, sizeof caches);
    dvti_caches_read(root, &caches);
    CHECK_INT(caches.level[0].bytes, 32 << 10);
    CHECK_INT(caches.level[0].ways, 2);
    CHECK_INT(caches.level[1].bytes, 1 << 20);
    CHECK_INT(caches.level[1].threads, 4);
    CHECK_INT(caches.level[2].bytes, 0);
    /* Files that make no sense leave the level unknown. */
    memset(&caches, 0, sizeof caches);
    snprintf(directory, sizeof directory, "%s/index0", root);
    write_file(directory, "size", "many\n");
    dvti_caches_read(root, &caches);
    CHECK_INT(caches.level[0].bytes, 0);
    snprintf(command, sizeof command, "rm -r %s", root);
    CHECK_INT(system(command), 0);
}

DVT_TEST(caches_of_this_machine_are_known) {
    dvti_caches caches;
    dvt_cpu_info info;
    char table[8192];
    int i;
    dvti_caches_find(&caches);
    CHECK(caches.level[0].bytes >= 4096 && caches.level[1].bytes >= caches.level[0].bytes);
    CHECK_INT(dvt_cpu_query(&info), DVT_OK);
    for (i = 0; i < 3; i++)
        CHECK_INT(info.cache_bytes[i], caches.level[i].bytes);
    CHECK_STR(info.isa, dvt_cpu_isa());
    CHECK(info.depth > 0 && info.rows > 0 && info.cols > 0);
    dvt_devices_format(table, sizeof table);
    CHECK(strstr(table, "\ncpu(): ") != NULL && strstr(table, ", L1 ") != NULL);
    CHECK_ERROR(dvt_cpu_query(NULL), DVT_ERR_NULL_ARGUMENT);
    CHECK_INT(dvt_set_cpu_isa("reference"), DVT_OK);
    CHECK_INT(dvt_cpu_query(&info), DVT_OK);
    CHECK_INT(info.depth, 0);
    CHECK_INT(dvt_set_cpu_isa(NULL), DVT_OK);
}

/* ---- lines that share a set ---- */
/* Counts what dvti_cache_lines_per_set computes. */
static int64_t count_most_lines(const dvti_data_cache *cache, int64_t rows, int64_t bytes,
                                int64_t stride) {
    const int64_t sets = cache->bytes / cache->line / cache->ways;
    int64_t *count = (int64_t *)calloc((size_t)sets, sizeof *count), row, line, most = 0;
    for (row = 0; row < rows; row++)
        for (line = row * stride / cache->line; line <= (row * stride + bytes - 1) / cache->line;
             line++) {
            int64_t *at = &count[line % sets];
            if (++*at > most)
                most = *at;
        }
    free(count);
    return most;
}

DVT_TEST(lines_per_set_are_counted) {
    static const dvti_data_cache cache[] = {
        {32 << 10, 8, 64, 1}, {48 << 10, 12, 64, 1}, {512 << 10, 8, 64, 1}, {1 << 20, 16, 128, 1}};
    int trial;
    for (trial = 0; trial < 4000; trial++) {
        const dvti_data_cache *c = &cache[random_below(4)];
        const int64_t rows = 1 + random_below(600), line = c->line;
        const int64_t way = c->bytes / c->ways, parts = 1 + random_below(8);
        const bool conflicts = random_below(2) == 0; /* strides of powers of two */
        const int64_t apart = conflicts ? line << random_below(9) : 4 * (1 + random_below(48000));
        /* strides close to a part of a way */
        const bool close = !conflicts && random_below(2) == 0;
        const int64_t stride = close ? way / parts / 4 * 4 + 4 * (random_below(9) - 4) : apart;
        const int64_t wide = line * (1 + random_below(64)), bytes = DVTI_MIN(stride, wide);
        const int64_t got = dvti_cache_lines_per_set(c, rows, bytes, stride);
        const int64_t most = count_most_lines(c, rows, bytes, stride);
        /* The function returns the mean over the sets that are used. */
        dvt_test_check(
            got <= most + most / 2 + 2 && (conflicts ? most <= got : most <= 3 * got + 2), __FILE__,
            __LINE__, "%lld rows of %lld bytes, %lld apart: %lld lines per set, counted %lld",
            (long long)rows, (long long)bytes, (long long)stride, (long long)got, (long long)most);
    }
}

/* ---- blocks ---- */
typedef struct machine {
    const char *caches;
    int64_t width, depth, rows, cols; /* of float32, with 6 rows in a tile */
} machine;

DVT_TEST(blocks_of_known_machines) {
    static const machine known[] = {
        {"32K/8,512K/8,32M/16", 16, 320, 144, 1024}, /* Zen 3, AVX2 */
        {"32K/8,1M/8,32M/16", 64, 1024, 96, 1024},   /* Zen 4, AVX-512 */
        {"48K/12,1M/16,32M/16", 64, 1024, 96, 1024}, /* Zen 5, AVX-512 */
        {"48K/12,1M/16,32M/16", 16, 512, 192, 1024}, /* Zen 5, AVX2 */
        {"32K/8,256K/4,8M/16", 16, 320, 48, 1024},   /* Skylake, AVX2 */
        {"32K/8,1M/16,1408K/11", 64, 1024, 96, 256}, /* Skylake-X */
        {"64K/4,1M/8,0", 16, 512, 192, 256},         /* Neoverse N1 without L3 */
        {"32K/2,1M/16,0", 16, 1024, 108, 256}};      /* Cortex-A72 */
    size_t i;
    for (i = 0; i < sizeof known / sizeof known[0]; i++) {
        dvti_caches caches;
        dvti_gemm_blocks blocks;
        CHECK(dvti_caches_parse(known[i].caches, &caches));
        blocks = dvti_gemm_blocks_of(&caches, 6, known[i].width, sizeof(float));
        dvt_test_check(blocks.depth == known[i].depth && blocks.rows == known[i].rows &&
                           blocks.cols == known[i].cols,
                       __FILE__, __LINE__, "%s, width %lld: rows %lld, columns %lld, depth %lld",
                       known[i].caches, (long long)known[i].width, (long long)blocks.rows,
                       (long long)blocks.cols, (long long)blocks.depth);
    }
}

DVT_TEST(blocks_fit_any_caches) {
    int trial;
    for (trial = 0; trial < 2000; trial++) {
        dvti_caches caches;
        dvti_gemm_blocks blocks;
        const int64_t size = 4 << random_below(2), width = (64 / size) << random_below(3);
        int i;
        for (i = 0; i < 3; i++) {
            dvti_data_cache *c = &caches.level[i];
            c->ways = 1 + (int)random_below(20);
            c->line = 32 << random_below(3);
            c->bytes = (int64_t)c->ways * c->line * ((int64_t)16 << random_below(10));
            c->threads = 1 + (int)random_below(16);
        }
        blocks = dvti_gemm_blocks_of(&caches, 6, width, size);
        CHECK(blocks.depth >= 64 && blocks.depth <= 1024 && blocks.depth % 16 == 0);
        CHECK(blocks.rows >= 48 && blocks.rows <= 192 && blocks.rows % 12 == 0);
        CHECK(blocks.cols >= 256 && blocks.cols <= 1024 && blocks.cols % 64 == 0);
        if (blocks.in_l1)
            CHECK(blocks.depth * (width + 6) * size <= caches.level[0].bytes);
    }
}

/* ---- packing ---- */
typedef struct packing {
    int64_t n, m, k;
    bool transposed_a, transposed_b, packs_a, packs_b, swapped;
} packing;

/* Products with AVX2 on a Zen 3. Strides of powers of two meet in a few sets. */
DVT_TEST(packing_depends_on_conflicts) {
    static const packing known[] = {{64, 64, 64, false, false, false, false, false},
                                    {96, 96, 96, false, false, false, false, false},
                                    {128, 128, 128, false, false, false, true, false},
                                    {512, 512, 512, false, false, false, true, false},
                                    {512, 512, 512, true, false, true, true, false},
                                    {512, 512, 512, false, true, false, true, false},
                                    {512, 512, 512, true, true, true, true, false},
                                    {4096, 4096, 4096, false, false, true, true, false},
                                    {128, 128, 128, true, true, false, true, true},
                                    {64, 500, 800, false, true, false, true, true},
                                    {64, 500, 800, true, true, false, true, true},
                                    {4096, 4096, 16, true, false, true, true, false},
                                    {20, 576, 25, false, true, false, true, false}};
    dvti_caches caches;
    dvti_simd simd;
    dvti_simd_gemm by;
    size_t i;
    memset(&simd, 0, sizeof simd);
    memset(&by, 0, sizeof by);
    simd.tile_rows = 6;
    by.width = 16;
    CHECK(dvti_caches_parse("32K/8,512K/8,32M/16", &caches));
    for (i = 0; i < sizeof known / sizeof known[0]; i++) {
        const packing *t = &known[i];
        const dvti_gemm_blocks blocks = dvti_gemm_blocks_of(&caches, 6, 16, sizeof(float));
        dvti_mm p;
        memset(&p, 0, sizeof p);
        p.simd = &simd;
        p.by = &by;
        p.n = t->n;
        p.m = t->m;
        p.k = t->k;
        p.size = sizeof(float);
        p.a_row = t->transposed_a ? 1 : t->k;
        p.a_k = t->transposed_a ? t->n : 1;
        p.b_k = t->transposed_b ? 1 : t->m;
        p.b_col = t->transposed_b ? t->k : 1;
        dvti_mm_choose_packing(&p, &blocks);
        dvt_test_check(p.pack_a == t->packs_a && p.pack_b == t->packs_b && p.swapped == t->swapped,
                       __FILE__, __LINE__, "%lldx%lldx%lld: packs A %d, B %d, swaps them %d",
                       (long long)t->n, (long long)t->m, (long long)t->k, p.pack_a, p.pack_b,
                       p.swapped);
    }
}
