"""The task in words: what is wanted of the version, and what was asked for from the same place."""

from __future__ import annotations

from kopt.ports import WriteRequest
from kopt.prompts.budget import Budget
from kopt.prompts.templates import filled


def task_section(request: WriteRequest, budget: Budget) -> str:
    """Return the section of a prompt."""
    del budget
    again = _again(request)
    return filled(request.expansion.mode, again=again and f"\n{again}")


def _again(request: WriteRequest) -> str:
    """Tell of those asked for before; empty where there are none.

    Those that the history knows are counted apart from the rest: of a version that is still
    written or judged, or that nobody wrote, nothing stands below.
    """
    tried = len(request.history.siblings) + request.history.earlier
    untold = max(0, request.expansion.first_child - tried)
    than, rest = "", ""
    if tried:
        number, them, theirs = f"{tried} versions were", "them", "theirs"
        if tried == 1:
            number, them, theirs = "One version was", "it", "that one's"
        known = f"{number} tried from here before; what is known of {them} stands below."
        than = f" than {theirs}, and"
        if untold:
            number, them = (f"{untold} more were", "them") if untold > 1 else ("1 more was", "it")
            rest = f" {number} asked for; nothing is known of {them} yet."
    elif untold:
        number, them = (f"{untold} versions were", "them")
        if untold == 1:
            number, them = "One version was", "it"
        known = f"{number} asked for from here before; nothing is known of {them} here."
    else:
        return ""
    return f"{known}{rest} Take another idea{than} than the first that comes to mind."
