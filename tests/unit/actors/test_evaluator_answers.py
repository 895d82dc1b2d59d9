"""Children that answer what no honest one does: the evaluator stays whole and passes none of it."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.usefixtures("leaves_nothing")

SPEC = "[[512, 256], 'float32']"
NOTES = "[{'types': [], 'aliases': False, 'dense': True, 'devices': ['cpu']}]"

# What the answer holds that is replaced, and by what.
ANSWERS = {
    "nothing": ("trees", "{}"),
    "a list": ("trees", "[1, 2]"),
    "a number for trees": ("trees", f"{{'trees': 5, 'notes': {NOTES}, 'specs': [{SPEC}]}}"),
    "no trees": ("trees", f"{{'trees': [], 'notes': {NOTES}, 'specs': [{SPEC}]}}"),
    "a tensor that is not there": (
        "trees",
        f"{{'trees': [{{'tensor': 7}}], 'notes': {NOTES}, 'specs': [{SPEC}]}}",
    ),
    "a negative tensor": (
        "trees",
        f"{{'trees': [{{'tensor': -1}}], 'notes': {NOTES}, 'specs': [{SPEC}] * 4}}",
    ),
    "a tensor beyond the buffers": (
        "trees",
        f"{{'trees': [{{'tensor': 3}}], 'notes': {NOTES}, 'specs': [{SPEC}] * 4}}",
    ),
    "no specs": ("trees", f"{{'trees': [{{'tensor': 0}}], 'notes': {NOTES}}}"),
    "a shape beyond all memory": (
        "trees",
        f"{{'trees': [{{'tensor': 0}}], 'notes': {NOTES}, 'specs': [[[10 ** 30], 'float32']]}}",
    ),
    "a product of shapes beyond all memory": (
        "trees",
        f"{{'trees': [{{'tensor': 0}}], 'notes': {NOTES}, 'specs': [[[2 ** 40] * 40, 'float32']]}}",
    ),
    "a shape below zero": (
        "trees",
        f"{{'trees': [{{'tensor': 0}}], 'notes': {NOTES}, 'specs': [[[-1, 4], 'float32']]}}",
    ),
    "an unknown dtype": (
        "trees",
        f"{{'trees': [{{'tensor': 0}}], 'notes': {NOTES}, 'specs': [[[4], 'load']]}}",
    ),
    "a dtype that is a list": (
        "trees",
        f"{{'trees': [{{'tensor': 0}}], 'notes': {NOTES}, 'specs': [[[4], ['float32']]]}}",
    ),
    "a dtype that is no dtype": (
        "trees",
        f"{{'trees': [{{'dtype': 'os'}}], 'notes': {NOTES}, 'specs': [{SPEC}]}}",
    ),
    "a key that is a list": (
        "trees",
        f"{{'trees': [{{'dict': [[{{'list': []}}, {{'value': 1}}]]}}], 'notes': {NOTES},"
        f" 'specs': [{SPEC}]}}",
    ),
    "a tree that is very deep": ("trees", "deep"),
    "more than is read": ("trees", "{'trees': 'x' * 1_000_000}"),
    "half a surrogate pair": ("trees", "{'failed': '\\ud800', 'log': '\\udfff'}"),
    "a failure that is no text": ("trees", "{'failed': 5, 'log': {'a': [1]}}"),
    "notes that are no notes": (
        "trees",
        f"{{'trees': [{{'tensor': 0}}], 'notes': [{{'types': 5}}], 'specs': [{SPEC}]}}",
    ),
    "state without end": ("state", "{'state': [['a' * 100, [4], 'float32', True]] * 1000}"),
    "state that is no state": ("state", "{'state': [[1, 2]]}"),
    "state of no tensors": ("state", "{'state': 'none'}"),
    "no times": ("calls_us", "{}"),
    "times in words": ("calls_us", "{'calls_us': ['1'], 'total_us': 1.0}"),
    "True for a time": ("calls_us", "{'calls_us': [True], 'total_us': True}"),
    "times of zero": ("calls_us", "{'calls_us': [0.0], 'total_us': 0.0}"),
    "times below zero": ("calls_us", "{'calls_us': [-1.0], 'total_us': -1.0}"),
    "times without end": ("calls_us", "{'calls_us': [float('inf')], 'total_us': float('inf')}"),
    "times that are no numbers": (
        "calls_us",
        "{'calls_us': [float('nan')], 'total_us': float('nan')}",
    ),
    "a time of four hundred digits": ("calls_us", "{'calls_us': [10 ** 400], 'total_us': 1}"),
    "a thousand times": ("calls_us", "{'calls_us': [1.0] * 1000, 'total_us': 1.0}"),
    "a time of a nanosecond": ("calls_us", "{'calls_us': [1e-3], 'total_us': 1e-3}"),
}

FORGE = """
import kopt.actors.child.channel as channel

