"""A user's own tools, from a file: a Python module that registers subclasses of ProfilingTool."""

from __future__ import annotations

from pathlib import Path

from kopt.errors import ConfigError
from kopt.part_file import run_file
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
    before = set(ToolRegistry.names())
    run_file(path, what="tools file")
    names = tuple(sorted(set(ToolRegistry.names()) - before))
    if not names:
        raise ConfigError(
            f"tools file {path}: registers no tool; put @ToolRegistry.register on a class"
        )
    _loaded[file] = names
    return names
