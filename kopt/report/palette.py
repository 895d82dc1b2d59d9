"""Colours and shapes that tell things apart without colour vision, on paper and on a dark screen.

Source: Okabe and Ito 2008, without its yellow (too light on white) and its black (the page's text).
Whatever has a colour has a shape, a dash or a word as well.
"""

from __future__ import annotations

COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00")
SYMBOLS = ("circle", "square", "diamond", "triangle-up", "cross", "star")
DASHES = ("solid", "dash", "dot", "dashdot", "longdash", "longdashdot")
PATTERNS = ("", "/", ".", "x", "-", "+")

NEUTRAL = "#808080"

OUTCOME_COLOURS = {
    "optimized": "#009E73",
    "matched": "#56B4E9",
    "fallback": "#E69F00",
    "synthesis_failed": "#CC79A7",
    "unsolved": "#D55E00",
}
VERDICT_COLOURS = {
    "correct": "#009E73",
    "incorrect": "#E69F00",
    "cheated": "#CC79A7",
    "compile_failed": "#56B4E9",
    "crashed": "#D55E00",
    "timed_out": "#0072B2",
}


def of_place(place: int) -> tuple[str, str, str]:
    """Return colour, symbol and dash of the arm at that place; the three repeat out of step."""
    turn = place // len(COLOURS)
    return (
        COLOURS[place % len(COLOURS)],
        SYMBOLS[(place + turn) % len(SYMBOLS)],
        DASHES[(place + turn) % len(DASHES)],
    )
