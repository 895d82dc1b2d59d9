"""Messages between processes: bounded, in time, and never more than a JSON object."""

from __future__ import annotations

import json
import os
import socket
import struct
import threading
import time

import pytest

from kopt.actors.child.channel import MAX_FDS, Channel, ChannelClosed, ChannelGarbled


@pytest.fixture
def ends():
    """(our channel, which takes 1,000 bytes; the other side's bare socket)."""
    ours, theirs = socket.socketpair()
    channel = Channel(ours, max_bytes=1_000)
    yield channel, theirs
    channel.close()
    theirs.close()


def framed(payload: bytes) -> bytes:
    return struct.pack("!I", len(payload)) + payload


def test_messages_come_in_order_and_whole(ends) -> None:
    channel, theirs = ends
    theirs.sendall(framed(b'{"a": 1}') + framed(b'{"b": [2]}'))
    assert channel.receive() == ({"a": 1}, [])
    assert channel.receive(timeout_s=1.0) == ({"b": [2]}, [])


def test_a_message_larger_than_the_sockets_buffer_arrives() -> None:
    left, right = socket.socketpair()
    sender, receiver = Channel(left), Channel(right)
    message = {"text": "x" * 3_000_000}
    thread = threading.Thread(target=sender.send, args=(message,))
    thread.start()
    assert receiver.receive(timeout_s=10.0)[0] == message
    thread.join()
    sender.close()
    receiver.close()


def test_a_message_above_the_limit_is_refused_before_it_is_read(ends) -> None:
    channel, theirs = ends
    theirs.sendall(struct.pack("!I", 1_001))
    with pytest.raises(ChannelGarbled, match="1001 bytes; at most 1000"):
        channel.receive(timeout_s=1.0)


@pytest.mark.parametrize(
    "payload",
    [
        b"",
        b"{",
        b"\xff\xfe\x00",
        b"[1]",
        b'"text"',
        b"null",
        b"[" * 900,
        b"1" * 900,
        b'{"a": "\\ud800"}',
        b'{"\\uDFFF": 1}',
    ],
)
def test_what_is_no_object_is_refused(ends, payload) -> None:
    channel, theirs = ends
    theirs.sendall(framed(payload))
    with pytest.raises(ChannelGarbled):
        channel.receive(timeout_s=1.0)


def test_brackets_that_exhaust_the_parser_are_refused() -> None:
    ours, theirs = socket.socketpair()
    channel = Channel(ours, max_bytes=1_000_000)
    theirs.sendall(framed(b"[" * 150_000))
    with pytest.raises(ChannelGarbled):
        channel.receive(timeout_s=1.0)
    channel.close()
    theirs.close()


def test_a_whole_surrogate_pair_is_text(ends) -> None:
    channel, theirs = ends
    theirs.sendall(framed(json.dumps({"a": "\U0001f600"}).encode()))
    assert channel.receive()[0] == {"a": "\U0001f600"}


@pytest.mark.parametrize("sent", [b"", b"\x00\x00", framed(b'{"a": 1}')[:-1]])
def test_a_message_that_does_not_end_is_a_timeout(ends, sent) -> None:
    channel, theirs = ends
    theirs.sendall(sent)
    with pytest.raises(TimeoutError):
        channel.receive(timeout_s=0.05)


def test_bytes_that_trickle_do_not_put_the_deadline_off(ends) -> None:
    channel, theirs = ends
    done = threading.Event()

    def trickle() -> None:
        while not done.wait(0.01):
            theirs.send(b"\x00\x00\x03\x00"[:1])

    thread = threading.Thread(target=trickle)
    theirs.sendall(struct.pack("!I", 900))
    thread.start()
    began_s = time.monotonic()
    with pytest.raises(TimeoutError):
        channel.receive(timeout_s=0.2)
    assert time.monotonic() - began_s < 2.0
    done.set()
    thread.join()


def test_the_end_of_the_other_side_is_told_apart_from_silence(ends) -> None:
    channel, theirs = ends
    theirs.sendall(b"\x00")
    theirs.close()
    with pytest.raises(ChannelClosed):
        channel.receive(timeout_s=1.0)
    with pytest.raises(ChannelClosed):
        channel.send({"a": 1})


def open_descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


def test_descriptors_go_with_a_message_of_a_trusted_side() -> None:
    left, right = socket.socketpair()
    sender, receiver = Channel(left), Channel(right)
    fds = [os.open("/dev/null", os.O_RDONLY) for _ in range(MAX_FDS)]
    sender.send({"a": 1}, fds=fds)
    message, received = receiver.receive()
    assert message == {"a": 1}
    assert len(received) == MAX_FDS
    assert not any(os.get_inheritable(fd) for fd in received)
    for fd in (*fds, *received):
        os.close(fd)
    sender.close()
    receiver.close()


def test_descriptors_of_an_untrusted_side_are_closed(ends) -> None:
    channel, theirs = ends
    fds = [os.open("/dev/null", os.O_RDONLY) for _ in range(20)]
    before = open_descriptors()
    socket.send_fds(theirs, [framed(b"{}")], fds)
    assert channel.receive() == ({}, [])
    assert open_descriptors() == before
    for fd in fds:
        os.close(fd)
