"""Extensions through the light toolchain: what Python sees of them, and that torch's way decides.

Expected values and words were taken from the same source built by torch 2.13 alone.
"""

import json
import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from kopt.actors.build.compilers import find_compilers
from kopt.actors.build.toolchain import (
    compiler_environment,
    provide_toolchain,
    toolchain_folder,
)
from kopt.actors.builder import Builder
from kopt.actors.config import EvaluateConfig, TimeoutConfig, TimingConfig
from kopt.actors.device_worker import DeviceWorker
from kopt.candidate import Candidate
from kopt.problem import Problem

pytestmark = pytest.mark.slow

CONFIG = EvaluateConfig(
    secret=20_240_607,
    compile=False,
    trials=1,
    timeouts=TimeoutConfig(build_s=180.0, load_s=30.0),
    timing=TimingConfig(min_pairs=4, max_pairs=4, block_ms=2.0),
)
MODEL = """
import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x):
        return torch.relu(x)


def get_inputs():
    return [torch.randn(64, 128)]
"""
PROBLEM = Problem(name="rows", source=MODEL)
SOURCE = """
import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

module = load_inline(name="rows_ext", functions=["rows"], extra_cflags=["-O2"], cpp_sources='''
torch::Tensor rows(torch::Tensor x) {
  auto y = torch::empty_like(x);
  const float* from = x.data_ptr<float>();
  for (int64_t i = 0; i < x.numel(); ++i) y.data_ptr<float>()[i] = std::max(from[i], 0.0f);
  return y;
}
''')


class ModelNew(nn.Module):
    def forward(self, x):
        return module.rows(x)
"""
BINDING = r"""
int number(int x) {
  if (x == 1) throw std::invalid_argument("invalid");
  if (x == 2) throw std::out_of_range("out of range");
  if (x == 3) TORCH_CHECK_INDEX(false, "index ", x);
  if (x == 4) TORCH_CHECK(false);
  if (x == 5) at::zeros({2}).data_ptr<double>();
  if (x == 6) throw 3;
  if (x == 7) throw std::bad_alloc();
  return x;
}
double real(double x) { return x; }
std::string text(const std::string& x) { return x + "!"; }
std::vector<int64_t> list(std::vector<int64_t> x) { return x; }
int64_t sizes(at::IntArrayRef x) { return x.size(); }
std::optional<bool> maybe(std::optional<bool> x) { return x; }
std::tuple<torch::Tensor, int64_t, bool> tuple(torch::Tensor x) { return {x, x.dim(), true}; }
torch::Tensor nothing() { return torch::Tensor(); }
void warn() { TORCH_WARN("beware ", 3); }
at::ScalarType dtype(torch::Tensor x) { return x.scalar_type(); }
"""
OWN = (
    "#include <torch/extension.h>\n"
    + BINDING
    + """
int one(int x) { return 1; }
int two(const std::string& x) { return 2; }
PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
  m.def("number", &number, py::arg("x") = 8, "a number");
  m.def("named", [](int a, int b) { return 10 * a + b; }, py::arg("a"), py::arg("b") = 2,
        py::call_guard<py::gil_scoped_release>());
  m.def("either", &one);
  m.def("either", &two);
}
"""
)
SCRIPT = r"""
import json, sys, torch, warnings
from torch.utils.cpp_extension import load_inline
names = ["number", "real", "text", "list", "sizes", "maybe", "tuple", "nothing", "warn", "dtype"]
a = load_inline("a_ext", open("binding.cpp").read(), functions=names)
b = load_inline("b_ext", open("own.cpp").read())
x, said = torch.ones(2), {}
warnings.simplefilter("error")
for call in open("calls").read().splitlines():
    try:
        said[call] = repr(eval(call))
    except Exception as error:
        said[call] = f"{type(error).__name__}: {str(error).splitlines()[0]}"
print(json.dumps(said))
"""
REFUSED = (
    "TypeError: {}(): incompatible function arguments. The following argument types are supported:"
)
UNCLEAR = (
    "RuntimeError: Expected false to be true, but got false.  (Could this error message be "
    "improved?  If so, please report an enhancement request to PyTorch.)"
)
SAID = {
    "a.number(0)": "0",
    "a.number(1)": "RuntimeError: invalid",
    "a.number(2)": "RuntimeError: out of range",
    "a.number(3)": "IndexError: index 3",
    "a.number(4)": UNCLEAR,
    "a.number(5)": "RuntimeError: expected scalar type Double but found Float",
    "a.number(6)": "RuntimeError: Caught an unknown exception!",
    "a.number(7)": "RuntimeError: std::bad_alloc",
    "b.number(1)": "ValueError: invalid",
    "b.number(2)": "IndexError: out of range",
    "b.number(3)": "IndexError: index 3",
    "b.number(4)": UNCLEAR,
    "b.number(7)": "MemoryError: std::bad_alloc",
    "a.number(1.0)": REFUSED.format("number"),
    "a.number(2**40)": REFUSED.format("number"),
    "a.number(torch.tensor(10))": "10",
    "a.number(torch.tensor(10.5))": "10",
    "a.number()": REFUSED.format("number"),
    "a.number(x=9)": REFUSED.format("number"),
    "b.number()": "8",
    "b.number(x=9)": "9",
    "b.number(y=9)": REFUSED.format("number"),
    "b.named(b=3, a=4)": "43",
    "b.named(4)": "42",
    "b.either(0)": "1",
    "b.either('x')": "2",
    "b.either(None)": REFUSED.format("either"),
    "a.real(2)": "2.0",
    "a.real('2')": REFUSED.format("real"),
    "a.text('x')": "'x!'",
    "a.text(b'x')": "'x!'",
    "a.list((1, 2))": "[1, 2]",
    "a.list([1.5])": REFUSED.format("list"),
    "a.list('ab')": REFUSED.format("list"),
    "a.sizes([3, 4])": "2",
    "a.maybe(None)": "None",
    "a.maybe(True)": "True",
    "a.tuple(x)": "(tensor([1., 1.]), 1, True)",
    "a.tuple(None)": REFUSED.format("tuple"),
    "a.nothing()": "None",
    "a.dtype(x)": "torch.float32",
    "a.number.__name__": "'number'",
    "a.__name__": "'a_ext'",
}


