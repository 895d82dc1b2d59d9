"""The terms in words: which error passes, by the ladder's own numbers; how long stages may take."""

from __future__ import annotations

from kopt.ladder import DEGENERATE_ERROR, DEGENERATE_RTOL, LADDERS, RHO_LIMIT, Ladder, LadderName
from kopt.request import Deadlines

ABSOLUTE_FLOOR = 5e-3
"""`Ladder.absolute_bound`: an error up to max(floor, share · largest output) passes."""
ABSOLUTE_SHARE = 1e-3


def policy_text(name: LadderName, *, device: str) -> str:
    """Return what passes under a ladder, in a sentence or three.

    Args:
        name: of the ladder.
        device: `cpu`, or a GPU's name; TF32 is a matter of GPUs.
    """
    ladder = LADDERS[name]
    parts = [_rule(ladder)]
    if ladder.absolute_bound:
        parts.append(
            f"An error of at most max({ABSOLUTE_FLOOR:g}, {ABSOLUTE_SHARE:g}·max |reference|) "
            "passes all the same."
        )
    if device != "cpu":
        parts.append(
            f"For reference and candidate alike, TF32 is {_on(ladder.matmul_tf32)} for matrix "
            f"products and {_on(ladder.cudnn_tf32)} for cuDNN's convolutions."
        )
    return f"Numeric policy `{name}`: " + " ".join(parts)


def limits_text(deadlines: Deadlines | None) -> str:
    """Return the deadlines in parentheses, a space before them; empty where they are not known."""
    if deadlines is None:
        return ""
    return (
        f" (build {deadlines.build_s:g} s, construction {deadlines.load_s:g} s, a call "
        f"{deadlines.call_s:g} s)"
    )


def _rule(ladder: Ladder) -> str:
    if ladder.rho_required:
        return (
            f"the largest error against float64 is at most {RHO_LIMIT:g} times the reference's own "
            f"(where that is below {DEGENERATE_ERROR:g}: at most {DEGENERATE_RTOL:g} of the "
            "largest value)."
        )
    return (
        f"|candidate - reference| ≤ {ladder.atol:g} + {ladder.rtol:g}·|reference| in every element."
    )


def _on(is_on: bool) -> str:  # noqa: FBT001 - a word for a value
    return "on" if is_on else "off"
