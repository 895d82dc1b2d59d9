"""Ctrl-C: once stops a fleet tidily, twice at once. SIGTERM, a scheduler's warning, is once.

However often it comes: `timeout` sends it to a process, and then to its whole group.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

from kopt.cli.exit_codes import INTERRUPTED


@contextmanager
def interruptible() -> Iterator[None]:
    """Let SIGTERM end what runs within as Ctrl-C does; both signals are as before afterwards.

    Also where Ctrl-C is ignored, as shells have it for what scripts start in the background.
    """

    def interrupt(number: int, frame: FrameType | None) -> None:
        del frame
        signal.signal(number, _nothing)  # SIG_IGN would be inherited by what is started meanwhile
        signal.raise_signal(signal.SIGINT)

    before = {each: signal.getsignal(each) for each in (signal.SIGTERM, signal.SIGINT)}
    signal.signal(signal.SIGTERM, interrupt)
    if before[signal.SIGINT] is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def next_one_ends_it(*, resume: str, leave: Callable[[], None]) -> None:
    """Say that the fleet stops, and have another Ctrl-C end the process at once.

    What is journalled stays: a journal is whole after any of its writes.

    Args:
        resume: the command that goes on.
        leave: kills what the process started outside its own children.
    """

    def end(number: int, frame: FrameType | None) -> None:
        del number, frame
        os.write(2, f"kopt: ended; go on with `{resume}`\n".encode())
        leave()
        os._exit(INTERRUPTED)

    signal.signal(signal.SIGINT, end)
    sys.stderr.write("kopt: stopping; Ctrl-C again ends it at once\n")


def _nothing(number: int, frame: FrameType | None) -> None:
    del number, frame
