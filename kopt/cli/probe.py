"""A probe: one thing that kopt needs or can use, looked for on this machine."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass

PROBE_TIMEOUT_S = 20.0
MAX_SHOWN = 160
"""Characters of a tool's words that a row keeps."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Probe:
    """What was found of one thing."""

    name: str
    ok: bool
    found: str
    """What is there, or why it is off, in one line."""
    fix: str = ""
    """How to turn it on; empty where it is on."""
    needed: bool = False
    """Whether nothing runs without it; else a part of kopt is off."""


def command_output(command: Sequence[str]) -> str | None:
    """Return a command's output (both streams), or None where it is absent, fails or hangs."""
    if shutil.which(command[0]) is None:
        return None
    try:
        answer = subprocess.run(
            list(command),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=PROBE_TIMEOUT_S,
            check=False,
            errors="replace",
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return answer.stdout.strip() if answer.returncode == 0 else None


def first_line(text: str) -> str:
    """Return the first line that says something, bounded."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[0][:MAX_SHOWN] if lines else ""


def gib(size_bytes: float) -> str:
    """Return bytes as GiB with one decimal."""
    return f"{size_bytes / 2**30:.1f} GiB"
