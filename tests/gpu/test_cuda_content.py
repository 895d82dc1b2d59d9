"""What is queued between the calls of a GPU gives what torch gives on the host."""

from __future__ import annotations

import pytest
import torch

from kopt.actors.child.content import HostContent
from kopt.actors.child.digest import digest
from kopt.actors.child.perturb import turns
from kopt.actors.devices.pool import kept_pool, new_pool, swept, wrapped

pytestmark = [pytest.mark.gpu]

DTYPES = ["float32", "bfloat16", "float64", "int64", "uint8", "bool", "complex128", "float8_e4m3fn"]


@pytest.fixture(scope="module")
def kernels():
    from kopt.actors.devices.cuda_content import Kernels

    return Kernels()


def content_of(kernels, sets, *, count: int, key: int = 0, sweeps: bool = False):
    from kopt.actors.devices.cuda_content import CudaContent

    return CudaContent(kernels, sets, count=count, key=key, sweeps=sweeps)


def outputs() -> list[list[torch.Tensor]]:
    """Outputs of every kind of layout."""
    wide = torch.randn(64, 72, device="cuda")
    image = torch.randn(2, 3, 5, 7, device="cuda")
    return [
        [torch.randn(1 << 22, device="cuda")],
        [torch.randn(1_000_003, device="cuda")[1:]],
        [torch.randint(0, 255, (12_345,), dtype=torch.uint8, device="cuda")],
        [torch.randint(0, 255, (12_345,), dtype=torch.uint8, device="cuda")[3:]],
        [wide[:, :64], wide[:, :63], wide.t()],
        [image.to(memory_format=torch.channels_last), image.bfloat16()],
        [torch.randn(33, 40, 50, 60, device="cuda")[:, 1:, ::2, 3:]],
        [torch.randint(0, 255, (4_096, 777), dtype=torch.uint8, device="cuda")[:, 1:]],
        [torch.randn(33, dtype=torch.complex64, device="cuda").conj()],
        [torch.tensor(2.5, device="cuda"), torch.empty(0, device="cuda"), torch.ones(5)],
        [],
    ]


def test_a_digest_is_that_of_the_host(kernels) -> None:
    content = content_of(kernels, {}, count=len(outputs()))
    made = outputs()
    for tensors in made:
        content.take(tensors)
    found = content.end()
    for tensors, mine in zip(made, found, strict=True):
        assert mine == int(digest([each.cpu() for each in tensors])) == int(digest(tensors))


def test_so_is_that_of_more_pieces_than_an_int_counts(kernels) -> None:
    """In two dimensions, so that 64 bits are needed to tell where one lies."""
    row = torch.randint(0, 255, (65_538,), dtype=torch.uint8, device="cuda")[::2]
    output = row.expand(1 << 17, -1)
    assert output.numel() > 1 << 32
    content = content_of(kernels, {}, count=1)
    content.take([output])
    assert content.end() == [int(digest([output]))]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("size", [2, 300, 1 << 20, (1 << 24) + 5])
def test_the_same_stretches_are_overwritten_and_put_back(kernels, dtype, size) -> None:
    count = 8
    rest = torch.arange(size) % (2 if dtype == "bool" else 120)
    drawn = {0: [rest.to(getattr(torch, dtype)), torch.randn(50)], 4: [torch.randn(1_000)]}
    sets = {
        "cpu": {number: [each.clone() for each in tensors] for number, tensors in drawn.items()},
        "cuda": {number: [each.cuda() for each in tensors] for number, tensors in drawn.items()},
    }
    key = -(1 << 62) + 12_345
    mine = content_of(kernels, sets["cuda"], count=count, key=key)
    theirs = HostContent(sets["cpu"], key=key)
    turn = turns([0, 4], seed=7)
    for _ in range(count):
        now = next(turn)
        for content, place in ((mine, "cuda"), (theirs, "cpu")):
            content.refresh(now)
            # A sum of bits, so that the digests of both are the same numbers.
            content.take([each.view(-1) for each in sets[place][now.number]])
        for one, other in zip(sets["cuda"][now.number], sets["cpu"][now.number], strict=True):
            assert torch.equal(bits(one.cpu()), bits(other))
    assert mine.end() == theirs.end()
    for number, tensors in drawn.items():
        for one, other in zip(sets["cuda"][number], tensors, strict=True):
            assert torch.equal(bits(one.cpu()), bits(other))


def bits(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.contiguous().view(-1).view(torch.uint8)


def test_a_pool_is_the_same_on_every_device() -> None:
    assert torch.equal(new_pool(1 << 22, device="cuda").cpu(), new_pool(1 << 22, device="cpu"))


def test_what_a_call_is_given_depends_on_the_sweep(kernels) -> None:
    sets = {0: [torch.randn(1 << 20, device="cuda")]}
    drawn = sets[0][0].clone()
    key = 77
    content = content_of(kernels, sets, count=2, key=key, sweeps=True)
    turn = turns([0], seed=3)
    pool = kept_pool(kernels.pool.numel(), "cuda")
    last = key
    for _ in range(2):
        now = next(turn)
        content.refresh(now)
        expected = [drawn.clone()]
        HostContent({0: expected}, key=wrapped(last + swept(pool, last))).refresh(now)
        assert torch.equal(sets[0][0], expected[0])
        content.take([sets[0][0]])
        last = int(digest(sets[0]))
    content.end()


def test_a_sweep_reads_the_pool_at_the_speed_of_its_memory(kernels) -> None:
    content = content_of(kernels, {0: [torch.randn(1 << 10, device="cuda")]}, count=40, sweeps=True)
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    turn = turns([0], seed=3)
    content.refresh(next(turn))
    begin.record()
    for _ in range(39):
        content.take([])
        content.refresh(next(turn))
    end.record()
    torch.cuda.synchronize()
    took_us = begin.elapsed_time(end) / 39 * 1e3
    read_us = kernels.pool.numel() * 8 / 2e12 * 1e6  # half of what an H200 reaches
    assert took_us < read_us + 20.0
