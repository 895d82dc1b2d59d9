"""Answers in the forms that models give them, and the one line where they hold no candidate."""

from __future__ import annotations

import json
import textwrap
from pathlib import Path

import pytest

from kopt.candidate import MAX_SOURCE_BYTES, Candidate


def module(number: int = 1) -> str:
    """A module of its own for each number."""
    return (
        "import torch\nfrom torch import nn\n\n\nclass ModelNew(nn.Module):\n"
        f"    def forward(self, x):\n        return x + {number}\n"
    )


ONE = module(1)
SKETCH = "class ModelNew(nn.Module):\n    def forward(self, x):\n        ...\n"


def test_the_form_that_is_asked_for_is_read_in_full(read) -> None:
    text = f"strategy: One pass in place of two.\nlanguage: torch\n\n```python\n{ONE}```\n"
    reading = read(text)
    assert reading.fault == ""
    assert reading.candidates == (
        Candidate(
            source=ONE, language="torch", strategy="One pass in place of two.", programmer="t"
        ),
    )


def test_a_candidate_names_the_node_that_it_was_made_from(read) -> None:
    parent = Candidate(source=module(9), language="torch")
    (candidate,) = read(f"```python\n{ONE}```", parent=parent).candidates
    assert candidate.parent == parent.candidate_id


@pytest.mark.parametrize(
    "text",
    [
        f"```\n{ONE}```",
        f"```py\n{ONE}\n\n```\n\nIt is fast.",
        f"``` python title=new.py\n{ONE}```",
        f"```python:candidate.py\n{ONE}```",
        f"````python\n{ONE}````",
        f"~~~python\n{ONE}~~~",
        "1. The module:\n\n" + textwrap.indent(f"```python\n{ONE}```", "   "),
        f"```python\n{ONE}",  # never closed, and whole
        f"Here is some `code`:\n```python\n\n\n{ONE}```",
        ONE,
        f"strategy: s\n\n{ONE}",
        f"<code>\n{ONE}\n</code>",
        json.dumps({"strategy": "s", "code": ONE}),
        json.dumps([{"code": ONE}]),
        json.dumps({"candidates": [{"Strategy": "s", "kernel": {"source": ONE}}]}, indent=2),
        json.dumps({"code": f"```python\n{ONE}```"}),
        json.dumps({"code": ONE.replace("\n", "\\n")}),  # escaped twice
        '{"code": "' + ONE + '"}',  # line breaks that are not escaped
        f"```json\n{json.dumps({'code': ONE}, indent=1)}\n```",
        f"```\n{json.dumps({'code': ONE})}\n```",
        f"I answer:\n{json.dumps({'code': ONE})}\nGoodbye.",
        ONE.replace("\n", "\r\n"),
        f"```python\n{ONE}```".replace("\n", "\r\n"),
        f"\ufeff```python\n{ONE}```",
        f"```python\n{ONE}```\0",
    ],
)
def test_one_module_is_found_in_any_wrapping(read, text: str) -> None:
    reading = read(text)
    assert [candidate.source for candidate in reading.candidates] == [ONE], reading.fault


NESTED = f'"""Use it like this:\n\n```python\nmodel = ModelNew()\n```\n\n~~~\nx\n~~~\n"""\n{ONE}'


def test_fences_within_a_docstring_do_not_end_the_block(read) -> None:
    assert read(f"x\n```python\n{NESTED}```\nbye").candidates[0].source == NESTED


def test_a_block_that_is_never_closed_does_not_swallow_the_next(read) -> None:
    text = f"```python\nx = (1,\n\nNow the module:\n\n```python\n{ONE}```"
    assert read(text).candidates[0].source == ONE


@pytest.mark.parametrize(
    ("blocks", "chosen"),
    [
        ([module(1), module(2), module(3)], module(3)),
        ([ONE, "print(1)"], ONE),
        (["__global__ void k() {}", ONE], ONE),
        # The reader is shown how to use it.
        ([ONE, "from candidate import ModelNew\nModelNew()(x)"], ONE),
        ([ONE, "model = ModelNew()\nprint(model(x))"], ONE),
        # An outline of what was written.
        ([ONE, SKETCH], ONE),
        ([ONE, "class ModelNew(nn.Module):\n    pass"], ONE),
        # One that parses, before a later one that does not.
        ([ONE, "class ModelNew(nn.Module):\n    def forward(self, x:\n"], ONE),
        ([SKETCH], SKETCH),
        ([*(f"x = {number}" for number in range(9)), ONE], ONE),
        # Not at module level.
        ([ONE, "def make():\n    class ModelNew:\n        x = 1\n    return ModelNew"], ONE),
        (["if True:\n    class ModelNew:\n        def forward(self): return 1"], None),
        (["def base(): ...\nModelNew = base()"], None),
    ],
)
def test_of_several_blocks_the_last_whole_module_counts(read, blocks, chosen) -> None:
    text = "\n".join(f"```python\n{block}\n```" for block in blocks)
    (candidate,) = read(text).candidates
    assert candidate.source == (chosen or f"{blocks[-1]}\n")


