"""Real collectors on a GPU: counters against hand counts, several candidates a run, energy."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace

import pytest

from kopt.actors.config import EvaluateConfig
from kopt.actors.evidence.capabilities import load_capabilities, save_capabilities
from kopt.actors.evidence.ncu import NcuMeans, count
from kopt.actors.evidence.profiler import DeviceProfiler, Subject
from kopt.candidate import Candidate
from kopt.environment import cache_dir
from kopt.problem import Problem

torch = pytest.importorskip("torch")

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="torch sees no CUDA device"),
]

HEAD = "import torch\nfrom torch import nn\n\n\n"
COPY = f"""{HEAD}class Model(nn.Module):
    def forward(self, x):
        return x.clone()


class ModelNew(Model):
    pass


def get_inputs():
    return [torch.rand(1 << 30)]
"""
PRODUCT = f"""{HEAD}class Model(nn.Module):
    def forward(self, a, b):
        return a @ b


class ModelNew(Model):
    pass


def get_inputs():
    return [torch.rand(1024, 1024).bfloat16(), torch.rand(1024, 1024).bfloat16()]
"""
TRITON = f"""import triton
import triton.language as tl
{HEAD}class Model(nn.Module):
    def forward(self, x):
        return torch.exp(x)


@triton.jit
def exp_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + at, tl.exp(tl.load(x_ptr + at, mask=at < n)), mask=at < n)


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        exp_kernel[(triton.cdiv(x.numel(), 1024),)](x, out, x.numel(), BLOCK=1024)
        return out


def get_inputs():
    return [torch.rand(1 << 26)]
