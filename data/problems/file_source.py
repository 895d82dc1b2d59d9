"""A single file as a problem: Python, or a CUDA or C++ kernel with its reference beside it."""

from __future__ import annotations

import logging
from pathlib import Path

from kopt.candidate import MAX_SOURCE_BYTES
from kopt.data.problems.config import ProblemsConfig
from kopt.data.problems.family import family_of
from kopt.data.problems.normal import (
    SOURCE_SUFFIXES,
    NormalForm,
    beside,
    normal_form,
    normal_form_of_cuda,
    reference_form,
)
from kopt.data.problems.sizes import with_sizes
from kopt.errors import ConfigError
from kopt.problem import Problem

FILE_SUFFIXES = (".py", *SOURCE_SUFFIXES)
"""Of paths that name one problem."""

_LOG = logging.getLogger(__name__)


def load_file(path: Path, *, config: ProblemsConfig) -> Problem:
    """Read one file; the problem is named by its stem.

    Raises:
        ConfigError: there is no such file, it is no readable text, or it is a kernel that something
            is missing of.
    """
    form = read_form(path, config=config)
    return Problem(
        name=path.stem,
        source=form.source,
        given=form.given,
        dtype=config.dtype,
        family=family_of(form.source),
        revision="",
    )


def read_form(path: Path, *, config: ProblemsConfig) -> NormalForm:
    """Return a file in normal form, whatever kind of input it is.

    Raises:
        ConfigError: as `load_file`.
    """
    if path.suffix in SOURCE_SUFFIXES:
        return _kernel_file(path, config=config)
    return text_form(read_source(path), where=str(path), config=config)


def text_form(source: str, *, where: str, config: ProblemsConfig) -> NormalForm:
    """Return a Python file's text in normal form, at the sizes that are asked for.

    Raises:
        ConfigError: it is a kernel or a model that something is missing of.
    """
    try:
        form = normal_form(with_sizes(source, config.sizes))
    except ConfigError as error:
        raise ConfigError(f"{where}: {error}") from None
    if form.note:
        _LOG.warning("%s: %s", where, form.note)
    return form


def _kernel_file(path: Path, *, config: ProblemsConfig) -> NormalForm:
    text = read_source(path)
    names = beside(path.stem)
    references = [path.with_name(name) for name in names if path.with_name(name).is_file()]
    if not references:
        raise ConfigError(
            f"{path}: a kernel without its reference: expected {names[0]} beside it, with class "
            "Model or a function reference(…), and get_inputs()"
        )
    where = references[0]
    try:
        reference = reference_form(with_sizes(read_source(where), config.sizes))
        where = path
        return normal_form_of_cuda(text, suffix=path.suffix, stem=path.stem, reference=reference)
    except ConfigError as error:
        raise ConfigError(f"{where}: {error}") from None


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
