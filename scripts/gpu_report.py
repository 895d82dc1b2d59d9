"""One JSON object of what scripts/gpu_suite.sh measured, and a table of it.

Usage: python scripts/gpu_report.py FOLDER OUT_JSON

FOLDER holds PART.xml, a JUnit report, for each part of the tests, and the run `runs/suite`. Each
part carries its own date, machine and versions; parts that FOLDER lacks stay as OUT_JSON has them.
"""

from __future__ import annotations

import json
import os
import sys
import xml.etree.ElementTree as ElementTree
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import torch

from kopt.actors.devices.base import describe
from kopt.data.manifest import cpu_model, versions
from kopt.data.problems.revision import checked_out_commit, folder_revision
from kopt.data.results import read_results
from kopt.data.rundir import RunDir

COLUMNS = (
    "problem_name",
    "outcome",
    "speedup",
    "speedup_lo",
    "speedup_hi",
    "speedup_eager",
    "speedup_compile",
    "baseline_us",
    "time_us",
    "candidates",
    "correct",
    "wall_s",
)


def main() -> None:
    """Read, write and print."""
    folder, out = (Path(word) for word in sys.argv[1:3])
    parts = {path.stem: _tests(path) for path in sorted(folder.glob("*.xml"))}
    run = RunDir(folder / "runs" / "suite")
    if run.results_path.exists():
        rows = read_results(run.results_path)
        parts["searches"] = {"rows": [{name: row[name] for name in COLUMNS} for row in rows]}
    made = {"created": datetime.now(UTC).isoformat(timespec="seconds"), **_machine()}
    known = json.loads(out.read_text("utf-8")).get("parts", {}) if out.exists() else {}
    merged = known | {name: made | part for name, part in parts.items()}
    out.write_text(json.dumps({"parts": merged}, indent=2, default=str) + "\n", encoding="utf-8")
    for name, part in sorted(parts.items()):
        if name != "searches":
            print(name, json.dumps(part))
    for row in parts.get("searches", {}).get("rows", []):
        print(" ".join(f"{_shown(row[name]):>12}" for name in COLUMNS))
    print(out)


def _machine() -> dict[str, Any]:
    target = describe("cuda" if torch.cuda.is_available() else "cpu")
    return {
        "commit": _commit(Path(__file__).resolve().parent.parent),
        "device": target.label,
        "host": {"cpu": cpu_model(), "cores": os.cpu_count()},
        "versions": versions(),
    }


def _commit(root: Path) -> str | None:
    """The commit that is checked out, `+dirty` behind it where the files are not all its own."""
    if checked_out_commit(root) is None:
        return None
    return folder_revision(root, files=(), under=".").replace("-dirty", "+dirty")


def _tests(junit: Path) -> dict[str, Any]:
    suites = ElementTree.parse(junit).getroot()
    cases = list(suites.iter("testcase"))
    bad = [
        f"{case.get('classname')}::{case.get('name')}"
        for case in cases
        if case.find("failure") is not None or case.find("error") is not None
    ]
    skipped = sum(case.find("skipped") is not None for case in cases)
    return {"ran": len(cases) - skipped, "skipped": skipped, "failed": bad}


def _shown(value: object) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


if __name__ == "__main__":
    main()
