/* The interface between the files of sorts. */
#ifndef DVTI_CPU_SORT_H
#define DVTI_CPU_SORT_H
#include "3_cpu/simd/dvt_simd.h"

/* Contents of launch->plan. */
typedef struct dvti_sort_plan {
    const dvti_launch *launch;        /* set by `run` */
    const dvti_simd *simd;            /* NULL: no ISA target is chosen */
    int64_t rows, n, k, group, tasks; /* k: results of a row; group: rows of a task */
    int64_t area_bytes, areas;        /* areas: tasks that run at once at most */
    bool interleaved; /* rows of float32 or int32, 16 side by side where an ISA target computes */
    bool quick;       /* quicksort; the task's area begins with DVTI_SORT_LANES bytes for it */
    bool shared;      /* threads share each row */
    int bits;         /* of a key */
    bool wide;        /* keys of 64 bits, or numbers of more than 32 */
} dvti_sort_plan;

/* Sort one row by radix. area: 16 bytes for each element, 32 if the plan is `wide`. Implemented in
   cpu_sort_radix.c. */
DVTI_FN void dvti_sort_narrow(const dvti_sort_plan *plan, const void *src, void *dst, void *area);
DVTI_FN void dvti_sort_wide(const dvti_sort_plan *plan, const void *src, void *dst, void *area);

#endif
