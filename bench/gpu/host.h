/* Rows whose time is the host's: calls, allocations, copies between memories. The driver's own
   allocations and copies are their peers. */
#ifndef HOST_H
#define HOST_H
#include "cases.h"
#include "peers.h"

static void *host_block, *pinned;          /* of the rows of transfers */
static unsigned long long device_block[2]; /* of the copy engine and of transfers */

static void call_dispatch(row *r) {
    DVT_SCOPE {
        must(dvt_add(r->in[0], r->in[1]) != NULL, "dvt_add");
    }
}

static void call_allocate(row *r) {
    DVT_SCOPE {
        must(dvt_empty(DVT_SHAPE(argument(r, "bytes", 4) / 4), DVT_F32, dvt_gpu(0)) != NULL,
             "dvt_empty");
    }
}

static void call_cumemalloc(row *r) {
    unsigned long long address;
    must(driver.cuMemAlloc_v2(&address, (size_t)argument(r, "bytes", 4)) == 0 &&
             driver.cuMemFree_v2(address) == 0,
         "cuMemAlloc_v2");
}

static void call_upload(row *r) {
    DVT_SCOPE {
        dvt_array *x =
            dvt_from_host(host_block, DVT_SHAPE(argument(r, "bytes", 4) / 4), DVT_F32, dvt_gpu(0));
        must(x && dvt_wait(x) == DVT_OK, "dvt_from_host");
    }
}

static void call_download(row *r) {
    must(dvt_to_host(r->in[0], host_block, argument(r, "bytes", 4)) == DVT_OK, "dvt_to_host");
}

/* The driver copies from the memory of a program, or from page-locked memory. */

static void transfer(row *r, void *block) {
    void *stream = dvt_cuda_stream(dvt_gpu(0));
    size_t bytes = (size_t)argument(r, "bytes", 4);
    int code = is_op(r, "upload")
                   ? driver.cuMemcpyHtoDAsync_v2(device_block[0], block, bytes, stream)
                   : driver.cuMemcpyDtoHAsync_v2(block, device_block[0], bytes, stream);
    must(code == 0 && driver.cuStreamSynchronize(stream) == 0, "a copy of the driver");
}

static void call_pageable(row *r) {
    transfer(r, host_block);
}

static void call_pinned(row *r) {
    transfer(r, pinned);
}

/* ---- preparing a row ---- */
static void reserve_blocks(size_t bytes) {
    must(driver.cuMemAlloc_v2(&device_block[0], bytes) == 0 &&
             driver.cuMemAlloc_v2(&device_block[1], bytes) == 0,
         "cuMemAlloc_v2");
}

static void fill_host_row(row *r, bool with_driver) {
    const int64_t bytes = argument(r, "bytes", 4);
    r->unit = "million calls/s";
    r->work = 1e-6;
    if (is_op(r, "dispatch")) {
        drawn(r, 0, -1, 1, DVT_SHAPE(argument(r, "n", 1)));
        drawn(r, 1, -1, 1, DVT_SHAPE(argument(r, "n", 1)));
    } else if (!is_op(r, "allocate")) {
        drawn(r, 0, -1, 1, DVT_SHAPE(bytes / 4));
        host_block = malloc((size_t)bytes);
        must(host_block && dvt_to_host(r->in[0], host_block, bytes) == DVT_OK, "the host's block");
        r->unit = "GB/s";
        r->work = 1e-9 * (double)bytes;
        if (with_driver) {
            reserve_blocks((size_t)bytes);
            must(driver.cuMemHostAlloc(&pinned, (size_t)bytes, 0) == 0, "cuMemHostAlloc");
            memcpy(pinned, host_block, (size_t)bytes);
        }
    }
}

static void release_blocks(void) {
    int i;
    for (i = 0; i < 2; i++)
        if (device_block[i])
            driver.cuMemFree_v2(device_block[i]);
    memset(device_block, 0, sizeof device_block);
    if (pinned)
        driver.cuMemFreeHost(pinned);
    pinned = NULL;
    free(host_block);
    host_block = NULL;
}

#endif
