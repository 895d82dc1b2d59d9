"""C++ text of the elementary functions: branch-free, so that loops over them become vectors.

All accept infinities and NaN. `exact` stays within about 1 ulp of the true value in float32,
`fast` within about 4 (erf: 6); double precision goes to libm.
"""

from __future__ import annotations

from kopt.actors.rewriter.codegen.polynomials import (
    ERF_FAR,
    ERF_NEAR,
    ERF_OVER,
    ERF_UNDER,
    ERFC,
    EXP_TAIL,
    EXP_TAIL_FAST,
    LN2_HIGH,
    LN2_LOW,
    LOG2_E,
    LOG_TAIL,
    LOG_TAIL_FAST,
    horner,
)

_HEAD = """\
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#define INLINE static inline __attribute__((always_inline))

template <class To, class From> INLINE To bits(From from) {
  To to; memcpy(&to, &from, sizeof to); return to;
}
// NaN wins, as in torch. In two choices, neither of which becomes a branch.
template <class T> INLINE T k_max(T a, T b) { T top = a > b ? a : b; return a != a ? a : top; }
template <class T> INLINE T k_min(T a, T b) { T low = a < b ? a : b; return a != a ? a : low; }
template <class T> INLINE T k_add(T a, T b) { return a + b; }
template <class T> INLINE T k_mul(T a, T b) { return a * b; }
// Joins parts by halves. Each level is a loop of its own length: the parts stay in registers.
template <long n, class T, class Join> INLINE T k_fold(T* part, Join join) {
  if constexpr (n == 1) {
    return part[0];
  } else {
    for (long j = 0; j < n / 2; j++) part[j] = join(part[j], part[j + n / 2]);
    return k_fold<n / 2>(part, join);
  }
}
"""

_STREAM = """\
#ifdef __SSE2__
#include <immintrin.h>
#endif
// Copies past the caches where the target is aligned: the result is not read again here.
template <class T> INLINE void k_stream(T* to, const T* from, long n) {
#ifdef __SSE2__
  long bytes = n * (long)sizeof(T), at = 0;
  char* t = (char*)to; const char* f = (const char*)from;
  if (((uintptr_t)t & (sizeof(__m128) - 1)) == 0) {
#ifdef __AVX512F__
    if (((uintptr_t)t & 63) == 0)
      for (; at + 64 <= bytes; at += 64)
        _mm512_stream_ps((float*)(t + at), _mm512_loadu_ps(f + at));
#endif
#ifdef __AVX__
    if (((uintptr_t)t & 31) == 0)
      for (; at + 32 <= bytes; at += 32)
        _mm256_stream_ps((float*)(t + at), _mm256_loadu_ps((const float*)(f + at)));
#endif
    for (; at + 16 <= bytes; at += 16)
      _mm_stream_ps((float*)(t + at), _mm_loadu_ps((const float*)(f + at)));
  }
  memcpy(t + at, f + at, bytes - at);
#else
  memcpy(to, from, n * sizeof(T));
#endif
}
"""


def _exp(*, fast: bool) -> str:
    tail = EXP_TAIL_FAST if fast else EXP_TAIL
    doubled = horner((2.0, 2.0, *(2.0 * number for number in tail)), "r", suffix="f")
    return f"""\
// x = n ln 2 + r; 2 exp(r) 2^(n-1), so that the largest results do not overflow half-way. What is
// below the normal range becomes 0. The low bits of `shifted` hold n + 126, an exponent of 2^(n-1).
INLINE float k_exp(float x) {{
  x = x > 89.0f ? 89.0f : x; x = x < -87.5f ? -87.5f : x;
  float shifted = x * {LOG2_E!r}f + 12583038.0f, n = shifted - 12583038.0f;
  float r = (x - n * {LN2_HIGH!r}f) - n * {LN2_LOW!r}f;
  return {doubled} * bits<float>(bits<uint32_t>(shifted) << 23);
}}
INLINE double k_exp(double x) {{ return exp(x); }}
"""


