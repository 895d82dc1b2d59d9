"""Events of earlier versions of kopt, as today's: what a field was before there was one.

Within journal schema 1 fields were added, each with a default that says what was true before. A
sample of an early run lies beside the tests.
"""

from __future__ import annotations

from dataclasses import MISSING, fields
from typing import Any

from kopt.events import EVENT_TYPES

DEFAULTS: dict[str, dict[str, Any]] = {
    kind: {
        field.name: field.default for field in fields(event_type) if field.default is not MISSING
    }
    for kind, event_type in EVENT_TYPES.items()
}
"""Kind of event to the fields that came later, and what they are without being written."""
REQUIRED: dict[str, tuple[str, ...]] = {
    kind: tuple(field.name for field in fields(event_type) if field.default is MISSING)
    for kind, event_type in EVENT_TYPES.items()
}
"""Kind of event to the fields that every one of it has."""


def upgraded(event: dict[str, Any]) -> str:
    """Give an event, in place, the fields that its kopt did not know yet.

    Returns:
        Why it is no event of its kind, in a few words; empty where it is one.
    """
    kind = event["kind"]
    missing = [name for name in REQUIRED[kind] if name not in event]
    if missing:
        return f"{kind} lacks {', '.join(missing)}"
    for name, default in DEFAULTS[kind].items():
        if event.get(name) is None:
            event[name] = default
    return ""
