"""The problems of bench_scaling.py: chosen ones of KernelBench, and tiny ones for a CPU."""

from __future__ import annotations

import json
from pathlib import Path

CHOSEN = Path(__file__).parents[1] / "data" / "measured" / "scaling_problems.json"
LITTLE_EFFORT = (
    "evaluate.compile=false",
    "evaluate.trials=1",
    "evaluate.timing.min_pairs=4",
    "evaluate.timing.max_pairs=4",
)
"""Of a CPU's devices, where only the parts are to be shown to work."""
TINY = """\
import torch


class Model(torch.nn.Module):
    def forward(self, x):
        return torch.softmax(x * {factor}, dim=1).sum(dim=1)


def get_inputs():
    return [torch.randn(16, 64)]
"""


def chosen_problems(count: int) -> tuple[str, ...]:
    """Return the names of the first ones that bench_scaling_choice.py chose."""
    rows = json.loads(CHOSEN.read_text(encoding="utf-8"))["problems"]
    return tuple(row["problem"] for row in rows[:count])


def tiny_problems(folder: Path, *, count: int) -> tuple[str, ...]:
    """Write problems that a CPU judges in a second; return their paths."""
    paths = [folder / f"tiny{number}.py" for number in range(count)]
    for number, path in enumerate(paths):
        path.write_text(TINY.format(factor=number + 2.5), encoding="utf-8")
    return tuple(str(path) for path in paths)