@pytest.fixture(scope="module")
def cache_dir(new_cache) -> Path:
    folder = new_cache()
    assert provide_toolchain(folder) is None
    return folder


def in_process(script: str, folder: Path, environment: dict[str, str]) -> str:
    done = subprocess.run(
        [sys.executable, "-c", script],
        env={**os.environ, "TORCH_EXTENSIONS_DIR": str(folder), **environment},
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3_000:]
    return done.stdout.splitlines()[-1]


def test_arguments_results_and_errors_are_those_of_torchs_own_build(cache_dir, tmp_path) -> None:
    (tmp_path / "binding.cpp").write_text(BINDING)
    (tmp_path / "own.cpp").write_text(OWN)
    (tmp_path / "calls").write_text("\n".join([*SAID, "a.warn()"]))
    printed = in_process(SCRIPT, tmp_path, compiler_environment(cache_dir))
    said = json.loads(printed)
    assert said.pop("a.warn()").startswith("UserWarning: beware 3 (Triggered internally at")
    assert said == SAID
    assert len(list(tmp_path.rglob("main.o.light"))) == 2


@pytest.fixture(scope="module")
def builder(cache_dir):
    made = Builder(CONFIG, "cpu", str(cache_dir))
    yield made
    made.close()


def build(builder: Builder, source: str):
    return builder.build(PROBLEM, Candidate(source=source, language="cpp"))


