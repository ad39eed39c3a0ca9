/* Tests of ownership: scopes, keep, retain and release. */
#include "dvt_test.h"

static int64_t alive(void) {
    return dvt_get_stats().arrays;
}

static dvt_array *one(void) {
    return dvt_ones(DVT_SHAPE(2), DVT_F32, dvt_cpu());
}

DVT_TEST(scopes_free_what_they_own) {
    int64_t before = alive();
    DVT_SCOPE {
        dvt_array *x = one();
        dvt_array *y = dvt_add(dvt_mul(x, x), dvt_exp(x));
        CHECK_VALUES(y, 1e-6, 1 + exp(1), 1 + exp(1));
        CHECK_INT(alive() - before, 4);
        DVT_SCOPE {
            dvt_neg(y);
            dvt_t(y);
            CHECK_INT(alive() - before, 6);
        }
        CHECK_INT(alive() - before, 4);
    }
    CHECK_INT(alive(), before);
}

static dvt_array *made_in_a_scope(int way) {
    DVT_SCOPE {
        dvt_array *x = one();
        dvt_neg(x);
        if (way == 1)
            return dvt_keep(x);
        if (way == 2)
            return NULL;
        DVT_SCOPE {
            if (way == 3)
                return dvt_keep(dvt_keep(dvt_add(x, x)));
            if (way == 4)
                goto out;
        }
    }
out:
    return one();
}

DVT_TEST(scopes_end_on_every_exit) {
    int64_t before = alive();
    int i, turns = 0;
    DVT_SCOPE {
        CHECK_VALUES(made_in_a_scope(1), 0, 1, 1);
        CHECK_INT(alive() - before, 1);
        CHECK(made_in_a_scope(2) == NULL);
        CHECK_INT(alive() - before, 1);
        CHECK_VALUES(made_in_a_scope(4), 0, 1, 1);
        CHECK_VALUES(made_in_a_scope(0), 0, 1, 1);
        CHECK_INT(alive() - before, 3);
    }
    CHECK_INT(alive(), before);
    for (i = 0; i < 10; i++)
        DVT_SCOPE {
            one();
            if (i == 3)
                continue; /* ends scope and iteration (tests/compile/breaks.c tests break) */
            turns++;
            one();
        }
    CHECK_INT(alive(), before);
    CHECK_INT(i, 10);
    CHECK_INT(turns, 9);
    for (i = turns = 0; i < 10; i++) {
        DVT_SCOPED;
        one();
        if (i == 3)
            continue;
        if (i == 7)
            break;
        turns++;
        one();
    }
    CHECK_INT(alive(), before);
    CHECK_INT(i, 7);
    CHECK_INT(turns, 6);
    while (1) {
        dvt_scope_guard DVT_CLEANUP(dvt_scope_end) scope = dvt_scope_begin();
        one();
        if (scope.once)
            break;
    }
    CHECK_INT(alive(), before);
}

/* Each keep moves an object to the next outer scope. */
DVT_TEST(scopes_keep) {
    int64_t before = alive();
    dvt_array *x = NULL, *y = NULL;
    DVT_SCOPE {
        DVT_SCOPE {
            dvt_array *noise = one();
            x = one();
            y = dvt_add(x, noise);
            CHECK(dvt_keep(x) == x);
            CHECK(dvt_keep(x) == x); /* no longer owned by this scope */
            CHECK(dvt_keep(NULL) == NULL);
        }
        CHECK_INT(alive() - before, 1);
        CHECK_VALUES(x, 0, 1, 1);
        dvt_keep(x);
    }
    CHECK_INT(alive() - before, 1);
    CHECK(dvt_keep(x) == x); /* no effect without a scope */
    CHECK_VALUES(x, 0, 1, 1);
    (void)y;
    dvt_discard_all();
    CHECK_INT(alive(), before);
}

/* Some objects are kept in any order, and others are not. */
DVT_TEST(scopes_keep_many) {
    int64_t before = alive();
    dvt_array *kept[20];
    int i;
    DVT_SCOPE {
        DVT_SCOPE {
            dvt_array *all[40];
            for (i = 0; i < 40; i++)
                all[i] = dvt_full(DVT_SHAPE(1), i, DVT_F32, dvt_cpu());
            for (i = 0; i < 20; i++)
                kept[i] = dvt_keep(all[(i * 7) % 40]);
        }
        CHECK_INT(alive() - before, 20);
        for (i = 0; i < 20; i++)
            CHECK_VALUES(kept[i], 0, (double)((i * 7) % 40));
    }
    CHECK_INT(alive(), before);
}

DVT_TEST(scopes_retain_and_release) {
    int64_t before = alive();
    dvt_array *x = NULL, *view = NULL;
    DVT_SCOPE {
        x = dvt_retain(one());
        view = dvt_retain(dvt_rows(x, 1, 2));
        CHECK(dvt_retain(x) == x);
    }
    CHECK_INT(alive() - before, 2);
    dvt_release(x);
    CHECK_VALUES(x, 0, 1, 1);
    dvt_release(x);
    /* the view keeps the memory */
    CHECK_VALUES(view, 0, 1);
    dvt_release(view);
    dvt_release(NULL);
    CHECK(dvt_retain(NULL) == NULL);
    dvt_discard_all();
    CHECK_INT(alive(), before);
}