def _expm1() -> str:
    tail = horner(EXP_TAIL, "r", suffix="f")
    return f"""\
// 2^n (exp(r) - 1) + (2^n - 1): nothing cancels for small x, where n is 0.
INLINE float k_expm1(float x) {{
  x = x > 88.72f ? 88.72f + (x - 88.72f) * 1e38f : x; float y = x < -104.0f ? -104.0f : x;
  y = y > 89.0f ? 89.0f : y;
  float shifted = y * {LOG2_E!r}f + 12582912.0f, n = shifted - 12582912.0f;
  int32_t k = bits<int32_t>(shifted) - 0x4b400000;
  k = k > 127 ? 127 : k; k = k < -126 ? -126 : k;
  float r = (y - n * {LN2_HIGH!r}f) - n * {LN2_LOW!r}f;
  float p = r * r * {tail} + r, two = bits<float>((k + 127) << 23);
  float made = two * p + (two - 1.0f);
  return x > 88.72f ? x : made;
}}
INLINE double k_expm1(double x) {{ return expm1(x); }}
"""


def _log(*, fast: bool) -> str:
    tail = horner(LOG_TAIL_FAST if fast else LOG_TAIL, "f", suffix="f")
    return f"""\
// x = 2^e m with sqrt(1/2) <= m < sqrt(2); numbers below the normal range are scaled first.
INLINE float k_log(float x) {{
  float scaled = x < 1.17549435e-38f ? x * 8388608.0f : x;
  int32_t word = bits<int32_t>(scaled), lift = word - 0x3f3504f3;
  float e = (float)(lift >> 23) - (x < 1.17549435e-38f ? 23.0f : 0.0f);
  float f = bits<float>((lift & 0x007fffff) + 0x3f3504f3) - 1.0f, s = f * f;
  float made = f + (e * {LN2_LOW!r}f + (s * f * {tail} - 0.5f * s)) + e * {LN2_HIGH!r}f;
  made = x > 3.4028235e38f ? x : made;
  made = x == 0.0f ? -INFINITY : made;
  return x >= 0.0f ? made : NAN;
}}
INLINE double k_log(double x) {{ return log(x); }}
"""


_LOG1P = """\
// log(1+x) = log(u) + (what rounding u = 1+x lost) / u.
INLINE float k_log1p(float x) {
  float u = 1.0f + x, lost = (x - (u - 1.0f)) / u;
  lost = ((u > 0.0f) & (u <= 3.4028235e38f)) ? lost : 0.0f;
  return k_log(u) + lost;
}
INLINE double k_log1p(double x) { return log1p(x); }
"""

_TANH = """\
INLINE float k_tanh(float x) {
  float t = fabsf(x); t = t > 10.0f ? 10.0f : t;
  float e = k_expm1(2.0f * t);
  return copysignf(e / (e + 2.0f), x);
}
INLINE double k_tanh(double x) { return tanh(x); }
"""

_SIGMOID = """\
template <class T> INLINE T k_sigmoid(T x) { return T(1) / (T(1) + k_exp(-x)); }
"""


def _erf(*, fast: bool) -> str:
    if fast:
        over, under = (horner(c, "s", suffix="f") for c in (ERF_OVER, ERF_UNDER))
        text = f"""\
INLINE float k_erf(float x) {{
  x = x > 3.9f ? 3.9f : x; x = x < -3.9f ? -3.9f : x;
  float s = x * x;
  return x * {over} / {under};
}}
"""
    else:
        near, far = horner(ERF_NEAR, "s", suffix="f"), horner(ERF_FAR, "t", suffix="f")
        text = f"""\
INLINE float k_erf(float x) {{
  float t = fabsf(x), s = x * x; t = t > 4.0f ? 4.0f : t;
  float near = x + x * {near};
  float far = copysignf(1.0f - k_exp(t * {far}), x);
  return t <= 1.0f ? near : (x == x ? far : x);
}}
"""
    return text + "INLINE double k_erf(double x) { return erf(x); }\n"


def _one_plus_erf(*, fast: bool) -> str:
    if fast:
        text = """\
INLINE float k_one_plus_erf(float x) { return x < -3.9f ? 0.0f : 1.0f + k_erf(x); }
"""
    else:
        text = f"""\
// Without erf's own care for small x, which the sum with 1 loses. Nothing is left far out: times an
// x of thousands (GELU) a billionth would show, where float32's own sum is 0.
INLINE float k_one_plus_erf(float x) {{
  float t = fabsf(x), near = t > 4.3f ? 4.3f : t;
  float rest = k_exp(near * {horner(ERFC, "near", suffix="f")});
  rest = t > 4.3f ? 0.0f : rest;
  return x < 0.0f ? rest : 2.0f - rest;
}}
"""
    return text + "INLINE double k_one_plus_erf(double x) { return 1.0 + erf(x); }\n"


