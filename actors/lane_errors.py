"""Errors on their way through a lane: an actor that did not come up, and Ray's wrapping undone."""

from __future__ import annotations

from kopt.errors import KoptError


class NotStarted(Exception):
    """An actor that was started for a call did not come up."""

    def __init__(self, number: int, why: str) -> None:
        """Say which, and why.

        Args:
            number: of the worker.
            why: in Ray's words, one line.
        """
        super().__init__(number, why)
        self.number = number
        self.why = f"did not start: {why}"


def plain(error: KoptError) -> KoptError:
    """Rebuild an error that Ray wrapped: its class without Ray's mixed-in traceback."""
    for base in type(error).__mro__:
        if issubclass(base, KoptError) and base.__module__ == "kopt.errors":
            return base(*error.args)
    return error
