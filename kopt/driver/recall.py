"""What an expansion's author is reminded of: as of when the expansion was asked."""

from __future__ import annotations

from kopt.driver.task import SearchTask
from kopt.driver.tracking import records_told
from kopt.expansion import Expansion
from kopt.memory.experience import experience_of
from kopt.memory.history import History, history_of
from kopt.memory.recall import Memory
from kopt.memory.rule import MemoryRule
from kopt.memory.tried import Tried


def recalled(task: SearchTask, expansion: Expansion, *, rule: MemoryRule) -> tuple[Memory, History]:
    """Return memory and history for one prompt.

    Args:
        task: of the search.
        expansion: that was asked.
        rule: what is on.
    """
    recollection = task.recollection
    known = recollection.known(expansion)
    tried: list[Tried] = []
    if rule.history or rule.experience is not None:
        tried = task.tried()[: known.told]
    history = History()
    if rule.history:
        first: dict[str, Tried] = {}
        for each in tried:
            first.setdefault(each.candidate, each)
        siblings = [each for each in tried if each.parent == expansion.parent]
        history = history_of(siblings, by_candidate=first, parent=expansion.parent)
    memory = Memory(
        entries=recollection.entries(known.updates) if rule.search else (),
        experience=experience_of(tried, rule=rule.experience) if rule.experience else (),
        strategies=records_told(recollection, updates=known.updates),
        guidelines=rule.guidelines,
    )
    return memory, history
