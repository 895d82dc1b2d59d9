"""An expansion as the journal has it, and back."""

from __future__ import annotations

from kopt.events import ExpansionAsked
from kopt.expansion import Expansion


def asked_event(expansion: Expansion) -> ExpansionAsked:
    """Return the event of an expansion."""
    return ExpansionAsked(
        expansion=expansion.ordinal,
        parent_node=expansion.parent_node,
        parent=expansion.parent,
        mode=expansion.mode,
        n=expansion.num_candidates,
        first_child=expansion.first_child,
        seed=expansion.seed,
    )


def asked_expansion(event: ExpansionAsked) -> Expansion:
    """Return the expansion of an event."""
    return Expansion(
        ordinal=event.expansion,
        parent_node=event.parent_node,
        parent=event.parent,
        mode=event.mode,
        num_candidates=event.n,
        first_child=event.first_child,
        seed=event.seed,
    )
