"""Lint rows as data: their order, their JSON, and the table that ships."""

import json

import pytest

from kopt.cli import main
from kopt.cli.lint import closing_text, lint_json, row_text
from kopt.data.lint import (
    LINT_TAGS,
    MEANINGS,
    LintRemark,
    LintRow,
    builtin_table,
    ordered,
    read_table,
    row_from_json,
    row_to_json,
    table_text,
)
from kopt.data.problems import resolve
from kopt.data.problems.config import ProblemsConfig
from kopt.errors import StoreError

ROW = LintRow(
    name="mine/zero",
    problem="0" * 64,
    ladder="strict",
    remarks=ordered(
        [
            LintRemark(tag="no_op", line="changes nothing: relu"),
            LintRemark(
                tag="zeros", line="an answer of zeros passes on any inputs", degenerate=True
            ),
            LintRemark(tag="no_op", line="changes nothing: clamp"),
        ]
    ),
    notes=("input 0: every draw gives the same values",),
)
CLEAN = LintRow(name="mine/clean", problem="1" * 64, ladder="strict")


def test_remarks_are_in_the_order_of_the_tags_and_one_of_each() -> None:
    assert ROW.tags == ("zeros", "no_op")
    assert ROW.remarks[1].line == "changes nothing: relu; changes nothing: clamp"
    assert ROW.degenerate == "an answer of zeros passes on any inputs"
    assert CLEAN.degenerate == ""


def test_every_tag_says_what_it_means() -> None:
    assert list(MEANINGS) == list(LINT_TAGS)


def test_rows_and_tables_survive_json() -> None:
    assert row_from_json(json.loads(json.dumps(row_to_json(ROW)))) == ROW
    assert read_table(table_text([ROW, CLEAN]), where="x") == {
        row.name: row for row in (ROW, CLEAN)
    }


@pytest.mark.parametrize(
    "text", ["", "{}", '{"schema": 2, "problems": []}', '{"schema": 1, "problems": [{}]}']
)
def test_a_damaged_table_is_one_error(text: str) -> None:
    with pytest.raises(StoreError, match="mine: not a lint table"):
        read_table(text, where="mine")


def test_the_shipped_table_is_of_the_problems_that_ship() -> None:
    problems = resolve(["builtin/*"], ProblemsConfig())
    table = builtin_table()
    assert {p.name: p.problem_id for p in problems} == {n: r.problem for n, r in table.items()}
    assert {p.name: p.degenerate for p in problems} == {n: r.degenerate for n, r in table.items()}
    assert not any(row.degenerate for row in table.values())


def test_a_row_is_told_with_a_line_for_each_remark() -> None:
    text = row_text(ROW, width=10, seconds=2.0)
    first, *rest = text.splitlines()
    assert first.split() == ["mine/zero", "strict", "2.0", "s", "zeros", "no_op", "DEGENERATE"]
    assert len(rest) == 3
    assert "clean" in row_text(CLEAN, width=10, seconds=2.0)
    assert closing_text([ROW, CLEAN], asked=3).splitlines()[-1] == (
        "2 problem(s) linted (of 3 asked for): 1 without remarks, 1 degenerate"
    )


def test_the_json_counts_tags_and_names_the_degenerate() -> None:
    record = lint_json([ROW, CLEAN], asked=2)
    assert record["degenerate"] == ["mine/zero"]
    assert record["tags"]["no_op"] == 1
    assert record["tags"]["broken"] == 0
    assert len(record["problems"]) == 2


def test_lint_settings_without_lint_are_refused(capfd: pytest.CaptureFixture[str]) -> None:
    for arguments in (["evaluate=tf32"], ["device=cpu"], ["--table", "x.json"]):
        assert main(["problems", "builtin", *arguments]) == 2
        (line,) = capfd.readouterr().err.splitlines()
        assert "add --lint" in line
