"""Triton text of the elementary functions, from operations that its CPU interpreter has too.

`tl.exp` and `tl.log` compile to approximations that lose accuracy away from 0 and near 1; these
stay within about 2 ulp in float32. Only float32 arrives here (half precision is computed in it).
"""

from __future__ import annotations

from kopt.actors.rewriter.codegen.polynomials import (
    ERF_FAR,
    ERF_NEAR,
    EXP_TAIL,
    LN2_HIGH,
    LN2_LOW,
    LOG2_E,
    LOG_TAIL,
    horner,
)

_REDUCED = f"""\
    y = tl.where(x > 89.0, 89.0, x)
    y = tl.where(y < -104.0, -104.0, y)
    n = tl.floor(y * {LOG2_E!r} + 0.5)
    r = (y - n * {LN2_HIGH!r}) - n * {LN2_LOW!r}
"""

TEXTS = {
    "exp": f"""\
def PREFIX_exp(x):
{_REDUCED}\
    p = r * r * {horner(EXP_TAIL, "r")} + r + 1.0
    half = tl.floor(n * 0.5)
    return p * tl.exp2(half) * tl.exp2(n - half)
""",
    "expm1": f"""\
def PREFIX_expm1(x):
{_REDUCED}\
    p = r * r * {horner(EXP_TAIL, "r")} + r
    half = tl.floor(n * 0.5)
    low = tl.exp2(half)
    high = tl.exp2(n - half)
    made = (low * p + (low - tl.exp2(half - n))) * high
    return tl.where(n == 0.0, p, made)
""",
    "log": f"""\
def PREFIX_log(x):
    small = x < 1.1754944e-38
    scaled = tl.where(small, x * 8388608.0, x)
    lift = scaled.to(tl.int32, bitcast=True) - 0x3F3504F3
    e = (lift >> 23).to(tl.float32) - tl.where(small, 23.0, 0.0)
    f = ((lift & 0x007FFFFF) + 0x3F3504F3).to(tl.float32, bitcast=True) - 1.0
    s = f * f
    made = f + (e * {LN2_LOW!r} + (s * f * {horner(LOG_TAIL, "f")} - 0.5 * s)) + e * {LN2_HIGH!r}
    made = tl.where(x > 3.4028234e38, x, made)
    made = tl.where(x == 0.0, -float("inf"), made)
    return tl.where(x >= 0.0, made, float("nan"))
""",
    "log1p": """\
def PREFIX_log1p(x):
    u = 1.0 + x
    lost = (x - (u - 1.0)) / u
    lost = tl.where((u > 0.0) & (u < 3.4028234e38), lost, 0.0)
    return PREFIX_log(u) + lost
""",
    "tanh": """\
def PREFIX_tanh(x):
    t = tl.abs(x)
    t = tl.where(t > 10.0, 10.0, t)
    e = PREFIX_expm1(2.0 * t)
    made = e / (e + 2.0)
    return tl.where(x < 0.0, -made, made)
""",
    "sigmoid": """\
def PREFIX_sigmoid(x):
    return 1.0 / (1.0 + PREFIX_exp(-x))
""",
    "erf": f"""\
def PREFIX_erf(x):
    t = tl.abs(x)
    s = x * x
    t = tl.where(t > 4.0, 4.0, t)
    near = x + x * {horner(ERF_NEAR, "s")}
    far = 1.0 - PREFIX_exp(t * {horner(ERF_FAR, "t")})
    far = tl.where(x < 0.0, -far, far)
    return tl.where(t <= 1.0, near, tl.where(x == x, far, x))
""",
    "trunc": """\
def PREFIX_trunc(x):
    return tl.where(x < 0.0, tl.ceil(x), tl.floor(x))
""",
    "max": """\
def PREFIX_max(a, b):
    return tl.maximum(a, b, propagate_nan=tl.PropagateNan.ALL)
""",
    "min": """\
def PREFIX_min(a, b):
    return tl.minimum(a, b, propagate_nan=tl.PropagateNan.ALL)
""",
    "rank_max": """\
def PREFIX_rank_max(x):
    i = (x + 0.0).to(tl.int32, bitcast=True)
    i = i ^ ((i >> 31) & 0x7FFFFFFF)
    return tl.where(x != x, 0x7FFFFFFF, i).to(tl.int64) << 32
""",
    "rank_min": """\
def PREFIX_rank_min(x):
    i = (x + 0.0).to(tl.int32, bitcast=True)
    i = i ^ ((i >> 31) & 0x7FFFFFFF)
    return tl.where(x != x, -0x7FFFFFFF - 1, i).to(tl.int64) << 32
""",
    "ranked": """\
def PREFIX_ranked(key):
    i = (key >> 32).to(tl.int32)
    return (i ^ ((i >> 31) & 0x7FFFFFFF)).to(tl.float32, bitcast=True)
""",
    "low_half": """\
def PREFIX_low_half(key):
    return key & 0xFFFFFFFF
""",
    "mul": """\
def PREFIX_mul(a, b):
    return a * b
""",
}
"""Helpers by name; PREFIX is the name of the region's function, so that two may share a file."""

NEEDS = {
    "tanh": ("expm1",),
    "sigmoid": ("exp",),
    "log1p": ("log",),
    "erf": ("exp",),
}


def helpers(functions: frozenset[str], *, prefix: str) -> str:
    """Return the jitted helpers that the named functions need, what is called coming first."""
    wanted = set(functions)
    for function in functions:
        wanted.update(NEEDS.get(function, ()))
    return "".join(
        "@triton.jit\n" + text.replace("PREFIX", f"_{prefix}") + "\n\n"
        for name, text in TEXTS.items()
        if name in wanted
    )
