"""Everything that the side panel shows of one candidate, as plain values."""

from __future__ import annotations

from typing import Any

from kopt.candidate import Language
from kopt.data.artefacts import Artefacts
from kopt.data.fold import SearchState
from kopt.data.results import outcome_of
from kopt.evaluation import EvalJson, missing_baselines
from kopt.report.changes import changes
from kopt.report.dialogue import dialogue, read_text
from kopt.report.highlight import highlighted
from kopt.report.measured import measured
from kopt.report.nodes import TreeNode
from kopt.report.packing import Texts, shortened

MAX_SOURCE = 120_000
"""Characters of a source that are shown."""
TIMING_FIELDS = (
    "time_us",
    "time_ci_us",
    "baseline",
    "baseline_us",
    "eager_us",
    "compile_us",
    "max_autotune_us",
    "given_us",
    "speedup",
    "speedup_ci",
    "num_pairs",
    "protocol",
    "sol_us",
    "sol_share",
)


def details(
    node: TreeNode,
    *,
    parent: TreeNode | None,
    search: SearchState,
    artefacts: Artefacts,
    texts: Texts,
) -> dict[str, Any]:
    """Return one candidate's record.

    Args:
        node: of the candidate.
        parent: None where it was written from the problem alone.
        search: that it is of.
        artefacts: of its run.
        texts: of the block that the record goes to.
    """
    expansion = search.expansions[node.expansion]
    source = shortened(read_text(node.made.source, artefacts), most=MAX_SOURCE)
    before = None if parent is None else read_text(parent.made.source, artefacts)
    names = (f"node {node.parent}", f"node {node.node}")
    return {
        "candidate": node.made.candidate,
        "strategy": node.made.strategy,
        "programmer": node.made.programmer,
        "language": node.made.language,
        "mode": expansion.asked.mode,
        "cached": node.cached,
        "verdict": _verdict(node.evaluation),
        "source": highlighted(source, language=_language(node)),
        "changes": None if before is None else changes(before, source, names=names),
        "measured": measured(
            search.profiles.get(node.made.candidate),
            artefacts=artefacts,
            time_us=node.evaluation["time_us"],
        ),
        "dialogue": dialogue(expansion, artefacts=artefacts, texts=texts),
    }


def _language(node: TreeNode) -> Language:
    return node.evaluation["language"]


def _verdict(record: EvalJson) -> dict[str, Any]:
    timing = {name: record.get(name) for name in TIMING_FIELDS}
    return {
        **timing,
        "kind": record["kind"],
        "is_win": _is_win(record),
        "reason": record["reason"],
        "ladder": record["ladder"],
        "device": record["device"],
        "track": record["track"],
        "sandbox": record["sandbox"],
        "library_share": record["library_share"],
        "degenerate": record["degenerate"],
        "error": record["error"],
        "gates": record["gates"],
        "failed_checks": [check for check in record["checks"] if not check["passed"]],
        "passed_checks": sum(check["passed"] for check in record["checks"]),
        "missing_baselines": missing_baselines(record),
        "log": None if record["log"] is None else shortened(record["log"]),
        "stages_s": record["timeline_s"],
    }


def _is_win(record: EvalJson) -> bool:
    """By the rule of searches' outcomes, so that a panel says what the tables say."""
    is_correct = record["kind"] == "correct"
    return is_correct and outcome_of(record) == "optimized" and not record["degenerate"]
