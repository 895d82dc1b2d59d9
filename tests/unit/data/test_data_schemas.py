"""The shipped JSON Schemas are the code's, and hold the names that other programs rely on."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

import jsonschema
import pytest

from kopt.data.fold import fold
from kopt.data.record import record_to_line
from kopt.data.results import result_rows
from kopt.data.schema import RESULTS_SCHEMA
from kopt.data.schemas import SCHEMA_NAMES, load
from kopt.data.schemas.generate import generate
from kopt.evaluation import to_json
from kopt.events import EVENT_TYPES
from kopt.finding import Finding
from kopt.testing.fakes import MemorySink, correct, evaluation_of, source_candidate
from kopt.testing.sample_journal import SAMPLE_PROBLEM, sample_events, write_search
from kopt.verdict import Cheated, CompileFailed, Crashed, Incorrect, NumericError, TimedOut

EVAL = {
    *("schema", "kind", "problem", "candidate", "language", "ladder", "device", "track"),
    *("time_us", "time_ci_us", "baseline", "baseline_us", "eager_us", "compile_us"),
    *(
        "max_autotune_us",
        "given_us",
        "speedup",
        "speedup_ci",
        "sol_us",
        "sol_share",
        "gates",
        "checks",
    ),
    *("error", "sandbox", "library_share", "degenerate", "reason", "timeline_s"),
}
ENVELOPE = {"schema", "seq", "time_ns", "run", "search", "kind"}
EVENTS = {
    "search_started": {"problem", "arm", "seed", "policy"},
    "search_extended": {"policy_config"},
    "expansion_asked": {"expansion", "parent", "mode", "n"},
    "prompt_sent": {"expansion", "messages", "sampling", "tokens"},
    "answer_received": {
        *("expansion", "index", "text", "tool_calls", "tokens_in", "tokens_out", "cost_usd"),
    },
    "agent_call": {
        *("expansion", "agent", "slot", "turn", "messages", "text", "tokens_in", "cost_usd"),
    },
    "candidate_made": {"candidate", "expansion", "index", "source", "strategy"},
    "verdict": {"candidate", "eval"},
    "evidence": {"candidate", "ref"},
    "findings": {"candidate", "findings"},
    "profile_analysis": {"candidate", "analysis"},
    "memory_updated": {"expansion", "origin", "entries"},
    "told": {"expansion", "index", "reward"},
    "expansion_cancelled": {"expansion", "reason"},
    "search_ended": {"reason"},
    "device_quarantined": {"device", "device_name", "host", "reason"},
    "run_ended": set(),
}
RESULTS = [
    *("problem", "problem_name", "arm", "seed", "policy", "programmer", "ladder", "device"),
    *("outcome", "root_cause", "speedup", "speedup_lo", "speedup_hi", "speedup_eager"),
    *("speedup_compile", "speedup_given", "best_candidate", "baseline_us", "time_us", "sol_share"),
    "degenerate",
    *("candidates", "correct", "cheated", "cached", "iterations", "wall_s", "gpu_s"),
    *(
        "candidates_per_gpu_hour",
        "tokens_in",
        "tokens_out",
        "cost_usd",
        "answers",
        "answers_faulty",
    ),
]
EVIDENCE = {
    "Evidence": {
        *("schema", "device", "arch", "level", "kernels", "timeline", "roofline", "energy"),
    },
    "KernelEvidence": {
        *("name", "owner", "launches", "time_us", "share", "metrics", "sass", "registers"),
        *("spill_bytes", "smem_bytes"),
    },
    "Timeline": {
        *("e2e_us", "busy_us", "launches", "launch_overhead_pct", "avg_launch_ns", "gaps_us"),
        *("syncs", "memcpy_us"),
    },
    "Roofline": {
        *("flops", "bytes", "intensity", "ridge", "theoretical", "measured", "class"),
        *("confidence", "sol_us"),
    },
    "Energy": {"proxy_pj", "millijoules"},
}
MORE_EVIDENCE = {
    "Evidence": {"time_us"},
    "KernelEvidence": {"stack_bytes", "rules"},
    "Timeline": {"launch_api_pct", "sync_us", "memcpy_bytes", "memset_us"},
    "Roofline": {"matrix_flops", "unfused_bytes", "precision", "tier", "reachable_us"},
    "Energy": {"corrected_pj"},
}
"""Fields beyond the promised ones: optional, null where they are not known."""
FINDING = {
    *("tool", "severity", "title", "summary", "root_cause", "recommendations"),
    *("expected_improvement", "observed", "thresholds", "code_example", "kernel"),
}


@pytest.mark.parametrize("name", SCHEMA_NAMES)
def test_a_committed_schema_is_what_the_code_gives(name: str) -> None:
    """If not: python -m kopt.data.schemas.generate, and look at the difference."""
    assert load(name) == json.loads(json.dumps(generate(name)))


@pytest.mark.parametrize("name", SCHEMA_NAMES)
def test_a_schema_is_a_schema(name: str) -> None:
    jsonschema.Draft202012Validator.check_schema(load(name))


def test_an_unknown_schema_lists_those_there_are() -> None:
    with pytest.raises(KeyError, match="no schema 'tree'; there are: eval, evidence"):
        load("tree")


def test_the_eval_object_has_the_promised_fields() -> None:
    schema = load("eval")
    assert set(schema["properties"]) >= EVAL
    assert set(schema["required"]) == set(schema["properties"])


def test_every_event_has_the_envelope_and_its_promised_fields() -> None:
    schema = load("journal")
    found = {
        definition["properties"]["kind"]["const"]: set(definition["properties"])
        for definition in (resolve(schema, choice) for choice in schema["oneOf"])
    }
    assert found.keys() == EVENTS.keys()
    for kind, names in EVENTS.items():
        assert found[kind] >= names | ENVELOPE, kind


def test_a_results_row_has_the_promised_columns() -> None:
    assert RESULTS_SCHEMA.names == RESULTS
    assert list(generate("results")["properties"]) == RESULTS
    assert set(load("results")["required"]) == set(RESULTS)


def test_nullable_columns_and_nullable_fields_are_the_same() -> None:
    properties = load("results")["properties"]
    nullable = {
        name for name, field in properties.items() if {"type": "null"} in field.get("anyOf", [])
    }
    assert nullable == {field.name for field in RESULTS_SCHEMA if field.nullable}


def test_evidence_has_the_promised_fields() -> None:
    schema = load("evidence")
    assert set(schema["properties"]) == EVIDENCE["Evidence"] | MORE_EVIDENCE["Evidence"]
    for name in ("KernelEvidence", "Timeline", "Roofline", "Energy"):
        fields = set(schema["$defs"][name]["properties"])
        assert fields == EVIDENCE[name] | MORE_EVIDENCE[name]


def test_a_finding_has_the_promised_fields() -> None:
    assert set(load("finding")["properties"]) == FINDING


@pytest.mark.parametrize(
    "verdict",
    [
        correct(2.0),
        Incorrect(
            check="values:own",
            detail="",
            error=NumericError(max_abs=float("inf"), rel_norm=float("nan"), rho=None),
        ),
        Cheated(check="two_clocks", detail=""),
        CompileFailed(stage="build", log="error"),
        Crashed(stage="timing", log=""),
        TimedOut(stage="build", limit_s=1.0),
    ],
    ids=lambda verdict: verdict.kind,
)
def test_every_kind_of_evaluation_keeps_the_schema(verdict: Any) -> None:
    evaluation = evaluation_of(verdict, problem=SAMPLE_PROBLEM, candidate=source_candidate("a"))
    assert_kept_and_complete(to_json(evaluation), "eval")


def test_every_line_of_a_journal_keeps_the_schema() -> None:
    sink = MemorySink()
    for event in sample_events():
        sink.append("s", event)
    assert {record.body.kind for record in sink.records} == set(EVENT_TYPES)
    for record in sink.records:
        assert_kept_and_complete(json.loads(record_to_line(record)), "journal")


def test_a_line_of_an_unknown_kind_breaks_the_schema() -> None:
    line = {"schema": 1, "seq": 0, "time_ns": 0, "run": "r", "search": "s", "kind": "guess"}
    assert faults(line, "journal")


def test_every_row_of_results_keeps_the_schema() -> None:
    sink = MemorySink()
    write_search(sink, expansions=[[(source_candidate("a"), correct(2.0))]])
    write_search(sink, seed=1, expansions=[])
    solved, empty = result_rows(fold(sink.records))
    assert (solved["outcome"], empty["outcome"]) == ("optimized", "unsolved")
    for row in (solved, empty):
        assert_kept_and_complete(row, "results")


def test_a_finding_keeps_the_schema() -> None:
    finding = Finding(
        tool="occupancy",
        severity="high",
        title="t",
        summary="s",
        root_cause="r",
        recommendations=("first",),
        expected_improvement="10 %",
    )
    value = json.loads(json.dumps(asdict(finding)))
    assert faults(value, "finding") == []
    assert faults({**value, "severity": "dire"}, "finding")
    assert faults({**value, "tool": None}, "finding")


def faults(value: object, name: str) -> list[str]:
    """What a schema has against a value, after its way through JSON."""
    validator = jsonschema.Draft202012Validator(load(name))
    return [error.message for error in validator.iter_errors(json.loads(json.dumps(value)))]


def assert_kept_and_complete(value: Any, name: str) -> None:
    """The value keeps the schema, and no longer does once it lacks a field or has a foreign one."""
    assert faults(value, name) == []
    for field in value:
        assert faults({key: held for key, held in value.items() if key != field}, name), field
    assert faults({**value, "kind" if "kind" in value else "policy": 7}, name)


def resolve(schema: dict[str, Any], choice: dict[str, str]) -> dict[str, Any]:
    definition: dict[str, Any] = schema["$defs"][choice["$ref"].removeprefix("#/$defs/")]
    return definition
