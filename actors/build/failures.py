"""Builds that failed, kept as they are asked for again: what a compiler refuses, it refuses again.

Kept is what a compiler said of a source, under the key of the build: the same source, flags and
toolchain. What may have come of the host is not: a signal, a deadline, memory or a disk that ran
out, processes that could not be started.
"""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

from pydantic import BaseModel, ConfigDict, ValidationError

from kopt.verdict import bounded_log

_FILE = "failed.json"
_REFUSED = re.compile(r"(?:^|[\s)])(?:fatal )?error\s*(?:#\d+\s*)?:", re.M)
"""A compiler's or a linker's word on a source: `k.cu(7): error: …`, `main.cpp:3:1: error: …`."""
_OF_THE_HOST = re.compile(
    r"internal compiler error|\bkilled\b|\bsignal\b|\bsegmentation fault\b|\bcore dumped\b"
    r"|\bterminated\b|timed? ?out|memory|\bbad_alloc\b|no space left|disk|quota"
    r"|resource temporarily|too many open|cannot (?:fork|execute)|input/output error"
    r"|read-only file system|permission denied|no such file or directory|stale file",
    re.I,
)


class _Failure(BaseModel):
    """What lies in the folder of a build that failed."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    log: str
    sandbox: str


def is_lasting(log: str) -> bool:
    """Return whether the same build would fail again, whatever the host does."""
    return bool(_REFUSED.search(log)) and not _OF_THE_HOST.search(log)


def write_failure(folder: Path, *, log: str, sandbox: str) -> None:
    """Leave what a build said in place of what it left.

    Args:
        folder: of the build, emptied.
        log: what the candidate's author is told.
        sandbox: what confined the build.

    Raises:
        OSError: it cannot be written.
    """
    shutil.rmtree(folder)
    folder.mkdir()
    (folder / _FILE).write_text(json.dumps({"log": log, "sandbox": sandbox}), encoding="utf-8")


def read_failure(folder: Path) -> tuple[str, str] | None:
    """Return log and sandbox of the build that failed here; None where none did."""
    try:
        found = _Failure.model_validate_json((folder / _FILE).read_bytes())
    except (OSError, ValidationError):
        return None
    return bounded_log(found.log), found.sandbox
