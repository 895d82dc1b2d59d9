"""Inputs and outputs cross to confined children by the memory of the GPU, and are safe there."""

from __future__ import annotations

import os

import pytest
import torch

from kopt.actors.child.tensor_spec import TensorSpec
from kopt.actors.config import EvaluateConfig
from kopt.actors.device_worker import DeviceWorker
from kopt.actors.supervisor.inputs import checksum

pytestmark = pytest.mark.gpu


def device_tensor(values: torch.Tensor):
    from kopt.actors.devices.cuda_memory import DeviceTensor

    made = DeviceTensor(TensorSpec(tuple(values.shape), str(values.dtype).removeprefix("torch.")))
    made.tensor.copy_(values)
    return made


def mapped(lent):
    """What another process gets of it."""
    from kopt.actors.devices.cuda_memory import map_device_tensor

    return map_device_tensor(lent.fd, lent.spec)


def test_what_is_written_into_a_lent_tensor_is_seen_by_its_owner() -> None:
    made = device_tensor(torch.arange(5.0))
    with made.lent() as lent:
        theirs = mapped(lent)
    theirs += 1
    torch.cuda.synchronize()
    assert made.tensor.tolist() == [1.0, 2.0, 3.0, 4.0, 5.0]
    assert not lent.is_private


def test_a_sealed_tensor_is_lent_as_a_copy_that_nobody_else_sees() -> None:
    made = device_tensor(torch.arange(5.0)).seal()
    with made.lent() as lent:
        theirs = mapped(lent)
    assert theirs.tolist() == [0.0, 1.0, 2.0, 3.0, 4.0]
    theirs.fill_(9.0)
    torch.cuda.synchronize()
    assert made.tensor.tolist() == [0.0, 1.0, 2.0, 3.0, 4.0]


def test_the_memory_is_given_back_once_nobody_maps_it() -> None:
    torch.cuda.init()
    torch.zeros(1, device="cuda")
    before, _ = torch.cuda.mem_get_info()
    open_before = len(os.listdir("/proc/self/fd"))
    made = device_tensor(torch.zeros(64 << 20))
    with made.lent() as lent:
        theirs = mapped(lent)
    made.close()
    assert torch.cuda.mem_get_info()[0] <= before - (256 << 20)
    del theirs
    torch.cuda.empty_cache()
    assert torch.cuda.mem_get_info()[0] >= before - (8 << 20)
    assert len(os.listdir("/proc/self/fd")) <= open_before + 1


def test_more_than_the_device_has_is_a_memory_error() -> None:
    from kopt.actors.devices.cuda_memory import DeviceTensor

    with pytest.raises(MemoryError):
        DeviceTensor(TensorSpec((1 << 40,), "float32"))


@pytest.mark.parametrize("count", [3, 1 << 20, (1 << 23) + 5])
def test_a_checksum_knows_values_and_their_order(count: int) -> None:
    values = torch.rand(count, device="cuda")
    swapped = values.clone()
    swapped[[0, count - 1]] = values[[count - 1, 0]]
    changed = values.clone()
    changed[count // 2] += 1.0
    seen = {checksum([each]) for each in (values, swapped, changed)}
    assert len(seen) == 3
    assert checksum([values.clone()]) == checksum([values])


def test_confined_children_map_the_supervisors_memory(tmp_path) -> None:
    worker = DeviceWorker(EvaluateConfig(secret=7, compile=False), "cuda", 0, str(tmp_path))
    try:
        assert worker.exchange == "cuda"
    finally:
        worker.close()