_REST = """\
INLINE float k_sqrt(float x) { return sqrtf(x); }
INLINE double k_sqrt(double x) { return sqrt(x); }
template <class T> INLINE T k_rsqrt(T x) { return T(1) / k_sqrt(x); }
template <class T> INLINE T k_abs(T x) { return x < T(0) ? -x : x; }
INLINE float k_abs(float x) { return fabsf(x); }
INLINE double k_abs(double x) { return fabs(x); }
"""

_RANK = """\
// A number's place in the order of all float32 numbers, in the upper half of an integer; a NaN
// comes first, whichever end is wanted.
INLINE int64_t k_rank(float x, int32_t nan) {
  int32_t i = bits<int32_t>(x + 0.0f);
  i ^= (i >> 31) & 0x7fffffff;
  return (int64_t)(x != x ? nan : i) * 4294967296LL;
}
INLINE int64_t k_rank_max(float x) { return k_rank(x, INT32_MAX); }
INLINE int64_t k_rank_min(float x) { return k_rank(x, INT32_MIN); }
INLINE float k_ranked(int64_t key) {
  int32_t i = (int32_t)(key >> 32);
  return bits<float>(i ^ ((i >> 31) & 0x7fffffff));
}
INLINE int64_t k_low_half(int64_t key) { return key & 0xffffffffLL; }
"""

_NEEDS = {
    "tanh": ("expm1",),
    "sigmoid": ("exp",),
    "log1p": ("log",),
    "erf": ("exp",),
    "one_plus_erf": ("exp",),
}
LIBM = frozenset(
    [
        "log2",
        "log10",
        "sin",
        "cos",
        "tan",
        "asin",
        "acos",
        "atan",
        "sinh",
        "cosh",
        "floor",
        "ceil",
        "trunc",
        "pow",
    ]
)
"""Functions left to libm (the compiler turns the rounding ones into instructions)."""

VECTOR_LIBM = frozenset({"sin", "cos", "pow"})
"""Those of them that glibc has had as vector functions since 2.22 (within 4 ulp)."""


def math_source(functions: frozenset[str], *, fast: bool, streaming: bool) -> str:
    """Return the definitions of the named functions (`exp`, `tanh`, …) and of what they need."""
    wanted = set(functions)
    for function in functions:
        wanted.update(_NEEDS.get(function, ()))
    if "log1p" in wanted:
        wanted.add("log")
    if fast and "one_plus_erf" in wanted:
        wanted.add("erf")
    texts = {
        "exp": _exp(fast=fast),
        "expm1": _expm1(),
        "log": _log(fast=fast),
        "log1p": _LOG1P,
        "tanh": _TANH,
        "sigmoid": _SIGMOID,
        "erf": _erf(fast=fast),
        "one_plus_erf": _one_plus_erf(fast=fast),
    }
    parts = [_HEAD, _REST, *(text for name, text in texts.items() if name in wanted)]
    if wanted & VECTOR_LIBM:
        parts.append("#if defined(__x86_64__) && defined(__GLIBC__)  // libmvec has these\n")
        for name in sorted(wanted & VECTOR_LIBM):
            kinds = "float, float" if name == "pow" else "float"
            parts.append(
                f'extern "C" __attribute__((simd("notinbranch"))) float {name}f({kinds});\n'
            )
        parts.append("#endif\n")
    for name in sorted(wanted & LIBM):
        arguments = ("x", "y") if name == "pow" else ("x",)
        for kind, suffix in (("float", "f"), ("double", "")):
            signature = ", ".join(f"{kind} {a}" for a in arguments)
            call = f"{name}{suffix}({', '.join(arguments)})"
            parts.append(f"INLINE {kind} k_{name}({signature}) {{ return {call}; }}\n")
    if "round" in wanted:
        parts.append("INLINE float k_round(float x) { return rintf(x); }\n")
        parts.append("INLINE double k_round(double x) { return rint(x); }\n")
    if "ranked" in wanted or "low_half" in wanted:
        parts.append(_RANK)
    if streaming:
        parts.append(_STREAM)
    return "".join(parts)