def test_a_candidate_is_built_light_and_a_device_child_builds_nothing(builder, cache_dir) -> None:
    built = build(builder, SOURCE)
    assert built.verdict is None, built.verdict.reason
    assert list(Path(built.build_dir).rglob("main.o.light"))
    assert not built.cached
    assert build(builder, SOURCE).cached
    launcher = Path(compiler_environment(cache_dir)["CXX"])
    kept = launcher.read_text()
    # From now on nothing compiles: what asks a compiler for more than its version fails.
    launcher.write_text('#!/bin/sh\ncase "$*" in -dump*) echo 12;; *) exit 9;; esac\n')
    worker = DeviceWorker(CONFIG, "cpu", 0, str(cache_dir))
    try:
        candidate = Candidate(source=SOURCE, language="cpp")
        made = worker.evaluate(PROBLEM, candidate, built)
    finally:
        worker.close()
        launcher.write_text(kept)
    assert made.verdict.kind == "correct", made.verdict.reason


def test_a_source_beyond_the_light_headers_is_built_as_torch_builds_it(builder) -> None:
    built = build(builder, SOURCE.replace("torch::empty_like(x)", "torch::nn::ReLU()(x)"))
    assert built.verdict is None, built.verdict.reason
    assert list(Path(built.build_dir).rglob("main.o.stock"))


def test_what_does_not_compile_is_reported_in_torchs_own_words(builder) -> None:
    built = build(builder, SOURCE.replace("return y;", "return undeclared;"))
    assert built.verdict.kind == "compile_failed"
    assert re.search(r"main\.cpp:\d+:\d+: error: .undeclared. was not declared", built.verdict.log)
    assert "kopt_light" not in built.verdict.log
    assert built.build_dir is None
    again = build(builder, SOURCE.replace("return y;", "return undeclared;"))
    assert again.cached  # the same source, flags and toolchain
    assert again.verdict == built.verdict
    assert again.build_dir is None


def test_what_may_fail_by_chance_is_built_again(builder) -> None:
    source = SOURCE.replace("import torch\n", "import torch\nraise OSError('no luck')\n", 1)
    for _ in range(2):
        built = build(builder, source)
        assert built.verdict.kind == "compile_failed"
        assert not built.cached


def test_builds_at_the_same_time_come_to_what_each_comes_to_alone(builder) -> None:
    wrong = SOURCE.replace("return y;", "return undeclared_too;")
    right = SOURCE.replace("0.0f", "-0.0f")
    with ThreadPoolExecutor(2) as threads:
        failed, made = threads.map(lambda source: build(builder, source), (wrong, right))
    assert "undeclared_too" in failed.verdict.log
    assert made.verdict is None, made.verdict.reason


def test_without_room_for_the_cache_a_candidate_is_built_elsewhere(
    cache_dir, caplog, monkeypatch
) -> None:
    monkeypatch.setattr("kopt.actors.build.cache.LEAST_FREE_BYTES", 1 << 62)
    source = SOURCE.replace("0.0f", "0.f")
    builder = Builder(CONFIG, "cpu", str(cache_dir))
    try:
        built = build(builder, source)
        assert built.verdict is None
        assert list(Path(built.build_dir).rglob("rows_ext.so"))
    finally:
        builder.close()
    (record,) = [each for each in caplog.records if "without the cache" in each.getMessage()]
    assert "\n" not in record.getMessage()


def test_a_toolchain_is_set_up_once(cache_dir) -> None:
    folder = toolchain_folder(cache_dir, compilers=find_compilers())
    before = folder.stat().st_mtime_ns
    assert provide_toolchain(cache_dir) is None
    assert folder.stat().st_mtime_ns == before
    assert {path.name for path in folder.parent.iterdir()} == {folder.name, f"{folder.name}.lock"}


def test_nvcc_is_asked_for_by_torchs_own_variable(cache_dir, monkeypatch) -> None:
    found = find_compilers()
    with_nvcc = type(found)(
        cxx=found.cxx, nvcc="/usr/bin/nvcc", archs="9.0", fingerprint=found.fingerprint
    )
    monkeypatch.setattr("kopt.actors.build.toolchain.find_compilers", lambda: with_nvcc)
    environment = compiler_environment(cache_dir)
    assert environment["TORCH_CUDA_ARCH_LIST"] == "9.0"
    assert Path(environment["PYTORCH_NVCC"]).name == "nvcc"
    assert os.access(environment["CXX"], os.X_OK)
