"""C++ text of the half precisions: stored in 16 bits, computed in float32.

Conversions are branch-free integer arithmetic on plain integers (a type of their own keeps the
compiler from making vectors of the loops); rounding is to the nearest, ties to even, as in torch.
float16, where that takes many steps, is converted in blocks by the CPU's instructions if it has
them.
"""

from __future__ import annotations

_BFLOAT16 = """\
INLINE float k_from_bfloat16(uint16_t raw) { return bits<float>((uint32_t)raw << 16); }
INLINE uint16_t k_to_bfloat16(float x) {
  uint32_t u = bits<uint32_t>(x), up = (u + 0x7fffu + ((u >> 16) & 1u)) >> 16;
  return (uint16_t)(x != x ? 0x7fc0u : up);
}
"""

_FLOAT16 = """\
INLINE float k_from_float16(uint16_t raw) {
  uint32_t h = raw, u = (h & 0x7fffu) << 13;
  uint32_t made = bits<uint32_t>(bits<float>(u) * 5.192296858534828e33f);  // 2^112
  made = (h & 0x7c00u) == 0x7c00u ? (u | 0x7f800000u) : made;
  return bits<float>(made | ((h & 0x8000u) << 16));
}
INLINE uint16_t k_to_float16(float x) {
  uint32_t u = bits<uint32_t>(x), sign = (u >> 16) & 0x8000u; u &= 0x7fffffffu;
  uint32_t normal = (u + 0xc8000fffu + ((u >> 13) & 1u)) >> 13;
  uint32_t tiny = bits<uint32_t>(bits<float>(u) + 0.5f) - 0x3f000000u;  // below 2^-14
  uint32_t large = u > 0x7f800000u ? 0x7e00u : 0x7c00u;
  uint32_t h = u < 0x38800000u ? tiny : normal; h = u >= 0x47800000u ? large : h;
  return (uint16_t)(h | sign);
}
#ifdef __F16C__
#include <immintrin.h>
#endif
INLINE void k_widen_float16(float* to, const uint16_t* from, long n) {
  long at = 0;
#ifdef __AVX512F__
  for (; at + 16 <= n; at += 16)
    _mm512_storeu_ps(to + at, _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i*)(from + at))));
#endif
#ifdef __F16C__
  for (; at + 8 <= n; at += 8)
    _mm256_storeu_ps(to + at, _mm256_cvtph_ps(_mm_loadu_si128((const __m128i*)(from + at))));
#endif
  for (; at < n; at++) to[at] = k_from_float16(from[at]);
}
INLINE void k_narrow_float16(uint16_t* to, const float* from, long n) {
  long at = 0;
#ifdef __AVX512F__
  for (; at + 16 <= n; at += 16)
    _mm256_storeu_si256((__m256i*)(to + at), _mm512_cvtps_ph(_mm512_loadu_ps(from + at), 0));
#endif
#ifdef __F16C__
  for (; at + 8 <= n; at += 8)
    _mm_storeu_si128((__m128i*)(to + at), _mm256_cvtps_ph(_mm256_loadu_ps(from + at), 0));
#endif
  for (; at < n; at++) to[at] = k_to_float16(from[at]);
}
"""


def half_source(kinds: frozenset[str]) -> str:
    """Return the definitions for the named kinds, `float16` or `bfloat16`."""
    texts = {"bfloat16": _BFLOAT16, "float16": _FLOAT16}
    return "".join(texts[kind] for kind in sorted(kinds))
