"""How long a prompt may get: the one place that says it, by section and in all.

Sections are bounded in characters, each by its own figure. The whole is bounded in tokens (see
`tokens`): where it would be longer, sections give way one after another, in the order of
`CHANGING_GIVE_WAY`, the first one down to its floor before the next is touched. What gives way says
so in the text ("… 12 lines left out …"). The stable part is fitted by itself, by what does not
change within a search, so that no prompt's length changes what all of them begin with. A reference
that is long may take most of the whole: without it nobody can write a version.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from kopt.prompts.tokens import estimated_tokens


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """Bounds of a prompt: tokens of the whole, characters of each section that can be long."""

    tokens: int = 24_000
    """Of the whole prompt, about."""
    system_tokens: int = 3_400
    """Of the system message, about: with a typical reference and its numbers, the stable part stays
    within 4,000 tokens. Signatures, a library's manual and guidelines give way."""
    apis: int = 3_000
    """Signatures of all languages together."""
    manual: int = 2_400
    """What a library demands."""
    guidelines: int = 2_400
    reference: int = 1_000_000
    """More than there are tokens for: those bound it (`stable_tokens`)."""
    version: int = 48_000
    log: int = 4_000
    findings: int = 8_000
    """Without a profile."""
    profile: int = 12_000
    """With one: findings, counters, timeline together."""
    memory: int = 6_000
    history: int = 3_000


BUDGET = Budget()

SYSTEM_GIVE_WAY = ("apis", "manual", "guidelines")
STABLE_GIVE_WAY = ("reference",)
CHANGING_GIVE_WAY = ("history", "memory", "findings", "profile", "log", "version")
"""Who gives way first. An author can do without what was tried; not without its version."""
FLOORS: dict[str, int] = {
    "apis": 300,
    "manual": 400,
    "guidelines": 800,
    "history": 300,
    "memory": 600,
    "findings": 1_000,
    "profile": 1_500,
    "log": 600,
    "version": 3_000,
    "reference": 3_000,
}
"""Characters that a section keeps whatever the whole comes to."""


STABLE_SHARE = 2 / 3
"""Of what the system message leaves, for what is the same in all prompts of a problem."""
CHARACTERS_OF_A_TOKEN = 3
"""Few, so that sections that change are not thought to need less than they may."""
CHANGING_FIXED = 1_000
"""Tokens of what changes and is no section with a bound: the task, a verdict, headings."""


def stable_tokens(budget: Budget, *, left: int) -> int:
    """Return how many tokens the user message's stable part may have.

    Half of them, and more where sections that change keep what they need at least, up to its share;
    beyond that what they could not fill, were all of them at their bounds.

    Args:
        budget: bounds of those sections.
        left: tokens of the whole that the system message leaves.
    """
    most = budget.version + budget.log + max(budget.findings, budget.profile)
    most += budget.memory + budget.history
    least = sum(FLOORS[name] for name in CHANGING_GIVE_WAY)
    unused = left - most // CHARACTERS_OF_A_TOKEN - CHANGING_FIXED
    spared = left - least // CHARACTERS_OF_A_TOKEN - CHANGING_FIXED
    return max(left // 2, min(int(left * STABLE_SHARE), spared), unused)


def fitted(
    budget: Budget, write: Callable[[Budget], str], *, tokens: int, give_way: Sequence[str]
) -> Budget:
    """Return a budget under which a text has about so many tokens, if its floors allow it.

    Args:
        budget: to begin with.
        write: gives the text under a budget; called often.
        tokens: bound of the text.
        give_way: the sections that may be shortened, the first one first.
    """
    for name in give_way:
        if estimated_tokens(write(budget)) <= tokens:
            return budget
        least, most = FLOORS[name], getattr(budget, name)
        if least >= most:
            continue
        best = replace(budget, **{name: least})
        while most - least > max(50, most // 50):  # about the largest that fits
            middle = (least + most) // 2
            tried = replace(budget, **{name: middle})
            if estimated_tokens(write(tried)) <= tokens:
                best, least = tried, middle
            else:
                most = middle
        budget = best
    return budget
