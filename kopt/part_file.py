"""A part of a user's own, from a file: `path/to/mine.py:Sweep` names it wherever a kind is named.

The file is the user's own code and runs as such, once in a process.
"""

from __future__ import annotations

import hashlib
import importlib.util
import re
import sys
from pathlib import Path
from types import ModuleType

from kopt.errors import ConfigError

_PART = re.compile(r"(?P<file>.+\.py):(?P<name>[A-Za-z_]\w*)")
_modules: dict[Path, ModuleType] = {}


def is_part_of_file(kind: str) -> bool:
    """Whether a kind names a part of a file."""
    return _PART.fullmatch(kind) is not None


def part_label(kind: str) -> str:
    """Return what a kind is called in names of arms: `Sweep` of a file, else itself."""
    match = _PART.fullmatch(kind)
    return kind if match is None else match["name"]


def with_whole_path(kind: str) -> str:
    """Return the kind so that it names the same file from any folder; others as they are."""
    match = _PART.fullmatch(kind)
    if match is None:
        return kind
    return f"{Path(match['file']).expanduser().resolve()}:{match['name']}"


def load_part(kind: str, *, what: str) -> object:
    """Return what a file calls by the name, running the file if this process has not yet.

    Args:
        kind: as `is_part_of_file` knows it.
        what: names the kind of part in errors ("search").

    Raises:
        ConfigError: there is no such file, it does not run, or it has no such name.
    """
    match = _PART.fullmatch(kind)
    if match is None:
        raise ConfigError(f"{what} {kind!r}: expected path/to/file.py:NAME")
    module = run_file(match["file"], what=f"{what} file")
    try:
        return getattr(module, match["name"])
    except AttributeError:
        public = [name for name in vars(module) if not name.startswith("_")]
        raise ConfigError(
            f"{what} file {match['file']}: defines no {match['name']}; it has {', '.join(public)}"
        ) from None


def run_file(path: str | Path, *, what: str) -> ModuleType:
    """Return a Python file as a module; run when this process first asks for it.

    Args:
        path: of the file.
        what: names it in errors.

    Raises:
        ConfigError: there is no such file, or it does not run.
    """
    file = Path(path).expanduser().resolve()
    if file in _modules:
        return _modules[file]
    if not file.is_file():
        raise ConfigError(f"{what} {path}: expected a Python file, found none")
    # A name of its own for each path, so that two files called tools.py are two modules.
    name = f"kopt_part_{hashlib.sha256(str(file).encode()).hexdigest()[:16]}"
    spec = importlib.util.spec_from_file_location(name, file)
    if spec is None or spec.loader is None:
        raise ConfigError(f"{what} {path}: expected a .py file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        del sys.modules[name]
        raise ConfigError(f"{what} {file}: {type(error).__name__}: {error}") from error
    _modules[file] = module
    return module