def test_several_are_read_in_order_where_several_are_wanted(read) -> None:
    parts = [f"strategy: idea {n}\n```python\n{module(n)}```" for n in (1, 2, 2, 3, 4)]
    candidates = read("\n\n".join(parts), max_candidates=3).candidates
    assert [each.source for each in candidates] == [module(1), module(2), module(3)]
    assert [each.strategy for each in candidates] == ["idea 1", "idea 2", "idea 3"]


def test_words_between_two_modules_are_about_the_second(read) -> None:
    text = f"```\n{module(1)}```\nstrategy: idea 2\n```\n{module(2)}```\nSo much for that."
    candidates = read(text, max_candidates=2).candidates
    assert [each.strategy for each in candidates] == ["", "idea 2"]


def test_a_list_in_json_gives_several(read) -> None:
    answers = [{"strategy": f"idea {n}", "code": module(n)} for n in (1, 2)]
    for text in (json.dumps(answers), f"```json\n{json.dumps({'answers': answers})}\n```"):
        candidates = read(text, max_candidates=2).candidates
        assert [(each.strategy, each.source) for each in candidates] == [
            ("idea 1", module(1)),
            ("idea 2", module(2)),
        ]


def test_a_module_that_does_not_parse_is_a_candidate_whose_verdict_will_say_so(read) -> None:
    broken = "class ModelNew(nn.Module):\n    def forward(self, x:\n        return x\n"
    assert read(f"```python\n{broken}```").candidates[0].source == broken


@pytest.mark.parametrize(
    "text",
    [
        "<think>\n{draft}\n</think>\n{answer}",
        "<thinking>Do I close </think> here?\n{draft}</thinking>\n{answer}",
        "{draft}\n</think>\n\n{answer}",  # the template opened it
        "  <Think>\nShould I write <think>? {draft}</think>{answer}",
        "[THINK]{draft}[/THINK]\n{answer}",
        "<think>a</think>\n{answer}\n<think>\n{draft}",
    ],
)
def test_code_within_reasoning_is_passed_over(read, text: str) -> None:
    text = text.format(draft=f"```python\n{module(2)}```", answer=f"\n```python\n{ONE}```\n")
    assert [each.source for each in read(text).candidates] == [ONE]


def test_a_program_that_speaks_of_thinking_is_whole(read) -> None:
    source = f'{ONE}\nTAG = "<think>"\nEND = "</think>"\n'
    assert read(f"```python\n{source}```").candidates[0].source == source


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("", "the answer is empty"),
        (" \n\r\n", "the answer is empty"),
        ("I cannot do that.", "no code block"),
        ("We define ModelNew by one kernel; class ModelNew is left to you.", "no code block"),
        (f"<think>\n```python\n{ONE}```", "the answer ends while it is still reasoning"),
        ("```python\nx = 1\n```", "no ModelNew: 1 code block, and none defines it"),
        (
            "\n".join("```cuda\n__global__ void k() {}\n```" for _ in range(10)),
            "no ModelNew: 10 code blocks, and none defines it",
        ),
        (f"```python\n{ONE[:-4]}(", "the code is cut off"),
        (f'```python\n"""\n```\nx\n```\n"""\n{ONE[:-4]}(', "the code is cut off"),
        (
            "```diff\n@@ -1,2 +1,2 @@\n-class ModelNew(a):\n+class ModelNew(b):\n```",
            "a patch, not a module",
        ),
        (
            "```python\n<<<<<<< SEARCH\nclass ModelNew(a):\n=======\nclass ModelNew(b):\n"
            ">>>>>>> REPLACE\n```",
            "a patch, not a module",
        ),
        ("@@ -1,2 +1,2 @@\n-class ModelNew(a):\n+class ModelNew(b):\n", "a patch, not a module"),
        (json.dumps({"code": ONE})[:-30], "JSON that cannot be read"),
        ('{"strategy": "s"}', "JSON that cannot be read, or holds no module"),
        (
            f"```python\nimport triton\n{ONE}```",
            "language triton cannot be built here; choose one of cpp, torch",
        ),
    ],
)
def test_an_answer_without_a_candidate_says_why_in_one_line(read, text: str, fault: str) -> None:
    reading = read(text)
    assert reading.candidates == ()
    assert reading.fault.startswith(fault)
    assert "\n" not in reading.fault


def test_code_beyond_the_limit_is_refused_unread(read) -> None:
    filler = "#" * MAX_SOURCE_BYTES
    assert "at most 1000000 are read" in read(f"```python\n{ONE}{filler}\n```").fault
    # 400,001 characters of three bytes each.
    wide = "#" + "…" * 400_000
    assert "at most 1000000 are read" in read(f"```python\n{ONE}{wide}\n```").fault


