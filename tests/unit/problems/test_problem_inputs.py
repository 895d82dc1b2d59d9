"""Every kind of input in KernelBench's contract: what is the reference, what the given kernel."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
import torch

from kopt.data.problems import contract_errors, resolve
from kopt.data.problems.config import ProblemsConfig
from kopt.data.problems.file_source import load_file
from kopt.errors import ConfigError
from kopt.problem import Problem
from kopt.prompts.language import language_of
from kopt.static_check import static_check

TRITON = '''"""Adds two vectors."""
import torch, triton
import triton.language as tl

DEVICE = triton.runtime.driver.active.get_active_torch_device()
SIZE = 1000


@triton.jit
def add_kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n)
    tl.store(out_ptr + i, x + tl.load(y_ptr + i, mask=i < n), mask=i < n)


def add(x: torch.Tensor, y: torch.Tensor, block=256):
    out = torch.empty_like(x)
    add_kernel[(triton.cdiv(x.numel(), block),)](x, y, out, x.numel(), BLOCK=block)
    return out


def reference(x, y, scale=1):
    return x + scale * y


def get_inputs():
    return [torch.rand(SIZE, device=DEVICE), torch.rand(SIZE).cuda()]


def test_add():
    x, y = get_inputs()
    assert torch.allclose(add(x, y), reference(x, y))


if __name__ == "__main__":
    test_add()
'''
HELION = """import helion
import helion.language as hl
import torch


@helion.kernel(config=helion.Config(block_sizes=[64]))
def doubled(x):
    out = torch.empty_like(x)
    for tile in hl.tile(x.size(0)):
        out[tile] = x[tile] * 2
    return out


class Model(torch.nn.Module):
    def forward(self, x):
        return x * 2


def get_inputs():
    return [torch.rand(100)]
"""
CUDA = """#include <torch/extension.h>
// torch::Tensor not_this(torch::Tensor x) {
__global__ void twice(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = 2 * x[i];
}
torch::Tensor doubled(torch::Tensor x) {
  auto y = torch::empty_like(x);
  twice<<<(x.numel() + 255) / 256, 256>>>(x.data_ptr<float>(), y.data_ptr<float>(), x.numel());
  return y;
}
"""
BINDING = 'PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("run_it", &doubled); }\n'
INLINE = f'''import torch
from torch.utils.cpp_extension import load_inline

TEXT = r"""{CUDA}"""
library = load_inline(
    name="doubling",
    cpp_sources="torch::Tensor doubled(torch::Tensor x);",
    cuda_sources=TEXT,
    functions=["doubled"],
)


def doubled_cuda(x):
    return library.doubled(x)


def doubled_torch(x):
    return x * 2


def get_inputs():
    return [torch.rand(100)]
'''
REFERENCE = "import torch\n\n\ndef reference(x):\n    return x * 2\n\n\n" + (
    "def get_inputs():\n    return [torch.rand(100)]\n"
)
NET = """import torch
from torch import nn


class Block(nn.Module):
    def __init__(self, width):
        super(Block, self).__init__()
        self.layer = nn.Linear(width, width)

    def forward(self, x):
        return torch.relu(self.layer(x))


class Net(nn.Module):
    def __init__(self):
        super(Net, self).__init__()
        self.block = Block(8)

    def forward(self, x):
        return self.block(x).sum(-1)


def get_inputs():
    return [torch.rand(4, 8).to("cuda")]
"""
PAIR = """import torch

SCALE = 2.0
CALLS = []
CALLS.append(1)


class Model(torch.nn.Module):
    def forward(self, x):
        return x * SCALE


class ModelNew(torch.nn.Module):
    def forward(self, x):
        return x + x


def get_inputs():
    return [torch.rand(4)]
"""


def loaded(tmp_path: Path, text: str, *, name: str = "mine.py") -> Problem:
    path = tmp_path / name
    path.write_text(text)
    return load_file(path, config=ProblemsConfig())


def reference_of(problem: Problem) -> tuple[torch.Tensor, list[torch.Tensor]]:
    """Runs a problem's own Model, on a machine without the packages of its kernel."""
    names: dict = {}
    exec(compile(problem.source, problem.name, "exec"), names)  # our own texts
    inputs = names["get_inputs"]()
    return names["Model"]()(*inputs), inputs


def imported(source: str) -> set[str]:
    tree = ast.parse(source)
    return {a.name for n in ast.walk(tree) if isinstance(n, ast.Import) for a in n.names}


@pytest.mark.parametrize(
    ("text", "language", "expected"),
    [
        (TRITON, "triton", lambda x, y: x + y),
        (HELION, "helion", lambda x: 2 * x),
        (INLINE, "cuda", lambda x: 2 * x),
        (PAIR, "torch", lambda x: 2 * x),
    ],
    ids=["triton", "helion", "load_inline", "pair"],
)
def test_a_kernels_file_is_a_problem_with_a_given_kernel(tmp_path, text, language, expected):
    problem = loaded(tmp_path, text)
    assert contract_errors(problem.source) == []
    output, inputs = reference_of(problem)
    assert torch.equal(output, expected(*inputs))
    assert language_of(problem.given) == language
    assert static_check(problem.given, language=language).passed
    assert imported(problem.source) == {"torch"}  # the reference runs without the kernel's package


