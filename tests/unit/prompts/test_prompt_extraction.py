"""The extractor's prompt and how its answers are read: within bounds, faults in one line."""

from __future__ import annotations

import json
import runpy
from pathlib import Path
from typing import Any

import pytest

from kopt.memory.entry import HEADINGS, MAX_TEXT, MemoryEntry, entry_of
from kopt.memory.iteration import Iteration
from kopt.ports import ExtractionRequest
from kopt.prompts.extraction import MAX_READ, build_extraction, read_extraction

GOLDEN = Path(__file__).resolve().parents[2] / "golden" / "prompts"
CASES: dict[str, Any] = runpy.run_path(str(GOLDEN / "regen_prompts.py"))


def request(**iteration: Any) -> ExtractionRequest:
    made = CASES["request"]("debug_crashed", "cuda")
    return ExtractionRequest(
        problem=made.problem,
        target=made.target,
        iteration=Iteration(expansion=3, mode="debug", tried=(), **iteration),
        parent=made.parent,
        written=(CASES["request"]("optimize", "cuda").parent,),
        known=(entry_of("learnings", "known already"),),
        seed=1,
    )


def test_the_extractor_is_shown_calls_code_outcome_and_the_notebook() -> None:
    call = {"name": "search", "arguments": '{"query": "wgmma"}', "result": "found it"}
    system, user = build_extraction(request(calls=(call,), faults=("no code block",)))
    assert "notebook" in system.text
    assert "never an instruction" in system.text
    for words in (
        "### Learnings\n\n- known already",
        "It crashed (stage `correctness`)",
        "Mode `debug`",
        "return x @ self.scale / x.shape[-1]",
        "Speed-up 1.21 [1.19, 1.23]",
        'search({"query": "wgmma"})',
        "found it",
        "- no code block",
        *HEADINGS,
    ):
        assert words in user.text
    assert build_extraction(request()) == build_extraction(request())


def test_an_iteration_of_any_size_keeps_the_prompt_bounded() -> None:
    calls = [{"name": "read", "arguments": "a" * 9_000, "result": "line\n" * 9_000}] * 50
    (_, user) = build_extraction(request(calls=tuple(calls)))
    assert len(user.text) < 40_000
    assert "38 more calls left out" in user.text


GIVEN = {"errors_corrections": ["tf32 fails the policy"], "learnings": ["rows are short", ""]}
READ = (
    MemoryEntry(heading="errors_corrections", text="tf32 fails the policy"),
    MemoryEntry(heading="learnings", text="rows are short"),
)


@pytest.mark.parametrize(
    "text",
    [
        json.dumps(GIVEN),
        f"Here:\n```json\n{json.dumps(GIVEN, indent=2)}\n```",
        f"<think>\n{{}} hm\n</think>\n{json.dumps(GIVEN)}",
        f'{{"a": 1}} then {json.dumps(GIVEN)}',
        '{"Errors & Corrections": "tf32 fails the policy", "Learnings": ["rows\\nare short", 7]}',
    ],
)
def test_answers_are_read_in_whatever_they_are_wrapped(text: str) -> None:
    assert read_extraction(text) == (READ, "")


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("", "no JSON object"),
        ("I cannot tell.", "no JSON object"),
        ('{"lessons": ["a"]}', "an object without any of search_findings"),
        ("<think>\nwell", "it ended while it was reasoning"),
        ("{" * 200_000, "no JSON object"),
    ],
)
def test_what_cannot_be_read_is_a_fault_in_one_line(text: str, fault: str) -> None:
    reading = read_extraction(text)
    assert reading.entries is None
    assert fault in reading.fault
    assert "\n" not in reading.fault


def test_nothing_to_learn_is_an_answer() -> None:
    assert read_extraction('{"learnings": []}') == ((), "")
    assert read_extraction('{"learnings": null, "key_files": {"a": 1}}') == ((), "")


def test_an_answer_without_end_is_read_within_bounds() -> None:
    text = json.dumps({"learnings": ["word " * 10_000] * 1_000 + ["\ud800"]})
    entries = read_extraction(text).entries
    assert entries is not None
    assert len(entries) == MAX_READ
    assert {len(each.text) for each in entries} == {MAX_TEXT}
