"""What a programmer's answers came to over a run, counted, and said in a few lines at its end."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

from kopt.actors.programmers.openai.answering import Answered
from kopt.actors.programmers.openai.reply import FaultKind


class Tally:
    """Counts answers by what is wrong with them."""

    def __init__(self) -> None:
        """Begin at nothing."""
        self._completions = 0
        self._faults: Counter[FaultKind] = Counter()
        self._cut: Counter[str] = Counter()
        self._prompts = 0
        self._cut_references = 0

    def add(
        self, answered: Answered, *, cut: Mapping[str, int], reference_is_cut: bool = False
    ) -> None:
        """Count an expansion's answers.

        Args:
            answered: what came of them.
            cut: those that ended at the token limit: `mended` by asking again, and `lost`.
            reference_is_cut: whether the prompt left out a part of the reference.
        """
        self._prompts += 1
        self._cut_references += reference_is_cut
        self._completions += len(answered.completions)
        self._faults.update(answered.kinds)
        self._cut.update(cut)

    def lines(self) -> Iterator[str]:
        """Yield what there is to say; nothing where every answer held a candidate."""
        if self._faults:
            yield (
                f"{self._faults.total()} of {self._completions} answers held no candidate "
                f"({counted(self._faults)})"
            )
        if self._cut_references:
            yield (
                f"{self._cut_references} of {self._prompts} prompts left out a part of the "
                "reference, for which programmer.prompt_tokens has no room"
            )
        if self._cut:
            yield (
                f"{self._cut.total()} answers were cut off at the token limit and asked for again; "
                f"{self._cut['mended']} were whole then"
            )


def counted(counts: Mapping[str, int] | Mapping[FaultKind, int]) -> str:
    """Return counts in words, by name: `429: 1, connection: 2`."""
    return ", ".join(f"{name}: {count}" for name, count in sorted(counts.items()))
