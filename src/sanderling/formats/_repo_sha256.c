/* SHA-256 (FIPS 180-4): in plain C, and with the instructions of x86 and 64-bit ARM where the machine has them. */

#include "_repo.h"

#include <string.h>

static const uint32_t ROUND[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
};

/* --- In plain C -------------------------------------------------------------------------------------------------- */

static inline uint32_t
rotated(uint32_t value, unsigned by)
{
    return value >> by | value << (32 - by);
}

static inline uint32_t
big_endian(const uint8_t *data)
{
    return (uint32_t)data[0] << 24 | (uint32_t)data[1] << 16 | (uint32_t)data[2] << 8 | data[3];
}

static void
compress_portable(uint32_t state[8], const uint8_t *data, size_t blocks)
{
    for (; blocks != 0; blocks--, data += 64) {
        uint32_t w[64];
        for (int i = 0; i < 16; i++) {
            w[i] = big_endian(data + 4 * i);
        }
        for (int i = 16; i < 64; i++) {
            const uint32_t a = w[i - 15], b = w[i - 2];
            w[i] = w[i - 16] + w[i - 7] + (rotated(a, 7) ^ rotated(a, 18) ^ a >> 3)
                + (rotated(b, 17) ^ rotated(b, 19) ^ b >> 10);
        }
        uint32_t a = state[0], b = state[1], c = state[2], d = state[3];
        uint32_t e = state[4], f = state[5], g = state[6], h = state[7];
        for (int i = 0; i < 64; i++) {
            const uint32_t one = h + (rotated(e, 6) ^ rotated(e, 11) ^ rotated(e, 25)) + ((e & f) ^ (~e & g))
                + ROUND[i] + w[i];
            const uint32_t two = (rotated(a, 2) ^ rotated(a, 13) ^ rotated(a, 22)) + ((a & b) ^ (a & c) ^ (b & c));
            h = g;
            g = f;
            f = e;
            e = d + one;
            d = c;
            c = b;
            b = a;
            a = one + two;
        }
        state[0] += a;
        state[1] += b;
        state[2] += c;
        state[3] += d;
        state[4] += e;
        state[5] += f;
        state[6] += g;
        state[7] += h;
    }
}

static bool
always(void)
{
    return true;
}

/* --- x86 --------------------------------------------------------------------------------------------------------- */

#if defined(__x86_64__) && defined(__GNUC__)
#define HAVE_SHA_NI
#include <cpuid.h>
#include <immintrin.h>

__attribute__((target("sha,sse4.1"))) static void
compress_sha_ni(uint32_t state[8], const uint8_t *data, size_t blocks)
{
    const __m128i order = _mm_set_epi64x(0x0c0d0e0f08090a0b, 0x0405060700010203);
    /* The instructions keep the state as (a b e f) and (c d g h), the first in the highest lane. */
    const __m128i dcba = _mm_loadu_si128((const __m128i *)(const void *)&state[0]);
    const __m128i hgfe = _mm_loadu_si128((const __m128i *)(const void *)&state[4]);
    const __m128i badc = _mm_shuffle_epi32(dcba, 0xb1), efgh = _mm_shuffle_epi32(hgfe, 0x1b);
    __m128i abef = _mm_alignr_epi8(badc, efgh, 8), cdgh = _mm_blend_epi16(efgh, badc, 0xf0);

    for (; blocks != 0; blocks--, data += 64) {
        const __m128i abef_before = abef, cdgh_before = cdgh;
        __m128i w[4];
        for (int i = 0; i < 4; i++) {
            w[i] = _mm_shuffle_epi8(_mm_loadu_si128((const __m128i *)(const void *)(data + 16 * i)), order);
        }
#pragma GCC unroll 16
        for (int i = 0; i < 16; i++) {
            const __m128i k = _mm_loadu_si128((const __m128i *)(const void *)&ROUND[4 * i]);
            const __m128i sum = _mm_add_epi32(w[i & 3], k);
            cdgh = _mm_sha256rnds2_epu32(cdgh, abef, sum);
            abef = _mm_sha256rnds2_epu32(abef, cdgh, _mm_shuffle_epi32(sum, 0x0e));
            if (i < 12) {
                /* The four words that come sixteen later take the place of these. */
                __m128i next = _mm_sha256msg1_epu32(w[i & 3], w[(i + 1) & 3]);
                next = _mm_add_epi32(next, _mm_alignr_epi8(w[(i + 3) & 3], w[(i + 2) & 3], 4));
                w[i & 3] = _mm_sha256msg2_epu32(next, w[(i + 3) & 3]);
            }
        }
        abef = _mm_add_epi32(abef, abef_before);
        cdgh = _mm_add_epi32(cdgh, cdgh_before);
    }

    const __m128i feba = _mm_shuffle_epi32(abef, 0x1b), dchg = _mm_shuffle_epi32(cdgh, 0xb1);
    _mm_storeu_si128((__m128i *)(void *)&state[0], _mm_blend_epi16(feba, dchg, 0xf0));
    _mm_storeu_si128((__m128i *)(void *)&state[4], _mm_alignr_epi8(dchg, feba, 8));
}

