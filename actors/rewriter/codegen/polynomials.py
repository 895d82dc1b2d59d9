"""Coefficients of the elementary functions, shared by the C++ and the Triton printer.

Minimax fits by iterated reweighted least squares in float64; coefficients from the constant term
up. The relative error of each result is given in brackets, before float32 rounding.
"""

from __future__ import annotations

EXP_TAIL = (0.50000001, 0.166665129, 0.0416661873, 0.00836959841, 0.00139517172)
"""exp(r) = 1 + r + r² · P(r) for |r| ≤ ln(2)/2 [3e-9]."""
EXP_TAIL_FAST = (0.49999112, 0.166664502, 0.0419029687, 0.00837534422)
"""The same one degree lower [1e-7]."""
LOG_TAIL = (
    0.333333317,
    -0.250008211,
    0.200012267,
    -0.166233565,
    0.142017625,
    -0.131601951,
    0.127615503,
    -0.0763442984,
)
"""log(1+f) = f - f²/2 + f³ · P(f) for √½ ≤ 1+f ≤ √2 [6e-9]."""
LOG_TAIL_FAST = (
    0.333339108,
    -0.25001337,
    0.199630623,
    -0.16577586,
    0.14914787,
    -0.142674763,
    0.0870035995,
)
"""The same one degree lower [3e-8]."""
ERF_NEAR = (
    0.128379166,
    -0.376126271,
    0.112836002,
    -0.0268544446,
    0.00518953534,
    -0.000802084128,
    0.0000788911953,
)
"""erf(x) = x + x · P(x²) for |x| ≤ 1 [1e-9]."""
ERF_FAR = (
    -1.12863708,
    -0.635198034,
    -0.106159049,
    0.023694566,
    -0.00361034196,
    0.000314858115,
    -0.0000104331146,
)
"""erf(x) = 1 - exp(x · P(x)) for 1 ≤ x ≤ 4 [1e-9]."""
ERFC = (
    -1.12838149,
    -0.636576772,
    -0.103026561,
    0.0198218171,
    -0.000789615675,
    -0.000914207252,
    0.000300604268,
    -0.0000416411385,
    0.00000220024,
)
"""1 - erf(x) = exp(x · P(x)) for 0 ≤ x ≤ 4.3 [4e-8 absolute]."""
ERF_OVER = (1.12837915, 0.189665774, 0.0526679562, 0.00373830529, 0.000285061989, 0.00000206648983)
ERF_UNDER = (1.0, 0.501419698, 0.113818535, 0.0149141937, 0.00115736768, 0.0000382701836)
"""erf(x) = x · P(x²) / Q(x²) for |x| ≤ 3.9 [2e-8; about 6 ulp once it is computed in float32]."""
LOG2_E = 1.44269504
LN2_HIGH = 0.693359375
"""Leading bits of ln 2: its products with whole numbers up to 2^13 are exact in float32."""
LN2_LOW = -0.000212194440


def horner(coefficients: tuple[float, ...], x: str, *, suffix: str = "") -> str:
    """Return the polynomial in x as an expression, `suffix` after each number ("f" for C++)."""
    text = f"{coefficients[-1]!r}{suffix}"
    for number in reversed(coefficients[:-1]):
        text = f"({text} * {x} + {number!r}{suffix})"
    return text
