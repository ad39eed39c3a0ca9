/* Reads zip archives: the directory at the end, then members, stored or deflated. Both size forms
   (32 bits and zip64) and data descriptors are read. The directory and the local headers must
   agree, members must not overlap, and all CRCs are checked. Source: PKWARE's APPNOTE 6.3.

   | local header, content[, descriptor] of each member | directory | [zip64 end] | end record | */
#include "5_io/dvt_formats.h"

#define DVTI_ZIP_END 22 /* bytes of the fixed parts of records */
#define DVTI_ZIP_END_64 56
#define DVTI_ZIP_LOCATOR 20
#define DVTI_ZIP_ENTRY 46
#define DVTI_ZIP_LOCAL 30
#define DVTI_ZIP_STREAMED 8 /* flag: CRC and sizes follow the content */
#define DVTI_ZIP_ENCRYPTED 0x2041u
#define DVTI_ZIP_PATCHED 0x20u
#define DVTI_ZIP_NO_32 0xffffffffu /* the value is in the zip64 field */

static bool dvti_zip_damaged(dvti_zip *zip, const char *wrong) {
    return dvti_source_wrong(zip->in, "%s; fetch or write the file again", wrong);
}

static uint64_t dvti_zip_le(const unsigned char *at, int bytes) {
    return dvti_bytes_value(at, bytes, false);
}

/* ---- the end records ---- */
typedef struct dvti_zip_end {
    uint64_t here, members, bytes, at; /* of the directory */
    int64_t limit;                     /* where it has to end */
} dvti_zip_end;

/* Finds the end record: its comment reaches exactly to the end of the file. */
static bool dvti_zip_find_end(dvti_zip *zip, int64_t *end) {
    dvti_source *in = zip->in;
    int64_t size = in->taken + dvti_source_left(in), first = size - DVTI_ZIP_END - 65535;
    *end = -1;
    if (!dvti_source_seek(in, DVTI_MAX(first, 0)))
        return false;
    while (dvti_source_peek(in, DVTI_ZIP_END)) {
        if (memcmp(in->at, "PK\5\6", 4) == 0 &&
            in->taken + DVTI_ZIP_END + (int64_t)dvti_zip_le(in->at + 20, 2) == size) {
            if (*end >= 0)
                return dvti_zip_damaged(zip, "it has two directories");
            *end = in->taken;
        }
        dvti_source_skip(in, 1);
    }
    if (in->reported)
        return false;
    return *end >= 0 || dvti_zip_damaged(zip, "the directory at its end is missing: it is cut off, "
                                              "or something follows it");
}

/* Copies n bytes at `at`. Returns false when they do not exist or begin with another signature. */
static bool dvti_zip_record(dvti_zip *zip, int64_t at, const char *signature, unsigned char *to,
                            int64_t n) {
    return at >= 0 && dvti_source_seek(zip->in, at) && dvti_source_read(zip->in, to, n) &&
           memcmp(to, signature, 4) == 0;
}

/* Replaces *value by the one of zip64. The 32-bit field must be the same or all ones. */
static bool dvti_zip_replace(uint64_t *value, uint64_t none, uint64_t wide) {
    bool agrees = *value == none || *value == wide;
    *value = wide;
    return agrees;
}

/* Reads the zip64 end record if its locator stands in front of the end record. */
static bool dvti_zip_read_end_64(dvti_zip *zip, int64_t locator_at, dvti_zip_end *out) {
    unsigned char locator[DVTI_ZIP_LOCATOR], r[DVTI_ZIP_END_64];
    uint64_t at;
    bool agrees;
    if (!dvti_zip_record(zip, locator_at, "PK\6\7", locator, DVTI_ZIP_LOCATOR))
        return !zip->in->reported;
    at = dvti_zip_le(locator + 8, 8);
    if (dvti_zip_le(locator + 4, 4) != 0 || dvti_zip_le(locator + 16, 4) > 1 ||
        locator_at < DVTI_ZIP_END_64 || at > (uint64_t)(locator_at - DVTI_ZIP_END_64) ||
        !dvti_zip_record(zip, (int64_t)at, "PK\6\6", r, DVTI_ZIP_END_64) ||
        dvti_zip_le(r + 4, 8) != (uint64_t)locator_at - at - 12 || dvti_zip_le(r + 16, 8) != 0)
        return dvti_zip_damaged(zip, "its zip64 end record is missing or damaged");
    agrees = dvti_zip_replace(&out->here, 0xffff, dvti_zip_le(r + 24, 8));
    agrees &= dvti_zip_replace(&out->members, 0xffff, dvti_zip_le(r + 32, 8));
    agrees &= dvti_zip_replace(&out->bytes, DVTI_ZIP_NO_32, dvti_zip_le(r + 40, 8));
    agrees &= dvti_zip_replace(&out->at, DVTI_ZIP_NO_32, dvti_zip_le(r + 48, 8));
    out->limit = (int64_t)at;
    return agrees || dvti_zip_damaged(zip, "its two end records disagree");
}