static bool
has_sha_ni(void)
{
    unsigned a, b, c, d;
    if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & bit_SSSE3) || !(c & bit_SSE4_1)) {
        return false;
    }
    return __get_cpuid_count(7, 0, &a, &b, &c, &d) && (b & bit_SHA);
}
#endif

/* --- 64-bit ARM --------------------------------------------------------------------------------------------------- */

#if defined(__aarch64__) && (defined(__linux__) || defined(__APPLE__))
#define HAVE_ARMV8
#include <arm_neon.h>
#ifdef __linux__
#include <asm/hwcap.h>
#include <sys/auxv.h>
#endif
#ifdef __clang__
#define WITH_SHA2 __attribute__((target("sha2")))
#else
#define WITH_SHA2 __attribute__((target("+crypto")))
#endif

WITH_SHA2 static void
compress_armv8(uint32_t state[8], const uint8_t *data, size_t blocks)
{
    uint32x4_t abcd = vld1q_u32(&state[0]), efgh = vld1q_u32(&state[4]);
    for (; blocks != 0; blocks--, data += 64) {
        const uint32x4_t abcd_before = abcd, efgh_before = efgh;
        uint32x4_t w[4];
        for (int i = 0; i < 4; i++) {
            w[i] = vreinterpretq_u32_u8(vrev32q_u8(vld1q_u8(data + 16 * i)));
        }
        for (int i = 0; i < 16; i++) {
            const uint32x4_t sum = vaddq_u32(w[i & 3], vld1q_u32(&ROUND[4 * i]));
            const uint32x4_t old = abcd;
            abcd = vsha256hq_u32(abcd, efgh, sum);
            efgh = vsha256h2q_u32(efgh, old, sum);
            if (i < 12) {
                const uint32x4_t next = vsha256su0q_u32(w[i & 3], w[(i + 1) & 3]);
                w[i & 3] = vsha256su1q_u32(next, w[(i + 2) & 3], w[(i + 3) & 3]);
            }
        }
        abcd = vaddq_u32(abcd, abcd_before);
        efgh = vaddq_u32(efgh, efgh_before);
    }
    vst1q_u32(&state[0], abcd);
    vst1q_u32(&state[4], efgh);
}

static bool
has_armv8(void)
{
#ifdef __linux__
    return (getauxval(AT_HWCAP) & HWCAP_SHA2) != 0;
#else
    return true; /* Apple never made one without */
#endif
}
#endif

/* --- Which one, and the whole ------------------------------------------------------------------------------------ */

const RepoSha256 repo_sha256_all[] = {
#ifdef HAVE_SHA_NI
    {"sha-ni", compress_sha_ni, has_sha_ni},
#endif
#ifdef HAVE_ARMV8
    {"armv8", compress_armv8, has_armv8},
#endif
    {"portable", compress_portable, always},
};
const size_t repo_sha256_count = sizeof(repo_sha256_all) / sizeof(repo_sha256_all[0]);

const RepoSha256 *
repo_sha256_fastest(void)
{
    const RepoSha256 *one = repo_sha256_all;
    while (!one->available()) {
        one++;
    }
    return one;
}

static void
put_big_endian(uint8_t *out, uint32_t value)
{
    for (int i = 0; i < 4; i++) {
        out[i] = (uint8_t)(value >> (24 - 8 * i));
    }
}

void
repo_sha256(const RepoSha256 *sha256, const uint8_t *data, size_t size, uint8_t digest[32])
{
    uint32_t state[8] = {
        0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19,
    };
    if (size >= 64) {
        sha256->compress(state, data, size / 64);
    }
    /* What is left, a one bit, and the size in bits at the very end: one block or two. */
    uint8_t last[128] = {0};
    const size_t left = size % 64, blocks = left < 56 ? 1 : 2;
    if (left != 0) {
        memcpy(last, data + (size - left), left);
    }
    last[left] = 0x80;
    const uint64_t bits = (uint64_t)size * 8;
    put_big_endian(last + 64 * blocks - 8, (uint32_t)(bits >> 32));
    put_big_endian(last + 64 * blocks - 4, (uint32_t)bits);
    sha256->compress(state, last, blocks);
    for (int i = 0; i < 8; i++) {
        put_big_endian(digest + 4 * i, state[i]);
    }
}
