"""Kernels whose speed-up is known, and pairs of new processes in which they are raced.

Of one launch: an elementwise function of some hundred operations an element, so that a call of a
hundred microseconds is one kernel that fills a device many times over, with a few megabytes of
input. The reference computes its rows, of which an equal candidate computes as many; where a gain
is to be found, the reference computes 3 % more rows and leaves those out of its output.

Of many launches: a chain of torch.relu, which once or many times is the same function. A call of a
hundred microseconds is 33 kernels of three, and what a host takes to launch them may show.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from kopt.actors.devices.base import DeviceName
from kopt.actors.supervisor.repeated import RaceStudy, Rematch
from kopt.candidate import Candidate
from kopt.problem import Problem

Kind = Literal["single", "launches"]

EQUAL, MORE = 100, 103
"""Rows of a call of one launch, and those of a reference with 3 % more."""
STEPS, MORE_STEPS = 33, 34
CHUNK = 64
"""Elements come in multiples of this."""
CLOSE = 0.3
"""A call that is off the wanted time by no more will do."""
SIZINGS = 3
FIRST_ELEMENTS: dict[tuple[Kind, DeviceName], int] = {
    ("single", "cpu"): 64,
    ("single", "cuda"): 32_768,
    ("launches", "cpu"): 8_192,
    ("launches", "cuda"): 1 << 20,
}
"""Of a row, or of the whole input of a chain: where sizing begins."""
SINGLE = """\
import torch


class {name}(torch.nn.Module):
    def forward(self, x):
        return torch.polygamma(2, x[:{work}])[:{equal}]


def get_inputs():
    return [torch.rand({more}, {elements}) + 1.0]
"""
CHAIN = """\
import torch


class {name}(torch.nn.Module):
    def forward(self, x):
        for _ in range({work}):
            x = torch.relu(x)
        return x


def get_inputs():
    return [torch.randn({elements})]
"""


@dataclass(frozen=True, slots=True)
class Work:
    """What candidate and reference compute."""

    mine: int
    theirs: int

    @property
    def gain(self) -> float:
        """Of the candidate's work over the reference's; 0 for equal ones."""
        return self.theirs / self.mine - 1.0


WORK: dict[Kind, tuple[Work, Work]] = {
    "single": (Work(EQUAL, EQUAL), Work(EQUAL, MORE)),
    "launches": (Work(STEPS, STEPS), Work(STEPS, MORE_STEPS)),
}
"""Equal work, and 3 % less."""


def source_of(kind: Kind, *, name: str, work: int, elements: int) -> str:
    """Return the text of a reference or of a candidate.

    Args:
        kind: of kernel.
        name: of its class.
        work: rows or steps that it computes.
        elements: of a row, or of the input.
    """
    text = SINGLE if kind == "single" else CHAIN
    return text.format(name=name, work=work, equal=EQUAL, more=MORE, elements=elements)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ring:
    """Where kernels of one kind are raced."""

    study: RaceStudy
    kind: Kind
    device: DeviceName
    folder: Path
    """For what is kept meanwhile."""

    @contextmanager
    def pair(self, work: Work, *, elements: int) -> Iterator[Rematch]:
        """Load a candidate and its reference into new processes, to be raced while this is open.

        Raises:
            Judged, ChildFailed, ProblemError, WorkerLost: as `RaceStudy.rematch`.
        """
        texts = [
            source_of(self.kind, name=name, work=amount, elements=elements)
            for name, amount in (("Model", work.theirs), ("ModelNew", work.mine))
        ]
        builds = Path(tempfile.mkdtemp(dir=self.folder))
        with self.study.rematch(
            Problem(name=self.kind, source=texts[0]),
            Candidate(source=texts[1], language="torch"),
            build_dir=builds,
        ) as rematch:
            yield rematch

    def sized(self, size_us: float) -> tuple[int, float]:
        """Return elements with which a call takes about that long, and how long it took."""
        elements, found_us = FIRST_ELEMENTS[self.kind, self.device], 0.0
        for _ in range(SIZINGS):
            with self.pair(WORK[self.kind][0], elements=elements) as rematch:
                found_us = rematch.baseline_us
            if abs(found_us / size_us - 1.0) <= CLOSE:
                break
            wanted = int(elements * size_us / found_us)
            elements = max(CHUNK, wanted // CHUNK * CHUNK)
        return elements, found_us
