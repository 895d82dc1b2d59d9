"""A user's own tools, from a file: a Python module that registers subclasses of ProfilingTool."""

from __future__ import annotations

import hashlib
import importlib.util
import sys
from pathlib import Path
from types import ModuleType

from kopt.errors import ConfigError
from kopt.tools.registry import ToolRegistry

_loaded: dict[Path, tuple[str, ...]] = {}


def load_tool_file(path: str | Path) -> tuple[str, ...]:
    """Run a file of tools once in this process, and return the names that it registered.

    The file is the user's own code and runs as such. Asked for again, it is not run again.

    Raises:
        ConfigError: there is no such file, it does not run, or it registers no tool.
    """
    file = Path(path).expanduser().resolve()
    if file in _loaded:
        return _loaded[file]
    if not file.is_file():
        raise ConfigError(f"tools file {path}: expected a Python file, found none")
    before = set(ToolRegistry.names())
    _run(file)
    names = tuple(sorted(set(ToolRegistry.names()) - before))
    if not names:
        raise ConfigError(
            f"tools file {path}: registers no tool; put @ToolRegistry.register on a class"
        )
    _loaded[file] = names
    return names


def _run(file: Path) -> ModuleType:
    # A name of its own for each path, so that two files called tools.py are two modules.
    name = f"kopt_tools_{hashlib.sha256(str(file).encode()).hexdigest()[:16]}"
    spec = importlib.util.spec_from_file_location(name, file)
    if spec is None or spec.loader is None:
        raise ConfigError(f"tools file {file}: expected a .py file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        del sys.modules[name]
        raise ConfigError(f"tools file {file}: {type(error).__name__}: {error}") from error
    return module
