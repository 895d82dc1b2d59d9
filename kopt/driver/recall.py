"""What an expansion's author is reminded of: as of when the expansion was asked."""

from __future__ import annotations

from kopt.data.memory_json import precedent_from_json
from kopt.driver.task import SearchTask
from kopt.driver.tracking import records_told
from kopt.expansion import Expansion
from kopt.memory.history import History
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
    if rule.history or rule.experience is not None:
        task.tried()
    history = History()
    if rule.history:
        history = recollection.history(expansion.parent, told=known.told)
    experience: tuple[Tried, ...] = ()
    if rule.experience is not None:
        experience = recollection.experience(rule.experience, told=known.told)
    precedent = recollection.began_with("retrieval", updates=known.updates)
    memory = Memory(
        entries=recollection.entries(known.updates) if rule.search else (),
        experience=experience,
        strategies=records_told(recollection, updates=known.updates),
        precedent=None if precedent is None else precedent_from_json(precedent.entries),
        guidelines=rule.guidelines,
    )
    return memory, history
