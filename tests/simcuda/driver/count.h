/* Counts of a launch, between count.c, which merges accesses into requests, and count_request.c,
   which counts them. */
#ifndef SIM_COUNT_H
#define SIM_COUNT_H

#include "exec.h"
#include "../sim_control.h"

/* The sectors that a launch has loaded and stored: a hash table of pages, bit i for sector i. */
typedef struct page {
    uint64_t number; /* plus 1; 0: free */
    uint64_t bits[2][2];
} page;

typedef struct launch_counts {
    sim_kernel_counts sum;
    page *page;
    size_t pages, capacity, last;
} launch_counts;

/* One execution of a load, store or atomic by a warp. */
typedef struct request {
    int lanes;
    uint64_t address[SIM_WARP];
    uint32_t lane[SIM_WARP], size;
    sim_access_kind kind;
} request;

/* Counts a request in c->sum. */
void count_request(launch_counts *c, const resident *r, const request *q);
/* Grows the table of sectors that a launch touches; false: no memory. */
bool count_pages(launch_counts *c);
/* Returns the different sectors that the launch has loaded (0) or stored (1). */
uint64_t count_touched(const launch_counts *c, int stores);

#endif
