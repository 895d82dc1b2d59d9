"""The line that a suspended run ends with: what it waits for, where, and how to go on."""

from __future__ import annotations

from collections.abc import Sequence

from kopt.actors.programmers.config import MailboxConfig
from kopt.cli.job import JobOutcome


def suspended_line(outcomes: Sequence[JobOutcome], *, resume: str) -> str:
    """Return one line.

    Args:
        outcomes: of the jobs of one command, at least one of them suspended.
        resume: the command that goes on.
    """
    waiting = [outcome for outcome in outcomes if outcome.awaiting]
    folders = dict.fromkeys(
        str(outcome.job.config.programmer.place(outcome.job.run_dir.path))
        for outcome in waiting
        if isinstance(outcome.job.config.programmer, MailboxConfig)
    )
    shown = next(iter(folders), "")
    where = "" if not shown else f" in {shown}/prompts"
    if len(folders) > 1:
        where += f" and {len(folders) - 1} other mailbox(es)"
    return (
        f"kopt: suspended: {sum(outcome.awaiting for outcome in waiting)} prompt(s) wait for "
        f"answers{where}; once they are answered, go on with `{resume}`"
    )
