"""The evaluator on a GPU: candidates that are right, wrong, fault, hang, or work out of sight."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from kopt.actors.builder import nothing_to_build
from kopt.actors.config import EvaluateConfig, TimeoutConfig, TimingConfig
from kopt.actors.device_worker import DeviceWorker
from kopt.candidate import Candidate
from kopt.problem import Problem

pytestmark = [pytest.mark.gpu, pytest.mark.slow]

CONFIG = EvaluateConfig(
    secret=20_240_607,
    compile=False,
    trials=1,
    timeouts=TimeoutConfig(load_s=120.0, correctness_s=10.0, timing_s=60.0, reference_s=120.0),
    timing=TimingConfig(max_pairs=20),
)

MODEL = """
import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(features))
        self.shift = nn.Parameter(torch.zeros(features))

    def forward(self, x):
        return torch.relu(x) * self.scale + self.shift


def get_inputs():
    return [torch.rand(4096, 4096)]


def get_init_inputs():
    return [4096]
"""
PROBLEM = Problem(name="rows", source=MODEL)

KERNEL = """
import triton
import triton.language as tl


@triton.jit
def rows(x, scale, shift, out, num_columns, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    columns = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside = columns < num_columns
    at = row * num_columns + columns
    value = tl.load(x + at, mask=inside)
    value = tl.maximum(value, 0.0) * tl.load(scale + columns, mask=inside)
    value = value + tl.load(shift + columns, mask=inside)
    tl.store(out + at, value, mask=inside)
"""
LAUNCH = """
out = torch.empty_like(x)
grid = (x.shape[0], triton.cdiv(x.shape[1], 1024))
rows[grid](x, self.scale, self.shift, out, x.shape[1], BLOCK=1024)
return out
"""


@pytest.fixture(scope="module")
def judge(new_cache):
    """Returns a function: the evaluation of a forward's body, with what stands before the class."""
    cache_dir = new_cache()
    worker = DeviceWorker(CONFIG, "cuda", 0, str(cache_dir))

    def evaluate(body: str, *, before: str = "", language="torch", problem=PROBLEM):
        text = problem.source.replace("class Model(", "class ModelNew(")
        head, _, tail = text.partition("    def forward(self, x):\n")
        tail = tail[tail.index("\n\n\ndef get_inputs") :]
        lines = "".join(f"        {line}\n" for line in body.strip().splitlines())
        source = f"{before}\n{head}    def forward(self, x):\n{lines}{tail}"
        candidate = Candidate(source=source, language=language)
        built = nothing_to_build(candidate, cache_dir=cache_dir)
        return worker.evaluate(problem, candidate, built)

    yield evaluate
    worker.close()


RIGHT = "return torch.relu(x) * self.scale + self.shift"


def test_a_right_torch_candidate_is_correct_and_about_as_fast(judge) -> None:
    made = judge(RIGHT)
    assert made.verdict.kind == "correct", made.verdict.reason
    assert 0.8 < made.verdict.timing.speedup < 1.25
    # Read and write 64 MiB at no more than 8 TB/s: a shorter time would be no time.
    assert made.verdict.timing.time_us > 16.0


def test_a_right_triton_candidate_is_correct_and_faster_than_three_kernels(judge) -> None:
    made = judge(LAUNCH, before=KERNEL, language="triton")
    assert made.verdict.kind == "correct", made.verdict.reason
    assert made.verdict.timing.speedup > 1.3
    assert made.gates[-1].passed


def test_a_triton_candidate_that_skips_the_shift_is_incorrect(judge) -> None:
    kernel = KERNEL.replace("value = value + tl.load(shift + columns, mask=inside)", "")
    made = judge(LAUNCH, before=kernel, language="triton")
    assert made.verdict.kind == "incorrect", made.verdict.reason
    assert made.verdict.check.startswith("values:")


def test_rows_that_no_program_writes_are_incorrect(judge) -> None:
    made = judge(
        LAUNCH.replace("(x.shape[0],", "(x.shape[0] // 2,"), before=KERNEL, language="triton"
    )
    assert made.verdict.kind == "incorrect", made.verdict.reason


def test_a_kernel_that_does_not_compile_is_a_crash_with_the_compilers_words(judge) -> None:
    kernel = KERNEL.replace("tl.maximum(value, 0.0)", "tl.no_such_operation(value)")
    made = judge(LAUNCH, before=kernel, language="triton")
    assert made.verdict.kind in ("crashed", "compile_failed")
    assert "no_such_operation" in made.verdict.log


def still_judges(judge) -> None:
    made = judge(RIGHT)
    assert made.verdict.kind == "correct", made.verdict.reason


def test_an_illegal_access_is_a_crash_of_that_candidate_alone(judge) -> None:
    kernel = KERNEL.replace("tl.store(out + at,", "tl.store(out + at + (1 << 40),")
    made = judge(LAUNCH, before=kernel, language="triton")
    assert made.verdict.kind == "crashed", made.verdict.reason
    assert "illegal memory access" in made.verdict.log
    still_judges(judge)


def test_a_launch_that_the_device_refuses_is_a_crash(judge) -> None:
    body = LAUNCH.replace("grid = (x.shape[0],", "grid = (1, 70_000,")  # y is at most 65,535
    made = judge(body, before=KERNEL, language="triton")
    assert made.verdict.kind == "crashed", made.verdict.reason
    still_judges(judge)


def test_more_memory_than_the_device_has_is_a_crash(judge) -> None:
    made = judge("return torch.empty(1 << 45, dtype=torch.uint8, device=x.device)")
    assert made.verdict.kind == "crashed", made.verdict.reason
    assert "memory" in made.verdict.reason
    still_judges(judge)


def test_a_kernel_that_does_not_end_is_a_timeout_and_frees_the_device(judge) -> None:
    made = judge("torch.cuda._sleep(1 << 50)\n" + RIGHT)
    assert made.verdict.kind == "timed_out", made.verdict.reason
    assert made.verdict.stage == "correctness"
    still_judges(judge)


def test_an_output_on_the_host_is_refused(judge) -> None:
    made = judge(RIGHT.replace("return ", "return (") + ").cpu()")
    assert made.verdict.kind == "incorrect", made.verdict.reason


SIDE_STREAM = """
if not hasattr(self, "side"):
    self.side = torch.cuda.Stream()
with torch.cuda.stream(self.side):
    y = torch.relu(x) * self.scale + self.shift
    WORK
return y
"""


@pytest.mark.parametrize("work", ["pass", "torch.mm(x, x)", "torch.mm(x, torch.mm(x, x))"])
def test_work_on_a_stream_that_nobody_waits_for_is_never_correct(judge, work) -> None:
    # exploits 27: the call's own stream is free at once. The wait for all streams makes the values
    # right where correctness is checked; the timed output is copied on the call's stream, too
    # early, and our wall time sees what the events do not.
    made = judge(SIDE_STREAM.replace("WORK", f"{work}\n    y = y + 0.0"))
    assert made.verdict.kind in ("incorrect", "cheated"), made.verdict.reason


def test_a_side_stream_that_is_joined_is_honest(judge) -> None:
    body = """
if not hasattr(self, "side"):
    self.side = torch.cuda.Stream()
current = torch.cuda.current_stream()
self.side.wait_stream(current)
with torch.cuda.stream(self.side):
    y = torch.relu(x) * self.scale + self.shift
current.wait_stream(self.side)
y.record_stream(current)
return y
"""
    made = judge(body)
    assert made.verdict.kind == "correct", made.verdict.reason


def test_an_answer_remembered_by_address_is_incorrect(judge) -> None:
    body = """
key = x.data_ptr()
if key not in answers:
    answers[key] = torch.relu(x) * self.scale + self.shift
return answers[key].clone()
"""
    made = judge(body, before="answers = {}")
    assert made.verdict.kind == "incorrect", made.verdict.reason


def test_a_captured_graph_that_reads_its_first_input_is_incorrect(judge) -> None:
    body = """
if not hasattr(self, "graph"):
    self.static = x.clone()
    torch.cuda.synchronize()
    self.graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(self.graph):
        self.out = torch.relu(self.static) * self.scale + self.shift
self.graph.replay()
return self.out.clone()
"""
    made = judge(body)
    assert made.verdict.kind == "incorrect", made.verdict.reason


def test_a_captured_graph_that_copies_its_input_in_is_honest(judge) -> None:
    body = """
if not hasattr(self, "graph"):
    self.static = x.clone()
    torch.relu(self.static) * self.scale + self.shift
    torch.cuda.synchronize()
    self.graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(self.graph):
        self.out = torch.relu(self.static) * self.scale + self.shift
self.static.copy_(x)
self.graph.replay()
return self.out.clone()
"""
    made = judge(body)
    assert made.verdict.kind == "correct", made.verdict.reason


def test_outputs_with_gaps_and_in_another_order_are_honest(judge) -> None:
    for body in (
        "y = torch.empty(4096, 4112, device=x.device)\n"
        "torch.add(torch.relu(x) * self.scale, self.shift, out=y[:, :4096])\nreturn y[:, :4096]",
        "return (torch.relu(x) * self.scale + self.shift).t().contiguous().t()",
    ):
        made = judge(body)
        assert made.verdict.kind == "correct", made.verdict.reason


def hidden(text: str) -> str:
    """A source that gate 1 cannot read, ahead of the class."""
    return f"exec({text[::-1]!r}[::-1], globals())"


LOOP = """
import kopt.actors.devices.cuda as device
honest = device.CudaDevice.time_calls
def loop(self, call, arguments, *, before, after, flush):
    count = len(arguments)
    outputs = []
    def made(each):
        position = len(outputs)
        outputs.append(call(each) if MADE else outputs[-1])
        return outputs[-1]
    timed = honest(self, made, arguments, before=before, after=after, flush=flush)
    return timed
device.CudaDevice.time_calls = loop
"""


@pytest.mark.parametrize("made_when", ["position == 0", "position % 2 == 0"])
def test_calls_that_are_left_out_are_no_timed_calls(judge, made_when) -> None:  # 20, 21
    made = judge(RIGHT, before=hidden(LOOP.replace("MADE", made_when)))
    assert made.verdict.kind in ("incorrect", "cheated"), made.verdict.reason
    assert made.verdict.check in ("timed_output", "deferred_work")


EVENTS = """
import torch
honest = torch.cuda.Event.elapsed_time
torch.cuda.Event.elapsed_time = lambda self, other: LIE
"""


@pytest.mark.parametrize("lie", ["honest(self, other) / 10", "0.001", "-1.0"])
def test_events_that_lie_are_a_cheat(judge, lie) -> None:  # 30
    made = judge(RIGHT, before=hidden(EVENTS.replace("LIE", lie)))
    assert made.verdict.kind == "cheated", made.verdict.reason
    assert made.verdict.check in ("clock", "two_clocks", "timed_blocks", "speed_of_light")


def test_a_time_that_no_memory_reaches_is_a_cheat(judge) -> None:  # 30, 31
    # Each call's own events say 0.1 us, those of the whole block are true: 64 MiB are read.
    before = """
import kopt.actors.devices.cuda as device
honest = device.CudaDevice.time_calls
def lying(self, *arguments, **options):
    timed = honest(self, *arguments, **options)
    return timed._replace(each_us=[0.1 for _ in timed.each_us])
device.CudaDevice.time_calls = lying
"""
    made = judge(RIGHT, before=hidden(before))
    if made.verdict.kind == "correct":  # our clock raised it to what it supports
        assert made.verdict.timing.speedup < 1.5, made.verdict.reason
    else:
        assert made.verdict.check in ("timed_blocks", "speed_of_light")


NO_SWEEP = """
import kopt.actors.devices.cuda as device
import kopt.actors.devices.cuda_content as content
honest = device.CudaDevice.time_calls
begin = content.CudaContent.__init__
def unswept(self, *arguments, **options):
    begin(self, *arguments, **{**options, "sweeps": False})
content.CudaContent.__init__ = unswept
def lying(self, *arguments, **options):
    timed = honest(self, *arguments, **options)
    each_us = [max(each - 30.0, 1.0) for each in timed.each_us]
    return timed._replace(each_us=each_us)
device.CudaDevice.time_calls = lying
"""
EARLY = """
import random, struct, threading, time
import kopt.actors.child.timed as timed
import kopt.actors.child.runner as runner
import kopt.actors.devices.cuda as device
import kopt.actors.devices.cuda_gate as gate
honest, report, block = device.CudaDevice.time_calls, gate.CudaGate.report, timed.time_block
said = [0]
def early(self, ticket, *, digest_at, stream):
    page, said[0] = self._page, random.getrandbits(60)
    def tell():
        while struct.unpack_from("<q", page, gate.GO)[0] < ticket:
            pass
        until = time.perf_counter() + 1e-3
        while time.perf_counter() < until:
            pass
        struct.pack_into("<q", page, gate.LAST, said[0])
        struct.pack_into("<q", page, gate.DONE, ticket)
    threading.Thread(target=tell).start()
    struct.pack_into("<q", page, gate.QUEUED, ticket)
def lying(self, *arguments, **options):
    timed = honest(self, *arguments, **options)
    return timed._replace(each_us=[2.0] * len(timed.each_us), total_us=900.0)
def told(*arguments, **options):
    kept, answer = block(*arguments, **options)
    if options.get("ticket"):
        digests = [*kept.digests[:-1], said[0]]
        answer |= {"last": said[0], "commitment": timed.commitment(digests)}
        kept = timed.KeptBlock(outputs=kept.outputs, numbers=kept.numbers, digests=digests)
    return kept, answer
gate.CudaGate.report, device.CudaDevice.time_calls, runner.time_block = early, lying, told
"""


@pytest.mark.parametrize("before", [NO_SWEEP, EARLY], ids=["no_sweep", "early"])
def test_a_loop_that_leaves_out_what_is_no_call_gains_nothing(judge, before) -> None:  # 20, 32
    made = judge(RIGHT, before=hidden(before))
    if made.verdict.kind == "correct":  # our clock raised it to what it supports
        assert made.verdict.timing.speedup < 1.1, made.verdict.reason
    else:
        assert made.verdict.check in ("timed_output", "deferred_work", "timed_blocks", "two_clocks")


def test_work_done_when_its_output_is_asked_for_is_a_cheat(judge) -> None:  # 20
    before = """
import torch
import kopt.actors.child.timed as timed
import kopt.actors.child.runner as runner
def late(device, call, sets, **options):
    count = options["count"]
    kept, answer = timed.time_block(device, call, sets, **{**options, "count": 1})
    answer["calls_us"] = answer["calls_us"] * count
    answer["total_us"] *= count
    kept = timed.KeptBlock(
        outputs=kept.outputs * count, numbers=kept.numbers * count, digests=kept.digests * count
    )
    answer["commitment"] = timed.commitment(kept.digests)
    return kept, answer
runner.time_block = late
"""
    made = judge(RIGHT, before=hidden(before))
    assert made.verdict.kind in ("cheated", "incorrect"), made.verdict.reason
    assert made.verdict.check in ("timed_output", "timed_blocks", "two_clocks")


def test_the_speed_of_light_is_said(judge) -> None:
    timing = judge(RIGHT).verdict.timing
    # 64 MiB in, where every element that was tried matters, and 64 MiB out.
    assert timing.sol_us is None or 10.0 < timing.sol_us < timing.time_us


def test_products_in_tf32_are_incorrect_where_the_ladder_is_strict(judge) -> None:
    source = """
import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x):
        return x @ x


def get_inputs():
    return [torch.rand(1024, 1024)]
"""
    problem = Problem(name="square", source=source)
    body = "torch.backends.cuda.matmul.allow_tf32 = True\nreturn x @ x"
    made = judge(body, problem=problem)
    assert made.verdict.kind == "incorrect", made.verdict.reason
    made = judge("return torch.mm(x, x)", problem=problem)
    assert made.verdict.kind == "correct", made.verdict.reason


def test_no_process_is_left_on_the_device_by_candidates(judge) -> None:
    def below() -> list[str]:
        children = Path(f"/proc/{os.getpid()}/task/{os.getpid()}/children").read_text().split()
        return [
            grandchild
            for child in children
            for grandchild in Path(f"/proc/{child}/task/{child}/children").read_text().split()
        ]

    still_judges(judge)
    before = len(below())
    for body in ("torch.cuda._sleep(1 << 50)\n" + RIGHT, "raise RuntimeError('no')", RIGHT):
        judge(body)
    assert len(below()) == before
