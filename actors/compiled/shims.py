"""Shims round the launches of a live output module: what goes in, what comes out, how long.

`call` looks its kernels up among the module's globals at run time, so that a global bound to
something else is enough (profiling notes §F.4, §F.5). A Triton kernel is launched by `.run`, a C++
one by calling it.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any, NamedTuple

import torch

from kopt.actors.compiled.capture import Buffer, Piece
from kopt.compiled.output_code import Step

Launch = Callable[..., Any]
Around = Callable[[Step, Launch, tuple[Any, ...], dict[str, Any]], Any]
"""Called for each launch with (step, original, arguments, keywords); it is to launch the original,
or do the same."""


class Shim:
    """In place of a kernel."""

    def __init__(self, original: Any, around: Callable[..., Any]) -> None:  # noqa: ANN401
        """Wrap a kernel.

        Args:
            original: a C++ function, or a Triton kernel with `run`.
            around: called with (launch, arguments, keywords).
        """
        self._original = original
        self._around = around

    def __call__(self, *arguments: Any) -> Any:  # noqa: ANN401 - as the kernel
        """Launch a C++ kernel."""
        return self._around(self._original, arguments, {})

    def run(self, *arguments: Any, **keywords: Any) -> Any:  # noqa: ANN401 - as the kernel
        """Launch a Triton kernel."""
        return self._around(self._original.run, arguments, keywords)


@contextlib.contextmanager
def shimmed(piece: Piece, around: Around) -> Iterator[None]:
    """Put a shim round every kernel of a live module, for calls of `piece.call`.

    Launches are told apart by their order, which is that of the text.
    """
    launches = piece.code.launches
    count = 0

    def launched(launch: Launch, arguments: tuple[Any, ...], keywords: dict[str, Any]) -> Any:  # noqa: ANN401
        nonlocal count
        step = launches[count % len(launches)]
        count += 1
        return around(step, launch, arguments, keywords)

    originals = {name: getattr(piece.module, name) for name in piece.code.kernels}
    try:
        for name, original in originals.items():
            setattr(piece.module, name, Shim(original, launched))
        yield
    finally:
        for name, original in originals.items():
            setattr(piece.module, name, original)


class Seen(NamedTuple):
    """Values of one call, in the size and strides that the compiler gave them."""

    read: dict[str, torch.Tensor]
    """As they were when a launch first read each."""
    written: dict[str, torch.Tensor]
    """As a launch last wrote each; a tensor of the model may be in both."""


def values_of_launches(piece: Piece, *, reads: Collection[str], writes: Collection[str]) -> Seen:
    """Run a piece once and copy the values that launches read and write.

    Args:
        piece: with the arguments of an earlier call; they are read, and changed as the model
            changes them.
        reads: values to copy before the first launch that reads each.
        writes: values to copy after the launch that writes each.
    """
    found = Seen({}, {})

    def copied(
        step: Step, launch: Launch, arguments: tuple[Any, ...], keywords: dict[str, Any]
    ) -> Any:  # noqa: ANN401
        for operand in step.operands:
            value = operand.reads
            if value is not None and value in reads and value not in found.read:
                found.read[value] = _copy(arguments[operand.position], piece.buffers.get(value))
        made = launch(*arguments, **keywords)
        for operand in step.operands:
            value = operand.writes
            if value is not None and value in writes:
                found.written[value] = _copy(arguments[operand.position], piece.buffers.get(value))
        return made

    with torch.no_grad(), shimmed(piece, copied):
        piece.call(list(piece.arguments))
    return found


def _copy(held: torch.Tensor, buffer: Buffer | None) -> torch.Tensor:
    if buffer is not None:
        held = torch.as_strided(held, buffer.size, buffer.stride, held.storage_offset())
    if 0 in held.stride() and held.numel() > 1:
        return held.clone()
    return torch.empty_strided(
        held.shape, held.stride(), dtype=held.dtype, device=held.device
    ).copy_(held)


BUDGET_S = 3.0
"""Timed calls stop after this, however few they were: shares need no precision."""


def launch_times_us(piece: Piece, *, repeats: int) -> tuple[dict[int, float], float]:
    """Return each launch's least time by its place, and that of a whole call, in microseconds.

    Args:
        piece: with the arguments of an earlier call.
        repeats: timed calls at most, at least 1; two more come before.
    """
    is_cuda = any(isinstance(a, torch.Tensor) and a.is_cuda for a in piece.arguments)
    times: dict[int, list[float]] = {step.place: [] for step in piece.code.launches}
    events: list[tuple[int, Any, Any]] = []

    def timed(
        step: Step, launch: Launch, arguments: tuple[Any, ...], keywords: dict[str, Any]
    ) -> Any:  # noqa: ANN401
        if is_cuda:
            start, end = _event(), _event()
            start.record()
            made = launch(*arguments, **keywords)
            end.record()
            events.append((step.place, start, end))
            return made
        began = time.perf_counter()
        made = launch(*arguments, **keywords)
        times[step.place].append((time.perf_counter() - began) * 1e6)
        return made

    ends_s = time.monotonic() + BUDGET_S
    with torch.no_grad(), shimmed(piece, timed):
        for number in range(repeats + 2):
            piece.call(list(piece.arguments))
            if is_cuda:
                torch.cuda.synchronize()
            if number > 2 and time.monotonic() > ends_s:
                break
    for place, start, end in events:
        times[place].append(start.elapsed_time(end) * 1e3)
    whole = call_time_us(piece.call, piece.arguments, repeats=repeats)
    return {place: min(each[2:], default=0.0) for place, each in times.items()}, whole


def _event() -> Any:  # noqa: ANN401 - torch types its own events loosely
    made: Any = torch.cuda.Event
    return made(enable_timing=True)


def call_time_us(call: Callable[[list[Any]], Any], arguments: list[Any], *, repeats: int) -> float:
    """Return the least wall time of a call in microseconds, the device waited for.

    The least, not the median: shares of a host that others use are told best by what they disturbed
    least.
    """
    is_cuda = any(isinstance(a, torch.Tensor) and a.is_cuda for a in arguments)
    walls: list[float] = []
    ends_s = time.monotonic() + BUDGET_S
    with torch.no_grad():
        while len(walls) < repeats + 2 and (len(walls) < 4 or time.monotonic() < ends_s):
            began = time.perf_counter()
            call(list(arguments))
            if is_cuda:
                torch.cuda.synchronize()
            walls.append((time.perf_counter() - began) * 1e6)
    return min(walls[2:])


@contextlib.contextmanager
def replaced(piece: Piece, functions: Mapping[int, Around]) -> Iterator[None]:
    """Stitch at object level: functions in place of single launches, all others as they are.

    Args:
        piece: whose live module is changed for a while.
        functions: by the place of the launch; each is to write what the launch writes.
    """

    def chosen(
        step: Step, launch: Launch, arguments: tuple[Any, ...], keywords: dict[str, Any]
    ) -> Any:  # noqa: ANN401
        function = functions.get(step.place)
        if function is None:
            return launch(*arguments, **keywords)
        return function(step, launch, arguments, keywords)

    with shimmed(piece, chosen):
        yield
