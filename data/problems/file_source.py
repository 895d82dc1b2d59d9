"""A single file as a problem: any path that ends in `.py`."""

from __future__ import annotations

from pathlib import Path

from kopt.candidate import MAX_SOURCE_BYTES
from kopt.data.problems.config import ProblemsConfig
from kopt.data.problems.family import family_of
from kopt.errors import ConfigError
from kopt.problem import Problem


def load_file(path: Path, *, config: ProblemsConfig) -> Problem:
    """Read one file; the problem is named by its stem.

    Raises:
        ConfigError: there is no such file, or it is no readable text.
    """
    source = read_source(path)
    return Problem(
        name=path.stem, source=source, dtype=config.dtype, family=family_of(source), revision=""
    )


def read_source(path: Path) -> str:
    """Return the text of a source file.

    Raises:
        ConfigError: it is missing, a folder, not UTF-8, or above MAX_SOURCE_BYTES.
    """
    if path.is_dir():
        raise ConfigError(f"{path} is a folder; name a file, such as {path / 'problem.py'}")
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        raise ConfigError(f"no such file: {path} (looked for in {Path.cwd()})") from None
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror}") from None
    return decode_source(data, where=str(path))


def decode_source(data: bytes, *, where: str) -> str:
    """Return bytes as the text of a source; `where` they are from is for error texts.

    Raises:
        ConfigError: they are not UTF-8, or more than MAX_SOURCE_BYTES.
    """
    check_length(len(data), where=where)
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ConfigError(f"{where} is not UTF-8 text (byte {error.start})") from None


def check_length(length: int, *, where: str) -> None:
    """Check a source's length in bytes.

    Raises:
        ConfigError: it is above MAX_SOURCE_BYTES.
    """
    if length > MAX_SOURCE_BYTES:
        raise ConfigError(f"{where} has {length} bytes; at most {MAX_SOURCE_BYTES} are read")
