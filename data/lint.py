"""What a lint says of a problem: remarks from a closed set of tags, one line each.

A problem is degenerate where a trivial answer passes its comparison on every hidden input, or where
it spends a good part of its work on what it never uses: a speed-up on it means little. Source:
exploits §E5 and classes 40 to 45, 49, 52; KernelBench notes C1 to C6.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from importlib.resources import files
from typing import Any, Literal, get_args

from kopt.errors import StoreError
from kopt.ladder import LadderName

LintTag = Literal[
    "broken",
    "not_finite",
    "zeros",
    "constant",
    "mean",
    "repeated",
    "identity",
    "sample",
    "bf16",
    "ignored_input",
    "ignored_parameter",
    "ignored_buffer",
    "dead_op",
    "no_op",
    "nondeterministic",
    "random",
    "stateful",
    "hidden_state",
]
LINT_TAGS: tuple[LintTag, ...] = get_args(LintTag)

MEANINGS: dict[LintTag, str] = {
    "broken": "the reference does not run",
    "not_finite": "the reference's output holds inf or NaN on its own inputs",
    "zeros": "an answer of zeros passes",
    "constant": "the answer to other inputs passes: the input need not be read",
    "mean": "one number everywhere, the mean of the outputs, passes",
    "repeated": "the first sample's answer, repeated for every sample, passes",
    "identity": "an input or a weight, returned as it is, passes",
    "sample": "an answer computed from one percent of the input passes",
    "bf16": "an answer computed or kept in bfloat16 passes",
    "ignored_input": "the output does not react to an input",
    "ignored_parameter": "the output does not react to a parameter",
    "ignored_buffer": "the output does not react to a buffer",
    "dead_op": "an operation's result is never used",
    "no_op": "an operation changes nothing",
    "nondeterministic": "equal seeds give unequal inputs, weights or outputs",
    "random": "the output depends on the seed of the call",
    "stateful": "a call changes parameters or buffers",
    "hidden_state": "a call changes later ones by something outside the state_dict",
}
"""Tag to what it says, for a legend."""

BUILTIN_TABLE = "builtin_lint.json"
TABLE_SCHEMA = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class LintRemark:
    """One thing that a lint found."""

    tag: LintTag
    line: str
    """What was found, in one line; no measured figures, so that equal problems give equal lines."""
    degenerate: bool = False
    """Whether it makes a speed-up on the problem mean little."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LintRow:
    """What a lint found of one problem."""

    name: str
    """The problem's name."""
    problem: str
    """Problem id (sha256)."""
    ladder: LadderName
    """Policy of the comparisons."""
    remarks: tuple[LintRemark, ...] = ()
    """In the order of LINT_TAGS; at most one of a tag."""
    notes: tuple[str, ...] = ()
    """What could not be looked at, and why."""

    @property
    def tags(self) -> tuple[LintTag, ...]:
        """The tags of the remarks."""
        return tuple(remark.tag for remark in self.remarks)

    @property
    def degenerate(self) -> str:
        """Text for `Problem.degenerate`: the plainest reason that a speed-up on it means little."""
        return next((remark.line for remark in self.remarks if remark.degenerate), "")


def ordered(remarks: Iterable[LintRemark]) -> tuple[LintRemark, ...]:
    """Return remarks in the order of LINT_TAGS, those of one tag made one."""
    by_tag: dict[LintTag, list[LintRemark]] = {}
    for remark in remarks:
        by_tag.setdefault(remark.tag, []).append(remark)
    return tuple(
        LintRemark(
            tag=tag,
            line="; ".join(dict.fromkeys(remark.line for remark in by_tag[tag])),
            degenerate=any(remark.degenerate for remark in by_tag[tag]),
        )
        for tag in LINT_TAGS
        if tag in by_tag
    )


def row_to_json(row: LintRow) -> dict[str, Any]:
    """Return a row as JSON values."""
    return {
        "name": row.name,
        "problem": row.problem,
        "ladder": row.ladder,
        "tags": list(row.tags),
        "degenerate": row.degenerate,
        "remarks": [asdict(remark) for remark in row.remarks],
        "notes": list(row.notes),
    }


def row_from_json(value: dict[str, Any]) -> LintRow:
    """Return the row of `row_to_json`'s form.

    Raises:
        ValueError: it is none.
    """
    try:
        row = LintRow(
            name=value["name"],
            problem=value["problem"],
            ladder=value["ladder"],
            remarks=tuple(LintRemark(**remark) for remark in value["remarks"]),
            notes=tuple(value["notes"]),
        )
    except (KeyError, TypeError) as error:
        raise ValueError(f"not a lint row: {error}") from error
    unknown = set(row.tags) - set(LINT_TAGS)
    if unknown:
        raise ValueError(f"unknown lint tag {unknown.pop()!r}; there are: {', '.join(LINT_TAGS)}")
    return row


def table_text(rows: Sequence[LintRow]) -> str:
    """Return the text of a table's file."""
    table = {"schema": TABLE_SCHEMA, "problems": [row_to_json(row) for row in rows]}
    return json.dumps(table, indent=1, ensure_ascii=False) + "\n"


def read_table(text: str, *, where: str) -> dict[str, LintRow]:
    """Return a table's rows by problem name.

    Raises:
        StoreError: the text is no table.
    """
    try:
        table = json.loads(text)
        if table["schema"] != TABLE_SCHEMA:
            raise ValueError(f"lint table schema {table['schema']} is not {TABLE_SCHEMA}")
        rows = [row_from_json(value) for value in table["problems"]]
    except (ValueError, KeyError, TypeError) as error:
        raise StoreError(where, f"not a lint table: {error}") from error
    return {row.name: row for row in rows}


@cache
def builtin_table() -> dict[str, LintRow]:
    """Return the table of the built-in problems that ships with kopt, by problem name.

    `kopt problems --lint 'builtin/*' --table FILE` makes it.

    Raises:
        StoreError: the shipped file is damaged.
    """
    path = files("kopt.data.problems") / BUILTIN_TABLE
    return read_table(path.read_text(encoding="utf-8"), where=BUILTIN_TABLE)
