"""The kernels between a GPU's timed calls, compiled for the host: they give what torch gives there.

Blocks of one thread run one after the other; the order of launches is that of a stream.
"""

from __future__ import annotations

import ctypes
import subprocess
from contextlib import nullcontext
from types import SimpleNamespace

import pytest
import torch

from kopt.actors.child.content import HostContent
from kopt.actors.child.digest import digest
from kopt.actors.child.perturb import turns
from kopt.actors.devices.cuda_content import CudaContent, Kernels
from kopt.actors.devices.cuda_image import SOURCE
from kopt.actors.devices.pool import new_pool, swept, wrapped

ON_HOST = """
#define __global__
#define __device__
#define __shared__ static
struct Index { unsigned x; };
static const Index threadIdx{0}, blockDim{1};
static Index blockIdx{0}, gridDim{1};
extern "C" void run_as_block(unsigned block, unsigned blocks) {
  blockIdx.x = block;
  gridDim.x = blocks;
}
struct ulonglong2 { unsigned long long x, y; };
static void __syncthreads() {}
template <typename T> static T __shfl_down_sync(unsigned, T, int) { return 0; }
static void atomicAdd(unsigned long long* to, unsigned long long value) { *to += value; }
"""
POOL_WORDS = 1_000
NUM_BLOCKS = 7
"""Prime to the sizes of most outputs, so that a thread's elements lie at many places of a row."""


class HostKernel:
    """A kernel as a function of the host."""

    def __init__(self, function, kinds, run_as_block) -> None:
        self._function, self._kinds, self._run_as_block = function, kinds, run_as_block

    def __call__(self, *arguments: int, blocks: int, threads: int, stream) -> None:
        assert blocks >= 1
        assert threads % 32 == 0
        for block in range(NUM_BLOCKS):
            self._run_as_block(block, NUM_BLOCKS)
            pairs = zip(self._kinds, arguments, strict=True)
            self._function(*(kind(argument) for kind, argument in pairs))


@pytest.fixture(scope="module", params=[31, 0], ids=["in 32 bits", "in 64 bits"])
def library(request, tmp_path_factory):
    """The kernels; where they count pieces in 64 bits, they do so of few ones too."""
    folder = tmp_path_factory.mktemp("chain")
    source = folder / "chain.cpp"
    text, decides = SOURCE.read_text(), "count >> 31"
    assert text.count(decides) == 1
    source.write_text(ON_HOST + text.replace(decides, f"count >> {request.param}"))
    built = folder / "chain.so"
    command = ["c++", "-std=c++17", "-O1", "-shared", "-fPIC", str(source), "-o", str(built)]
    subprocess.run(command, check=True, capture_output=True)
    return ctypes.CDLL(str(built))


@pytest.fixture
def kernels(library, monkeypatch) -> Kernels:
    """Those of a device that is this host."""
    monkeypatch.setattr(
        "kopt.actors.devices.cuda_content.Kernel",
        lambda module, name, kinds: HostKernel(getattr(library, name), kinds, library.run_as_block),
    )
    monkeypatch.setattr("kopt.actors.devices.cuda_content.load_image", lambda image: None)
    monkeypatch.setattr("kopt.actors.devices.cuda_content.chain_image", lambda arch: b"")
    monkeypatch.setattr(
        "kopt.actors.devices.cuda_content.new_pool",
        lambda *_, device: new_pool(POOL_WORDS, device="cpu"),
    )
    host = SimpleNamespace(major=9, minor=0, multi_processor_count=4, L2_cache_size=1 << 20)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda number: host)
    monkeypatch.setattr(torch.cuda, "current_stream", lambda: SimpleNamespace(cuda_stream=0))
    monkeypatch.setattr(torch.cuda, "stream", lambda stream: nullcontext())
    return Kernels()


