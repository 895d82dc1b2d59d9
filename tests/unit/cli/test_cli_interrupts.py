"""What ends a command once, and what it leaves behind."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator

import pytest

from kopt.cli.interrupts import interruptible


@pytest.fixture(params=[signal.default_int_handler, signal.SIG_IGN], ids=["heard", "ignored"])
def ctrl_c(request: pytest.FixtureRequest) -> Iterator[None]:
    """As it is at a terminal, and for what a script starts in the background."""
    before = signal.signal(signal.SIGINT, request.param)
    yield
    assert signal.getsignal(signal.SIGINT) == request.param
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("ctrl_c")
def test_sigterm_ends_what_runs_once_however_often_it_comes() -> None:
    before = signal.getsignal(signal.SIGTERM)
    with interruptible():
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGTERM)
        signal.raise_signal(signal.SIGTERM)
    assert signal.getsignal(signal.SIGTERM) == before


@pytest.mark.usefixtures("ctrl_c")
def test_what_is_started_meanwhile_can_be_ended_by_it() -> None:
    with interruptible():
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGTERM)
        asked = "import signal; print(signal.getsignal(signal.SIGTERM) == signal.SIG_DFL)"
        said = subprocess.run([sys.executable, "-c", asked], capture_output=True, check=True)
    assert said.stdout.split() == [b"True"]
