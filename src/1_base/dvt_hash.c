/* 128-bit content hashes: names and checksums of cached files. Not for security: the key is fixed
   and public. */
#include "1_base/dvt_base.h"

static uint64_t dvti_rotate(uint64_t x, int bits) {
    return x << bits | x >> (64 - bits);
}

static void dvti_sip_rounds(uint64_t v[4], int rounds) {
    for (; rounds > 0; rounds--) {
        v[0] += v[1];
        v[2] += v[3];
        v[1] = dvti_rotate(v[1], 13) ^ v[0];
        v[3] = dvti_rotate(v[3], 16) ^ v[2];
        v[0] = dvti_rotate(v[0], 32) + v[3];
        v[2] += v[1];
        v[3] = dvti_rotate(v[3], 21) ^ v[0];
        v[1] = dvti_rotate(v[1], 17) ^ v[2];
        v[2] = dvti_rotate(v[2], 32);
    }
}

/* Computes SipHash-2-4 with 128 bits of output and a fixed key. Source: Aumasson, Bernstein:
   SipHash: a fast short-input PRF. INDOCRYPT 2012; the authors' own 128-bit variant. Reads bytes in
   little-endian order, so the hash is the same on every machine. */
DVTI_FN void dvti_hash128(const void *bytes, size_t n, uint64_t out[2]) {
    const unsigned char *at = (const unsigned char *)bytes;
    const uint64_t k0 = 0x646576746e736f72u, k1 = 0x6b65726e656c7321u;
    uint64_t v[4], word;
    size_t i;
    v[0] = k0 ^ 0x736f6d6570736575u;
    v[1] = k1 ^ 0x646f72616e646f6du ^ 0xee;
    v[2] = k0 ^ 0x6c7967656e657261u;
    v[3] = k1 ^ 0x7465646279746573u;
    for (i = 0; i <= n / 8; i++) {
        size_t left = n - 8 * i, take = left < 8 ? left : 8, k;
        word = i == n / 8 ? (uint64_t)n << 56 : 0;
        for (k = 0; k < take; k++)
            word |= (uint64_t)at[8 * i + k] << 8 * k;
        v[3] ^= word;
        dvti_sip_rounds(v, 2);
        v[0] ^= word;
    }
    v[2] ^= 0xee;
    dvti_sip_rounds(v, 4);
    out[0] = v[0] ^ v[1] ^ v[2] ^ v[3];
    v[1] ^= 0xdd;
    dvti_sip_rounds(v, 4);
    out[1] = v[0] ^ v[1] ^ v[2] ^ v[3];
}
