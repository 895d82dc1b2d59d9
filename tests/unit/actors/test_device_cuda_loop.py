"""The loop of timed calls on a GPU, on a stream that notes what is queued, and in what order."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import torch

import kopt.actors.devices.cuda as cuda
from kopt.actors.devices.cuda import CudaDevice

CALLS = 3
STREAM = SimpleNamespace(cuda_stream=5)


@pytest.fixture
def queued(monkeypatch) -> list[str]:
    """What was queued on the stream, and where the host waited for it."""
    noted: list[str] = []

    class Event:
        made = 0

        def __init__(self, *, enable_timing: bool) -> None:
            assert enable_timing
            self.name = f"event {Event.made}"
            Event.made += 1

        def record(self, stream: object) -> None:
            assert stream is STREAM
            noted.append(self.name)

        def elapsed_time(self, other: Event) -> float:
            return 1e-3 * (noted.index(other.name) - noted.index(self.name))

    monkeypatch.setattr(cuda, "_Event", Event)
    monkeypatch.setattr(cuda, "_synchronize", lambda: noted.append("wait"))
    monkeypatch.setattr(cuda, "_pause", lambda cycles: noted.append("pause"))
    monkeypatch.setattr(cuda, "_check_clock", lambda: None)
    monkeypatch.setattr(torch.cuda, "current_stream", lambda: STREAM)
    return noted


class Gate:
    def __init__(self, noted: list[str]) -> None:
        self.noted = noted

    def hold(self, ticket: int, *, key_to: int, stream) -> None:
        assert (ticket, key_to, stream.value) == (7, 100, STREAM.cuda_stream)
        self.noted.append("hold")

    def report(self, ticket: int, *, digest_at: int, stream) -> None:
        assert (ticket, digest_at, stream.value) == (7, 200, STREAM.cuda_stream)
        self.noted.append("report")


def timed(queued: list[str], *, pace: str, ticket: int = 0, flush: bool = True) -> list[str]:
    device = object.__new__(CudaDevice)
    device._persisting_l2 = SimpleNamespace(let_go=lambda: None, set_aside_bytes=lambda: 0)
    device._published_flush = SimpleNamespace(zero_=lambda: queued.append("flush"))
    device._content = SimpleNamespace(key_at=100, last_at=200)
    device._gate = Gate(queued)
    device.pace, device.ticket = pace, ticket
    found = device.time_calls(
        lambda arguments: queued.append("call"),
        [[]] * CALLS,
        before=lambda position: queued.append("before"),
        after=lambda out: queued.append("after"),
        flush=flush,
    )
    assert found.each_us == pytest.approx([2.0] * CALLS)
    return ["event" if each.startswith("event") else each for each in queued]


ONE = ["before", "event", "call", "event", "after"]


def test_a_block_is_queued_behind_its_release_and_nothing_waits_in_it(queued) -> None:
    expected = ["wait", "hold", "event", *(ONE * CALLS), "event", "report", "wait"]
    assert timed(queued, pace="ahead", ticket=7) == expected


def test_without_a_ticket_nothing_is_held(queued) -> None:
    assert "hold" not in timed(queued, pace="ahead")


def test_a_published_protocol_pauses_and_flushes_before_each_call(queued) -> None:
    cold = ["pause", "flush", *ONE]
    assert timed(queued, pace="queued") == ["wait", "event", *(cold * CALLS), "event", "wait"]


def test_a_protocol_that_waits_does_so_before_each_call(queued) -> None:
    cold = ["wait", "pause", "flush", *ONE]
    assert timed(queued, pace="waiting") == ["wait", "event", *(cold * CALLS), "event", "wait"]


def test_calls_that_are_not_told_apart_are_not_flushed(queued) -> None:
    assert "flush" not in timed(queued, pace="queued", flush=False)


def test_a_call_that_raises_leaves_no_report(queued) -> None:
    device = object.__new__(CudaDevice)
    device._gate = Gate(queued)
    device._content = SimpleNamespace(key_at=100, last_at=200)
    device.ticket = 7
    with pytest.raises(ZeroDivisionError), device._released(STREAM):
        1 / 0  # noqa: B018 - what a call may do
    assert queued == ["hold"]
