"""NVIDIA's own rules from Nsight Compute's details page (`--csv --page details`)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from kopt.evidence import Rule
from kopt.tools.collect.figures import number
from kopt.tools.collect.ncu_table import KERNEL_NAME, SOURCE, read_table
from kopt.tools.collect.unreadable import Remarks, UnreadableProfile

MAX_MESSAGE = 2_000
"""Characters of a rule's text."""
_COLUMNS = ("Section Name", "Rule Name", "Rule Type", "Rule Description")
_SPEEDUP, _SPEEDUP_TYPE = "Estimated Speedup", "Estimated Speedup Type"


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchRules:
    """The rules of one launch."""

    ordinal: int
    """ncu's ID."""
    kernel: str
    block: str
    grid: str
    rules: tuple[Rule, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class RulesReport:
    """The rules of one profile."""

    launches: tuple[LaunchRules, ...]
    remarks: tuple[str, ...] = ()


def parse_rules(text: str) -> RulesReport:
    """Return the rules that applied to each launch on a details page; metric rows are passed over.

    Args:
        text: ncu's output, with its log lines.

    Raises:
        UnreadableProfile: there is no table, or it is another page.
    """
    remarks = Remarks()
    table = read_table(text, remarks=remarks)
    at = {name: index for index, name in enumerate(table.columns)}
    absent = [name for name in _COLUMNS if name not in at]
    if absent:
        raise UnreadableProfile(SOURCE, f"no details page: no column {absent[0]!r}")
    found: dict[tuple[int, str, str, str], list[Rule]] = {}
    for row in table.rows:
        block, grid = (row[at[name]] if name in at else "" for name in ("Block Size", "Grid Size"))
        rules = found.setdefault((int(row[0]), row[at[KERNEL_NAME]], block, grid), [])
        if row[at["Rule Name"]]:
            estimate = number(row[at[_SPEEDUP]]) if _SPEEDUP in at else None
            scope = row[at[_SPEEDUP_TYPE]] if _SPEEDUP_TYPE in at else ""
            rules.append(
                Rule(
                    name=row[at["Rule Name"]],
                    section=row[at["Section Name"]],
                    kind="OPT" if row[at["Rule Type"]] == "OPT" else "INF",
                    message=" ".join(row[at["Rule Description"]].split())[:MAX_MESSAGE],
                    speedup_pct=estimate,
                    speedup_scope=_scope(scope),
                )
            )
    launches = tuple(
        LaunchRules(ordinal=ordinal, kernel=kernel, block=block, grid=grid, rules=tuple(rules))
        for (ordinal, kernel, block, grid), rules in found.items()
    )
    return RulesReport(launches=launches, remarks=remarks.lines())


def _scope(text: str) -> Literal["global", "local"] | None:
    if text == "global":
        return "global"
    return "local" if text == "local" else None