def outputs() -> list[list[torch.Tensor]]:
    """Outputs of every kind of layout."""
    wide = torch.randn(64, 72)
    image = torch.randn(2, 3, 5, 7)
    deep = torch.randn(3, 4, 5, 6, 7, 8)
    return [
        [torch.randn(1 << 16)],
        [torch.randn(10_003)[1:]],
        [torch.randint(0, 255, (12_345,), dtype=torch.uint8)],
        [torch.randint(0, 255, (12_345,), dtype=torch.uint8)[3:]],
        [wide[:, :64], wide[:, :63], wide.t(), wide[:, 1:64:2], wide[::3, 5:]],
        [
            image.to(memory_format=torch.channels_last),
            image.bfloat16()[..., 1:],
            image[:, 1:, :, 2:],
        ],
        [torch.randn(3, 3, 3, 8)[:, :2, 1:, 1:4], torch.randn(2, 9, 2, 4)[:, 1:, :, ::2].half()],
        [deep[::2, ::2, 1:, ::2, 1:, ::2], deep[1:, :, 2:].double()[..., 1:]],
        [torch.randn(33, dtype=torch.complex64).conj(), torch.randn(9, 7, dtype=torch.complex128)],
        [torch.randn(9, 7, dtype=torch.complex128)[:, 1:], torch.randn(8, 7)[:, :6].bfloat16()],
        [torch.tensor(2.5), torch.empty(0), torch.empty(3, 0)[:, :0], torch.ones(5, 4)[:, :1]],
        [],
    ]


def test_a_digest_is_that_of_torch(kernels) -> None:
    made = outputs()
    content = CudaContent(kernels, {}, count=len(made), key=0, sweeps=False)
    for tensors in made:
        content.take(tensors)
    assert content.end() == [int(digest(tensors)) for tensors in made]


@pytest.mark.parametrize(
    "dtype",
    ["float32", "bfloat16", "float64", "int64", "uint8", "bool", "complex128", "float8_e4m3fn"],
)
@pytest.mark.parametrize("size", [2, 300, 70_001])
def test_the_same_stretches_are_overwritten_and_put_back(kernels, dtype, size) -> None:
    rest = torch.arange(size) % (2 if dtype == "bool" else 120)
    drawn = {0: [rest.to(getattr(torch, dtype)), torch.randn(50)], 4: [torch.randn(1_000)]}
    mine = {number: [each.clone() for each in tensors] for number, tensors in drawn.items()}
    theirs = {number: [each.clone() for each in tensors] for number, tensors in drawn.items()}
    key = -(1 << 62) + 12_345
    ours = CudaContent(kernels, mine, count=8, key=key, sweeps=False)
    hosts = HostContent(theirs, key=key)
    turn = turns([0, 4], seed=7)
    for _ in range(8):
        now = next(turn)
        for content, sets in ((ours, mine), (hosts, theirs)):
            content.refresh(now)
            content.take([each.view(-1) for each in sets[now.number]])
        for one, other in zip(mine[now.number], theirs[now.number], strict=True):
            assert torch.equal(bits(one), bits(other))
    assert ours.end() == hosts.end()
    for number, tensors in drawn.items():
        for one, other in zip(mine[number], tensors, strict=True):
            assert torch.equal(bits(one), bits(other))


def bits(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.contiguous().view(-1).view(torch.uint8)


def test_what_a_call_is_given_depends_on_the_sweep(kernels) -> None:
    drawn = torch.randn(1 << 12)
    sets = {0: [drawn.clone()]}
    content = CudaContent(kernels, sets, count=2, key=77, sweeps=True)
    turn, last = turns([0], seed=3), 77
    for _ in range(2):
        now = next(turn)
        content.refresh(now)
        expected = [drawn.clone()]
        HostContent({0: expected}, key=wrapped(last + swept(kernels.pool, last))).refresh(now)
        assert torch.equal(sets[0][0], expected[0])
        content.take([sets[0][0]])
        last = int(digest(sets[0]))
    assert content.end()[-1] == last


def test_what_was_given_is_not_held_any_longer(kernels) -> None:
    sets = {0: [torch.randn(1 << 10)]}
    content = CudaContent(kernels, sets, count=1, key=0, sweeps=False)
    content.refresh(next(turns([0], seed=3)))
    content.take(sets[0])
    content.end()
    assert not any(
        isinstance(each, torch.Tensor) for each in vars(content).values() if each is sets[0][0]
    )
    assert content._sets == {}
    assert content._spare == {}
