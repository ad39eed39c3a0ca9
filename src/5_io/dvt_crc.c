/* Checksums of bytes: CRC-32 (gzip, zip, PNG) and Adler-32 (zlib, RFC 1950). */
#include "5_io/dvt_formats.h"

DVTI_FN void dvti_crc_build(dvti_crc *crc) {
    dvti_crc_build_of(crc, 0xedb88320u);
}

DVTI_FN void dvti_crc_build_of(dvti_crc *crc, uint32_t polynomial) {
    uint32_t i, value;
    int k;
    for (i = 0; i < 256; i++) {
        value = i;
        for (k = 0; k < 8; k++)
            value = value >> 1 ^ (value & 1 ? polynomial : 0);
        crc->table[0][i] = value;
    }
    for (i = 0; i < 256; i++)
        for (k = 1; k < 8; k++) {
            value = crc->table[k - 1][i];
            crc->table[k][i] = value >> 8 ^ crc->table[0][value & 255];
        }
}

/* Eight bytes at a time. */
DVTI_FN uint32_t dvti_crc_more(const dvti_crc *crc, uint32_t value, const void *bytes, size_t n) {
    const unsigned char *at = (const unsigned char *)bytes;
    value = ~value;
    for (; n >= 8; n -= 8, at += 8) {
        uint32_t next =
            (uint32_t)at[4] | (uint32_t)at[5] << 8 | (uint32_t)at[6] << 16 | (uint32_t)at[7] << 24;
        value ^=
            (uint32_t)at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
        value = crc->table[7][value & 255] ^ crc->table[6][value >> 8 & 255] ^
                crc->table[5][value >> 16 & 255] ^ crc->table[4][value >> 24] ^
                crc->table[3][next & 255] ^ crc->table[2][next >> 8 & 255] ^
                crc->table[1][next >> 16 & 255] ^ crc->table[0][next >> 24];
    }
    for (; n; n--)
        value = value >> 8 ^ crc->table[0][(value ^ *at++) & 255];
    return ~value;
}

/* 5552 bytes are the most whose sums fit in 32 bits before a reduction. */
DVTI_FN uint32_t dvti_adler_more(uint32_t value, const void *bytes, size_t n) {
    const unsigned char *at = (const unsigned char *)bytes;
    uint32_t low = value & 0xffffu, high = value >> 16;
    while (n) {
        size_t step = DVTI_MIN(n, (size_t)5552);
        for (n -= step; step; step--) {
            low += *at++;
            high += low;
        }
        low %= 65521u;
        high %= 65521u;
    }
    return high << 16 | low;
}
