"""Kernels whose speed-up is known, and pairs of new processes in which they are raced.

Of one launch: a scan down the rows of a matrix, in which each thread has a column to itself and
goes through its rows one after the other: 3 % more rows are 3 % more time, whatever the device (of
an elementwise kernel as long, 3 % more blocks were 1 % or 38 % more time, where the last of them
make a device go round once more). An equal candidate scans as many rows as the reference; where a
gain is to be found, the reference scans 3 % more and leaves those out of its output.

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
"""Of a scan's rows, and of a reference's with 3 % more."""
COLUMNS: dict[DeviceName, int] = {"cpu": 64, "cuda": 16_384}
"""Of a scan: threads enough for every processor of a device, and rows enough for its time."""
STEPS, MORE_STEPS = 33, 34
CHUNK = 64
"""Elements of a chain come in multiples of this, those of a scan in hundreds of rows."""
CLOSE = 0.3
"""A call that is off the wanted time by no more will do."""
SIZINGS = 3
FIRST_ELEMENTS: dict[tuple[Kind, DeviceName], int] = {
    ("single", "cpu"): EQUAL * COLUMNS["cpu"],
    ("single", "cuda"): 3 * EQUAL * COLUMNS["cuda"],
    ("launches", "cpu"): 8_192,
    ("launches", "cuda"): 1 << 20,
}
"""Of the input of an equal candidate: where sizing begins."""
SINGLE = """\
import torch


class {name}(torch.nn.Module):
    def forward(self, x):
        return torch.cummax(x[:{work}], dim=0).values[:{equal}]


def get_inputs():
    return [torch.randn({more}, {columns})]
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


def source_of(
    kind: Kind, *, name: str, work: int, elements: int, device: DeviceName = "cpu"
) -> str:
    """Return the text of a reference or of a candidate.

    Args:
        kind: of kernel.
        name: of its class.
        work: of `WORK`.
        elements: of the input of an equal candidate, a multiple of `chunk_of`.
        device: that it is to keep busy.
    """
    if kind == "launches":
        return CHAIN.format(name=name, work=work, elements=elements)
    hundreds = elements // chunk_of(kind, device)
    return SINGLE.format(
        name=name,
        work=work * hundreds,
        equal=EQUAL * hundreds,
        more=MORE * hundreds,
        columns=COLUMNS[device],
    )


def chunk_of(kind: Kind, device: DeviceName) -> int:
    """Return what elements come in multiples of."""
    return CHUNK if kind == "launches" else EQUAL * COLUMNS[device]


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
            source_of(self.kind, name=name, work=amount, elements=elements, device=self.device)
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
            chunk = chunk_of(self.kind, self.device)
            elements = max(1, round(elements * size_us / found_us / chunk)) * chunk
        return elements, found_us
