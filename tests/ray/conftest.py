"""What the tests share that start whole runs."""

from __future__ import annotations

import signal
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True)
def at_a_terminal() -> Iterator[None]:
    """What is started hears Ctrl-C, also where a shell runs the tests in its background, deaf."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)
