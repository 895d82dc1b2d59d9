"""References that break their contract: a ProblemError of one line, and nothing left behind."""

from __future__ import annotations

import pytest

from kopt.actors.builder import nothing_to_build
from kopt.actors.config import EvaluateConfig, TimeoutConfig
from kopt.actors.device_worker import DeviceWorker
from kopt.candidate import Candidate
from kopt.errors import ProblemError
from kopt.problem import Problem

GOOD = """
import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x):
        return x * 2


def get_inputs():
    return [torch.randn(32, 32)]
"""

# What is changed in a good reference: from, to, and words of the error.
FAULTS = {
    "no class": ("class Model(", "class Module(", "defines no class Model"),
    "no module": ("(nn.Module)", "(object)", "must be an nn.Module"),
    "no inputs": ("def get_inputs", "def inputs", "defines no get_inputs()"),
    "no list of inputs": ("return [torch.randn(32, 32)]", "return 5", "must return a list"),
    "inputs that are no values": ("torch.randn(32, 32)", "object()", "holds a object"),
    "inputs without a tensor": ("torch.randn(32, 32)", "'text', 3", "found str, int"),
    "an output without a tensor": ("return x * 2", "return 'text'", "must return a tensor"),
    "another arity": ("forward(self, x)", "forward(self, x, y)", "missing 1 required"),
    "an import that fails": (
        "import torch\n",
        "import torch\nimport no_such_part\n",
        "no_such_part",
    ),
    "a text that does not parse": ("class Model", "klass Model", "invalid syntax"),
    "an exception": ("return x * 2", "raise ValueError('no such axis')", "no such axis"),
    "an exit": ("return x * 2", "import os; os._exit(3)", "exit status 3"),
    "a fault": ("return x * 2", "import ctypes; ctypes.string_at(8)", "SIGSEGV"),
    "an output that is not finite": ("x * 2", "x / 0", "not finite"),
    "an output that is no value": ("return x * 2", "return object()", "returned a object"),
    "inputs larger than memory": ("randn(32, 32)", "randn(1 << 17, 1 << 15)", "memory"),
    "a constructor that takes arguments": (
        "    def forward",
        "    def __init__(self, width):\n        super().__init__()\n\n    def forward",
        "missing 1 required positional argument",
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_of_the_reference_is_one_line(judge, fault, leaves_nothing) -> None:
    old, new, words = FAULTS[fault]
    assert old in GOOD
    problem = Problem(name="faulty", source=GOOD.replace(old, new))
    with pytest.raises(ProblemError) as caught:
        judge(GOOD.replace("class Model(", "class ModelNew("), problem=problem)
    text = str(caught.value)
    assert text.startswith("problem faulty: ")
    assert words in text
    assert "\n" not in text


@pytest.mark.slow
def test_a_reference_that_hangs_is_one_line(tmp_path) -> None:
    problem = Problem(name="faulty", source=GOOD.replace("return x * 2", "while True: pass"))
    candidate = Candidate(source=GOOD.replace("class Model(", "class ModelNew("), language="torch")
    config = EvaluateConfig(secret=1, compile=False, timeouts=TimeoutConfig(reference_s=5.0))
    worker = DeviceWorker(config, "cpu", 0, str(tmp_path))
    try:
        with pytest.raises(ProblemError, match="did not end within 5 s"):
            worker.evaluate(problem, candidate, nothing_to_build(candidate, cache_dir=tmp_path))
    finally:
        worker.close()