honest = channel.Channel.send
deep = []
for _ in range(2_000):
    deep = [deep]
deep = {{"trees": deep}}


def send(self, message, *, fds=()):
    honest(self, {answer} if {held!r} in message else message, fds=fds)


channel.Channel.send = send
"""


@pytest.mark.parametrize("answer", ANSWERS)
def test_a_forged_answer_passes_nothing(judge, candidate, answer) -> None:  # exploits 8
    held, forged = ANSWERS[answer]
    before = FORGE.format(answer=forged, held=held)
    made = judge(
        candidate(
            "return torch.zeros(512, 256)" if held == "trees" else "return right(self, x)",
            before=before,
            hidden=True,
        )
    )
    assert made.verdict.kind in ("incorrect", "crashed", "cheated"), made.verdict.reason
    made.verdict.reason.encode()


RAW = {
    "bytes that are no JSON": "os.write(fd, struct.pack('!I', 4) + b'\\xff\\xfe\\x00{')",
    "a length of four gigabytes": "os.write(fd, b'\\xff\\xff\\xff\\xff' + b'x' * 64)",
    "brackets without end": ("os.write(fd, struct.pack('!I', 200_000) + b'[' * 200_000)"),
    "a number of a million digits": ("os.write(fd, struct.pack('!I', 200_000) + b'1' * 200_000)"),
    "half a message": "os.write(fd, struct.pack('!I', 100) + b'{'); time.sleep(60)",
    "one byte a second": "[(os.write(fd, b'\\x00'), time.sleep(1)) for _ in range(60)]",
    "a message too many": ("os.write(fd, struct.pack('!I', 2) + b'{}')"),
    "the end of the channel": "os.close(fd); time.sleep(60)",
}


@pytest.mark.parametrize("raw", RAW)
def test_bytes_forged_on_the_channel_pass_nothing(judge, candidate, raw) -> None:  # exploits 8
    body = f"""
        import os, struct, time
        for name in os.listdir("/proc/self/fd"):
            try:
                if os.readlink("/proc/self/fd/" + name).startswith("socket:"):
                    fd = int(name)
                    {RAW[raw]}
            except OSError:
                pass
        return torch.zeros(512, 256)
    """
    made = judge(candidate(body, hidden=True))
    assert made.verdict.kind in ("incorrect", "crashed", "timed_out"), made.verdict.reason


def test_descriptors_that_a_child_sends_are_closed(judge, candidate) -> None:
    body = """
        import array, os, socket, struct
        for name in os.listdir("/proc/self/fd"):
            if os.readlink("/proc/self/fd/" + name).startswith("socket:"):
                talk = socket.socket(fileno=os.dup(int(name)))
                opened = [os.open("/dev/null", os.O_RDONLY) for _ in range(50)]
                socket.send_fds(talk, [struct.pack("!I", 2) + b"{}"], opened)
                break
        return torch.zeros(512, 256)
    """
    made = judge(candidate(body, hidden=True))
    assert made.verdict.kind in ("incorrect", "crashed"), made.verdict.reason