def test_a_reference_needs_no_device_and_nothing_that_finds_one(tmp_path):
    problem = loaded(tmp_path, TRITON)
    assert "DEVICE" not in problem.source
    assert "cuda" not in problem.source
    assert "test_add" not in problem.source + problem.given
    assert problem.source.startswith('"""Adds two vectors."""')
    assert "def forward(self, x, y, block=256):\n        return add(x, y, block)" in problem.given


def test_what_changes_a_name_stays_with_it_and_what_nobody_reads_goes(tmp_path):
    problem = loaded(tmp_path, PAIR)
    assert "SCALE" in problem.source
    assert "CALLS" not in problem.source + problem.given
    used = loaded(tmp_path, PAIR.replace("x * SCALE", "x * SCALE * len(CALLS)"))
    assert "CALLS.append(1)" in used.source


def test_a_model_of_another_name_is_the_outermost_module(tmp_path):
    problem = loaded(tmp_path, NET)
    assert problem.given == ""
    assert contract_errors(problem.source) == []
    output, inputs = reference_of(problem)
    assert (output.shape, inputs[0].device.type) == ((4,), "cpu")


def test_a_file_in_the_contract_is_taken_word_for_word(tmp_path):
    plain = PAIR.replace("ModelNew", "Helper")
    assert loaded(tmp_path, plain).source == plain
    assert loaded(tmp_path, plain).given == ""


def test_a_reference_that_is_a_kernel_itself_stays_whole(tmp_path):
    own = TRITON.replace("def reference(x, y, scale=1):", "class Model(torch.nn.Module):")
    own = own.replace(
        "    return x + scale * y", "    def forward(self, x, y):\n        return add(x, y)"
    )
    problem = loaded(tmp_path, own)
    assert problem.source == own
    assert problem.given == ""


@pytest.mark.parametrize("binding", ["", BINDING], ids=["host function", "pybind"])
def test_a_cuda_file_has_its_reference_beside_it(tmp_path, binding):
    (tmp_path / "doubling.py").write_text(REFERENCE)
    problem = loaded(tmp_path, CUDA + binding, name="doubling.cu")
    assert problem.name == "doubling"
    assert language_of(problem.given) == "cuda"
    assert static_check(problem.given, language="cuda").passed
    called = "run_it" if binding else "doubled"
    assert f"return library.{called}(x)" in problem.given
    output, inputs = reference_of(problem)
    assert torch.equal(output, 2 * inputs[0])


def test_a_cpp_file_is_an_input_too(tmp_path):
    (tmp_path / "reference.py").write_text(REFERENCE)
    text = "#include <torch/extension.h>\nat::Tensor f(at::Tensor x) {\n  return x * 2;\n}\n"
    problem = loaded(tmp_path, text, name="two.cpp")
    assert language_of(problem.given) == "cpp"
    assert "functions=['f']" in problem.given or 'functions=["f"]' in problem.given


def test_paths_name_kernels_as_they_name_models(tmp_path):
    (tmp_path / "doubling.py").write_text(REFERENCE)
    (tmp_path / "doubling.cu").write_text(CUDA)
    (problem,) = resolve([str(tmp_path / "doubling.cu")], ProblemsConfig())
    assert problem.given
    folder = tmp_path / "zoo"
    folder.mkdir()
    (folder / "adds.py").write_text(TRITON)
    (problem,) = resolve([str(folder)], ProblemsConfig())
    assert (problem.name, language_of(problem.given)) == ("zoo/adds", "triton")


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("a.py", TRITON.replace("reference(x, y, scale=1)", "other(x, y, scale)"), "no refer"),
        ("a.py", TRITON.replace("get_inputs", "samples"), "it defines no get_inputs()"),
        ("a.py", TRITON.replace("x: torch.Tensor, y: torch.Tensor, block", "x, y, out, block"),
         "no launch: expected a function of 2 argument(s)"),
        ("a.py", TRITON + "\n\ndef more(x, y):\n    return add_kernel[(1,)](x, y)\n",
         "several launches"),
        ("a.py", NET + "\n\nclass Other(nn.Module):\n    pass\n", "several modules may be"),
        ("a.py", "async_compile = 1\n\ndef call(args):\n    pass\n", "mode=compiled"),
        ("a.py", INLINE.replace("load_inline", "load").replace("=TEXT", "=['k.cu']"),
         "it compiles k.cu, and a kernel is judged by one text"),
        ("a.cu", CUDA, "expected a.py beside it"),
        ("b.cu", "int main() { return 0; }", "it binds nothing"),
        ("b.cu", CUDA + "torch::Tensor more(torch::Tensor x) {\n  return x;\n}\n", "several func"),
    ],
)  # fmt: skip
def test_what_is_missing_of_a_kernel_is_one_line(tmp_path, name, text, words):
    (tmp_path / "b.py").write_text(REFERENCE)
    with pytest.raises(ConfigError) as caught:
        loaded(tmp_path, text, name=name)
    (line,) = str(caught.value).splitlines()
    assert line.startswith(f"{tmp_path / name}: ")
    assert words in line


def test_a_given_kernel_is_part_of_a_problems_identity(tmp_path):
    pair = loaded(tmp_path, PAIR)
    other = loaded(tmp_path, PAIR.replace("x + x", "2 * x"))
    assert pair.source == other.source
    assert pair.problem_id != other.problem_id
