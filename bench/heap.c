/* Measures the time to allocate an array: the heap that caches released blocks, and malloc,
   interleaved in each round. Every page of a block is written, as an operation would.

     make bench-heap */
#undef DEVTENSOR_IMPLEMENTED /* compiles its own library, for access to internals */
#define DEVTENSOR_STATIC
#define DEVTENSOR_NO_CUDA
#define DEVTENSOR_NO_NN
#include "devtensor.h"
#include <stdio.h>
#include <stdlib.h>

#define ROUNDS 15

static dvti_heap heap;
static volatile char sink;

static void touch(char *at, int64_t bytes) {
    int64_t i;
    for (i = 0; i < bytes; i += 4096)
        ((volatile char *)at)[i] = 1;
    sink = at[bytes - 1];
}

static void by_heap(int64_t bytes) {
    char *at = (char *)dvti_heap_take(&heap, bytes);
    if (!at)
        abort();
    touch(at, bytes);
    dvti_heap_give(&heap, at);
}

/* Measures a first use: nothing is cached. */
static void by_fresh_heap(int64_t bytes) {
    dvti_heap_trim(&heap);
    by_heap(bytes);
}

static void by_malloc(int64_t bytes) {
    char *at = (char *)malloc((size_t)bytes);
    if (!at)
        abort();
    touch(at, bytes);
    free(at);
}

static int by_size(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double once(void (*run)(int64_t), int64_t bytes, int times) {
    double begin;
    int i;
    run(bytes);
    begin = dvt_seconds();
    for (i = 0; i < times; i++)
        run(bytes);
    return (dvt_seconds() - begin) / times * 1e9;
}

int main(void) {
    static const int64_t sizes[] = {64, 1000, 16 << 10, 100 << 10, 1 << 20, 8 << 20, 64 << 20};
    static void (*const ways[])(int64_t) = {by_heap, by_fresh_heap, by_malloc};
    double ns[3][ROUNDS];
    int i, way, round;
    dvti_heap_open(&heap);
    printf("ns for a block, medians (best) of %d rounds, ways interleaved\n%12s %24s %24s %24s\n",
           ROUNDS, "bytes", "kept", "fresh, huge pages", "malloc and free");
    for (i = 0; i < (int)(sizeof sizes / sizeof sizes[0]); i++) {
        int times = sizes[i] < 1 << 20 ? 20000 : sizes[i] < 16 << 20 ? 50 : 5;
        for (round = 0; round < ROUNDS; round++)
            for (way = 0; way < 3; way++)
                ns[way][round] = once(ways[way], sizes[i], way == 1 ? times / 10 + 2 : times);
        printf("%12lld", (long long)sizes[i]);
        for (way = 0; way < 3; way++) {
            qsort(ns[way], ROUNDS, sizeof ns[way][0], by_size);
            printf(" %12.0f (%9.0f)", ns[way][ROUNDS / 2], ns[way][0]);
        }
        printf("\n");
    }
    return 0;
}