/* Discarding an object that only a scope owns frees it immediately. The scope forgets it, and other
   objects stay in their scopes. */
DVT_TEST(scopes_discard_frees_immediately) {
    enum { SCOPES = 5, EACH = 4, ALL = SCOPES * EACH };

    int64_t before = alive();
    dvt_array *all[ALL] = {NULL};
    dvt_scope_guard guards[SCOPES];
    int first, step, i, left;
    for (first = 0; first < ALL; first++)
        for (step = 1; step <= 3; step += 2) { /* both are coprime to ALL */
            int kept = (first + 11 * step) % ALL;
            for (i = 0; i < ALL; i++) {
                if (i % EACH == 0)
                    guards[i / EACH] = dvt_scope_begin();
                all[i] = dvt_full(DVT_SHAPE(1), i, DVT_F32, dvt_cpu());
            }
            for (i = 0; i < 13; i++) {
                int which = (first + i * step) % ALL;
                dvt_discard(all[which]);
                all[which] = NULL;
                CHECK_INT(alive() - before, ALL - i - 1);
            }
            if (kept / EACH == SCOPES - 1)
                dvt_keep(all[kept]); /* into the outer scope, wherever its place is now */
            for (i = SCOPES - 1; i >= 0; i--) {
                for (left = 0; left < (i + 1) * EACH; left++)
                    if (all[left])
                        CHECK_VALUES(all[left], 0, (double)left);
                dvt_scope_end(&guards[i]);
            }
            CHECK_INT(alive(), before);
        }
}

/* Discards in the order of creation, and after another reference was released. */
DVT_TEST(scopes_discard_in_any_order) {
    enum { COUNT = 1000 };

    static dvt_array *all[COUNT];
    int64_t before = alive();
    int i;
    for (i = 0; i < COUNT; i++)
        all[i] = one();
    dvt_retain(all[0]);
    for (i = 0; i < COUNT; i++)
        dvt_discard(all[i]);
    CHECK_INT(alive() - before, 1);
    CHECK_VALUES(all[0], 0, 1, 1);
    dvt_release(all[0]);
    CHECK_INT(alive(), before);
    all[0] = one();
    CHECK_INT(dvt_attach_grad(all[0], DVT_GRAD_WRITE), DVT_OK);
    all[1] = dvt_retain(dvt_grad(all[0]));
    dvt_discard(all[0]);
    CHECK_VALUES(all[1], 0, 0, 0);
    dvt_release(all[1]);
    CHECK_INT(alive(), before);
}

static dvt_array *identity(dvt_block *block, void *user, dvt_array *x) {
    (void)user;
    (void)block;
    return x;
}

/* An object destroyed at the end of a scope may release objects of an outer scope. Each scope still
   releases exactly its own objects. */
DVT_TEST(scopes_end_with_discards_in_destructors) {
    int64_t before = alive();
    int i;
    DVT_SCOPE {
        dvt_array *kept = one();
        for (i = 0; i < 5; i++) {
            dvt_block_desc mine;
            memset(&mine, 0, sizeof mine);
            mine.kind = "mine";
            mine.forward = identity;
            mine.release = dvt_discard;
            mine.user = one();
            DVT_SCOPE {
                one();
                CHECK(dvt_block_new(&mine) != NULL);
                one();
            }
            CHECK_INT(alive() - before, 1);
        }
        CHECK_VALUES(kept, 0, 1, 1);
    }
    CHECK_INT(alive(), before);
}

/* A retained object is not freed at the end of the scope. */
DVT_TEST(scopes_retained_objects_outlive_them) {
    int64_t before = alive();
    dvt_array *x = NULL;
    DVT_SCOPE {
        DVT_SCOPE {
            x = dvt_retain(dvt_keep(one()));
        }
        CHECK_INT(alive() - before, 1);
    }
    CHECK_INT(alive() - before, 1);
    dvt_release(x);
    CHECK_INT(alive(), before);
}

DVT_TEST(scopes_release_all) {
    int64_t before = alive();
    dvt_scope_guard outer = dvt_scope_begin(), inner;
    one();
    inner = dvt_scope_begin();
    one();
    dvt_discard_all();
    CHECK_INT(alive(), before);
    /* ending scopes that no longer exist has no effect */
    one();
    dvt_scope_end(&inner);
    dvt_scope_end(&outer);
    CHECK_INT(alive() - before, 1);
    dvt_discard_all();
}

/* Ending an outer scope ends the open scopes inside it. */
DVT_TEST(scopes_out_of_order) {
    int64_t before = alive();
    dvt_scope_guard outer = dvt_scope_begin(), inner;
    one();
    inner = dvt_scope_begin();
    one();
    dvt_scope_end(&outer);
    CHECK_INT(alive(), before);
    dvt_scope_end(&inner);
    dvt_scope_end(&outer);
    CHECK_INT(alive(), before);
}