static bool dvti_zip_read_end(dvti_zip *zip, int64_t end, dvti_zip_end *out) {
    unsigned char r[DVTI_ZIP_END];
    uint64_t disk, first_disk;
    if (!dvti_zip_record(zip, end, "PK\5\6", r, DVTI_ZIP_END))
        return dvti_zip_damaged(zip, "it ends in the middle");
    disk = dvti_zip_le(r + 4, 2);
    first_disk = dvti_zip_le(r + 6, 2);
    out->here = dvti_zip_le(r + 8, 2);
    out->members = dvti_zip_le(r + 10, 2);
    out->bytes = dvti_zip_le(r + 12, 4);
    out->at = dvti_zip_le(r + 16, 4);
    out->limit = end;
    if (!dvti_zip_read_end_64(zip, end - DVTI_ZIP_LOCATOR, out))
        return false;
    if (disk % 0xffff || first_disk % 0xffff || /* 0, or all ones because zip64 has it */
        out->here != out->members)
        return dvti_zip_damaged(zip, "it is one of several parts");
    if (out->at > (uint64_t)out->limit || out->bytes != (uint64_t)out->limit - out->at)
        return dvti_zip_damaged(zip, "its directory is not where its end record says");
    if (out->members > out->bytes / DVTI_ZIP_ENTRY || out->members > (uint64_t)INT_MAX)
        return dvti_zip_damaged(zip, "it promises more members than its directory can hold");
    return true;
}

/* ---- the directory ---- */
/* Finds the zip64 values of the fields that are all ones. A local header has all values, the
   directory only those. Returns false when they are damaged. */
static bool dvti_zip_extra(const unsigned char *at, size_t n, uint64_t *const *field, int fields,
                           bool local) {
    bool found = false;
    while (n >= 4) {
        uint64_t id = dvti_zip_le(at, 2);
        size_t size = (size_t)dvti_zip_le(at + 2, 2), used = 0;
        int i;
        if (size > n - 4 || (id == 1 && found))
            return false;
        for (i = 0; id == 1 && i < fields; i++) {
            bool wanted = *field[i] == DVTI_ZIP_NO_32;
            if (wanted && size - used < 8)
                return false;
            if (wanted)
                *field[i] = dvti_zip_le(at + 4 + used, 8);
            if ((wanted || local) && size - used >= 8)
                used += 8;
        }
        found = found || id == 1;
        at += 4 + size;
        n -= 4 + size;
    }
    return true;
}

/* Reads the name of the next member. */
static bool dvti_zip_name(dvti_zip *zip, dvti_zip_member *m) {
    m->name = (char *)dvti_alloc((size_t)m->n_name + 1);
    if (!m->name) {
        dvti_fail_memory(zip->in->function, m->n_name + 1);
        return false;
    }
    if (!dvti_source_read(zip->in, m->name, m->n_name) || memchr(m->name, 0, (size_t)m->n_name))
        return dvti_zip_damaged(zip, "a name in its directory has a zero byte");
    m->name[m->n_name] = 0;
    return true;
}

