"""Honest kernels whose habits look odd to a clock: none of them is refused."""

from __future__ import annotations

import pytest

from kopt.problem import Problem

pytestmark = [pytest.mark.alone, pytest.mark.bar]

HABITS = {
    "an output made once, and a copy of it given": (
        "",
        """
        import torch
        if not hasattr(self, "out"):
            self.out = torch.empty(512, 256)
        self.out.copy_(right(self, x))
        return self.out.clone()
        """,
    ),
    "a workspace kept by shape": (
        "spaces = {}",
        """
        import torch
        space = spaces.setdefault(tuple(x.shape), torch.empty_like(x))
        torch.mm(x, self.mixing(), out=space)
        return torch.relu(space) * self.scale + self.shift
        """,
    ),
    "threads of its own within a call": (
        """
        from concurrent.futures import ThreadPoolExecutor
        import torch
        pool = ThreadPoolExecutor(2)
        """,
        """
        def half(rows):
            with torch.no_grad():
                return right(self, rows)
        return torch.cat(list(pool.map(half, x.chunk(2))))
        """,
    ),
    "a thread that sleeps between calls": (
        """
        import threading, time
        threading.Thread(target=lambda: time.sleep(600), daemon=True).start()
        """,
        "return right(self, x)",
    ),
    "slower than the baseline": (
        "",
        """
        for _ in range(10):
            y = right(self, x)
        return y
        """,
    ),
    "a first call that settles everything": (
        "import time",
        """
        if not hasattr(self, "settled"):
            time.sleep(0.5)
            self.settled = True
        return right(self, x)
        """,
    ),
    "threads that take long to wake where nothing was called for a while": (
        "import time",
        """
        if time.perf_counter() - getattr(self, "ended_s", 0.0) > 0.002:
            time.sleep(0.02)
        y = right(self, x)
        self.ended_s = time.perf_counter()
        return y
        """,
    ),
    "a weight prepared again where it changed": (
        "",
        """
        import torch
        version = (self.scale._version, self.scale.data_ptr(), float(self.scale.sum()))
        if getattr(self, "version", None) != version:
            self.version, self.mixed = version, self.mixing()
        return torch.relu(x @ self.mixed) * self.scale + self.shift
        """,
    ),
    "an output laid out by columns": (
        "",
        "return right(self, x).t().contiguous().t()",
    ),
    "an output within a larger buffer": (
        "",
        """
        import torch
        space = torch.empty(512, 260)
        space[:, :256] = right(self, x)
        return space[:, :256]
        """,
    ),
    "seconds of garbage collected": (
        "import gc",
        """
        gc.collect()
        return right(self, x)
        """,
    ),
}


@pytest.mark.parametrize("habit", HABITS)
def test_an_honest_habit_is_correct(judge, candidate, habit) -> None:
    before, body = HABITS[habit]
    made = judge(candidate(body, before=before))
    assert made.verdict.kind == "correct", made.verdict.reason


TINY = """
import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x):
        return torch.relu(x)


def get_inputs():
    return [torch.randn(64)]
"""


@pytest.mark.parametrize("body", ["torch.relu(x)", "x.clamp(min=0)", "torch.relu(torch.relu(x))"])
def test_a_kernel_of_microseconds_is_correct(judge, body) -> None:
    source = TINY.replace("class Model(", "class ModelNew(").replace("torch.relu(x)", body)
    made = judge(source, problem=Problem(name="tiny", source=TINY))
    assert made.verdict.kind == "correct", made.verdict.reason


SCALAR = """
import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x, y):
        return ((x - y) ** 2).mean(), x.argmax(dim=1)


def get_inputs():
    return [torch.randn(256, 33), torch.randn(256, 33)]
"""


def test_outputs_of_one_number_and_of_indices_are_correct(judge) -> None:
    source = SCALAR.replace("class Model(", "class ModelNew(")
    made = judge(source, problem=Problem(name="scalar", source=SCALAR))
    assert made.verdict.kind == "correct", made.verdict.reason
