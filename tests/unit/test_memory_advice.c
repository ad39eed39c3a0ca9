/* A loop that keeps the arrays of all its iterations runs out of memory. The message gives their
   number and advises to use a scope. */
#include "dvt_test.h"
#include <stdlib.h>
#include <string.h>

static void grow_until_refused(dvt_ctx ctx, dvt_status status) {
    int n = 0;
    dvt_array *x = dvt_ones(DVT_SHAPE(100), DVT_F32, ctx);
    char wanted[64];
    while (x && n++ < 10000)
        if (!dvt_add(x, x))
            break;
    CHECK(n > 100 && n < 10000);
    CHECK_INT(dvt_error_code(), status);
    snprintf(wanted, sizeof wanted, "; %d arrays live in this thread's outermost scope", n);
    CHECK(strstr(dvt_error(), wanted) != NULL);
    CHECK(strstr(dvt_error(), "DVT_SCOPED") != NULL);
    dvt_clear_error();
}

/* Runs out of memory in inner scopes. The message neither advises a scope nor counts arrays of
   inner scopes. */
static void grow_in_a_scope(dvt_ctx ctx, dvt_status status) {
    dvt_array *x = dvt_ones(DVT_SHAPE(100), DVT_F32, ctx);
    DVT_SCOPE {
        DVT_SCOPE {
            while (dvt_add(x, x))
                ;
        }
    }
    CHECK_INT(dvt_error_code(), status);
    CHECK(strstr(dvt_error(), "DVT_SCOPED") == NULL);
    dvt_clear_error();
}

DVT_TEST(memory_advice_on_a_virtual_gpu) {
    dvt_discard_all();
    NEEDS_NO_GPU("limits of virtual GPUs");
    CHECK_INT(dvt_set_virtual_gpus(1, 200 * 400 + 100), DVT_OK);
    DVT_SCOPE {
        grow_in_a_scope(dvt_gpu(0), DVT_ERR_DEVICE_MEMORY);
    }
    DVT_SCOPE {
        grow_until_refused(dvt_gpu(0), DVT_ERR_DEVICE_MEMORY);
    }
    grow_until_refused(dvt_gpu(0), DVT_ERR_DEVICE_MEMORY); /* outside of any scope */
    dvt_discard_all();
    CHECK_INT(dvt_set_virtual_gpus(0, 0), DVT_OK);
}

/* An allocator with 1 MiB in total. */
static size_t given;

static void *limited(void *user, size_t bytes) {
    (void)user;
    if (bytes > ((size_t)1 << 20) - given)
        return NULL;
    given += bytes;
    return malloc(bytes);
}

static void *limited_more(void *user, void *block, size_t bytes) {
    (void)user;
    return bytes > ((size_t)1 << 20) - given ? NULL : realloc(block, bytes);
}

static void limited_free(void *user, void *block) {
    (void)user;
    free(block);
}

DVT_TEST(memory_advice_on_a_cpu) {
    dvt_allocator own = {limited, limited_more, limited_free, NULL};
    int64_t before = dvt_get_stats().arrays;
    dvt_device_info cpu;
    CHECK_INT(dvt_device_query(dvt_cpu(), &cpu), DVT_OK);
    CHECK_INT(dvt_set_memory_limit(cpu.memory_used + 200 * 400, dvt_cpu()), DVT_OK);
    DVT_SCOPE {
        grow_in_a_scope(dvt_cpu(), DVT_ERR_HOST_MEMORY);
    }
    DVT_SCOPE {
        grow_until_refused(dvt_cpu(), DVT_ERR_HOST_MEMORY);
    }
    CHECK_INT(dvt_set_memory_limit(0, dvt_cpu()), DVT_OK);
    CHECK_INT(dvt_get_stats().arrays, before);
    dvt_trim_memory(dvt_cpu());
    dvt_set_allocator(&own);
    DVT_SCOPE {
        grow_until_refused(dvt_cpu(), DVT_ERR_HOST_MEMORY);
    }
    dvt_trim_memory(dvt_cpu());
    dvt_set_allocator(NULL);
    CHECK_INT(dvt_get_stats().arrays, before);
}