static bool dvti_zip_entry(dvti_zip *zip, int64_t limit, dvti_zip_member *m) {
    static const char damaged[] = "an entry of its directory is damaged";
    dvti_source *in = zip->in;
    unsigned char r[DVTI_ZIP_ENTRY];
    uint64_t size, packed, at, *field[3];
    int64_t extra, comment;
    if (limit - in->taken < DVTI_ZIP_ENTRY || !dvti_source_read(in, r, DVTI_ZIP_ENTRY) ||
        memcmp(r, "PK\1\2", 4) != 0)
        return dvti_zip_damaged(zip, damaged);
    m->flags = (unsigned)dvti_zip_le(r + 8, 2);
    m->method = (unsigned)dvti_zip_le(r + 10, 2);
    m->crc = (uint32_t)dvti_zip_le(r + 16, 4);
    packed = dvti_zip_le(r + 20, 4);
    size = dvti_zip_le(r + 24, 4);
    m->n_name = (int64_t)dvti_zip_le(r + 28, 2);
    extra = (int64_t)dvti_zip_le(r + 30, 2);
    comment = (int64_t)dvti_zip_le(r + 32, 2);
    at = dvti_zip_le(r + 42, 4);
    if (dvti_zip_le(r + 34, 2) != 0 || limit - in->taken < m->n_name + extra + comment)
        return dvti_zip_damaged(zip, damaged);
    if (!dvti_zip_name(zip, m))
        return false;
    field[0] = &size;
    field[1] = &packed;
    field[2] = &at;
    if (!dvti_source_peek(in, (size_t)extra) ||
        !dvti_zip_extra(in->at, (size_t)extra, field, 3, false) ||
        !dvti_source_skip(in, extra + comment) || size > (uint64_t)INT64_MAX ||
        packed > (uint64_t)zip->directory || at > (uint64_t)zip->directory)
        return dvti_zip_damaged(zip, damaged);
    m->size = (int64_t)size;
    m->packed = (int64_t)packed;
    m->at = (int64_t)at;
    return true;
}

static bool dvti_zip_entries(dvti_zip *zip, const dvti_zip_end *end) {
    dvti_source *in = zip->in;
    zip->directory = (int64_t)end->at;
    if (!dvti_source_seek(in, zip->directory))
        return false;
    while ((uint64_t)zip->n < end->members) {
        size_t need = (size_t)zip->n + 1;
        if (!dvti_grow((void **)&zip->member, &zip->capacity, need, sizeof *zip->member)) {
            dvti_fail_memory(in->function, (int64_t)(need * sizeof *zip->member));
            return false;
        }
        memset(&zip->member[zip->n], 0, sizeof *zip->member);
        if (!dvti_zip_entry(zip, end->limit, &zip->member[zip->n++]))
            return false;
    }
    return in->taken == end->limit ||
           dvti_zip_damaged(zip, "its directory has more entries than its end record says");
}

DVTI_FN bool dvti_zip_begin(dvti_zip *zip, dvti_source *in) {
    dvti_zip_end end;
    int64_t at;
    memset(zip, 0, sizeof *zip);
    memset(&end, 0, sizeof end);
    zip->in = in;
    dvti_crc_build(&zip->crc);
    if (!dvti_npz_recognizes(in))
        return dvti_source_other_format(in, "an .npz file (those are zip archives and begin with "
                                            "PK)");
    return dvti_zip_find_end(zip, &at) && dvti_zip_read_end(zip, at, &end) &&
           dvti_zip_entries(zip, &end);
}

DVTI_FN void dvti_zip_free(dvti_zip *zip) {
    int i;
    for (i = 0; i < zip->n; i++)
        dvti_free(zip->member[i].name);
    dvti_free(zip->member);
    zip->member = NULL;
    zip->n = 0;
}

/* ---- checks before any content is read ---- */
static bool dvti_zip_check_member(dvti_zip *zip, const dvti_zip_member *m) {
    if (m->flags & DVTI_ZIP_ENCRYPTED)
        return dvti_source_wrong(
            zip->in, "member \"%.100s\" is encrypted; write the file again without a password",
            m->name);
    if ((m->method != 0 && m->method != 8) || m->flags & DVTI_ZIP_PATCHED)
        return dvti_source_wrong(zip->in,
                                 "member \"%.100s\" has compression method %u; expected 0 (stored) "
                                 "or 8 (deflated): write the file again with numpy.savez",
                                 m->name, m->method);
    if (m->method ? m->size / DVTI_DEFLATE_RATIO > m->packed : m->size != m->packed)
        return dvti_source_wrong(
            zip->in,
            "member \"%.100s\" claims %lld bytes in %lld stored ones, which is "
            "impossible; fetch or write the file again",
            m->name, (long long)m->size, (long long)m->packed);
    return true;
}

