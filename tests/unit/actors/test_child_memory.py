"""Tensors in shared memory: seen by both sides, sealed ones written by one."""

from __future__ import annotations

import gc
import mmap
import os

import pytest
import torch

from kopt.actors.child.memory import DTYPES, SharedTensor, map_tensor, spec_of
from kopt.actors.child.tensor_spec import ITEM_BYTES, TensorSpec, spec_from_json


def test_elements_are_as_large_as_torch_says() -> None:
    assert {name: dtype.itemsize for name, dtype in DTYPES.items()} == ITEM_BYTES


@pytest.mark.parametrize("dtype", DTYPES)
def test_every_dtype_is_seen_alike_by_whoever_maps_it(dtype) -> None:
    spec = TensorSpec((2, 3), dtype)
    shared = SharedTensor(spec)
    bits = torch.arange(spec.num_bytes, dtype=torch.uint8) % 2
    shared.tensor.view(torch.uint8).copy_(bits.view(shared.tensor.view(torch.uint8).shape))
    other = map_tensor(shared.fd, spec, writable=False)
    assert spec_of(other) == spec
    assert torch.equal(other.view(torch.uint8), shared.tensor.view(torch.uint8))


@pytest.mark.parametrize("shape", [(), (1,), (0,), (4, 0, 3), (1, 1, 1)])
def test_scalars_and_tensors_without_elements_are_tensors(shape) -> None:
    spec = TensorSpec(shape, "float32")
    shared = SharedTensor(spec).seal()
    assert map_tensor(shared.fd, spec, writable=False).shape == shape


def test_a_new_tensor_is_zero_and_writes_of_either_side_are_seen() -> None:
    spec = TensorSpec((4,), "float32")
    shared = SharedTensor(spec)
    other = map_tensor(shared.fd, spec, writable=True)
    assert other.tolist() == [0.0] * 4
    other[1] = 5.0
    shared.tensor[2] = 6.0
    assert shared.tensor.tolist() == other.tolist() == [0.0, 5.0, 6.0, 0.0]


def test_a_write_to_a_sealed_tensor_stays_with_the_writer() -> None:
    spec = TensorSpec((4,), "float32")
    shared = SharedTensor(spec).seal()
    shared.tensor.fill_(1.0)  # its maker still can
    other = map_tensor(shared.fd, spec, writable=False)
    other[0] = 9.0
    assert shared.tensor.tolist() == [1.0] * 4
    assert other.tolist() == [9.0, 1.0, 1.0, 1.0]
    assert map_tensor(shared.fd, spec, writable=False).tolist() == [1.0] * 4


def test_a_sealed_tensor_cannot_be_mapped_or_written_or_resized_or_unsealed() -> None:
    shared = SharedTensor(TensorSpec((1024,), "float32")).seal()
    with pytest.raises(PermissionError):
        mmap.mmap(shared.fd, 4096, mmap.MAP_SHARED, mmap.PROT_READ | mmap.PROT_WRITE)
    with pytest.raises(PermissionError):
        os.pwrite(shared.fd, b"x", 0)
    for size in (0, 8192):
        with pytest.raises(PermissionError):
            os.ftruncate(shared.fd, size)
    reopened = os.open(f"/proc/self/fd/{shared.fd}", os.O_RDWR)
    with pytest.raises(PermissionError):
        os.pwrite(reopened, b"x", 0)
    os.close(reopened)
    assert shared.seal() is shared


def test_a_tensor_gives_its_descriptor_back_when_it_is_let_go() -> None:
    gc.collect()
    before = len(os.listdir("/proc/self/fd"))
    shared = SharedTensor(TensorSpec((4,), "float32"))
    kept = shared.tensor
    kept[0] = 3.0
    del shared
    assert len(os.listdir("/proc/self/fd")) == before
    assert kept[0] == 3.0  # what is still mapped stays


def test_closing_twice_closes_once() -> None:
    shared = SharedTensor(TensorSpec((4,), "float32"))
    fd = shared.fd
    shared.close()
    taken = os.open("/dev/null", os.O_RDONLY)  # takes the number over
    shared.close()
    del shared
    os.fstat(taken)
    assert taken == fd
    os.close(taken)


def test_more_than_there_is_memory_is_a_memory_error_and_holds_nothing() -> None:
    before = len(os.listdir("/proc/self/fd"))
    with pytest.raises(MemoryError, match="bytes of shared memory"):
        SharedTensor(TensorSpec((1 << 45,), "float64"))
    assert len(os.listdir("/proc/self/fd")) == before


@pytest.mark.parametrize("spec", [TensorSpec((2, 3), "bfloat16"), TensorSpec((), "bool")])
def test_a_spec_survives_json(spec) -> None:
    assert spec_from_json(spec.to_json()) == spec


@pytest.mark.parametrize(
    "value",
    [
        None,
        [],
        [[1]],
        [[1], "float32", True],
        [[1], "float31"],
        [[1], ["float32"]],
        [[-1], "float32"],
        [[1.0], "float32"],
        [[True], "float32"],
        [["1"], "float32"],
        ["1", "float32"],
        [[10**30], "float32"],
        [[1 << 40, 1 << 40], "float32"],
        [[1 << 40, 0, 1 << 40], "float32"],
        [[1] * 65, "float32"],
    ],
)
def test_what_is_no_spec_is_refused(value) -> None:
    with pytest.raises(ValueError, match="not a tensor spec"):
        spec_from_json(value)
