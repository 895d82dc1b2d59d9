"""A chart: a Plotly figure as plain values, with a title, what it shows in words, and its size.

Colours of text, grid and ground are the page's to set, since they follow its theme.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Chart:
    """One chart."""

    key: str
    """Unique in the page."""
    title: str
    caption: str
    """How it is to be read, with units and intervals."""
    data: Sequence[dict[str, Any]]
    """Plotly's traces."""
    layout: dict[str, Any]
    height: int = 340
    """Pixels."""

    def figure(self) -> dict[str, Any]:
        """Return the figure."""
        base: dict[str, Any] = {
            "height": self.height,
            "margin": {"l": 56, "r": 16, "t": 12, "b": 48},
            "legend": {"orientation": "h", "y": -0.24, "yanchor": "top"},
            "hovermode": "closest",
        }
        return {"data": list(self.data), "layout": {**base, **self.layout}}


def axis(title: str, **more: Any) -> dict[str, Any]:  # noqa: ANN401 - Plotly's own values
    """Return an axis with its title."""
    return {"title": {"text": title}, "automargin": True, "zeroline": False, **more}


def speedup_axis(title: str, values: Sequence[float]) -> dict[str, Any]:
    """Return a logarithmic axis of speed-ups with ticks that a reader knows.

    Args:
        title: of the axis.
        values: that it has to show; 1 is always within it.
    """
    low, high = min([*values, 1.0]), max([*values, 1.0])
    known = next((ticks for widest, ticks in FINER if high / low <= widest), TICKS)
    ticks = sorted(tick for tick in known if low / 1.6 <= tick <= high * 1.6)
    return axis(title, type="log", tickvals=ticks, ticktext=[f"{tick:g}×" for tick in ticks])


DODGE = 0.09
"""Of the way to the next category: what arms stand apart, so that their intervals do."""


def dodged(count: int, *, place: int, arms: int) -> list[float]:
    """Return where an arm stands in each of so many categories.

    Args:
        count: of categories.
        place: of the arm, from 0.
        arms: how many there are.
    """
    aside = DODGE * (place - (arms - 1) / 2.0) * min(1.0, 9.0 / arms)
    return [each + aside for each in range(count)]


def category_axis(title: str, names: Sequence[str]) -> dict[str, Any]:
    """Return an axis of categories in which arms may be dodged."""
    ends = [-0.5, len(names) - 0.5]
    return axis(
        title, tickvals=list(range(len(names))), ticktext=list(names), range=ends, showgrid=False
    )


TICKS = (0.01, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 1000.0, 10000.0)
FINER = (
    (2.0, (*TICKS, 0.6, 0.7, 0.8, 0.9, 1.1, 1.2, 1.3, 1.4, 1.6, 1.8)),
    (10.0, (*TICKS, 0.3, 0.7, 1.5, 3.0, 4.0, 7.0)),
)
"""Highest ÷ lowest speed-up up to which an axis has room for those ticks."""

PARITY = {
    "type": "line",
    "xref": "paper",
    "x0": 0,
    "x1": 1,
    "y0": 1,
    "y1": 1,
    "line": {"dash": "dot", "width": 1, "color": "#808080"},
}
"""A line at 1x, the baseline, across charts of speed-ups over anything."""
