"""Standard output: kept clean for one JSON object, whatever libraries and workers print."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO

from kopt.errors import ConfigError


@contextmanager
def reserved_stdout() -> Iterator[TextIO]:
    """Lend the real standard output, while everything written to fd 1 goes to standard error.

    Ray prints the deaths of workers on stdout from a thread of its own, and a candidate's
    compiler inherits fd 1: only a duplicate of the descriptor is out of their reach.
    """
    sys.stdout.flush()
    with os.fdopen(os.dup(1), "w", encoding="utf-8") as real:
        os.dup2(2, 1)
        try:
            yield real
        finally:
            sys.stdout.flush()
            real.flush()
            os.dup2(real.fileno(), 1)


def write_json(stream: TextIO, value: object) -> None:
    """Write one JSON object as one line.

    Raises:
        ConfigError: the output is a full disk.
    """
    try:
        stream.write(json.dumps(value, ensure_ascii=False, allow_nan=False) + "\n")
        stream.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        raise ConfigError(f"standard output cannot be written: {error.strerror}") from error
