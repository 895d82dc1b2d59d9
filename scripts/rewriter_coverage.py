"""What the rewriter sees in each problem, and what it would try, without running anything.

Usage: python scripts/rewriter_coverage.py [problems=kernelbench/level2/*] [device=cpu|cuda]
           [candidates=6] [baselines=FILE.jsonl] [limit_s=500] [--json]

For each problem: how many calls the capture saw (or why none), the rules that pay, the kernels and
the library calls of the first plan, its time by the cost model, the milliseconds that a candidate
takes to write, and the first candidates in order. Tensors are fake: no problem is too large, and
no GPU is needed. `baselines` are JSON lines with `level`, `id`, `eager` and `compiled` in
milliseconds; with them each row says what gain the model expects over the faster one.

The times are a model's: good for finding what is missed, not for claims.
"""

from __future__ import annotations

import json
import math
import re
import sys
import time
from collections import Counter
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal, cast

from kopt.actors.rewriter.graph import NotRewritable
from kopt.actors.rewriter.plan import plan_of
from kopt.actors.rewriter.study import KERNEL_LANGUAGE, Study
from kopt.actors.rewriter.verbatim import verbatim_candidates
from kopt.data.problems.config import ProblemsConfig
from kopt.data.problems.resolve import resolve
from kopt.errors import ConfigError, ProblemError
from kopt.problem import Problem

DEFAULTS = {
    "problems": "kernelbench/level2/*",
    "device": "cuda",
    "candidates": "6",
    "baselines": "",
    "limit_s": "500",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Covered:
    """One problem."""

    problem: str
    reason: str
    """Why its graph cannot be seen; empty where it can."""
    calls: dict[str, int]
    kernels: tuple[str, ...]
    rules: tuple[str, ...]
    seconds: float
    """Of the first plan, by the model; NaN where nothing was seen."""
    baseline_us: float
    """The faster of eager and torch.compile; NaN where unknown."""
    candidates: tuple[str, ...]
    capture_ms: float
    """Reading the problem and writing the first candidate."""
    propose_ms: float
    """Longest of the other candidates."""

    @property
    def gain(self) -> float:
        """Baseline ÷ model; NaN where either is unknown."""
        return self.baseline_us / (1e6 * self.seconds)

    def line(self) -> str:
        """Return it as lines of the table."""
        head = (
            f"{self.problem}  {1e6 * self.seconds:.0f} us against {self.baseline_us:.0f} "
            f"({self.gain:.2f}x), {self.capture_ms:.0f} ms, then {self.propose_ms:.0f} ms"
        )
        if self.reason:
            head += f"\n    not seen: {self.reason}"
        parts = [
            ("rules", " ".join(self.rules)),
            ("calls", " ".join(f"{name}*{n}" for name, n in self.calls.items())),
            ("kernels", " ".join(self.kernels)[:300]),
        ]
        tried = [(f"try {n}", text[:160]) for n, text in enumerate(self.candidates, start=1)]
        return head + "".join(f"\n    {k}: {v}" for k, v in (*parts, *tried) if v)


def main() -> None:
    """Print the table."""
    words = [word for word in sys.argv[1:] if word != "--json"]
    given = dict(word.split("=", 1) for word in words if "=" in word)
    settings = {**DEFAULTS, **given}
    if len(given) != len(words) or set(given) - set(DEFAULTS):
        expected = " ".join(f"{name}={value}" for name, value in DEFAULTS.items())
        sys.exit(f"expected words such as {expected} --json, found {' '.join(words)}")
    if settings["device"] not in ("cpu", "cuda"):
        sys.exit(f"expected device=cpu or device=cuda, found {settings['device']!r}")
    device = cast("Literal['cpu', 'cuda']", settings["device"])
    known = baselines(Path(settings["baselines"])) if settings["baselines"] else {}
    try:
        chosen = resolve(settings["problems"].split(","), ProblemsConfig())
    except ConfigError as error:
        sys.exit(str(error))
    ends_s = time.monotonic() + float(settings["limit_s"])
    rows: list[Covered] = []
    for problem in chosen:
        if time.monotonic() > ends_s:
            break
        row = covered(problem, device=device, candidates=int(settings["candidates"]), known=known)
        rows.append(row)
        print(row.line(), file=sys.stderr, flush=True)
    gains = [row.gain for row in rows if math.isfinite(row.gain)]
    result = {
        "problems": len(rows),
        "left_out": len(chosen) - len(rows),
        "not_seen": {row.problem: row.reason for row in rows if row.reason},
        "rules": dict(Counter(name for row in rows for name in row.rules).most_common()),
        "propose_ms_max": max((row.propose_ms for row in rows), default=0.0),
        "model_geomean": math.exp(sum(map(math.log, gains)) / len(gains)) if gains else None,
    }
    if "--json" in sys.argv:
        rows_out = [{**asdict(r), "gain": r.gain} for r in rows]
        print(
            json.dumps({**result, "rows": json.loads(json.dumps(rows_out).replace("NaN", "null"))})
        )
    else:
        print(json.dumps(result, indent=1))


def covered(
    problem: Problem,
    *,
    device: Literal["cpu", "cuda"],
    candidates: int,
    known: dict[tuple[int, int], float],
) -> Covered:
    """Return what the rewriter makes of a problem."""
    place = re.search(r"level(\d+)/(\d+)", problem.name)
    key = (int(place[1]), int(place[2])) if place else (0, 0)
    began_s = time.perf_counter()
    reason, texts, later_ms = "", [], [0.0]
    calls: dict[str, int] = {}
    kernels: tuple[str, ...] = ()
    rules: tuple[str, ...] = ()
    seconds = math.nan
    capture_ms = 0.0
    try:
        study = Study(
            problem, mode="train", device=device, languages=("torch", KERNEL_LANGUAGE[device])
        )
        for count in range(1, candidates + 1):
            start_s = began_s if count == 1 else time.perf_counter()
            written = study.candidates(None, mode="initial", limit=count)
            took_ms = 1e3 * (time.perf_counter() - start_s)
            if count == 1:
                capture_ms = took_ms
            else:
                later_ms.append(took_ms)
        texts = [w.strategy for w in written]
        plan = plan_of(written[0].source)
        if plan is not None:
            found = study.outline(plan)
            calls, kernels, seconds = found.calls, found.kernels, found.seconds
            rules = tuple(dict.fromkeys(study.form(plan).applied))
    except NotRewritable as error:
        reason = error.reason
        texts = [w.strategy for w in verbatim_candidates(problem, mode="train")]
    except ProblemError as error:
        reason = str(error)
    return Covered(
        problem=problem.name,
        reason=reason,
        calls=calls,
        kernels=kernels,
        rules=rules,
        seconds=seconds,
        baseline_us=known.get(key, math.nan),
        candidates=tuple(texts),
        capture_ms=capture_ms,
        propose_ms=max(later_ms),
    )


def baselines(path: Path) -> dict[tuple[int, int], float]:
    """Return the faster baseline of each problem in microseconds, by level and number."""
    found = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        times = [row[name] for name in ("eager", "compiled") if row.get(name)]
        if times:
            found[row["level"], row["id"]] = 1e3 * min(times)
    return found


if __name__ == "__main__":
    main()