static int dvti_zip_compare(const void *a, const void *b) {
    int64_t x = (*(dvti_zip_member *const *)a)->at, y = (*(dvti_zip_member *const *)b)->at;
    return x < y ? -1 : x > y;
}

/* Overlapping members would give far more content than the archive has bytes. */
static bool dvti_zip_check_places(dvti_zip *zip, dvti_zip_member **sorted) {
    int i;
    for (i = 0; i < zip->n; i++)
        sorted[i] = &zip->member[i];
    qsort((void *)sorted, (size_t)zip->n, sizeof *sorted, dvti_zip_compare);
    for (i = 0; i < zip->n; i++) {
        dvti_zip_member *m = sorted[i];
        m->end = i + 1 < zip->n ? sorted[i + 1]->at : zip->directory;
        if (m->packed > m->end - m->at - DVTI_ZIP_LOCAL - m->n_name)
            return dvti_source_wrong(zip->in,
                                     "member \"%.100s\" overlaps what follows it; fetch or write "
                                     "the file again",
                                     m->name);
    }
    return true;
}

static int dvti_zip_compare_names(const void *a, const void *b) {
    return strcmp((*(dvti_zip_member *const *)a)->name, (*(dvti_zip_member *const *)b)->name);
}

static bool dvti_zip_check_names(dvti_zip *zip, dvti_zip_member **sorted) {
    int i;
    qsort((void *)sorted, (size_t)zip->n, sizeof *sorted, dvti_zip_compare_names);
    for (i = 1; i < zip->n; i++)
        if (strcmp(sorted[i - 1]->name, sorted[i]->name) == 0)
            return dvti_source_wrong(zip->in,
                                     "two members are named \"%.100s\"; write the file again with "
                                     "different names",
                                     sorted[i]->name);
    return true;
}

DVTI_FN bool dvti_zip_check(dvti_zip *zip) {
    size_t bytes = sizeof(dvti_zip_member *) * (size_t)zip->n;
    dvti_zip_member **sorted;
    bool ok;
    int i;
    for (i = 0; i < zip->n; i++)
        if (!dvti_zip_check_member(zip, &zip->member[i]))
            return false;
    sorted = (dvti_zip_member **)dvti_alloc(bytes);
    if (!sorted) {
        dvti_fail_memory(zip->in->function, (int64_t)bytes);
        return false;
    }
    ok = dvti_zip_check_places(zip, sorted) && dvti_zip_check_names(zip, sorted);
    dvti_free((void *)sorted);
    return ok;
}

/* ---- content ---- */
/* Reads the rest of a local header and compares it with the directory. */
static bool dvti_zip_agrees(dvti_zip *zip, const dvti_zip_member *m, const unsigned char *r) {
    dvti_source *in = zip->in;
    uint64_t crc = dvti_zip_le(r + 14, 4), packed = dvti_zip_le(r + 18, 4),
             size = dvti_zip_le(r + 22, 4), *field[2];
    int64_t name = (int64_t)dvti_zip_le(r + 26, 2), extra = (int64_t)dvti_zip_le(r + 28, 2);
    if (((dvti_zip_le(r + 6, 2) ^ m->flags) & (DVTI_ZIP_STREAMED | DVTI_ZIP_ENCRYPTED)) ||
        dvti_zip_le(r + 8, 2) != m->method || name != m->n_name ||
        m->packed > m->end - in->taken - name - extra || !dvti_source_peek(in, (size_t)name) ||
        memcmp(in->at, m->name, (size_t)name) != 0)
        return false;
    dvti_source_skip(in, name);
    field[0] = &size;
    field[1] = &packed;
    if (!dvti_source_peek(in, (size_t)extra) ||
        !dvti_zip_extra(in->at, (size_t)extra, field, 2, true))
        return false;
    dvti_source_skip(in, extra);
    return (crc == m->crc && packed == (uint64_t)m->packed && size == (uint64_t)m->size) ||
           (m->flags & DVTI_ZIP_STREAMED && crc == 0 && packed == 0 && size == 0);
}

