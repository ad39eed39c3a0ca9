/* The sum over the parts of a batch, by a binary tree over their numbers. Its nodes are the aligned
   blocks of 2^k parts. A context adds up the blocks that it has computed alone; a step adds up the
   rest.

     level 2          0..3                          part 4 has no sibling: its sum moves up
                     /    \                         unchanged
     level 1      0..1    2..3     4..5
                  /  \    /  \     /
     level 0     0    1  2    3   4                                                             */
#include "7_train/dvt_parts.h"

DVTI_FN int64_t dvti_part_row(int64_t rows, int part, int parts) {
    part = DVTI_MIN(part, parts);
    return rows / parts * part + rows % parts * part / parts;
}

DVTI_FN bool dvti_part_has_rows(const dvti_part_batch *p, int start, int level) {
    return dvti_part_row(p->rows, start + (1 << level), p->parts) >
           dvti_part_row(p->rows, start, p->parts);
}

DVTI_FN void dvti_part_sum_free(dvti_part_sum *sum, int columns) {
    int i;
    for (i = 0; sum->column && i < columns; i++)
        dvti_disown(sum->column[i]);
    dvti_free(sum->column);
    sum->column = NULL;
}

/* Adds `from` to `into`, column by column, on the context of `into`, and frees `from`. */
static bool dvti_part_add(dvti_part_sum *into, dvti_part_sum *from, int columns) {
    bool good = true;
    int i;
    for (i = 0; i < columns && good; i++) {
        dvt_array *sum = into->column[i], *other = from->column[i];
        if (!sum || !other) {
            into->column[i] = sum ? sum : other;
            from->column[i] = sum ? other : NULL;
        } else {
            other = dvt_as_in_ctx(other, dvt_ctx_of(sum));
            good = other && dvt_add_(sum, other);
        }
    }
    dvti_part_sum_free(from, columns);
    return good;
}

/* Returns the sum with this place, or NULL. Sums on another context count only with `across`. */
static dvti_part_sum *dvti_part_find(dvti_part_batch *p, const dvti_part_sum *sum, int columns,
                                     bool across) {
    size_t at;
    int i;
    for (at = 0; at < p->n; at++) {
        dvti_part_sum *other = &p->sum[at];
        bool same = true;
        if (other->start != (sum->start ^ 1 << sum->level) || other->level != sum->level)
            continue;
        for (i = 0; i < columns && !across && same; i++)
            if (sum->column[i] && other->column[i])
                same = dvt_ctx_equal(dvt_ctx_of(sum->column[i]), dvt_ctx_of(other->column[i]));
        return same ? other : NULL;
    }
    return NULL;
}

DVTI_FN bool dvti_part_insert(const char *function, dvti_part_batch *p, dvti_part_sum sum,
                              int columns, bool across) {
    bool good = true;
    while (good && (1 << sum.level) < p->parts) {
        int sibling = sum.start ^ 1 << sum.level;
        if (dvti_part_has_rows(p, sibling, sum.level)) {
            dvti_part_sum *other = dvti_part_find(p, &sum, columns, across);
            if (!other)
                break;
            good = dvti_part_add(other, &sum, columns);
            sum.column = other->column;
            *other = p->sum[--p->n];
        }
        sum.start &= ~(1 << sum.level);
        sum.level++;
    }
    if (good && !dvti_grow((void **)&p->sum, &p->capacity, p->n + 1, sizeof *p->sum)) {
        dvti_fail_memory(function, (int64_t)((p->n + 1) * sizeof *p->sum));
        good = false;
    }
    if (good)
        p->sum[p->n++] = sum;
    else
        dvti_part_sum_free(&sum, columns);
    return good;
}

DVTI_FN bool dvti_parts_merge(const char *function, dvti_part_batch *p, int columns) {
    size_t passes = p->n;
    bool good = true;
    while (good && passes-- > 0 && p->n > 1) {
        dvti_part_sum sum = p->sum[0];
        p->n--;
        memmove(p->sum, p->sum + 1, p->n * sizeof *p->sum);
        good = dvti_part_insert(function, p, sum, columns, true);
    }
    return good;
}
