/* Rows whose time is the host's: calls, allocations, copies between memories. The driver's own
   allocations and copies are their peers. */
#ifndef HOST_H
#define HOST_H
#include "check.h"
#include "peers.h"

static void *host_block, *pinned;          /* of the rows of transfers */
static unsigned long long device_block[2]; /* of the copy engine and of transfers */

static char peer_failure[100]; /* of the last call of a peer */

/* Keeps the reason if a peer's call returned a code. Returns whether it worked. */
static bool returned(int code, const char *what) {
    if (code)
        snprintf(peer_failure, sizeof peer_failure, "%s returned %d", what, code);
    return code == 0;
}

/* Ends the process if a call of the driver that all depends on failed. */
static void need(int code, const char *what) {
    if (!returned(code, what)) {
        fprintf(stderr, "%s\n", peer_failure);
        exit(1);
    }
}

static bool call_dispatch(row *r) {
    DVT_SCOPE {
        must(dvt_add(r->in[0], r->in[1]) != NULL, "dvt_add");
    }
    return true;
}

static bool call_allocate(row *r) {
    DVT_SCOPE {
        must(dvt_empty(DVT_SHAPE(argument(r, "bytes", 4) / 4), DVT_F32, dvt_gpu(0)) != NULL,
             "dvt_empty");
    }
    return true;
}

static bool call_cumemalloc(row *r) {
    unsigned long long address;
    return returned(driver.cuMemAlloc_v2(&address, (size_t)argument(r, "bytes", 4)),
                    "cuMemAlloc_v2") &&
           returned(driver.cuMemFree_v2(address), "cuMemFree_v2");
}

static dvt_array *uploaded(row *r) {
    dvt_array *x =
        dvt_from_host(host_block, DVT_SHAPE(argument(r, "bytes", 4) / 4), DVT_F32, dvt_gpu(0));
    must(x && dvt_wait(x) == DVT_OK, "dvt_from_host");
    return x;
}

static bool call_transfer(row *r) {
    if (is_op(r, "download"))
        must(dvt_to_host(r->in[0], host_block, argument(r, "bytes", 4)) == DVT_OK, "dvt_to_host");
    else
        DVT_SCOPE {
            uploaded(r);
        }
    return true;
}

/* The driver copies from the memory of a program, or from page-locked memory. */
static bool transfer(row *r, void *block) {
    void *stream = dvt_cuda_stream(dvt_gpu(0));
    size_t bytes = (size_t)argument(r, "bytes", 4);
    int code = is_op(r, "upload")
                   ? driver.cuMemcpyHtoDAsync_v2(device_block[0], block, bytes, stream)
                   : driver.cuMemcpyDtoHAsync_v2(block, device_block[0], bytes, stream);
    return returned(code, "a copy of the driver") &&
           returned(driver.cuStreamSynchronize(stream), "cuStreamSynchronize");
}

static bool call_pageable(row *r) {
    return transfer(r, host_block);
}

static bool call_pinned(row *r) {
    return transfer(r, pinned);
}

/* Compares the bytes of our copy with those of a copy by the driver. */
static row_error transfer_error(row *r) {
    size_t bytes = (size_t)argument(r, "bytes", 4);
    void *stream = dvt_cuda_stream(dvt_gpu(0)), *want = malloc(bytes);
    row_error e;
    must(want != NULL, "malloc");
    DVT_SCOPE {
        dvt_array *x = r->in[0];
        memset(host_block, 1, bytes); /* or a copy that does nothing would seem right */
        if (is_op(r, "upload")) {
            need(driver.cuMemcpyDtoHAsync_v2(host_block, dvt_cuda_address(x), bytes, stream),
                 "cuMemcpyDtoHAsync_v2");
            need(driver.cuStreamSynchronize(stream), "cuStreamSynchronize");
            x = uploaded(r);
        } else {
            call_transfer(r);
        }
        need(driver.cuMemcpyDtoHAsync_v2(want, dvt_cuda_address(x), bytes, stream),
             "cuMemcpyDtoHAsync_v2");
        need(driver.cuStreamSynchronize(stream), "cuStreamSynchronize");
    }
    e.whole = memcmp(want, host_block, bytes) != 0;
    e.worst = 0;
    e.spot = -1;
    free(want);
    return e;
}

/* ---- preparing a row ---- */
static void reserve_blocks(size_t bytes) {
    need(driver.cuMemAlloc_v2(&device_block[0], bytes), "cuMemAlloc_v2");
    need(driver.cuMemAlloc_v2(&device_block[1], bytes), "cuMemAlloc_v2");
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
            need(driver.cuMemHostAlloc(&pinned, (size_t)bytes, 0), "cuMemHostAlloc");
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
