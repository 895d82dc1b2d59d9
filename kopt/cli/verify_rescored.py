"""KernelBench samples that were judged: what became of each claim, as text, as JSON, as files."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, TextIO

from kopt.cli.verify_claims import is_win
from kopt.data.atomic import write_bytes
from kopt.data.kernelbench_runs import (
    RESULTS_NAME,
    Claim,
    Sample,
    eval_entry,
    write_eval_results,
)
from kopt.evaluation import EvalJson

OWN_RESULTS = "kopt_results.json"

Standing = Literal["vanished", "not_judged", "holds", "new", "failed", "win", "correct"]
STANDINGS: dict[Standing, str] = {
    "vanished": "claimed, and not upheld",
    "not_judged": "could not be judged",
    "holds": "claimed, and upheld",
    "new": "refused by KernelBench's harness, correct here",
    "failed": "not correct, and not claimed",
    "win": "correct and faster; nothing was claimed",
    "correct": "correct, no faster; nothing was claimed",
}
"""What became of a sample, and what that says."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scored:
    """A sample, what was claimed of it and what was found."""

    sample: Sample
    claim: Claim
    found: EvalJson | None
    standing: Standing
    why: str
    """Why it is no win, in a line; empty where it is."""


@dataclass(slots=True, kw_only=True)
class Rescoring:
    """A run folder of KernelBench under our gates, as far as it has come."""

    folder: Path
    out: Path
    """Where results are written."""
    ladder: str
    samples: list[Sample]
    claims: Mapping[Sample, Claim]
    show: TextIO
    """Where each sample is told as it is known."""
    device: str = ""
    scored: dict[int, Scored] = field(default_factory=dict)
    """Position of the sample to what became of it."""
    written: list[Path] = field(default_factory=list)

    @property
    def holds(self) -> bool:
        """Whether every sample was judged, and every claim upheld."""
        bad = any(each.standing in ("vanished", "not_judged") for each in self.scored.values())
        return len(self.scored) == len(self.samples) and not bad

    def to_json(self) -> dict[str, Any]:
        """Return what `--json` prints, and `kopt_results.json` holds."""
        rows = [self.scored[position] for position in sorted(self.scored)]
        counts = Counter(row.standing for row in rows)
        return {
            "folder": str(self.folder),
            "device": self.device,
            "ladder": self.ladder,
            "samples": len(self.samples),
            "judged": len(rows),
            "holds": self.holds,
            "standings": {standing: counts[standing] for standing in STANDINGS},
            "written": [str(path) for path in self.written],
            "results": [_scored_json(row) for row in rows],
        }


def standing_of(claim: Claim, found: EvalJson) -> tuple[Standing, str]:
    """Return what became of a sample, and why it is no win."""
    is_correct = found["kind"] == "correct"
    # Beyond doubt: of many samples that equal the baseline, half are faster by chance.
    low, _ = found["speedup_ci"] or (0.0, 0.0)
    wins = is_correct and low > 1.0
    why = "" if wins else _why(found)
    if claim.kind == "unknown":
        standing: Standing = "win" if wins else ("correct" if is_correct else "failed")
    elif claim.kind == "failed":
        standing = "new" if is_correct else "failed"
    elif claim.kind == "win":
        standing = "holds" if wins else "vanished"
    else:
        standing = "holds" if is_correct else "vanished"
    return standing, why


def write_results(rescoring: Rescoring) -> None:
    """Write both result files; KernelBench's own form names no level, so a level has a file.

    Raises:
        StoreError: they cannot be written.
    """
    levels: dict[int, dict[int, list[dict[str, Any]]]] = {}
    for scored in rescoring.scored.values():
        if scored.found is not None:
            entries = levels.setdefault(scored.sample.level, {})
            entry = eval_entry(scored.sample.sample_id, scored.found)
            entries.setdefault(scored.sample.problem_id, []).append(entry)
    rescoring.written = []
    for level, entries in sorted(levels.items()):
        folder = rescoring.out if len(levels) == 1 else rescoring.out / f"level{level}"
        write_eval_results(folder / RESULTS_NAME, entries)
        rescoring.written.append(folder / RESULTS_NAME)
    path = rescoring.out / OWN_RESULTS
    rescoring.written.append(path)
    text = json.dumps(rescoring.to_json(), indent=1, ensure_ascii=False, allow_nan=False) + "\n"
    write_bytes(path, text.encode("utf-8", errors="replace"))


def scored_text(scored: Scored) -> str:
    """Return one sample for a person."""
    sample, claim, found = scored.sample, scored.claim, scored.found
    name = f"level{sample.level}/{sample.problem_id} sample {sample.sample_id}"
    claimed = {"unknown": "no claim", "failed": "claimed to fail", "correct": "claimed correct"}
    said = claimed.get(claim.kind, f"claimed {claim.speedup or 0.0:.2f}x over eager")
    if found is None or found["speedup"] is None or found["speedup_ci"] is None:
        seen = "not judged" if found is None else str(found["kind"])
    else:
        low, high = found["speedup_ci"]
        seen = f"found {found['speedup']:.2f}x [{low:.2f}, {high:.2f}] over {found['baseline']}"
    mark = scored.standing.upper() if scored.standing == "vanished" else scored.standing
    why = f": {scored.why}" if scored.why else ""
    degenerate = ", on a degenerate problem" if found is not None and found["degenerate"] else ""
    return f"{name:<24}  {said}, {seen}  {mark}{why}{degenerate}\n"


def closing_text(rescoring: Rescoring) -> str:
    """Return the closing lines: how many of what, and where it was written."""
    counts = Counter(scored.standing for scored in rescoring.scored.values())
    faster = sum(
        scored.found is not None and is_win(scored.found) for scored in rescoring.scored.values()
    )
    lines = [
        f"{counts[standing]:5d}  {standing:<10}  {meaning}"
        for standing, meaning in STANDINGS.items()
        if counts[standing]
    ]
    where = f"ladder {rescoring.ladder}, {rescoring.device or 'no device'}"
    lines.append(
        f"{len(rescoring.scored)} of {len(rescoring.samples)} sample(s) judged ({where}); "
        f"{faster} optimized (above 1.01x, beyond doubt)"
    )
    lines += [f"written: {path}" for path in rescoring.written]
    return "\n".join(lines) + "\n"


def _why(found: EvalJson) -> str:
    if found["kind"] != "correct":
        return f"{found['kind']}: {found['reason']}"
    eager_us, time_us = found["eager_us"], found["time_us"]
    beside = ""
    if found["baseline"] != "eager" and eager_us is not None and time_us:
        beside = f" ({eager_us / time_us:.2f}x over eager)"
    low, high = found["speedup_ci"] or (0.0, 0.0)
    doubt = " beyond doubt" if low <= 1.0 <= high else ""
    return f"no faster than {found['baseline']}{doubt}{beside}"


def _scored_json(scored: Scored) -> dict[str, Any]:
    sample, claim = scored.sample, scored.claim
    return {
        "level": sample.level,
        "problem_id": sample.problem_id,
        "sample_id": sample.sample_id,
        "file": sample.path.name,
        "claimed": claim.kind,
        "claimed_runtime_ms": claim.runtime_ms,
        "claimed_speedup": claim.speedup,
        "claimed_hardware": claim.hardware,
        "standing": scored.standing,
        "why": scored.why,
        "evaluation": scored.found,
    }
