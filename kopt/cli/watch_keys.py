"""Keys of a terminal, as they are pressed and without an echo."""

from __future__ import annotations

import os
import re
import select
import termios
import tty
from types import TracebackType
from typing import Any, Self

NAMES = {
    "\x1b[A": "up",
    "\x1b[B": "down",
    "\x1b[C": "right",
    "\x1b[D": "left",
    "\x1bOA": "up",
    "\x1bOB": "down",
    "\x1bOC": "right",
    "\x1bOD": "left",
    "\x1b[5~": "page up",
    "\x1b[6~": "page down",
    "\x1b": "back",
    "\x7f": "back",
    "\x08": "back",
    "\r": "enter",
    "\n": "enter",
    "\x03": "q",
    "\x04": "q",
}
"""What a terminal sends to the name of the key; a printable character is its own name."""
SENT = re.compile(r"\x1b\[[0-9;]*[A-Za-z~]|\x1bO[A-Za-z]|.", re.S)
MOST_BYTES = 256


class Keys:
    """A context manager: inside it keys come one by one; after it the terminal is as it was."""

    def __init__(self, descriptor: int) -> None:
        """Take a terminal's input.

        Args:
            descriptor: of a terminal.
        """
        self._descriptor = descriptor
        self._before: list[Any] = []

    def __enter__(self) -> Self:
        self._before = termios.tcgetattr(self._descriptor)
        tty.setcbreak(self._descriptor)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        termios.tcsetattr(self._descriptor, termios.TCSADRAIN, self._before)

    def wait(self, timeout_s: float) -> list[str]:
        """Return the keys pressed, once there are any; none where the time passes without one.

        A terminal that is gone reads as `q`.
        """
        ready, _, _ = select.select([self._descriptor], [], [], timeout_s)
        if not ready:
            return []
        sent = os.read(self._descriptor, MOST_BYTES)
        return named(sent.decode("utf-8", errors="ignore")) if sent else ["q"]


def named(text: str) -> list[str]:
    """Return what a terminal sent as names of keys; a key without a name is left out."""
    sent = SENT.findall(text)
    return [NAMES.get(each, each) for each in sent if each in NAMES or each.isprintable()]
