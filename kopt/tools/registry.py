"""The registry of micro-profiling tools: ours, those of a user's file, those of other packages."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import ClassVar, TypeVar

from kopt.errors import ConfigError
from kopt.registry import Registry
from kopt.tools.tool import CLASSES, PARTITIONS, SOURCES, ProfilingTool

ENTRY_POINT_GROUP = "kopt.tools"

Tool = TypeVar("Tool", bound=type[ProfilingTool])


class ToolRegistry:
    """All tools by name.

    Ours register where they are defined. A user's file does the same (`load_tool_file`). Other
    packages name their class in the entry-point group `kopt.tools`, under the tool's own name,
    `package/tool`.
    """

    _table: ClassVar[Registry[ProfilingTool]] = Registry(
        "tool", entry_point_group=ENTRY_POINT_GROUP
    )

    @classmethod
    def register(cls, tool: Tool) -> Tool:
        """File a tool's class under its name; a decorator.

        Raises:
            ValueError: the name is taken, or the class lacks a part of the 5-tuple.
        """
        faults = tool_faults(tool)
        if faults:
            raise ValueError(f"tool {getattr(tool, '__name__', tool)}: {'; '.join(faults)}")
        cls._table.register(tool.name)(tool)
        return tool

    @classmethod
    def names(cls) -> list[str]:
        """Return the name of every tool, in order."""
        return cls._table.names()

    @classmethod
    def get(cls, name: str) -> ProfilingTool:
        """Return the tool of that name.

        Raises:
            ConfigError: no such name, or an entry point of that name is no tool or does not load.
        """
        try:
            tool = cls._table.create(name)
        except ConfigError:
            raise
        except Exception as error:
            raise ConfigError(
                f"entry point {name!r} of {ENTRY_POINT_GROUP}: {type(error).__name__}: {error}"
            ) from error
        if not isinstance(tool, ProfilingTool) or tool.name != name:
            raise ConfigError(
                f"entry point {name!r} of {ENTRY_POINT_GROUP}: expected a ProfilingTool of that "
                f"name, found {tool!r:.80}"
            )
        return tool

    @classmethod
    def tools(cls, names: Sequence[str] | None = None) -> tuple[ProfilingTool, ...]:
        """Return tools in the order of their names.

        Args:
            names: which ones; None: all.

        Raises:
            ConfigError: no such name.
        """
        return tuple(cls.get(name) for name in (cls.names() if names is None else names))


def tool_faults(tool: type[ProfilingTool]) -> list[str]:
    """Return what a class lacks of a tool, a line each."""
    given: object = tool
    if not (inspect.isclass(given) and issubclass(given, ProfilingTool)):
        return ["expected a subclass of ProfilingTool"]
    faults = [
        f"has no {attribute}"
        for attribute in ("name", "title", "source", "required")
        if not hasattr(tool, attribute)
    ]
    if inspect.isabstract(tool):
        faults.append(f"does not define {', '.join(sorted(tool.__abstractmethods__))}")
    if faults:
        return faults
    for attribute, known in (("source", SOURCES), ("partition", PARTITIONS)):
        if getattr(tool, attribute) not in known:
            faults.append(f"{attribute} {getattr(tool, attribute)!r} is none of {', '.join(known)}")
    faults += [
        f"{attribute} is one name; a tuple of names is meant"
        for attribute in ("required", "optional")
        if isinstance(getattr(tool, attribute), str)
    ]
    unknown = set(tool.affinity) - set(CLASSES)
    if unknown or not tool.affinity:
        faults.append(f"affinity has to name some of {', '.join(CLASSES)}")
    return faults