def test_what_repeats_the_parent_is_no_candidate(read) -> None:
    parent = Candidate(source=ONE, language="torch")
    again = f"# language: torch\n\n{ONE}\n\n"
    assert read(f"```python\n{ONE}```", parent=parent).fault == "same as its parent"
    assert read(f"```python\n{again}```", parent=parent).fault == "same as its parent"
    (candidate,) = read(f"```\n{module(2)}```\nIt was:\n```\n{ONE}```", parent=parent).candidates
    assert candidate.source == module(2)


def test_another_pragma_in_c_text_makes_another_program(read) -> None:
    source = f'CODE = r"""\n#include <cmath>\n#pragma omp simd\nint x;\n"""\n{ONE}'
    parent = Candidate(source=source, language="cpp")
    other = source.replace("#pragma omp simd\n", "")
    assert read(f"```python\n{other}```", parent=parent).candidates[0].source == other


def test_what_repeats_the_reference_is_for_the_evaluator_to_judge(read) -> None:
    assert read(f"```python\n{ONE}```").fault == ""


def test_a_language_that_cannot_be_built_leaves_the_other_module(read) -> None:
    text = f"```python\n{ONE}```\nor\n```python\nimport triton\n{module(2)}```"
    assert read(text).candidates[0].source == ONE


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("language: cpp\n```python\n{one}```", "cpp"),
        ("**Language:** C++\n```python\n{one}```", "cpp"),
        ("```python\n# language: cpp\n{one}```", "cpp"),
        ("```cpp\n{one}```", "cpp"),
        ('{{"language": "cpp"}}\n```python\n{one}```', "cpp"),
        ("language: (one of cpp, torch)\n```python\n{one}```", "torch"),
        ("language: python\n```python\n{one}```", "torch"),
        ("```python\nimport triton\n{one}```", "triton"),
        ("language: torch\n```python\nimport triton\n{one}```", "triton"),
        (
            "```python\nfrom x import load_inline\nload_inline('n', c, cuda_sources=d)\n{one}```",
            "cuda",
        ),
    ],
)
def test_the_language_is_the_declared_one_or_told_by_structure(read, text, language) -> None:
    reading = read(text.format(one=ONE), languages=("triton", "cuda", "cpp", "torch"))
    assert [each.language for each in reading.candidates] == [language], reading.fault


@pytest.mark.parametrize(
    ("text", "strategy"),
    [
        ("strategy: a b\n{code}", "a b"),
        ("**Strategy**: a b\n{code}", "a b"),
        ("- Strategy: a\n  b\n\nMore.\n{code}", "a b"),
        ("## Strategy\n\na b\n\n{code}", "a b"),
        ("Optimization strategy: a b\n{code}", "a b"),
        ('{{"strategy": "a \\"b\\""}}\n{code}', 'a "b"'),
        ("{code}\nstrategy: a b", "a b"),
        ("strategy: first\n```\nx\n```\nlanguage: torch\n{code}", "first"),
        ("Rows are summed in one pass. Then more.\n{code}", "Rows are summed in one pass."),
        ("# Title\n\nRows are summed. Then.\n{code}", "Rows are summed."),
        ("{code}\nIt sums each row once. Really.", "It sums each row once."),
        ("{code}", ""),
        (
            "My plan has a strategy of sorts: none.\n{code}",
            "My plan has a strategy of sorts: none.",
        ),
    ],
)
def test_the_strategy_is_the_declared_one_or_the_first_sentence(read, text, strategy) -> None:
    (candidate,) = read(text.format(code=f"```python\n{ONE}```")).candidates
    assert candidate.strategy == strategy


def test_a_strategy_in_the_module_is_found(read) -> None:
    for head in ("# strategy: a b\n", '"""Strategy: a b\n\nMore."""\n'):
        assert read(f"```python\n{head}{ONE}```").candidates[0].strategy == "a b"


def test_a_strategy_is_one_line_of_400_characters_at_most(read) -> None:
    (candidate,) = read(f"strategy: {'word ' * 1000}\n```python\n{ONE}```").candidates
    assert len(candidate.strategy) <= 400
    assert candidate.strategy.endswith("word…")


def test_a_lone_surrogate_is_replaced_and_a_pair_joined(read) -> None:
    source = 'x = "\ud83d\ude00 \udc80"\n' + ONE
    (candidate,) = read(f"```python\n{source}```").candidates
    assert candidate.source == 'x = "\U0001f600 \ufffd"\n' + ONE
    (candidate,) = read(json.dumps({"code": source})).candidates
    assert candidate.source == 'x = "\U0001f600 \ufffd"\n' + ONE


def test_an_answer_read_back_from_disk_is_the_same_candidate(read, tmp_path: Path) -> None:
    text = f"```python\n# \udcff \x85 \u2028 …\n{ONE}```"
    (candidate,) = read(text).candidates
    path = tmp_path / "source.py"
    path.write_text(candidate.source, encoding="utf-8", newline="")
    assert path.read_bytes().decode() == candidate.source
