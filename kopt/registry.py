"""Named choices: one table for each kind of part, open to others by entry points and files."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from importlib.metadata import entry_points
from typing import Generic, TypeVar, cast

from kopt.errors import ConfigError
from kopt.part_file import is_part_of_file, load_part

T = TypeVar("T")


class Registry(Generic[T]):
    """A table from a name to a factory.

    Our own parts register by decorator in their own file. Parts of other packages are found by
    the entry-point group, loaded when their name is first asked for, and are named
    `package/part`, so that they cannot take one of our names. A part of a user's file is named by
    it: `path/to/mine.py:Part`.
    """

    def __init__(self, kind: str, *, entry_point_group: str | None = None) -> None:
        """Make an empty table.

        Args:
            kind: what the table holds ("search"); names the table in error texts.
            entry_point_group: group of third-party parts, such as `kopt.searches`; None for none.
        """
        self.kind = kind
        self.entry_point_group = entry_point_group
        self._factories: dict[str, Callable[..., T]] = {}

    def register(self, name: str) -> Callable[[Callable[..., T]], Callable[..., T]]:
        """Return a decorator that files a factory under a name.

        Raises:
            ValueError: the name is taken; a silent override would change old configs.
        """

        def file(factory: Callable[..., T]) -> Callable[..., T]:
            if name in self._factories:
                raise ValueError(f"{self.kind} {name!r} is registered twice")
            self._factories[name] = factory
            return factory

        return file

    def get(self, name: str) -> Callable[..., T]:
        """Return the factory of that name.

        Raises:
            ConfigError: no such name; the text lists those there are. Or a file has no such part.
        """
        if is_part_of_file(name):
            return self._of_file(name)
        if name not in self._factories:
            self._load_entry_point(name)
        try:
            return self._factories[name]
        except KeyError:
            raise ConfigError(
                f"unknown {self.kind} {name!r}; there are: {', '.join(self.names())}"
            ) from None

    def create(self, name: str, /, *args: object, **options: object) -> T:
        """Build the part of that name.

        Raises:
            ConfigError: no such name; the text lists those there are.
        """
        return self.get(name)(*args, **options)

    def names(self) -> list[str]:
        """Return every name, our own and those of entry points, in order."""
        return sorted({*self._factories, *self._entry_points()})

    def __iter__(self) -> Iterator[str]:
        return iter(self.names())

    def _of_file(self, name: str) -> Callable[..., T]:
        found = load_part(name, what=self.kind)
        if not callable(found):
            raise ConfigError(
                f"{self.kind} {name}: expected a class or a function, found {found!r:.80}"
            )
        return cast("Callable[..., T]", found)

    def _entry_points(self) -> dict[str, str]:
        if self.entry_point_group is None:
            return {}
        return {point.name: point.value for point in entry_points(group=self.entry_point_group)}

    def _load_entry_point(self, name: str) -> None:
        if self.entry_point_group is None:
            return
        for point in entry_points(group=self.entry_point_group, name=name):
            self._factories.setdefault(name, point.load())
