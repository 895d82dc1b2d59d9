"""Device memory that judging takes, at most: a problem surveyed, then its reference judged.

Usage: python scripts/bench_memory.py PROBLEM … [--json]

Each PROBLEM (`kernelbench/level1/38`, `builtin/softmax`, a file) gets an evaluator of its own, with
the compiled baseline, on the first GPU; a candidate that is the reference stands for all. Four
times a second the driver is asked how much memory is in use by everybody: have nothing else there.
The last line with --json is a list of objects: `problem`, `outcome`, `peak_gib`, `survey_s`,
`judge_s`.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from kopt.actors.builder import nothing_to_build
from kopt.actors.config import EvaluateConfig
from kopt.actors.device_worker import DeviceWorker
from kopt.candidate import Candidate
from kopt.data.problems.config import ProblemsConfig
from kopt.data.problems.resolve import resolve
from kopt.errors import KoptError
from kopt.problem import Problem

PERIOD_S = 0.25
QUERY = ["nvidia-smi", "--query-gpu=memory.used", "--format=csv,noheader,nounits", "--id=0"]
AS_CANDIDATE = "\n\nclass ModelNew(Model):\n    pass\n"


def used_gib() -> float:
    """What is in use now."""
    return int(subprocess.run(QUERY, capture_output=True, text=True, check=True).stdout) / 1024


@contextmanager
def watched() -> Iterator[list[float]]:
    """Give a list that is filled with what is in use, until the block ends."""
    seen, ends = [used_gib()], threading.Event()

    def watch() -> None:
        while not ends.wait(PERIOD_S):
            seen.append(used_gib())

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield seen
    finally:
        ends.set()
        thread.join()


def judged(problem: Problem, cache_dir: Path) -> dict[str, Any]:
    """Survey a problem, judge its reference, and say what was in use at most."""
    worker = DeviceWorker(EvaluateConfig(), "cuda", 0, str(cache_dir))
    try:
        with watched() as seen:
            began_s = time.monotonic()
            worker.survey(problem)
            survey_s = time.monotonic() - began_s
            candidate = Candidate(source=problem.source + AS_CANDIDATE, language="torch")
            built = nothing_to_build(candidate, cache_dir=cache_dir)
            made = worker.evaluate(problem, candidate, built)
            judge_s = time.monotonic() - began_s - survey_s
    except KoptError as error:
        return {"problem": problem.name, "outcome": str(error), "peak_gib": round(max(seen), 1)}
    finally:
        worker.close()
    return {
        "problem": problem.name,
        "outcome": made.verdict.kind,
        "peak_gib": round(max(seen), 1),
        "survey_s": round(survey_s, 1),
        "judge_s": round(judge_s, 1),
    }


def main(words: list[str]) -> None:
    """Judge and print."""
    names = [word for word in words if word != "--json"]
    if not names or any(name.startswith("-") for name in names):
        sys.exit(f"usage: {__doc__.partition('Usage: ')[2].splitlines()[0]}")
    rows = []
    try:
        problems = resolve(names, ProblemsConfig())
    except KoptError as error:
        sys.exit(str(error))
    for problem in problems:
        with tempfile.TemporaryDirectory() as cache_dir:
            rows.append(judged(problem, Path(cache_dir)))
        print("  ".join(f"{key} {value}" for key, value in rows[-1].items()), flush=True)
    if "--json" in words:
        print(json.dumps(rows))


if __name__ == "__main__":
    main(sys.argv[1:])
