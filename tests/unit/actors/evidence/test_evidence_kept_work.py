"""The work of a reference is counted once for a machine, and again where figures may differ."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kopt.actors.config import EvaluateConfig
from kopt.actors.devices.base import describe
from kopt.actors.evidence.capabilities import Ability, Capabilities
from kopt.actors.evidence.kept_work import load_work, save_work, work_file
from kopt.actors.evidence.order import order_for
from kopt.actors.evidence.references import References
from kopt.actors.evidence.workbench import Workbench
from kopt.problem import Problem

SOURCE = """\
import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x):
        return x + 1


def get_inputs():
    return [torch.rand(1000)]
"""
PROBLEM = Problem(name="plus", source=SOURCE)
ORDER = order_for(
    PROBLEM,
    None,
    look="work",
    module_mode="train",
    matmul_tf32=False,
    cudnn_tf32=True,
    num_threads=4,
)
REPORT = {"matrix_flops": {}, "vector_flops": 1000.0, "bytes": 8000.0, "unfused_bytes": 8000.0}


def place(tmp_path, *, problem=PROBLEM, device="cuda", **changed):
    order = replace(ORDER, **changed)
    return work_file(problem, order, device=device, cache_dir=tmp_path)


def test_what_changes_a_figure_is_kept_apart_and_nothing_else(tmp_path) -> None:
    here = place(tmp_path)
    assert place(tmp_path, num_threads=8) == here
    assert place(tmp_path, problem=replace(PROBLEM, name="renamed")) == here
    others = [
        place(tmp_path, matmul_tf32=True),
        place(tmp_path, cudnn_tf32=False),
        place(tmp_path, module_mode="eval"),
        place(tmp_path, dtype="bfloat16"),
        place(tmp_path, device="cpu"),
        place(tmp_path, problem=replace(PROBLEM, source=SOURCE.replace("+ 1", "+ 2"))),
    ]
    assert len({here, *others}) == 7


def test_a_report_is_found_again(tmp_path) -> None:
    save_work(place(tmp_path), REPORT)
    assert load_work(place(tmp_path)) == REPORT


@pytest.mark.parametrize("text", ["", "[1]", '{"matrix', "[" * 60_000, "x" * 100_000])
def test_a_damaged_file_is_no_report(tmp_path, text) -> None:
    path = place(tmp_path)
    path.parent.mkdir(parents=True)
    path.write_text(text)
    assert load_work(path) is None


def test_a_cache_that_cannot_be_written_is_no_failure(tmp_path) -> None:
    (tmp_path / "evidence").write_text("a file where a folder should be")
    save_work(place(tmp_path), REPORT)
    assert load_work(place(tmp_path)) is None


HAS = Capabilities(
    device="cpu",
    fingerprint="",
    counters=Ability(ok=False, found=""),
    timeline=Ability(ok=True, found=""),
    disassembly=Ability(ok=False, found=""),
    energy=Ability(ok=False, found=""),
    roof={"tb_per_s": 0.1, "fp32_tflops": 1.0},
)


def test_another_profiler_on_the_same_cache_counts_nothing_again(tmp_path, monkeypatch) -> None:
    bench = Workbench(
        EvaluateConfig(memory_gib=4.0), device="cpu", cache_dir=tmp_path, is_lasting=False
    )
    children = []
    forked = Workbench.child
    monkeypatch.setattr(
        Workbench, "child", lambda *said, **how: children.append(how) or forked(*said, **how)
    )

    def bytes_of(problem: Problem) -> float | None:
        remarks: list[str] = []
        references = References(bench, target=describe("cpu"))
        found = references.roofline(problem, capabilities=HAS, means=None, remarks=remarks)
        assert found is not None, remarks
        return found.bytes

    try:
        assert bytes_of(PROBLEM) == 8000.0
        assert bytes_of(PROBLEM) == 8000.0
        assert len(children) == 1
        assert children[0]["on_host"]  # nothing is computed, so no device is needed
        (kept,) = (tmp_path / "evidence" / "work").iterdir()
        kept.write_text('{"matrix_flops": {"fp2": 1}}')
        assert bytes_of(PROBLEM) == 8000.0
        assert len(children) == 2
    finally:
        bench.close()
