"""One JSON object of what scripts/gpu_suite.sh measured, and a table of it.

Usage: python scripts/gpu_report.py FOLDER OUT_JSON

FOLDER holds PART.xml, a JUnit report, for each part of the tests, and the run `runs/suite`.
"""

from __future__ import annotations

import json
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

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
    run_folder = folder / "runs" / "suite"
    tests = {path.stem: _tests(path) for path in sorted(folder.glob("*.xml"))}
    report: dict[str, Any] = {"tests": tests, "searches": []}
    if (run_folder / "manifest.json").exists():
        run = RunDir(run_folder)
        manifest = run.read_manifest()
        report |= {key: manifest[key] for key in ("device", "host", "versions", "created")}
        if run.results_path.exists():
            rows = read_results(run.results_path)
            report["searches"] = [{name: row[name] for name in COLUMNS} for row in rows]
    out.write_text(json.dumps(report, indent=2, default=str) + "\n", encoding="utf-8")
    print(json.dumps(report["tests"]))
    for row in report["searches"]:
        print(" ".join(f"{_shown(row[name]):>12}" for name in COLUMNS))
    print(out)


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
