"""C++ text of the half precisions: stored in 16 bits, computed in float32.

Conversions are branch-free integer arithmetic on plain integers (a type of their own keeps the
compiler from making vectors of the loops); rounding is to the nearest, ties to even, as in torch.
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
"""


def half_source(kinds: frozenset[str]) -> str:
    """Return the definitions for the named kinds, `float16` or `bfloat16`."""
    texts = {"bfloat16": _BFLOAT16, "float16": _FLOAT16}
    return "".join(texts[kind] for kind in sorted(kinds))