DVT_TEST(scopes_deep) {
    dvt_scope_guard guards[300];
    int64_t before = alive();
    int i;
    for (i = 0; i < 300; i++) {
        guards[i] = dvt_scope_begin();
        one();
    }
    CHECK_INT(alive() - before, 300);
    for (i = 299; i >= 0; i--) {
        dvt_scope_end(&guards[i]);
        if (i % 50 == 0)
            CHECK_INT(alive() - before, i);
    }
}

/* ---- out of memory for the marker of a scope ---- */
typedef struct refusals {
    int on, refused;
} refusals;

static void *refusing_alloc(void *user, size_t bytes) {
    refusals *r = (refusals *)user;
    r->refused += r->on;
    return r->on ? NULL : malloc(bytes);
}

static void *refusing_resize(void *user, void *block, size_t bytes) {
    refusals *r = (refusals *)user;
    r->refused += r->on;
    return r->on ? NULL : realloc(block, bytes);
}

static void refusing_release(void *user, void *block) {
    (void)user;
    free(block);
}

/* Opens scopes until the last one has no marker. Returns the number of open scopes. */
static int open_without_marker(dvt_scope_guard *guards, int most) {
    refusals r = {1, 0};
    dvt_allocator allocator = {refusing_alloc, refusing_resize, refusing_release, NULL};
    int n = 0;
    allocator.user = &r;
    while (n < 3) /* the first three have markers */
        guards[n++] = dvt_scope_begin();
    dvt_set_allocator(&allocator);
    while (!r.refused && n < most)
        guards[n++] = dvt_scope_begin();
    dvt_set_allocator(NULL);
    return CHECK(r.refused) ? n : 0;
}

/* A scope without a marker has no effect: its objects, kept or not, belong to the next outer
   scope. */
DVT_TEST(scopes_without_memory) {
    dvt_scope_guard guards[4096];
    int64_t before = alive();
    int way, n;
    for (way = 0; way < 4; way++) {
        dvt_array *x;
        n = open_without_marker(guards, 4096);
        if (n < 4)
            return;
        x = one();
        if (way == 0)
            dvt_keep(x);
        if (way == 1) { /* memory is available again: both scopes exist */
            DVT_SCOPE {
                dvt_keep(one());
                one();
            }
            CHECK_INT(alive() - before, 2);
        }
        if (way == 2) { /* both the graph and the scope own x */
            dvt_attach_grad(x, DVT_GRAD_WRITE);
            DVT_RECORD {
                dvt_keep(dvt_sum(dvt_exp(x), DVT_ALL));
            }
        }
        if (way != 3) /* otherwise the end of an outer scope ends it */
            dvt_scope_end(&guards[--n]);
        CHECK(alive() - before >= 1);
        if (way < 2)
            CHECK_INT(alive() - before, 1);
        CHECK(dvt_sum(x, DVT_ALL) != NULL);
        dvt_scope_end(&guards[way == 3 ? n - 2 : n - 1]);
        CHECK_INT(alive(), before);
        for (n -= way == 3 ? 2 : 1; n > 0; n--)
            dvt_scope_end(&guards[n - 1]);
        one(); /* at the outermost level again */
        CHECK_INT(alive(), before + 1);
        dvt_discard_all();
    }
}

/* Returns the resident pages of this process, or 0 where that is unknown. */
static long resident(void) {
    long size = 0, pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    if (file) {
        if (fscanf(file, "%ld %ld", &size, &pages) != 2)
            pages = 0;
        fclose(file);
    }
    return pages;
}

/* Evaluates a nested expression a million times in constant memory. */
DVT_TEST(scopes_in_constant_memory) {
    dvt_array *a = one(), *sum = dvt_zeros(DVT_SHAPE(2), DVT_F64, dvt_cpu());
    int64_t before = alive(), blocks = dvt_get_stats().blocks_of_memory;
    const bool sanitized = DVT_TEST_ASAN || DVT_TEST_TSAN || DVT_TEST_MSAN;
    const long turns = sanitized ? 20000 : 1000000;
    long pages = 0, i;
    for (i = 0; i < turns; i++) {
        DVT_SCOPE {
            dvt_add_(sum, dvt_neg(dvt_neg(dvt_t(a))));
        }
        if (i == 2000)
            pages = resident();
    }
    CHECK_INT(alive(), before);
    CHECK_INT(dvt_get_stats().blocks_of_memory, blocks);
    CHECK_VALUES(sum, 0, (double)turns, (double)turns);
    if (!sanitized) /* the sanitizers keep released memory for a while */
        CHECK(resident() - pages < 64);
}

DVT_TEST(scopes_null_chains) {
    int64_t before = alive();
    DVT_SCOPE {
        dvt_array *x = dvt_exp(dvt_add(one(), dvt_ones(DVT_SHAPE(3), DVT_F32, dvt_cpu())));
        CHECK(dvt_keep(dvt_add(x, x)) == NULL);
        CHECK_INT(dvt_error_code(), DVT_ERR_SHAPE);
        dvt_clear_error();
    }
    CHECK_INT(alive(), before);
}
