"""Real collectors on a GPU: counters against hand counts, several candidates a run, energy."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from kopt.actors.builder import Builder
from kopt.actors.config import EvaluateConfig
from kopt.actors.evidence.capabilities import load_capabilities, save_capabilities
from kopt.actors.evidence.ncu import NcuMeans, count
from kopt.actors.evidence.profiler import DeviceProfiler, Profile, Subject
from kopt.candidate import Candidate
from kopt.cli.dispatch import main
from kopt.environment import cache_dir
from kopt.problem import Problem

torch = pytest.importorskip("torch")

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="torch sees no CUDA device"),
]

HEAD = "import torch\nfrom torch import nn\n\n\n"
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
COPY = (
    TRITON.replace("return torch.exp(x)", "return x.clone()")
    .replace("tl.exp(tl.load(x_ptr + at, mask=at < n))", "tl.load(x_ptr + at, mask=at < n)")
    .replace("1 << 26", "1 << 30")
)
"""By a kernel: torch's own copy of a whole tensor is none, and ncu counts kernels."""
TENSOR_OPS = "sm__ops_path_tensor_src_bf16_dst_fp32.sum"


def subject(source, language="torch") -> Subject:
    return Subject(
        problem=Problem(name="gpu", source=source),
        candidate=Candidate(source=source, language=language),
    )


@pytest.fixture(scope="module")
def cache(new_cache) -> Path:
    made = new_cache()
    kept = load_capabilities(cache_dir(), device="cuda")
    if kept is not None:  # what this machine has was looked for already
        save_capabilities(kept, made)
    return made


@pytest.fixture(scope="module")
def builder(cache) -> Iterator[Builder]:
    made = Builder(EvaluateConfig(), "cuda", str(cache))
    yield made
    made.close()


@pytest.fixture(scope="module")
def profiler(cache, builder) -> Iterator[DeviceProfiler]:
    """That of a search (`pool.ProfileWorker`): it lasts, beside a builder."""
    del builder  # it loads meanwhile
    made = DeviceProfiler(EvaluateConfig(), "cuda", str(cache), ready_for="ncu")
    yield made
    made.close()


@pytest.fixture(scope="module")
def has_counters(profiler) -> None:
    counters = profiler.capabilities().counters
    if not counters.ok:
        pytest.skip(f"no counters here: {counters.found}")


def built(builder, *blocks: int) -> list[Subject]:
    """Candidates of one problem that differ in their blocks, built as a search builds them."""
    problem = Problem(name="gpu", source=TRITON)
    subjects = [subject(TRITON.replace("1024", str(block)), "triton") for block in blocks]
    with ThreadPoolExecutor(max_workers=len(blocks)) as threads:
        verdicts = threads.map(
            lambda each: builder.build(problem, each.candidate).verdict, subjects
        )
    assert list(verdicts) == [None] * len(blocks)
    return [replace(each, problem=problem) for each in subjects]


def shown(title: str, seconds: float, found: list[Profile]) -> str:
    """What a bar is held against, stage by stage; printed too, for whoever runs it with -s."""
    stages = [dict(profile.took_s) for profile in found]
    text = f"bar: {title}: {seconds:.2f} s each, {stages}"
    sys.stdout.write(f"{text}\n")
    return text


def test_without_counters_a_triton_kernel_is_profiled_in_two_seconds(profiler, builder) -> None:
    """As in a search: the profiler has worked before, and the candidate was built."""
    earlier, *later = built(builder, 1024, 512, 256)
    profiler.profile([earlier], level="timeline")
    for one in later:
        began_s = time.monotonic()
        (found,) = profiler.profile([one], level="timeline")
        seconds = time.monotonic() - began_s
        said = shown("one by its timeline", seconds, [found])
        assert found.evidence is not None
        (kernel,) = found.evidence.kernels
        assert (kernel.name, kernel.owner, kernel.launches) == ("exp_kernel", "user", 1)
        assert kernel.registers
        assert kernel.sass["LDG"] > 0
        assert found.evidence.roofline is not None
        assert seconds <= 2.0, said


@pytest.mark.usefixtures("has_counters")
def test_one_kernel_is_counted_in_fifteen_seconds_and_five_in_six_each(profiler, builder) -> None:
    one, *five = built(builder, 1024, 128, 256, 512, 2048, 4096)
    began_s = time.monotonic()
    alone = profiler.profile([one])
    alone_s = time.monotonic() - began_s
    said_alone = shown("one by ncu", alone_s, alone)
    began_s = time.monotonic()
    together = profiler.profile(five)
    each_s = (time.monotonic() - began_s) / len(five)
    said_together = shown("five by one ncu", each_s, together)
    for found in (*alone, *together):
        assert found.evidence is not None
        assert found.evidence.level == "ncu", found.remarks
        (kernel,) = found.evidence.kernels
        assert kernel.metrics["dram__bytes_read.sum"] == pytest.approx(4.0 * (1 << 26), rel=0.03)
        assert kernel.sass["LDG"] > 0
        assert found.evidence.timeline is not None
        assert found.evidence.roofline is not None
    assert alone_s <= 15.0, said_alone
    assert each_s <= 6.0, said_together


@pytest.mark.usefixtures("has_counters")
def test_a_copy_of_four_gigabytes_reads_and_writes_them(profiler) -> None:
    (found,) = profiler.profile([subject(COPY, "triton")])
    assert found.evidence is not None
    assert found.evidence.level == "ncu", found.remarks
    (kernel,) = found.evidence.kernels
    for name in ("dram__bytes_read.sum", "dram__bytes_write.sum"):
        assert kernel.metrics[name] == pytest.approx(4.0 * (1 << 30), rel=0.03), name


def test_the_driver_names_the_gpu_as_torch_does(profiler) -> None:
    major, minor = torch.cuda.get_device_capability(0)
    target = profiler.target
    assert (target.name, target.arch) == (torch.cuda.get_device_name(0), f"sm_{major}{minor}")


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


def test_the_command_measures_energy_beside_the_reference_s(tmp_path, capfd) -> None:
    pytest.importorskip("pynvml")
    from kopt.actors.evidence.nvml import nvml_ability

    if not nvml_ability().ok:
        pytest.skip(nvml_ability().found)
    problem, candidate = tmp_path / "problem.py", tmp_path / "candidate.py"
    for file in (problem, candidate):
        file.write_text(TRITON)
    command = ["profile", str(problem), str(candidate), "device=cuda"]
    assert main([*command, "--level", "timeline", "--energy", "--json"]) == 0
    record = json.loads(capfd.readouterr().out)
    measured = record["measured_energy"]
    assert measured is not None, record["remarks"]
    assert measured["candidate_mj"] > 0
    assert measured["baseline_mj"] > 0
    assert record["energy"]["millijoules"] == measured["candidate_mj"]
