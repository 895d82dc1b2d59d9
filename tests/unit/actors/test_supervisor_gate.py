"""The page by which a block is let go: what both sides write, who says nothing, and the clock."""

from __future__ import annotations

import mmap
import struct
import threading
import time
from collections.abc import Iterator

import pytest

from kopt.actors.child.release import DONE, GO, KEY, LAST, PAGE_BYTES, QUEUED
from kopt.actors.supervisor.gate import Gate

BLOCK_S = 0.02
KEY_GIVEN = -(1 << 62) + 3


@pytest.fixture
def gate() -> Iterator[Gate]:
    made = Gate()
    yield made
    made.close()
    made.close()


class FakeDevice(threading.Thread):
    """Queues a block, waits for its release, and says that it is done a while later."""

    def __init__(self, gate: Gate, *, queues_s: float = 0.0, says: int | None = 99) -> None:
        super().__init__(daemon=True)
        self.page = mmap.mmap(gate.fd, PAGE_BYTES)
        self.ticket = gate.next_ticket()
        self.queues_s, self.says = queues_s, says
        self.key: int | None = None
        self.went_s = 0.0
        self.has_answered = False

    def word(self, at: int) -> int:
        return struct.unpack_from("<q", self.page, at)[0]

    def run(self) -> None:
        time.sleep(self.queues_s)
        struct.pack_into("<q", self.page, QUEUED, self.ticket)
        while self.word(GO) < self.ticket:
            time.sleep(0.0)
        self.went_s = time.perf_counter()
        self.key = self.word(KEY)
        time.sleep(BLOCK_S)
        if self.says is not None:
            struct.pack_into("<q", self.page, LAST, self.says)
            struct.pack_into("<q", self.page, DONE, self.ticket)
        time.sleep(BLOCK_S)
        self.has_answered = True


def let_go(gate: Gate, device: FakeDevice, *, patience_s: float = 5.0, limit_s: float = 5.0):
    device.start()
    release = gate.release(
        key=KEY_GIVEN,
        patience_s=patience_s,
        limit_s=limit_s,
        has_answered=lambda: device.has_answered,
    )
    device.join()
    return release


def test_a_block_goes_once_it_is_queued_and_lasts_until_its_device_is_done(gate) -> None:
    for says in (99, -5):
        device = FakeDevice(gate, queues_s=0.01, says=says)
        release = let_go(gate, device)
        assert release.was_queued
        assert device.key == KEY_GIVEN
        assert release.last == says
        assert release.wall_us >= BLOCK_S * 1e6
        assert release.went_ns / 1e9 <= device.went_s


def test_a_block_that_is_not_queued_in_time_goes_all_the_same(gate) -> None:
    device = FakeDevice(gate, queues_s=0.3)
    release = let_go(gate, device, patience_s=0.01)
    assert not release.was_queued
    assert release.wall_us >= (0.2 + BLOCK_S) * 1e6  # it is queued after its release


def test_a_device_that_says_nothing_is_done_when_its_child_answers(gate) -> None:
    device = FakeDevice(gate, says=None)
    release = let_go(gate, device)
    assert release.wall_us >= 2 * BLOCK_S * 1e6
    assert device.has_answered


def test_a_child_that_failed_before_it_queued_is_not_waited_for(gate) -> None:
    gate.next_ticket()
    began_s = time.monotonic()
    release = gate.release(key=1, patience_s=30.0, limit_s=30.0, has_answered=lambda: True)
    assert time.monotonic() - began_s < 5.0
    assert not release.was_queued


def test_nobody_waits_for_ever(gate) -> None:
    gate.next_ticket()
    release = gate.release(key=1, patience_s=0.01, limit_s=0.1, has_answered=lambda: False)
    assert 0.1e6 <= release.wall_us < 5e6


def test_a_block_is_not_done_by_what_was_said_of_the_last(gate) -> None:
    let_go(gate, FakeDevice(gate))
    release = let_go(gate, FakeDevice(gate, queues_s=0.05))
    assert release.was_queued
    assert release.wall_us >= BLOCK_S * 1e6
