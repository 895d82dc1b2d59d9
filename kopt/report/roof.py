"""A candidate on its problem's roofline: the roofs, where it stands, and what may be said of it.

The roofs come from the recorded figures alone. With F the reference's FLOP, B its compulsory
bytes, I = F ÷ B, R the ridge, T the speed of light: where I >= R the arithmetic binds, so its peak
is F ÷ T and that of memory (F ÷ T) ÷ R; else memory binds, at B ÷ T, and arithmetic peaks at
(B ÷ T) · R.
Source: KernelPro §3.2; Williams et al. 2009.
"""

from __future__ import annotations

from dataclasses import dataclass

from kopt.evidence import Roofline


@dataclass(frozen=True, slots=True, kw_only=True)
class Roof:
    """The picture of one candidate."""

    intensity: float
    """FLOP per byte, of the reference's work."""
    ridge: float
    """FLOP per byte where the roofs meet."""
    peak_flops: float
    """FLOP per second of arithmetic."""
    peak_bytes: float
    """Bytes per second of memory."""
    reached_flops: float
    """FLOP per second of the reference's work, in the candidate's time."""
    sol_share: float
    """Speed of light ÷ the candidate's time."""
    note: str
    """What must be said of it; empty where nothing."""


def roof_of(roofline: Roofline | None, *, time_us: float | None) -> Roof | None:
    """Return the picture; None where a figure that it needs was not recorded.

    Args:
        roofline: of the candidate's evidence.
        time_us: of one call of the candidate, as its evaluation timed it.
    """
    if roofline is None or not time_us:
        return None
    flops, moved, ridge, sol_us = (
        roofline.flops,
        roofline.bytes,
        roofline.ridge,
        roofline.sol_us,
    )
    if not flops or not moved or not ridge or not sol_us:
        return None
    intensity = flops / moved
    if intensity >= ridge:
        peak_flops = flops / (sol_us * 1e-6)
        peak_bytes = peak_flops / ridge
    else:
        peak_bytes = moved / (sol_us * 1e-6)
        peak_flops = peak_bytes * ridge
    share = sol_us / time_us
    note = ""
    if share > 1.0:
        note = (
            "It takes less time than the reference's work would at the speed of light: it does "
            "less work than the reference, or the peaks on record are too low for this device."
        )
    return Roof(
        intensity=intensity,
        ridge=ridge,
        peak_flops=peak_flops,
        peak_bytes=peak_bytes,
        reached_flops=flops / (time_us * 1e-6),
        sol_share=share,
        note=note,
    )
