"""The loop of timed calls on a GPU, on a stream of virtual time: which it says were starved."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import torch

import kopt.actors.devices.cuda as cuda
from kopt.actors.devices.cuda import CYCLES_PER_US, CudaDevice

DEVICE_US = 50.0
CALLS = 6


class Stream:
    """Work is queued by the host at its time, and done by the device in turn."""

    def __init__(self) -> None:
        self.host_us = 0.0
        self.free_us = 0.0
        """When the device has done all that was queued."""

    def queue(self, took_us: float) -> None:
        self.free_us = max(self.free_us, self.host_us) + took_us

    def wait(self) -> None:
        self.host_us = max(self.host_us, self.free_us)


@pytest.fixture
def stream(monkeypatch) -> Stream:
    made = Stream()

    class Event:
        def __init__(self, *, enable_timing: bool) -> None:
            assert enable_timing
            self.at_us = -1.0

        def record(self) -> None:
            made.queue(0.0)
            self.at_us = made.free_us

        def query(self) -> bool:
            return self.at_us <= made.host_us

        def elapsed_time(self, other: Event) -> float:
            return (other.at_us - self.at_us) / 1e3

    monkeypatch.setattr(cuda, "_Event", Event)
    monkeypatch.setattr(cuda, "_synchronize", made.wait)
    monkeypatch.setattr(cuda, "_pause", lambda cycles: made.queue(cycles / CYCLES_PER_US))
    monkeypatch.setattr(cuda, "_check_clock", lambda: None)
    return made


def timed(stream: Stream, *, host_us: float, pause_us: float, waits: bool = False):
    device = object.__new__(CudaDevice)
    device._flush = torch.empty(4, dtype=torch.int32)
    device._persisting_l2 = SimpleNamespace(let_go=lambda: None, set_aside_bytes=lambda: 0)
    device.pause_us = pause_us

    def call(arguments: object) -> object:
        if waits:
            stream.wait()
        stream.host_us += host_us
        stream.queue(DEVICE_US)
        return arguments

    return device.time_calls(
        call, [[]] * CALLS, before=lambda position: None, after=lambda out: None, flush=True
    )


def test_a_call_that_is_launched_within_its_head_start_takes_what_the_device_takes(stream) -> None:
    found = timed(stream, host_us=200.0, pause_us=250.0)
    assert found.starved == 0
    assert found.each_us == pytest.approx([DEVICE_US] * CALLS)


def test_a_call_that_is_launched_late_is_said_to_be_starved(stream) -> None:
    found = timed(stream, host_us=400.0, pause_us=250.0)
    assert found.starved == CALLS
    assert min(found.each_us) > DEVICE_US


def test_a_longer_head_start_is_what_it_needs(stream) -> None:
    found = timed(stream, host_us=400.0, pause_us=500.0)
    assert found.starved == 0
    assert found.each_us == pytest.approx([DEVICE_US] * CALLS)


def test_a_call_that_waits_for_the_device_is_starved_behind_any_pause(stream) -> None:
    assert timed(stream, host_us=10.0, pause_us=4_000.0, waits=True).starved == CALLS
