"""The base of the programmers' sections."""

from __future__ import annotations

from kopt.section import Section


class ProgrammerSection(Section):
    """What every programmer's section answers."""

    @property
    def expansions_at_once(self) -> int:
        """Expansions that may be being written beyond those that keep the lanes busy.

        0 where writing takes no longer than judging.
        """
        return 0

    def reserved_gpus(self, device: str) -> int:
        """Return the GPUs that it takes for itself, so that none of them is given to candidates.

        Args:
            device: of candidates, `cpu` or `cuda`.
        """
        del device
        return 0
