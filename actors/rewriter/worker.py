"""The rewriter lane's worker: an author as a plain class. Runs in a process of its own.

Light, for the drivers that name it: the author is loaded where the worker starts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kopt.ports import Answer, WriteRequest

if TYPE_CHECKING:
    from kopt.actors.rewriter.plan import Fold
    from kopt.actors.rewriter.reference import ModuleMode


class RewriterWorker:
    """Writes candidates by rules and generated kernels. Deterministic; holds only a cache."""

    def __init__(self, *, fold: Fold = "call") -> None:
        """Begin with nothing read.

        Args:
            fold: when weights are folded (`programmer.fold`).
        """
        from kopt.actors.rewriter.author import RewriterAuthor

        self._author = RewriterAuthor(fold=fold)

    def write(self, request: WriteRequest, mode: ModuleMode) -> Answer:
        """Write the slots of an expansion.

        Args:
            request: what to write from.
            mode: how modules run (`evaluate.module_mode`).

        Returns:
            Candidates in the order of their slots; exhausted where the node has no more, with
            the reason as a note where the problem cannot be rewritten at all.

        Raises:
            ProblemError: the problem's source does not import, or breaks the contract.
        """
        return self._author.write(request, mode)
