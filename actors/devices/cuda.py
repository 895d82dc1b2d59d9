"""The `cuda` device: events time each call, cold, in a stream that is queued before it begins.

At the pace `ahead`, all calls of a block are queued behind a wait, with what comes between them
(cuda_content.py); the supervisor releases them (cuda_gate.py). So what launching them takes is
hidden as in a busy stream, nothing between the calls is idle, and what passes from the release to
the end, by the supervisor's clock, is what the device needs. A call that waits for the device
itself, or launches more than fits the queue, is released before all is queued.

At other paces (timing protocols made to compare with published figures) a pause and a buffer that
is overwritten come before each call, in their order.

Before each block what a candidate made resident in the L2 is let go, and before each call no part
of it is set aside for such lines: a flush does not evict them. Source: exploits 27, 32, 33, §E2.
"""

from __future__ import annotations

import ctypes
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import torch

from kopt.actors.apis.pages import installed_version
from kopt.actors.build.gpu_facts import gpu_in_view
from kopt.actors.child.module import StageFailed
from kopt.actors.child.tensor_spec import TensorSpec
from kopt.actors.devices.base import Call, DeviceName, Pace, TimedCalls
from kopt.actors.devices.cuda_content import CudaContent, Kernels
from kopt.actors.devices.cuda_gate import CudaGate
from kopt.actors.devices.cuda_l2 import PersistingL2
from kopt.actors.devices.cuda_memory import let_go, map_device_tensor
from kopt.candidate import Language
from kopt.errors import ConfigError
from kopt.speed_of_light import Memory, gpu_bytes_per_s

if TYPE_CHECKING:
    from kopt.ports import Target

FRESH_PAUSE_US = 150
"""At other paces: about what launching fresh content takes the host."""
PUBLISHED_FLUSH_BYTES = 256 << 20
"""What Triton and KernelBench overwrite before each call; the time it takes is the host's head
start there."""
CYCLES_PER_US = 2_000
"""About the SM clock of current GPUs; only the pause depends on it."""

# Bound before a candidate could patch the names that are looked up later.
_Event: Any = torch.cuda.Event
_record, _elapsed_time = _Event.record, _Event.elapsed_time
_synchronize = torch.cuda.synchronize
_pause: Any = torch.cuda._sleep


