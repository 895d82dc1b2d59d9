"""Answers that are none: reading them raises nothing and takes time linear in their length."""

from __future__ import annotations

import sys
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kopt.candidate import MAX_SOURCE_BYTES
from kopt.prompts.answer import Reading
from kopt.prompts.labels import MAX_STRATEGY

PIECES = [
    "```",
    "```python\n",
    "\n```\n",
    "~~~\n",
    "````json\n",
    "\n",
    " ",
    "<think>",
    "</think>\n",
    "class ModelNew(nn.Module):\n",
    "    def forward(self, x):\n        return x\n",
    "ModelNew = x\n",
    "import triton\n",
    "import torch\n",
    '"""',
    '{"code": "',
    '"}',
    "[",
    "{",
    "strategy: ",
    "language: cpp\n",
    "# language: cuda\n",
    "@@ -1 +1 @@\n",
    "\\n",
    "\r",
    "\0",
    "\ufeff",
    "\ud800",
    "(",
    "…",
]


def check(reading: Reading, *, max_candidates: int) -> None:
    assert bool(reading.candidates) != bool(reading.fault)
    assert "\n" not in reading.fault
    assert len(reading.candidates) <= max_candidates
    assert len({each.candidate_id for each in reading.candidates}) == len(reading.candidates)
    for candidate in reading.candidates:
        source = candidate.source.encode("utf-8")  # it can be written to a file
        assert len(source) <= MAX_SOURCE_BYTES
        assert b"ModelNew" in source
        assert not {b"\0"[0], b"\r"[0]} & set(source)
        assert candidate.language in ("cpp", "torch")
        assert len(candidate.strategy) <= MAX_STRATEGY
        assert "\n" not in candidate.strategy


@given(
    text=st.lists(st.sampled_from(PIECES) | st.text(max_size=5), max_size=30).map("".join),
    max_candidates=st.integers(1, 3),
)
@settings(max_examples=400, deadline=None)
def test_any_text_gives_candidates_or_one_line(read, text: str, max_candidates: int) -> None:
    check(read(text, max_candidates=max_candidates), max_candidates=max_candidates)


FORWARD = "class ModelNew:\n    def forward(self, x): return x\n"
SHAPES: dict[str, Callable[[int], str]] = {
    "words": lambda n: "ModelNew is fast. " * (n // 18),
    "one long line": lambda n: "strategy" * (n // 8),
    "empty lines": lambda n: "\n" * n,
    "spaces": lambda n: " " * n,
    "backticks": lambda n: "`" * n,
    "fences": lambda n: "```\n" * (n // 4),
    "opening fences": lambda n: "```python\n" * (n // 10),
    "opening fences, closed at the end": lambda n: "~~~~~a\n" * (n // 7) + "~~~~~\n",
    "opening fences of two kinds": lambda n: "````a\n```\n" * (n // 10),
    "blocks with ModelNew": lambda n: "```\nModelNew (\n```\n" * (n // 19),
    "classes without an end": lambda n: "```\n" + "class ModelNew: x = (\n" * (n // 22),
    "thinking": lambda n: "<think>\n" * (n // 8),
    "ends of thinking": lambda n: "</think>\n" * (n // 9),
    "thinking on one line": lambda n: "<think></think>" * (n // 15),
    "JSON lists": lambda n: "[" * n,
    "JSON objects by line": lambda n: '{"ModelNew": \n' * (n // 14),
    "an open JSON string": lambda n: '{"ModelNew": "' + "\\n" * (n // 2),
    "a long JSON list": lambda n: "[" + '"ModelNew",' * (n // 11) + "1]",
    "strategies in JSON": lambda n: '"strategy": "' * (n // 13) + "\n```\n" + FORWARD + "```",
    "strategies by line": lambda n: "strategy: x\n" * (n // 12) + "```\n" + FORWARD + "```",
    "languages by line": lambda n: "language: cpp\n" * (n // 14) + "```\n" + FORWARD + "```",
    "comments": lambda n: "```\n" + "# strategy: x\n" * (n // 14) + FORWARD + "```",
    "brackets in code": lambda n: "```\nModelNew = " + "(" * n + "\n```",
    "minus signs in code": lambda n: "```\nModelNew = " + "-" * n + "1\n```",
    "carriage returns": lambda n: "\r" * n,
    "surrogates": lambda n: "\ud800" * n,
    "tags": lambda n: "</x>\n" * (n // 5) + "ModelNew",
    "code lines": lambda n: "import ModelNew (\n" * (n // 18),
}


@pytest.mark.parametrize("shape", SHAPES)
def test_reading_half_a_megabyte_ends(read, shape: str) -> None:
    # What is quadratic in a text of this size does not end within the day: no clock is needed.
    reading = read(SHAPES[shape](500_000))
    check(reading, max_candidates=1)


@pytest.mark.parametrize("shape", SHAPES)
def test_the_work_grows_no_faster_than_the_text(read, shape: str) -> None:
    def calls(size: int) -> int:
        text = SHAPES[shape](size)
        count = 0

        def count_call(frame: object, event: str, argument: object) -> None:
            nonlocal count
            count += 1

        sys.setprofile(count_call)
        try:
            read(text)
        finally:
            sys.setprofile(None)
        return count

    calls(2_000)  # imports and caches
    # Twice the text, at most twice the calls, and some that every answer costs.
    assert calls(20_000) <= 2.2 * calls(10_000) + 500


def test_ten_megabytes_of_prose_before_the_code_are_read(read) -> None:
    text = "We look at ModelNew again, and at its strategy: none.\n" * 190_000
    (candidate,) = read(f"{text}\n```python\n{FORWARD}```").candidates
    assert candidate.source == FORWARD
