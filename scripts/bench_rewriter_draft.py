"""A problem of bench_rewriter_variants.py while it is drawn: its inputs, parameters and lines."""

from __future__ import annotations

import random

from kopt.problem import Dtype, Problem

_TEXT = '''\
"""{title}, drawn with seed {seed}."""

import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    def __init__(self):
        super().__init__()
{init}

    def forward(self, {names}):
{forward}


def get_inputs():
    return [{inputs}]


def get_init_inputs():
    return []
'''


ACTIVATIONS = (
    "F.relu({})",
    "F.gelu({})",
    "F.silu({})",
    "torch.tanh({})",
    "torch.sigmoid({})",
    "F.hardswish({})",
    "F.leaky_relu({}, 0.1)",
    "F.mish({})",
    "F.softplus({})",
    "torch.clamp({}, -1.0, 2.0)",
)


HALF_SHARE = 0.15
"""Of the problems, those in half precision."""


CHEAP = ("{} * 1.7", "{} + 0.3", "{} / 2.5", "{} - 0.1")


class Draft:
    """Lines of a problem while it is drawn."""

    def __init__(self, rng: random.Random) -> None:
        """Begin."""
        self.rng = rng
        self.init: list[str] = []
        self.forward: list[str] = []
        self.inputs: list[str] = []
        self.names: list[str] = []

    def add_input(self, *sizes: int, spread: float = 2.0) -> str:
        """Add a random tensor, and return its name."""
        name = "xyzuvw"[len(self.names)]
        self.names.append(name)
        self.inputs.append(f"{spread} * torch.randn({', '.join(map(str, sizes))})")
        return name

    def parameter(self, *sizes: int) -> str:
        """Add a parameter, and return its expression."""
        name = f"p{len(self.init)}"
        shape = ", ".join(map(str, sizes))
        self.init.append(f"self.{name} = nn.Parameter(1.0 + 0.4 * torch.randn({shape}))")
        return f"self.{name}"

    def line(self, text: str) -> None:
        """Add a statement to forward."""
        self.forward.append(text)

    def spiced(self, *, most: int = 3) -> None:
        """Follow h by element-wise calls of one argument, in any order."""
        for _ in range(self.rng.randint(0, most)):
            self.line(f"h = {self.rng.choice((*CHEAP, *ACTIVATIONS)).format('h')}")

    def problem(self, title: str, *, name: str, seed: int) -> Problem:
        """Return the problem."""
        source = _TEXT.format(
            title=title,
            seed=seed,
            init="\n".join(f"        {line}" for line in self.init) or "        pass",
            forward="\n".join(f"        {line}" for line in self.forward),
            names=", ".join(self.names),
            inputs=", ".join(self.inputs),
        )
        dtype: Dtype | None = None
        if self.rng.random() < HALF_SHARE:
            dtype = self.rng.choice(("bfloat16", "float16"))
        return Problem(name=name, source=source, dtype=dtype)
