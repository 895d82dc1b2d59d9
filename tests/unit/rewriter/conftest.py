"""What the tests of the rewriter share: problems, rules that fire, a compiler with its headers."""

import re
import shutil
import subprocess
import textwrap

import pytest
import torch
from torch import fx

from kopt.actors.rewriter.capture import capture
from kopt.actors.rewriter.codegen.cpp.loader import cpp_loader_source
from kopt.actors.rewriter.graph import calls, copied
from kopt.actors.rewriter.normalise import normalise
from kopt.actors.rewriter.rewrite import apply, rewritten
from kopt.actors.rewriter.rules import RULES
from kopt.problem import Problem

HEADERS = ("math.h", "stdint.h", "stdlib.h", "string.h", "immintrin.h")
"""Of all generated C++; reading them is half of what a kernel takes to compile."""
WRAPPER = """\
#!/bin/sh
exec g++ -include {prelude} "$@"
"""


@pytest.fixture(scope="session", autouse=True)
def headers_read_once(tmp_path_factory):
    """Hundreds of kernels are compiled: the compiler has read their headers before.

    Where it takes what it has read for another's, it reads them again. The text of a kernel still
    has to bring them: `compiler_alone` is for tests of that.
    """
    if shutil.which("g++") is None:
        yield
        return
    folder = tmp_path_factory.mktemp("headers")
    prelude, wrapper = folder / "prelude.h", folder / "g++"
    guarded = [f"#if __has_include(<{name}>)\n#include <{name}>\n#endif\n" for name in HEADERS]
    prelude.write_text("".join(guarded))
    flags = re.findall(r'"(-[fmO][^"]*)"', cpp_loader_source().split("_LINK")[0])
    command = ["g++", *flags, "-x", "c++-header", prelude, "-o", f"{prelude}.gch"]
    subprocess.run(command, capture_output=True, check=False)  # else it is read each time
    wrapper.write_text(WRAPPER.format(prelude=prelude))
    wrapper.chmod(0o755)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CXX", str(wrapper))
        yield


@pytest.fixture
def compiler_alone(monkeypatch, tmp_path):
    """As whoever runs a written file has it; nothing was built before."""
    monkeypatch.delenv("CXX", raising=False)
    monkeypatch.setenv("KOPT_BUILD_DIR", str(tmp_path))


@pytest.fixture
def problem_of():
    """Returns a function that writes a problem from the lines of its constructor and forward."""

    def make(forward, *, init="pass", inputs=("torch.randn(4, 6)",), names="x", dtype="float64"):
        init = textwrap.indent(textwrap.dedent(init), " " * 8)
        forward = textwrap.indent(textwrap.dedent(forward), " " * 8)
        source = (
            "import torch\nimport torch.nn as nn\nimport torch.nn.functional as F\n\n\n"
            "class Model(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
            f"{init}\n\n    def forward(self, {names}):\n{forward}\n\n\n"
            f"def get_inputs():\n    return [{', '.join(inputs)}]\n\n\n"
            "def get_init_inputs():\n    return []\n"
        )
        return Problem(name="case", source=source, dtype=dtype)

    return make


@pytest.fixture
def fire(problem_of):
    """Returns a function that applies one rule wherever it fits, whatever it costs.

    It gives how often the rule fired and the largest error against the graph before, relative to
    the largest value, with random float64 inputs, weights and statistics.
    """

    def run(name, forward, *, mode="train", **case):
        captured = capture(problem_of(forward, **case), mode=mode)
        before = captured.graph
        after = copied(before)
        rule = RULES.create(name)
        fired = 0
        progress = True
        while progress and fired < 10:
            progress = any(
                apply(after, node, rule, mode=captured.mode) for node in calls(after, *rule.targets)
            )
            fired += progress
            normalise(after, captured.mode)
        return fired, _difference(before, after)

    return run


@pytest.fixture
def rewrite_all(problem_of):
    """Returns a function that rewrites with all rules together, as a candidate is written.

    It gives the names of the rules that were used, and the largest error as `fire` does.
    """

    def run(forward, *, mode="train", **case):
        captured = capture(problem_of(forward, **case), mode=mode)
        graph, steps = rewritten(captured.graph, mode=captured.mode, device="cpu")
        return {step.rule for step in steps}, _difference(captured.graph, graph)

    return run


def _difference(before, after):
    torch.manual_seed(5)
    values = []
    for node in before.graph.nodes:
        if node.op == "placeholder":
            held = node.meta["val"]
            value = torch.randn(held.shape, dtype=torch.float64)
            value = value.abs() + 0.5 if "var" in node.name else value
            values.append(value if held.is_floating_point() else value.to(held.dtype))
    expected = fx.Interpreter(before).run(*values)
    found = fx.Interpreter(after).run(*values)
    worst = 0.0
    for one, other in zip(expected, found, strict=True):
        assert one.shape == other.shape
        assert one.dtype == other.dtype
        one, other = one.double(), other.double()
        worst = max(worst, float((one - other).abs().max() / one.abs().max().clamp(min=1e-300)))
    return worst
