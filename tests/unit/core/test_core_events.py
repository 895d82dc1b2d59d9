"""Events: each kind's JSON gives back the event, and damage is named."""

from __future__ import annotations

import json
from dataclasses import fields

import pytest

from kopt.evaluation import Evaluation, to_json
from kopt.events import EVENT_TYPES, EventBody, body_from_json, body_to_json
from kopt.verdict import TimedOut

EVAL = to_json(
    Evaluation(
        verdict=TimedOut(stage="timing", limit_s=3.0),
        problem="p",
        candidate="c",
        language="cpp",
        ladder="strict",
        device="cpu",
    )
)
SAMPLES = {
    "int": 7,
    "int | None": 7,
    "str": "text",
    "bool": True,
    "float": 0.5,
    "str | None": None,
    "float | None": None,
    "list[str]": ["a", "b"],
    "dict[str, Any] | None": {"a": 1},
    "dict[str, Any]": {"a": [1, None]},
    "list[dict[str, Any]]": [{"name": "x"}],
    "Mode": "optimize",
    "EvalJson": EVAL,
}


def sample(event_type: type[EventBody]) -> EventBody:
    """An event with a value for each field by its annotation; a new type needs a sample."""
    return event_type(**{field.name: SAMPLES[str(field.type)] for field in fields(event_type)})


@pytest.mark.parametrize("kind", EVENT_TYPES)
def test_json_text_gives_back_the_event(kind) -> None:
    body = sample(EVENT_TYPES[kind])
    record = json.loads(json.dumps(body_to_json(body)))
    assert next(iter(record)) == "kind"
    assert record["kind"] == kind == body.kind
    envelope = {"schema": 1, "seq": 3, "time_ns": 5, "run": "r", "search": "s"}
    assert body_from_json({**envelope, **record}) == body


def test_an_event_of_an_unknown_kind_is_refused() -> None:
    with pytest.raises(ValueError, match="unknown event kind 'tolld'; there are: search_started,"):
        body_from_json({"kind": "tolld"})
    with pytest.raises(ValueError, match="unknown event kind None"):
        body_from_json({})


def test_an_event_that_lacks_fields_is_refused_with_their_names() -> None:
    with pytest.raises(ValueError, match="event 'told' lacks node, reward"):
        body_from_json({"kind": "told", "expansion": 0, "index": 1})
