"""How fast a CPU is at its memory: whoever else is on one of its cores changes little."""

from __future__ import annotations

import pytest
import torch

from kopt.actors.devices import cpu
from kopt.actors.devices.cpu import CpuDevice


@pytest.fixture(autouse=True)
def two_threads():
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


def test_threads_that_wait_for_each_other_do_not_make_memory_slow(monkeypatch) -> None:
    took_ns = {1: 20_000, 2: 4_000_000}  # the second core was another's
    monkeypatch.setattr(cpu, "_best_ns", lambda words: took_ns[torch.get_num_threads()])
    found = CpuDevice().memory(num_bytes=1 << 20)
    assert found.bytes_per_s == (1 << 20) / 20e-6
    assert torch.get_num_threads() == 2


def test_several_threads_count_where_they_are_faster(monkeypatch) -> None:
    took_ns = {1: 20_000, 2: 12_000}
    monkeypatch.setattr(cpu, "_best_ns", lambda words: took_ns[torch.get_num_threads()])
    assert CpuDevice().memory(num_bytes=1 << 20).bytes_per_s == (1 << 20) / 12e-6


def test_a_measured_rate_is_one_of_memory() -> None:
    found = CpuDevice().memory(num_bytes=1 << 24)
    assert 1e8 < found.bytes_per_s <= found.most_bytes_per_s