class CudaDevice:
    """The first visible GPU."""

    name: DeviceName = "cuda"
    pace: Pace = "ahead"
    ticket: int = 0

    def __init__(self) -> None:
        """Make the context, and what evicts the L2.

        Raises:
            RuntimeError: our kernels cannot be compiled for this device (cuda_image.py).
        """
        torch.cuda.init()  # type: ignore[no-untyped-call]
        self._kernels = Kernels()
        self._gate: CudaGate | None = None
        self._published_flush: torch.Tensor | None = None
        self._persisting_l2 = PersistingL2()

    def set_up(self, *, num_threads: int, matmul_tf32: bool, cudnn_tf32: bool) -> None:
        """Pin the TF32 flags of the ladder."""
        torch.set_num_threads(num_threads)
        torch.backends.cuda.matmul.allow_tf32 = matmul_tf32
        torch.backends.cudnn.allow_tf32 = cudnn_tf32

    def place(self, tensor: torch.Tensor) -> torch.Tensor:
        """Copy the tensor to the GPU."""
        return tensor.to("cuda")

    def map(self, fd: int, spec: TensorSpec) -> torch.Tensor:
        """Map a block of this GPU's memory that was lent.

        Raises:
            RuntimeError: it is no such descriptor.
        """
        return map_device_tensor(fd, spec)

    def join(self, fd: int) -> None:
        """Map the page by which blocks are released; the descriptor stays the caller's.

        Raises:
            RuntimeError: the driver refuses.
        """
        self._gate = CudaGate(fd)

    def pool_words(self) -> int:
        """Return the words of the pool that is swept between calls."""
        return self._kernels.pool.numel()

    def content(
        self, sets: Mapping[int, Sequence[torch.Tensor]], *, count: int, key: int, sweeps: bool
    ) -> CudaContent:
        """Return the content of a block of calls on the current stream."""
        self._content = CudaContent(self._kernels, sets, count=count, key=key, sweeps=sweeps)
        return self._content

    def seed(self, value: int) -> None:
        """Seed both default generators, directly.

        torch.manual_seed looks at every kind of device, which takes tens of microseconds: before
        each timed call, a block would be queued for longer than it runs.
        """
        torch.default_generator.manual_seed(value)
        torch.cuda.default_generators[0].manual_seed(value)

    def check(self) -> None:
        """Join every stream; a launch that failed or a kernel that faulted raises here.

        Raises:
            RuntimeError: CUDA reports an error.
        """
        _synchronize()

    def time_calls(
        self,
        call: Call,
        arguments: Sequence[Sequence[Any]],
        *,
        before: Callable[[int], None],
        after: Callable[[object], None],
        flush: bool,
    ) -> TimedCalls:
        """Time each call by events; with `flush` cold.

        At `ahead` the content's sweep of the pool evicts, else a buffer that is overwritten.

        All that is ours goes to the stream that is current now, whatever a call makes current.

        Raises:
            StageFailed: somebody has replaced what events are made of. A tripwire: spans that are
                shortened where they are short alone would not show in those of a block.
        """
        pairs = [(_Event(enable_timing=True), _Event(enable_timing=True)) for _ in arguments]
        first, last = _Event(enable_timing=True), _Event(enable_timing=True)
        stream = torch.cuda.current_stream()
        is_published = flush and self.pace != "ahead"
        _synchronize()
        self._persisting_l2.let_go()
        with self._released(stream):
            first.record(stream)
            for position, (each, (begin, end)) in enumerate(zip(arguments, pairs, strict=True)):
                if self.pace == "waiting":
                    _synchronize()
                if self._persisting_l2.set_aside_bytes():  # by the call before
                    self._persisting_l2.let_go()
                if is_published:
                    _pause(FRESH_PAUSE_US * CYCLES_PER_US)
                    self._published_buffer().zero_()
                before(position)
                begin.record(stream)
                out = call(each)
                end.record(stream)
                after(out)
            last.record(stream)
        _synchronize()
        _check_clock()
        each_us = [begin.elapsed_time(end) * 1e3 for begin, end in pairs]
        return TimedCalls(each_us, first.elapsed_time(last) * 1e3)

    @contextmanager
    def _released(self, stream: torch.cuda.Stream) -> Iterator[None]:
        """Queue what is queued here behind a release, and a report behind it, if there is one."""
        if not self.ticket:
            yield
            return
        assert self._gate is not None, "a page is joined before a block is released by it"
        handle = ctypes.c_void_p(stream.cuda_stream)
        self._gate.hold(self.ticket, key_to=self._content.key_at, stream=handle)
        yield
        self._gate.report(self.ticket, digest_at=self._content.last_at, stream=handle)

    def _published_buffer(self) -> torch.Tensor:
        if self._published_flush is None:
            self._published_flush = _buffer(PUBLISHED_FLUSH_BYTES)
        return self._published_flush

    def let_go(self) -> None:
        """Give back what torch keeps for later, where it is much."""
        let_go()

    def memory(self, *, num_bytes: int) -> Memory | None:
        """Return the data sheet's figure, whatever the size; None for a GPU that is not listed."""
        del num_bytes
        properties = torch.cuda.get_device_properties(0)
        bytes_per_s = gpu_bytes_per_s(properties.name)
        if bytes_per_s is None:
            return None
        cache_bytes = int(properties.L2_cache_size)
        return Memory(
            bytes_per_s=bytes_per_s, most_bytes_per_s=bytes_per_s, cache_bytes=cache_bytes
        )


def _check_clock() -> None:
    if (
        torch.cuda.Event is not _Event
        or _Event.record is not _record
        or _Event.elapsed_time is not _elapsed_time
        or torch.cuda.synchronize is not _synchronize
    ):
        raise StageFailed("clock", "the device's events or its wait were replaced")


def _buffer(num_bytes: int) -> torch.Tensor:
    return torch.empty(num_bytes // 4, dtype=torch.int32, device="cuda")


def cuda_target() -> Target:
    """Return the first visible GPU as a target, asked in a process of its own.

    The supervisor and the zygote must not make a CUDA context: the one would hold device memory
    for nothing, the other could not be forked any more. Where the driver answers, torch is not
    asked, which would be loaded for it: seconds.

    Raises:
        ConfigError: no GPU answers.
    """
    facts = gpu_in_view() if torch.version.cuda is not None else None
    if facts is not None:
        return _target(facts.name, arch=facts.arch)
    code = (
        "import torch; p = torch.cuda.get_device_properties(0);"
        "print(torch.cuda.get_device_name(0), p.major, p.minor, sep='|')"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=120
    )
    if done.returncode != 0:
        words = done.stderr.strip().splitlines()
        raise ConfigError(
            f"device=cuda: torch sees no GPU ({words[-1] if words else 'no reason given'}); "
            "use device=cpu, or see kopt doctor"
        )
    name, major, minor = done.stdout.strip().splitlines()[-1].split("|")
    return _target(name, arch=f"sm_{major}{minor}")


def _target(name: str, *, arch: str) -> Target:
    from kopt.ports import Target  # for supervisors: a child begins without ports

    return Target(
        device="cuda",
        name=name,
        arch=arch,
        languages=("triton", "cuda", *_further_languages(), "cpp", "torch"),
    )


def _further_languages() -> tuple[Language, ...]:
    """Return the languages that can be written here because their package is installed."""
    further: tuple[Language, ...] = ("cute", "helion")
    return tuple(language for language in further if installed_version(language) is not None)
