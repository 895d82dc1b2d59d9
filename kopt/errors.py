"""Failures of kopt's own machinery. A failed kernel is a Verdict, not one of these.

Every class here survives pickling, since it crosses process boundaries: all constructor
arguments go to super().__init__ and the text is built in __str__.
"""

from __future__ import annotations


class KoptError(Exception):
    """Base of every error that kopt raises on purpose; its text is fit for a user."""


class ConfigError(KoptError, ValueError):
    """The user's configuration or command line cannot be used. Ends the command with exit 2."""


class ProblemError(KoptError):
    """A problem breaks its contract or cannot run here. Fails its searches; the fleet goes on."""

    def __init__(self, problem: str, why: str) -> None:
        super().__init__(problem, why)
        self.problem = problem
        self.why = why

    def __str__(self) -> str:
        return f"problem {self.problem}: {self.why}"


class WorkerLost(KoptError):
    """A worker process ended without an answer. The same work may be tried elsewhere."""

    def __init__(self, worker: str, why: str) -> None:
        super().__init__(worker, why)
        self.worker = worker
        self.why = why

    def __str__(self) -> str:
        return f"worker {self.worker} ended without an answer ({self.why})"


class ProfileFailed(KoptError):
    """No evidence at all could be had of a candidate: one line on why. It costs no verdict."""


class ProgrammerUnavailable(KoptError):
    """The programmer cannot write now (endpoint down, wrong key, limit reached)."""

    def __init__(self, programmer: str, why: str) -> None:
        super().__init__(programmer, why)
        self.programmer = programmer
        self.why = why

    def __str__(self) -> str:
        return f"programmer {self.programmer} cannot write: {self.why}"


class ProgrammerRefused(ProgrammerUnavailable):
    """The programmer will never write as it is set up (wrong key, unknown model, no recording)."""


class AnswerAwaited(KoptError):
    """Whoever writes has not answered yet. What was asked stays open for a later sitting."""


class StoreError(KoptError):
    """The run folder cannot be read or written (no space, locked by another driver, damaged)."""

    def __init__(self, path: str, why: str) -> None:
        super().__init__(path, why)
        self.path = path
        self.why = why

    def __str__(self) -> str:
        return f"{self.path}: {self.why}"
