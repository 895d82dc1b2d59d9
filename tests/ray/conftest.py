"""What the tests share that start whole runs."""

from __future__ import annotations

import signal
from collections.abc import Iterator

import pytest

SUMS = """
import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.linear = nn.Linear(width, width)

    def forward(self, x):
        return torch.softmax(self.linear(x) * 2.0 + x, dim=1).sum(dim=1) + self.linear(x).sum(dim=1)


def get_inputs():
    return [torch.randn(64, 256)]


def get_init_inputs():
    return [256]
"""
"""A problem that the rewriter makes faster on a CPU; judged in a second."""


@pytest.fixture(scope="session")
def sums() -> str:
    """The source of a problem."""
    return SUMS


@pytest.fixture(autouse=True)
def at_a_terminal() -> Iterator[None]:
    """What is started hears Ctrl-C, also where a shell runs the tests in its background, deaf."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)
