"""One evaluator for the tests of this folder: real processes, on the `cpu` device."""

from __future__ import annotations

import gc
import os
import tempfile
import textwrap
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pytest

from kopt.actors.builder import BUILT_AHEAD, Builder, nothing_to_build, unbuilt
from kopt.actors.config import EvaluateConfig, TimeoutConfig, TimingConfig
from kopt.actors.device_worker import DeviceWorker
from kopt.candidate import Candidate, Language
from kopt.evaluation import Evaluation
from kopt.problem import Problem
from kopt.survey import Survey

CONFIG = EvaluateConfig(
    secret=20_240_607,
    compile=False,
    trials=1,
    memory_gib=4.0,
    timeouts=TimeoutConfig(
        build_s=60.0, load_s=15.0, correctness_s=2.0, timing_s=6.0, reference_s=30.0
    ),
    timing=TimingConfig(min_pairs=4, max_pairs=4),
)

LET_GO_S = 5.0
"""What a test leaves is gone by then."""

MODEL = """
import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(features))
        self.shift = nn.Parameter(torch.zeros(features))

    def forward(self, x):
        return torch.relu(x @ self.mixing()) * self.scale + self.shift

    def mixing(self):
        return torch.outer(self.scale, self.scale) / self.scale.numel()


def get_inputs():
    return [torch.rand(512, 256)]


def get_init_inputs():
    return [256]
"""
"""A small product, a ReLU that its own inputs never need, and weights that start as 1 and 0."""


@dataclass(frozen=True)
class Footprint:
    """What the evaluator holds of this machine."""

    descriptors: tuple[str, ...]
    """What each is open on."""
    processes: int
    scratch: int

    def is_within(self, other: Footprint) -> bool:
        return (
            len(self.descriptors) <= len(other.descriptors)
            and self.processes <= other.processes
            and self.scratch <= other.scratch
        )


class Judge:
    """Builds and judges sources, as the lanes do."""

    def __init__(self, cache_dir: Path) -> None:
        self.problem = Problem(name="rows", source=MODEL)
        self.worker = DeviceWorker(CONFIG, "cpu", 0, str(cache_dir))
        self.builder = Builder(CONFIG, "cpu", str(cache_dir))
        self.cache_dir = cache_dir
        self._sessions: list[Problem] = []

    def __call__(
        self, source: str, *, problem: Problem | None = None, language: Language = "torch"
    ) -> Evaluation:
        self._sessions = [*self._sessions, problem or self.problem][-2:]
        candidate = Candidate(source=textwrap.dedent(source), language=language)
        problem = problem or self.problem
        if language in BUILT_AHEAD:
            built = self.builder.build(problem, candidate)
        else:
            built = nothing_to_build(candidate, cache_dir=self.cache_dir)
        if built.verdict is None:
            return self.worker.evaluate(problem, candidate, built)
        target = self.worker.target()
        return unbuilt(built, built.verdict, problem, candidate, config=CONFIG, target=target)

    def survey(self, problem: Problem) -> Survey:
        """Say what a problem is in numbers."""
        self._sessions = [*self._sessions, problem][-2:]
        return self.worker.survey(problem)

    def settle(self) -> None:
        """Have the common problem's session open and used last."""
        if self._sessions[-1] != self.problem:
            made = self(MODEL.replace("class Model(", "import no_such_part\n\nclass ModelNew("))
            assert made.verdict.kind == "compile_failed"
        self.worker.settle()

    def footprint(self) -> Footprint:
        return Footprint(
            descriptors=tuple(sorted(open_on())),
            processes=len(descendants(os.getpid())),
            scratch=len(list(Path(tempfile.gettempdir()).glob("kopt-*/*"))),
        )

    def descendants(self) -> set[int]:
        return descendants(os.getpid())

    def close(self) -> None:
        self.worker.close()
        self.builder.close()


def open_on() -> Iterator[str]:
    """What each descriptor of this process is open on."""
    for entry in Path("/proc/self/fd").iterdir():
        with suppress(OSError):  # the one that listed them is closed again
            yield os.readlink(entry)


def descendants(pid: int) -> set[int]:
    """Every process below one, by /proc."""
    parents: dict[int, int] = {}
    for entry in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = entry.read_text(encoding="ascii", errors="replace").rsplit(")", 1)[1].split()
        except OSError:
            continue
        if fields[0] != "Z":
            parents[int(entry.parent.name)] = int(fields[1])
    found: set[int] = set()
    wave = {pid}
    while wave:
        wave = {child for child, parent in parents.items() if parent in wave} - found
        found |= wave
    return found


def _running_with(word: str) -> list[int]:
    found = []
    for entry in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            line = entry.read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue
        if word in line and int(entry.parent.name) != os.getpid():
            found.append(int(entry.parent.name))
    return found


@pytest.fixture(scope="session")
def judge(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Judge]:
    """The evaluator, with the session of its common problem open."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tempfile, "tempdir", str(tmp_path_factory.mktemp("scratch")))
        made = Judge(tmp_path_factory.mktemp("cache"))
        opened = made(MODEL.replace("class Model(", "class ModelNew("))
        assert opened.verdict.kind == "correct", opened.verdict.reason
        yield made
        made.close()


@pytest.fixture
def leaves_nothing(judge: Judge) -> Iterator[None]:
    """After the test the evaluator holds no more processes, descriptors and folders than before."""
    judge.settle()
    before = judge.footprint()
    yield
    judge.settle()
    after = judge.footprint()
    give_up_s = time.monotonic() + LET_GO_S
    while not after.is_within(before) and time.monotonic() < give_up_s:
        gc.collect()  # a traceback in a cycle may still hold what the evaluator let go
        time.sleep(0.05)  # or a thread that reads a dead child's last words
        after = judge.footprint()
    assert after.is_within(before), f"{after} is more than {before}"


@pytest.fixture
def candidate():
    """Returns a function: the reference as a candidate, with forward's body in place of its own.

    `body` is what forward does; `before` stands ahead of the class; `hidden` keeps the text from
    gate 1, so that the gates behind it are tested too; `model` is the reference.
    """

    def make(
        body: str = "return right(self, x)",
        *,
        before: str = "",
        hidden: bool = False,
        model: str = MODEL,
    ) -> str:
        text = textwrap.dedent(model).replace("class Model(", "class ModelNew(")
        text = text.replace("def forward(self, x)", "def right(self, x)")
        text = text.replace(
            "    def __init__", "    def forward(self, x):\n{body}\n\n    def __init__"
        )
        text = text.replace("{body}", textwrap.indent(textwrap.dedent(body).strip(), " " * 8))
        text = (
            textwrap.dedent(before).strip() + "\n" + text.replace("def get_inputs", "def _unused")
        )
        text += "\nright = ModelNew.right\n"
        return smuggled(text) if hidden else text

    return make


def smuggled(text: str) -> str:
    """A source that gate 1 cannot read: it runs a text that stands in it backwards."""
    return f"exec({text[::-1]!r}[::-1], globals())\nModelNew = dict(globals())['ModelNew']\n"


@pytest.fixture
def running_with():
    """Returns a function: ids of the processes whose command line holds a word."""
    return _running_with