"""
TENSOR_OPS = "sm__ops_path_tensor_src_bf16_dst_fp32.sum"


def subject(source, language="torch") -> Subject:
    return Subject(
        problem=Problem(name="gpu", source=source),
        candidate=Candidate(source=source, language=language),
    )


@pytest.fixture(scope="module")
def profiler(tmp_path_factory) -> Iterator[DeviceProfiler]:
    cache = tmp_path_factory.mktemp("cache")
    kept = load_capabilities(cache_dir(), device="cuda")
    if kept is not None:  # what this machine has was looked for already, half a minute long
        save_capabilities(kept, cache)
    made = DeviceProfiler(EvaluateConfig(), "cuda", str(cache))
    yield made
    made.close()


@pytest.fixture(scope="module")
def has_counters(profiler) -> None:
    counters = profiler.capabilities().counters
    if not counters.ok:
        pytest.skip(f"no counters here: {counters.found}")


def test_without_counters_a_triton_kernel_is_profiled_in_two_seconds(profiler) -> None:
    profiler.profile([subject(TRITON, "triton")], level="timeline")
    began_s = time.monotonic()
    (found,) = profiler.profile([subject(TRITON, "triton")], level="timeline")
    seconds = time.monotonic() - began_s
    assert found.evidence is not None
    (kernel,) = found.evidence.kernels
    assert (kernel.name, kernel.owner, kernel.launches) == ("exp_kernel", "user", 1)
    assert kernel.registers
    assert kernel.sass["LDG"] > 0
    assert seconds <= 2.0, f"{seconds:.2f} s"


@pytest.mark.usefixtures("has_counters")
def test_a_copy_of_four_gigabytes_reads_and_writes_them(profiler) -> None:
    (found,) = profiler.profile([subject(COPY)])
    assert found.evidence is not None
    assert found.evidence.level == "ncu", found.remarks
    for name in ("dram__bytes_read.sum", "dram__bytes_write.sum"):
        moved = sum(kernel.metrics[name] or 0 for kernel in found.evidence.kernels)
        assert moved == pytest.approx(4.0 * (1 << 30), rel=0.03), name


@pytest.mark.usefixtures("has_counters")
def test_a_product_s_tensor_flops_are_exact(profiler) -> None:
    has = profiler.capabilities()
    assert has.ncu_path is not None
    means = NcuMeans(
        path=has.ncu_path, counters=(TENSOR_OPS,), forks=has.ncu_forks, landlock=has.ncu_landlock
    )
    bench = profiler._bench
    with bench.folder() as folder:
        order = bench.order(Problem(name="gpu", source=PRODUCT), PRODUCT)
        job = bench.ncu_job(order, folder=folder, build_dir=folder, landlock=means.landlock)
        (counted,) = count([job], means=means, kernels=(), folder=folder)
    assert counted.report is not None, counted.failed
    assert sum(each.metrics[TENSOR_OPS] or 0 for each in counted.report.launches) == 2.0 * 1024**3


@pytest.mark.usefixtures("has_counters")
def test_one_kernel_is_counted_in_fifteen_seconds_and_four_in_six_each(profiler) -> None:
    began_s = time.monotonic()
    (alone,) = profiler.profile([subject(TRITON, "triton")])
    alone_s = time.monotonic() - began_s
    assert alone.evidence is not None
    assert alone.evidence.level == "ncu", alone.remarks
    began_s = time.monotonic()
    four = profiler.profile(
        [subject(TRITON.replace("1024", str(block)), "triton") for block in (256, 512, 1024, 2048)]
    )
    each_s = (time.monotonic() - began_s) / 4
    assert all(found.evidence is not None and found.evidence.level == "ncu" for found in four)
    assert alone_s <= 15.0, f"{alone_s:.1f} s: {dict(alone.took_s)}"
    assert each_s <= 6.0, f"{each_s:.1f} s each: {[dict(found.took_s) for found in four]}"


@pytest.mark.usefixtures("has_counters")
def test_rules_and_the_reference_s_measured_class_come_on_request(profiler) -> None:
    one = subject(TRITON, "triton")
    (found,) = profiler.profile([one], with_rules=True, with_reference=True)
    assert found.evidence is not None
    assert any(kernel.rules for kernel in found.evidence.kernels), found.remarks
    assert found.evidence.roofline is not None
    assert found.evidence.roofline.measured == "memory"
    assert found.evidence.roofline.confidence == "high"


@pytest.mark.usefixtures("has_counters")
def test_a_candidate_that_faults_costs_its_neighbours_nothing(profiler) -> None:
    broken = replace(
        subject(TRITON, "triton"),
        candidate=Candidate(
            source=TRITON.replace("return out", "raise RuntimeError('on purpose')"),
            language="triton",
        ),
    )
    bad, good = profiler.profile([broken, subject(TRITON, "triton")])
    assert bad.evidence is None or bad.evidence.level != "ncu"
    assert good.evidence is not None
    assert good.evidence.level == "ncu", good.remarks


def test_energy_of_equal_arms_is_equal() -> None:
    pytest.importorskip("pynvml")
    from kopt.actors.evidence.energy import measure_energy
    from kopt.actors.evidence.nvml import Meter, nvml_ability

    ability = nvml_ability()
    if not ability.ok:
        pytest.skip(ability.found)
    a = torch.randn(4096, 4096, device="cuda", dtype=torch.bfloat16)
    with Meter() as meter:
        found = measure_energy(
            lambda: a @ a,
            baseline=lambda: a @ a,
            wait=torch.cuda.synchronize,
            counter=meter,
            pairs=4,
            window_s=1.0,
            idle_s=2.0,
        )
    assert found.reduction == pytest.approx(1.0, abs=0.1)
    assert found.candidate_mj > 0


def test_the_energy_of_a_candidate_is_measured_in_its_sandbox(profiler) -> None:
    pytest.importorskip("pynvml")
    (found,) = profiler.profile([subject(TRITON, "triton")], level="timeline", with_energy=True)
    assert found.energy is not None, found.remarks
    assert found.evidence is not None
    assert found.evidence.energy is not None
    assert found.evidence.energy.millijoules == found.energy.candidate_mj > 0
