"""The `cpu` device: calls run in this process, and its own clock times blocks of them."""

from __future__ import annotations

import os
import platform
from collections.abc import Callable, Mapping, Sequence
from time import perf_counter_ns  # bound before a candidate could patch the time module
from typing import TYPE_CHECKING, Any

import torch

from kopt.actors.child.content import HostContent
from kopt.actors.child.tensor_spec import TensorSpec
from kopt.actors.devices.base import Call, DeviceName, Pace, TimedCalls
from kopt.speed_of_light import Memory

if TYPE_CHECKING:
    from kopt.ports import Target

LEAST_BYTES = 1 << 20
"""Less is not measured: the time of the operation itself would count."""
MEASURE_NS = 50_000_000
"""With all threads, and with one."""
MOST_TURNS = 1_000
PRODUCT_SIDE = 1024
PRODUCT_NS = 300_000_000
"""Of products, with all threads, and with one: clocks rise meanwhile."""
MOST_BYTES_PER_S_AND_CORE = 400e9
"""More than a core reads from its own cache: 64 bytes a cycle at 6 GHz."""


class CpuDevice:
    """Host processors. Caches are as the calls leave them: warm."""

    name: DeviceName = "cpu"
    pace: Pace = "ahead"
    ticket: int = 0

    def set_up(self, *, num_threads: int, matmul_tf32: bool, cudnn_tf32: bool) -> None:
        """Pin the number of threads; there is no TF32 here."""
        del matmul_tf32, cudnn_tf32
        torch.set_num_threads(num_threads)

    def place(self, tensor: torch.Tensor) -> torch.Tensor:
        """Return the tensor itself."""
        return tensor

    def map(self, fd: int, spec: TensorSpec) -> torch.Tensor:
        """There is no memory but the host's.

        Raises:
            RuntimeError: always.
        """
        raise RuntimeError(f"descriptor {fd} ({spec}): a CPU has no memory of its own to map")

    def join(self, fd: int) -> None:
        """Nothing waits here for a release.

        Raises:
            RuntimeError: always.
        """
        raise RuntimeError(f"descriptor {fd}: calls on a CPU are not queued")

    def pool_words(self) -> int:
        """Return 0: caches are as the calls leave them."""
        return 0

    def content(
        self, sets: Mapping[int, Sequence[torch.Tensor]], *, count: int, key: int, sweeps: bool
    ) -> HostContent:
        """Return the content of a block of calls."""
        del count, sweeps
        return HostContent(sets, key=key)

    def seed(self, value: int) -> None:
        """Seed the host's default generator."""
        torch.default_generator.manual_seed(value)

    def check(self) -> None:
        """Do nothing: calls have ended when they return."""

    def let_go(self) -> None:
        """Do nothing: freed memory stays with the process, as it has pages of its own."""

    def time_calls(
        self,
        call: Call,
        arguments: Sequence[Sequence[Any]],
        *,
        before: Callable[[int], None],
        after: Callable[[object], None],
        flush: bool,
    ) -> TimedCalls:
        """Time each call by the process's clock; `flush` has no meaning here, nor has the pace."""
        del flush
        each_us: list[float] = []
        first_ns = perf_counter_ns()
        for position, each in enumerate(arguments):
            before(position)
            began_ns = perf_counter_ns()
            out = call(each)
            ended_ns = perf_counter_ns()
            after(out)
            each_us.append((ended_ns - began_ns) / 1e3)
        return TimedCalls(each_us, (perf_counter_ns() - first_ns) / 1e3)

    def memory(self, *, num_bytes: int) -> Memory:
        """Measure how fast buffers of this size are filled and summed, at best."""
        words = max(num_bytes, LEAST_BYTES) // 16
        bytes_per_s = words * 16 / (least_of_all_and_one(lambda: _best_ns(words)) / 1e9)
        most = MOST_BYTES_PER_S_AND_CORE * torch.get_num_threads()
        return Memory(bytes_per_s=bytes_per_s, most_bytes_per_s=max(most, bytes_per_s))


def product_flop_per_s(dtype: torch.dtype) -> float:
    """Measure the FLOP per second of a large square product, at best; takes half a second.

    Args:
        dtype: of its factors and of its result.
    """
    flop = 2.0 * PRODUCT_SIDE**3
    return flop / (least_of_all_and_one(lambda: _product_ns(dtype)) / 1e9)


def least_of_all_and_one(measure: Callable[[], float]) -> float:
    """Return the least that a measurement gives with all of torch's threads, and with one.

    Several wait for each other: where another process keeps one of their cores, all are as slow as
    that one is late, hundreds of times what a short operation needs.
    """
    least, threads = measure(), torch.get_num_threads()
    if threads == 1:
        return least
    torch.set_num_threads(1)
    try:
        return min(least, measure())
    finally:
        torch.set_num_threads(threads)


def _best_ns(words: int) -> int:
    """Return the least time of summing so many words of eight bytes, and writing as many."""
    read, written = (torch.ones(words, dtype=torch.int64) for _ in range(2))  # pages of their own
    best_ns = 1 << 62
    until_ns = perf_counter_ns() + MEASURE_NS
    for _ in range(MOST_TURNS):
        began_ns = perf_counter_ns()
        read.sum()
        written.fill_(1)
        best_ns = min(best_ns, perf_counter_ns() - began_ns)
        if perf_counter_ns() > until_ns:
            break
    return best_ns


def _product_ns(dtype: torch.dtype) -> float:
    a, b = (torch.rand(PRODUCT_SIDE, PRODUCT_SIDE, dtype=dtype) for _ in range(2))
    out = torch.empty(PRODUCT_SIDE, PRODUCT_SIDE, dtype=dtype)
    best_ns = 1 << 62
    until_ns = perf_counter_ns() + PRODUCT_NS
    while True:
        began_ns = perf_counter_ns()
        torch.mm(a, b, out=out)
        best_ns = min(best_ns, perf_counter_ns() - began_ns)
        if perf_counter_ns() > until_ns:
            return best_ns


def cpu_target() -> Target:
    """Return the host's processor as a target."""
    from kopt.actors.build.compilers import processor  # for supervisors: a child begins without
    from kopt.data.manifest import cpu_model
    from kopt.ports import Target
    from kopt.processor import processor_of

    return Target(
        device="cpu",
        name=cpu_model(),
        arch=platform.machine(),
        languages=("cpp", "torch"),
        processor=processor_of(processor(), threads=len(os.sched_getaffinity(0))),
    )
