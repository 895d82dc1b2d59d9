"""Counters of asynchronous copies on a GPU against hand counts: what a Triton pipeline loads.

python -m pytest -m gpu tests/gpu/test_gpu_counters.py
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kopt.actors.config import EvaluateConfig
from kopt.actors.evidence.capabilities import load_capabilities, save_capabilities
from kopt.actors.evidence.profiler import DeviceProfiler, Subject
from kopt.candidate import Candidate
from kopt.environment import cache_dir
from kopt.problem import Problem
from kopt.tools.diagnosis import diagnose

torch = pytest.importorskip("torch")

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="torch sees no CUDA device"),
]

PLANTED = Path(__file__).parents[1] / "golden" / "findings" / "planted_sources"
TOTAL = "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum"
COPIED = "sm__sass_l1tex_t_sectors_pipe_lsu_mem_global_op_ldgsts.sum"
COPIED_BYTES = "smsp__sass_average_data_bytes_per_sector_mem_global_op_ldgsts.ratio"
SECTORS = 64 * 64 * (4096 // 32) * (2 * 64 * 32 * 2) // 32
"""Of the planted product: 64 x 64 blocks, 128 steps along K, two tiles of 64 x 32 bf16 in each."""


def test_a_pipeline_s_copies_are_counted_and_perfect(tmp_path) -> None:
    source = (PLANTED / "hmma_on_hopper.py").read_text(encoding="utf-8")
    subject = Subject(
        problem=Problem(name="gpu", source=source),
        candidate=Candidate(source=source, language="triton"),
    )
    kept = load_capabilities(cache_dir(), device="cuda")
    if kept is not None:
        save_capabilities(kept, tmp_path)
    profiler = DeviceProfiler(EvaluateConfig(), "cuda", str(tmp_path))
    try:
        if not profiler.capabilities().counters.ok:
            pytest.skip(f"no counters here: {profiler.capabilities().counters.found}")
        (found,) = profiler.profile([subject])
    finally:
        profiler.close()
    assert found.evidence is not None, found.failed
    (kernel,) = found.evidence.kernels
    assert kernel.metrics[TOTAL] == SECTORS
    assert kernel.metrics[COPIED] == SECTORS
    assert kernel.metrics[COPIED_BYTES] == 32.0
    expected = json.loads((PLANTED / "expected.json").read_text(encoding="utf-8"))
    first, *_ = diagnose(found.evidence).findings
    assert first.tool in expected["hmma_on_hopper"]
