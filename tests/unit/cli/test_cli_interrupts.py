"""What ends a command once, and what it leaves behind."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest

from kopt.cli.interrupts import interruptible


def test_sigterm_ends_what_runs_once_however_often_it_comes() -> None:
    before = signal.getsignal(signal.SIGTERM)
    with interruptible():
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGTERM)
        signal.raise_signal(signal.SIGTERM)
    assert signal.getsignal(signal.SIGTERM) == before


def test_what_is_started_meanwhile_can_be_ended_by_it() -> None:
    with interruptible():
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGTERM)
        asked = "import signal; print(signal.getsignal(signal.SIGTERM) == signal.SIG_DFL)"
        said = subprocess.run([sys.executable, "-c", asked], capture_output=True, check=True)
    assert said.stdout.split() == [b"True"]
