"""Triton candidates compiled for sm_90 without a GPU: what the device would look up is there.

No device is asked for its opinion here: Triton's own `warmup`, given the types of the launch by
hand, must come to the same keys.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from kopt.actors.build.gpu_facts import KNOWN
from kopt.actors.build.triton_order import REPORT, order_to_compile, triton_build_key
from kopt.actors.builder import Builder
from kopt.actors.config import EvaluateConfig, TimeoutConfig
from kopt.candidate import Candidate
from kopt.problem import Problem

pytest.importorskip("triton")
pytestmark = pytest.mark.slow

GPU = KNOWN["9.0"]
CONFIG = EvaluateConfig(secret=20_240_607, compile=False, timeouts=TimeoutConfig(build_s=300.0))
PROBLEM = Problem(
    name="rows",
    source="""
import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.linear = nn.Linear(width, 64)

    def forward(self, x):
        return torch.relu(self.linear(x))


def get_inputs():
    return [torch.randn(128, 96)]


def get_init_inputs():
    return [96]
""",
)
SOURCE = """
import torch
import triton
import triton.language as tl
from torch import nn


@triton.jit
def relu(x, y, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + i, mask=i < n)
    tl.store(y + i, tl.maximum(v, 0.0), mask=i < n)


@triton.autotune(
    configs=[triton.Config({"BLOCK": b}, num_warps=w) for b, w in ((256, 4), (512, 8))], key=["n"]
)
@triton.jit
def tuned(x, y, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + i, mask=i < n)
    tl.store(y + i, tl.maximum(v, 0.0), mask=i < n)


