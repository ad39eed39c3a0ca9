/* Reads the sizes of kernel arguments from a CUBIN, a 64-bit ELF file. Section .nv.info.<kernel> is
   a list of attributes. Each has a format and an attribute byte; format 4 adds a 16-bit size and
   that many bytes. Attribute 0x17 describes one argument. Its second word holds index and offset,
   16 bits each; the third word holds its size above bit 18. */

static uint64_t cubin_number(const char *at, int bytes) {
    uint64_t n = 0;
    while (bytes-- > 0)
        n = n << 8 | (unsigned char)at[bytes];
    return n;
}

/* Returns the bytes from the first to the end of the last argument in that section. The first one
   is not at 0 when it is aligned to 64 bytes. */
static int cubin_arguments(const char *at, const char *end) {
    int first = INT_MAX, last = 0;
    while (at + 4 <= end) {
        int size = at[0] == 4 ? (int)cubin_number(at + 2, 2) : 0;
        if (at[0] == 4 && at[1] == 0x17 && size >= 12 && at + 16 <= end) {
            int offset = (int)cubin_number(at + 10, 2);
            first = DVTI_MIN(first, offset);
            last = DVTI_MAX(last, offset + (int)(cubin_number(at + 12, 4) >> 18));
        }
        at += 4 + size;
    }
    return last > 0 ? last - first : 0;
}

/* Returns the bytes of the arguments of `kernel`; -1: not found; -2: this is not a CUBIN (but
   PTX). */
static int cubin_kernel_arguments(const char *image, const char *kernel) {
    const char *sections, *names;
    uint64_t width, count, i;
    char wanted[200];
    if (memcmp(image, "\177ELF\2", 5) != 0)
        return -2;
    snprintf(wanted, sizeof wanted, ".nv.info.%.180s", kernel);
    sections = image + cubin_number(image + 40, 8);
    width = cubin_number(image + 58, 2);
    count = cubin_number(image + 60, 2);
    names = image + cubin_number(sections + cubin_number(image + 62, 2) * width + 24, 8);
    for (i = 0; i < count; i++) {
        const char *section = sections + i * width;
        const char *data = image + cubin_number(section + 24, 8);
        if (strcmp(names + cubin_number(section, 4), wanted) == 0)
            return cubin_arguments(data, data + cubin_number(section + 32, 8));
    }
    return -1;
}
