"""Evidence of a CPU: operations of a trace, the rest of a call, instructions of an extension."""

from __future__ import annotations

import json

import pytest

from kopt.tools.collect.assemble import Collected, assemble
from kopt.tools.collect.host_code import fma_share, parse_host_code, vector_bits
from kopt.tools.collect.host_trace import OWN_CODE, parse_host_trace
from kopt.tools.collect.unreadable import UnreadableProfile


def event(name, start, duration, *, category="cpu_op", thread=1) -> dict:
    return {"ph": "X", "name": name, "cat": category, "ts": start, "dur": duration, "tid": thread}


def trace(*events) -> str:
    return json.dumps({"traceEvents": list(events)})


CALL = event("kopt_call", 0, 100, category="user_annotation")
CODE = """
/builds/ext.so:     file format elf64-x86-64

0000000000001000 <scale(float const*, float*, long)>:
    1000:\tvmovups (%rdi),%zmm0
    1004:\tvfmadd213ps %zmm1,%zmm2,%zmm0
    1008:\tvmulps %zmm0,%zmm1,%zmm2
    100c:\tvaddss %xmm0,%xmm1,%xmm1
    1010:\tvmulss %xmm0,%xmm1,%xmm1
    1014:\tret

0000000000002000 <pybind11::detail::glue(int)>:
    2000:\taddps  %xmm0,%xmm1
    2003:\tret
0000000000003000 <std::vector<float>::push_back(float&&)>:
    3000:\taddps  %xmm0,%xmm1
0000000000004000 <free@plt>:
    4000:\tjmp    *0x2fe2(%rip)
"""


def test_an_operation_counts_without_what_runs_within_it() -> None:
    report = parse_host_trace(
        trace(CALL, event("aten::linear", 10, 50), event("aten::addmm", 20, 30))
    )
    times = {kernel.name: kernel.time_us for kernel in report.kernels}
    assert times == {"aten::linear": 20.0, "aten::addmm": 30.0, OWN_CODE: 50.0}
    owners = {kernel.name: kernel.owner for kernel in report.kernels}
    assert owners == {"aten::linear": "aten", "aten::addmm": "library", OWN_CODE: "user"}
    assert sum(kernel.share for kernel in report.kernels) == pytest.approx(1.0)


def test_operations_of_other_threads_and_outside_the_call_do_not_count() -> None:
    report = parse_host_trace(
        trace(CALL, event("aten::mul", 10, 10, thread=2), event("aten::add", 150, 10))
    )
    assert [kernel.name for kernel in report.kernels] == [OWN_CODE]


def test_a_cpu_has_no_launches_gaps_or_waits() -> None:
    timeline = parse_host_trace(trace(CALL, event("aten::copy_", 0, 25))).timeline
    assert timeline.memcpy_us == 25.0
    assert (timeline.e2e_us, timeline.launches, timeline.syncs) == (100.0, None, None)
    assert timeline.launch_overhead_pct is None


def test_the_median_call_is_told() -> None:
    slow = event("kopt_call", 1000, 900, category="user_annotation")
    middle = event("kopt_call", 3000, 120, category="user_annotation")
    assert parse_host_trace(trace(CALL, slow, middle)).timeline.e2e_us == 120.0


@pytest.mark.parametrize("text", ["", "{", "[]", trace(event("aten::mul", 0, 1))])
def test_no_call_is_no_timeline(text) -> None:
    with pytest.raises(UnreadableProfile):
        parse_host_trace(text)


def test_functions_of_the_candidate_alone_are_counted() -> None:
    report = parse_host_code(CODE)
    assert [function.name for function in report.functions] == ["scale(float const*, float*, long)"]
    counts = report.functions[0].counts
    assert (counts["vfmadd213ps"], counts["vfmadd213ps.zmm"], counts["vaddss.scalar"]) == (1, 1, 1)
    assert vector_bits(counts) == 512
    assert fma_share(counts) == 0.25


def test_scalar_code_is_told_from_vectors() -> None:
    text = CODE.replace("zmm", "xmm").replace("ps ", "ss ")
    counts = parse_host_code(text).functions[0].counts
    assert vector_bits(counts) == 32
    assert vector_bits({"mov": 3}) is None
    assert fma_share({"mov": 3}) is None


def test_a_disassembly_without_code_is_unreadable() -> None:
    with pytest.raises(UnreadableProfile, match="disassembly"):
        parse_host_code("objdump: file format not recognized")


def test_the_extension_s_code_stands_with_the_rest_of_the_call() -> None:
    collected = Collected(
        device="a CPU",
        arch="x86_64",
        trace=parse_host_trace(trace(CALL, event("aten::relu", 0, 30))),
        host_code=parse_host_code(CODE),
    )
    evidence = assemble(collected).evidence
    own = next(kernel for kernel in evidence.kernels if kernel.name == OWN_CODE)
    assert evidence.level == "timeline"
    assert own.sass["vmulps"] == 1
    assert all(not kernel.sass for kernel in evidence.kernels if kernel is not own)


def test_without_a_timeline_the_code_stands_alone() -> None:
    collected = Collected(device="a CPU", arch="x86_64", host_code=parse_host_code(CODE))
    evidence = assemble(collected).evidence
    assert (evidence.level, [kernel.name for kernel in evidence.kernels]) == ("static", [OWN_CODE])