class ModelNew(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.linear = nn.Linear(width, 64)

    def forward(self, x):
        x = self.linear(x)
        # FORWARD
        y = torch.empty_like(x)
        n = x.numel()
        with torch.cuda.device(x.device):
            relu[(triton.cdiv(n, 128),)](x, y, n, BLOCK=128)
            tuned[lambda meta: (triton.cdiv(n, meta["BLOCK"]),)](x, y, n)
        return y
"""
BY_HAND = """
import json, torch, triton
from triton.backends.compiler import GPUTarget

class Driver:
    def get_current_target(self):
        return GPUTarget("cuda", 90, 32)

    def get_current_device(self):
        return 0

    def get_current_stream(self, device):
        return 0

triton.runtime.driver.set_active(Driver())
import candidate

given = (torch.float32, torch.float32, 128 * 64)  # two aligned pointers and the number of values
made = candidate.tuned.warmup(*given, grid=(1,))
made.append(candidate.relu.warmup(*given, BLOCK=128, grid=(1,)))
print(json.dumps(sorted(kernel.hash for kernel in made)))
"""
AGAIN = """
import sys
import triton
found = []
triton.knobs.compilation.listener = lambda **facts: found.append(facts["cache_hit"])
exec(open(sys.argv[1]).read())
assert found and all(found), found
"""


@pytest.fixture(scope="module")
def builder(tmp_path_factory):
    made = Builder(CONFIG, "cuda", str(tmp_path_factory.mktemp("cache")), gpu=GPU)
    yield made
    made.close()


def build(builder: Builder, source: str) -> tuple[Path, dict]:
    """Returns the folder of builds and the report in it."""
    built = builder.build(PROBLEM, Candidate(source=source, language="triton"))
    assert built.verdict is None
    folder = Path(built.build_dir)
    return folder, json.loads((folder / REPORT).read_text())


def in_process(script: str, *arguments: str, folder: Path, cache: Path) -> str:
    done = subprocess.run(
        [sys.executable, "-c", script, *arguments],
        env={
            **os.environ,
            "TRITON_CACHE_DIR": str(cache),
            "TRITON_DEFAULT_FP_FUSION": "1",
            "KOPT_BUILD_DIR": str(folder),
        },
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3_000:]
    return done.stdout


def artefacts(folder: Path) -> list[Path]:
    """Returns kernels and their launchers; Triton 3.9 has but one launcher for all."""
    return sorted([*folder.rglob("*.cubin"), *folder.rglob("__triton_launcher*")])


@pytest.fixture(scope="module")
def built(builder) -> tuple[Path, dict]:
    return build(builder, SOURCE)


def test_every_kernel_and_configuration_has_its_cubin_for_the_target(built) -> None:
    folder, report = built
    assert (len(report["compiled"]), report["failed"], report["stopped"]) == (3, [], "")
    cubins = list(folder.rglob("*.cubin"))
    assert len(cubins) == 3
    assert all(cubin.read_bytes().startswith(b"\x7fELF") for cubin in cubins)
    assert all(".target sm_90" in path.read_text() for path in folder.rglob("*.ptx"))


def test_the_keys_are_those_of_tritons_own_compiler(built, tmp_path) -> None:
    _, report = built
    (tmp_path / "candidate.py").write_text(SOURCE)
    printed = in_process(BY_HAND, folder=tmp_path, cache=tmp_path / "triton")
    assert json.loads(printed) == report["compiled"]


def test_another_process_finds_everything_and_compiles_nothing(built, tmp_path) -> None:
    folder, _ = built
    order = order_to_compile(
        problem=PROBLEM,
        candidate=Candidate(source=SOURCE, language="triton"),
        gpu=GPU,
        mode=CONFIG.module_mode,
        num_workers=1,
    )
    (tmp_path / "order.py").write_text(order)
    before = artefacts(folder)
    in_process(AGAIN, str(tmp_path / "order.py"), folder=tmp_path, cache=folder / "triton")
    assert artefacts(folder) == before


def test_it_is_built_once(builder, built) -> None:
    again = builder.build(PROBLEM, Candidate(source=SOURCE, language="triton"))
    assert again.cached
    assert again.build_dir == str(built[0])


def test_a_view_that_is_not_aligned_is_compiled_for_as_such(builder) -> None:
    aligned = "y = torch.empty_like(x); relu[(1,)](x.view(-1)[4:], y, 16, BLOCK=16)"
    not_aligned = aligned.replace("[4:]", "[1:]")  # 4 bytes beyond a multiple of 16
    _, report = build(builder, SOURCE.replace("# FORWARD", f"{aligned}; {not_aligned}"))
    assert report["stopped"] == ""
    assert len(report["compiled"]) == 3 + 2


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("assert x.max().item() > 0", "DataDependent"),
        ("torch.cuda.CUDAGraph()", "Error"),
        ("raise ValueError('no such luck')", "ValueError: no such luck"),
    ],
)
def test_what_cannot_be_followed_keeps_what_was_compiled_and_is_no_verdict(
    builder, line: str, reason: str
) -> None:
    body = f"y = torch.empty_like(x); relu[(1,)](x, y, 7, BLOCK=16); {line}"
    _, report = build(builder, SOURCE.replace("# FORWARD", body))
    assert reason in report["stopped"]
    assert len(report["compiled"]) == 1


def test_a_kernel_that_does_not_compile_is_no_verdict(builder) -> None:
    _, report = build(builder, SOURCE.replace("tl.maximum(v, 0.0)", "undeclared", 1))
    assert len(report["compiled"]) == 2
    assert any("undeclared" in words for words in report["failed"])


def test_a_candidate_that_ends_the_process_is_no_verdict(builder) -> None:
    source = f"import os\nos.abort()\n{SOURCE}"
    built = builder.build(PROBLEM, Candidate(source=source, language="triton"))
    assert built.verdict is None
    assert not list(Path(built.build_dir).rglob("*.cubin"))


def test_the_key_knows_problem_target_and_source() -> None:
    candidate = Candidate(source=SOURCE, language="triton")
    given = {"problem": PROBLEM, "candidate": candidate, "gpu": GPU, "mode": "train"}
    others = [
        {"problem": Problem(name="rows", source=PROBLEM.source.replace("128", "256"))},
        {"problem": Problem(name="rows", source=PROBLEM.source, dtype="float16")},
        {"candidate": Candidate(source=SOURCE + "\n", language="triton")},
        {"gpu": KNOWN["8.0"]},
        {"mode": "eval"},
    ]
    keys = {triton_build_key(**{**given, **other}) for other in ({}, *others)}
    assert len(keys) == 6
