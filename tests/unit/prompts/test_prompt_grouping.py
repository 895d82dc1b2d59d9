"""What a strategist's words decide, whatever they are."""

from __future__ import annotations

import json
import runpy
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from kopt.compiled.choices import Choice
from kopt.prompts.agent_grouping import MAX_PAIRS, grouping_prompt, pairs_of, read_grouping
from kopt.prompts.tokens import prompt_tokens

GOLDEN = Path(__file__).parents[2] / "golden" / "prompts"
CASES: dict[str, Any] = runpy.run_path(str(GOLDEN / "regen_prompts.py"))
CHOICES: tuple[Choice, ...] = CASES["taken_apart"]().choices
"""Two pairs; the first is at the places 12 and 32, the second at 20."""


def decisions(text: str) -> tuple[dict[int, bool], tuple[str, ...]]:
    grouping = read_grouping(text, CHOICES)
    return {wish.place: wish.fuse for wish in grouping.wishes}, grouping.faults


def test_what_looks_alike_is_asked_about_once_and_decided_alike() -> None:
    assert [[choice.place for choice in pair.choices] for pair in pairs_of(CHOICES)] == [
        [12, 32],
        [20],
    ]
    said = {
        "pairs": [
            {"pair": 1, "decision": "keep", "reason": "a\nwhole  reduction"},
            {"pair": 2, "decision": "fuse", "reason": "one launch less"},
        ]
    }
    grouping = read_grouping(json.dumps(said), CHOICES)
    assert grouping.faults == ()
    assert [(w.place, w.kernel, w.fuse, w.reason) for w in grouping.wishes] == [
        (12, "triton_red_fused_sum_1", False, "a whole reduction"),
        (32, "triton_red_fused_sum_1", False, "a whole reduction"),
        (20, "triton_per_fused_softmax_0", True, "one launch less"),
    ]


ONE = '{"pair": 1, "decision": "keep"}'
TWO = '{"pair": 2, "decision": "fuse"}'


@pytest.mark.parametrize(
    "text",
    [
        f'{{"pairs": [{ONE}, {TWO}]}}',
        f'<think>{{"pairs": []}}</think>So:\n```json\n{{"Pairs": [{ONE}, {TWO}]}}\n```\nDone.',
        f"[{ONE}, {TWO}]",
        f"{ONE}\n{TWO}",
        '{"decisions": [{"Pair": "pair 1", "Decision": "Keep apart."},'
        ' {"pair": "2", "decision": "MERGE"}]}',
        '{"pairs": {"1": "keep", "2": {"decision": "fuse"}}}',
        '{"pairs": [{"pair": 1, "fuse": false}, {"pair": 2, "fuse": true}]}',
    ],
)
def test_any_common_form_is_read(text: str) -> None:
    assert decisions(text) == ({12: False, 32: False, 20: True}, ())


@pytest.mark.parametrize(
    ("text", "decided", "faults"),
    [
        ("", {}, ("no JSON object",)),
        ("I would fuse all of them.", {}, ("no JSON object",)),
        ("<think>{", {}, ("no JSON object (it ended while it was reasoning)",)),
        ('{"plan": {"change": "x"}}', {}, ("no decisions in the form asked for",)),
        ('{"pairs": []}', {}, ("no decisions in the form asked for",)),
        ('{"pairs": [1, "fuse", null]}', {}, ("no decisions in the form asked for",)),
        (f'{{"pairs": [{TWO}]}}', {20: True}, ("pair 1: not decided",)),
        (
            f'{{"pairs": [{TWO}, {ONE}, {{"pair": 1, "decision": "fuse"}}]}}',
            {20: True},
            ("pair 1: both fused and kept apart",),
        ),
        (
            f'{{"pairs": [{ONE}, {{"pair": 2, "decision": "perhaps"}}]}}',
            {12: False, 32: False},
            ("pair 2: neither fuse nor keep",),
        ),
        (
            f'{{"pairs": [{ONE}, {TWO}, {{"pair": 3, "decision": "fuse"}}, {{"pair": true}}]}}',
            {12: False, 32: False, 20: True},
            ("there is no pair 3", "there is no pair True"),
        ),
    ],
)
def test_what_is_missing_unknown_or_contradictory_is_the_rule_s_and_said(
    text: str, decided: dict[int, bool], faults: tuple[str, ...]
) -> None:
    assert decisions(text) == (decided, faults)


def test_a_reason_of_a_megabyte_is_cut_and_a_missing_one_said() -> None:
    long = {"pairs": [{"pair": 1, "decision": "fuse", "reason": "so " * 400_000}]}
    assert all(len(wish.reason) < 300 for wish in read_grouping(json.dumps(long), CHOICES).wishes)
    assert read_grouping(ONE, CHOICES).wishes[0].reason == "no reason given"
    escape = {"pair": 1, "decision": "fuse", "reason": "a\x1b[2Jb"}
    assert read_grouping(json.dumps(escape), CHOICES).wishes[0].reason == "a[2Jb"


def test_a_prompt_is_bounded_and_asks_about_what_passes_most() -> None:
    apart = CASES["taken_apart"]()
    many = [
        replace(
            apart.choices[0],
            place=place,
            passed=(replace(apart.choices[0].passed[0], num_bytes=place),),
        )
        for place in range(100, 400)
    ]
    messages = grouping_prompt(replace(apart, choices=tuple(many)))
    assert prompt_tokens(messages) < 10_000
    asked = pairs_of(many)
    assert [pair.choices[0].place for pair in asked] == list(range(400 - MAX_PAIRS, 400))