/* Reads a stored member. */
static size_t dvti_zip_pull(dvti_source *content, void *to, size_t n) {
    dvti_zip *zip = (dvti_zip *)content->user;
    if ((uint64_t)content->remaining < n)
        n = (size_t)content->remaining;
    if (n == 0)
        return 0;
    if (!dvti_source_read(zip->in, to, (int64_t)n)) {
        dvti_zip_damaged(zip, "it ends in the middle");
        content->reported = true;
        return 0;
    }
    content->remaining -= (int64_t)n;
    zip->sum = dvti_crc_more(&zip->crc, zip->sum, to, n);
    if (content->remaining == 0 && zip->sum != zip->current->crc) {
        dvti_source_wrong(content, "its checksum is wrong; fetch or write the file again");
        return 0;
    }
    return n;
}

DVTI_FN bool dvti_zip_open(dvti_zip *zip, int i, dvti_source *content) {
    const dvti_zip_member *m = &zip->member[i];
    dvti_source *in = zip->in;
    unsigned char r[DVTI_ZIP_LOCAL];
    bool ok;
    dvti_source_memory(content, in->function, NULL, 0);
    zip->current = m;
    zip->sum = 0;
    if (!dvti_zip_record(zip, m->at, "PK\3\4", r, DVTI_ZIP_LOCAL) || !dvti_zip_agrees(zip, m, r))
        return dvti_source_wrong(in,
                                 "the header of member \"%.100s\" disagrees with the directory; "
                                 "fetch or write the file again",
                                 m->name);
    ok = true;
    if (m->method)
        ok = dvti_source_zipped(content, in, m->packed, m->size, m->crc);
    else if (in->mapping)
        dvti_source_window(content, in, m->size); /* a CRC would read all pages */
    else
        ok = dvti_source_part(content, in, dvti_zip_pull, zip, m->size, true);
    snprintf(zip->what, sizeof zip->what, "member \"%.100s\" of %.200s", m->name, in->what);
    content->what = zip->what;
    return ok;
}

/* Returns whether CRC and sizes, of `bytes` bytes each, stand at `at`. */
static bool dvti_zip_described(const dvti_zip_member *m, const unsigned char *at, int bytes) {
    return dvti_zip_le(at, 4) == m->crc && dvti_zip_le(at + 4, bytes) == (uint64_t)m->packed &&
           dvti_zip_le(at + 4 + bytes, bytes) == (uint64_t)m->size;
}

/* A data descriptor has two sizes of numbers, and perhaps a signature. */
DVTI_FN bool dvti_zip_finish(dvti_zip *zip) {
    const dvti_zip_member *m = zip->current;
    dvti_source *in = zip->in;
    int64_t space = m->end - in->taken;
    size_t n = (size_t)DVTI_MIN(space, 24), skip;
    if (!(m->flags & DVTI_ZIP_STREAMED))
        return true;
    if (dvti_source_peek(in, n))
        for (skip = 0; skip <= 4; skip += 4) {
            if (n < skip || (skip && memcmp(in->at, "PK\7\10", 4) != 0))
                break;
            if ((n - skip >= 12 && dvti_zip_described(m, in->at + skip, 4)) ||
                (n - skip >= 20 && dvti_zip_described(m, in->at + skip, 8)))
                return true;
        }
    return dvti_source_wrong(in,
                             "CRC and sizes after member \"%.100s\" disagree with the directory; "
                             "fetch or write the file again",
                             m->name);
}

#undef DVTI_ZIP_END
#undef DVTI_ZIP_END_64
#undef DVTI_ZIP_LOCATOR
#undef DVTI_ZIP_ENTRY
#undef DVTI_ZIP_LOCAL
#undef DVTI_ZIP_STREAMED
#undef DVTI_ZIP_ENCRYPTED
#undef DVTI_ZIP_PATCHED
#undef DVTI_ZIP_NO_32
