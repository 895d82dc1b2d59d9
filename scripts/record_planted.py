"""Profile ten kernels with one fault planted in each, on a GPU, and record the evidence.

For each source in tests/golden/findings/planted_sources, which is its own problem and candidate:
built as the build lane builds it, profiled by the real collectors, its evidence written without
anything that names the host to tests/golden/findings/recorded/NAME.evidence.json, and the first
finding printed beside the expected one. One failure costs one kernel. It fits two minutes of a
GPU, less where they were built before (`--build` does no more). `python scripts/regen_golden.py
findings` then writes what the tools say beside each.

    python scripts/record_planted.py [out=FOLDER] [only=NAME,NAME] [budget_s=170] [--build] [--json]
"""

from __future__ import annotations

import json
import logging
import sys
import time
import traceback
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

from kopt.actors.builder import Builder
from kopt.actors.config import EvaluateConfig
from kopt.actors.evidence.profiler import DeviceProfiler, Profile, Subject
from kopt.candidate import Candidate
from kopt.data.evidence_json import evidence_to_json
from kopt.environment import cache_dir
from kopt.errors import KoptError
from kopt.evidence import Evidence
from kopt.problem import Problem
from kopt.prompts.language import language_of
from kopt.tools.diagnosis import diagnose

FINDINGS = Path(__file__).resolve().parents[1] / "tests" / "golden" / "findings"
SOURCES = FINDINGS / "planted_sources"
EXPECTED: dict[str, list[str]] = json.loads((SOURCES / "expected.json").read_text("utf-8"))
"""Planted kernel to the tools one of which should speak first; none: nothing should."""
TOGETHER = 5
"""Kernels that share a run of ncu, or are built at a time."""
DIGITS = 6


def main() -> int:
    """Record; 0 where each kernel gave its finding first."""
    logging.basicConfig(level=logging.INFO, stream=sys.stdout)  # failures in full
    given = dict(word.split("=", 1) for word in sys.argv[1:] if "=" in word)
    names = given["only"].split(",") if "only" in given else list(EXPECTED)
    out = Path(given.get("out", FINDINGS / "recorded"))
    budget_s = float(given.get("budget_s", 170.0))
    began_s = time.monotonic()
    builder = Builder(EvaluateConfig(), "cuda", str(cache_dir()))  # it loads meanwhile
    if "--build" in sys.argv:
        try:
            said = _built(names, builder=builder)
        finally:
            builder.close()
        print("\n".join([*said, f"built in {time.monotonic() - began_s:.1f} s"]))
        return 1 if said else 0
    profiler = DeviceProfiler(EvaluateConfig(), "cuda", str(cache_dir()), ready_for="ncu")
    rows: list[dict[str, Any]] = []
    try:
        has = profiler.capabilities()
        for name, ability in has.rows().items():
            print(f"{name}: {'on' if ability.ok else 'OFF'}: {ability.found} {ability.fix}")
        print(f"probed in {time.monotonic() - began_s:.1f} s; missing: {has.missing_counters}")
        built_s = time.monotonic()
        for line in _built(names, builder=builder):
            print(line)
        print(f"built in {time.monotonic() - built_s:.1f} s")
        for begin in range(0, len(names), TOGETHER):
            together = names[begin : begin + TOGETHER]
            if time.monotonic() - began_s > budget_s:
                new = [{"name": name, "error": "no time left"} for name in together]
            else:
                batch_s = time.monotonic()
                found = _profiled(profiler, together)
                each_s = (time.monotonic() - batch_s) / len(together)
                new = [
                    _row(name, profile, out=out, seconds=each_s)
                    for name, profile in zip(together, found, strict=True)
                ]
            rows += new
            for row in new:
                print(json.dumps(row), flush=True)
    finally:
        profiler.close()
        builder.close()
    right = sum(bool(row.get("right")) for row in rows)
    print(f"{right} of {len(names)} as expected, {time.monotonic() - began_s:.1f} s in all")
    if "--json" in sys.argv:
        print(json.dumps({"right": right, "of": len(names), "rows": rows}))
    return 0 if right == len(names) else 1


def subject(name: str) -> Subject:
    """Return a planted kernel: its file is problem and candidate in one."""
    source = (SOURCES / f"{name}.py").read_text(encoding="utf-8")
    language = "cuda" if "nvcc" in source else language_of(source)
    return Subject(
        problem=Problem(name=f"planted/{name}", source=source),
        candidate=Candidate(source=source, language=language, programmer="file"),
    )


def _built(names: list[str], *, builder: Builder) -> list[str]:
    """Build all, as a search does before it profiles; return what went wrong."""

    def built(name: str) -> str:
        planted = subject(name)
        verdict = builder.build(planted.problem, planted.candidate).verdict
        return "" if verdict is None else f"{name}: {verdict.reason}"

    with ThreadPoolExecutor(max_workers=TOGETHER) as threads:
        return [said for said in threads.map(built, names) if said]


def _profiled(profiler: DeviceProfiler, names: list[str]) -> list[Profile | str]:
    """Profile together; where that fails as a whole, one by one; a failure is its words."""
    try:
        return list(profiler.profile([subject(name) for name in names], with_reference=False))
    except (KoptError, OSError, ValueError, RuntimeError):
        print(traceback.format_exc())
    found: list[Profile | str] = []
    for name in names:
        try:
            found += profiler.profile([subject(name)])
        except Exception:  # noqa: BLE001 - the script's boundary: the others go on
            found.append(traceback.format_exc())
    return found


def _row(name: str, profile: Profile | str, *, out: Path, seconds: float) -> dict[str, Any]:
    if isinstance(profile, str) or profile.evidence is None:
        why = profile if isinstance(profile, str) else profile.failed
        remarks = [] if isinstance(profile, str) else list(profile.remarks)
        return {"name": name, "error": why, "remarks": remarks}
    evidence = anonymised(profile.evidence)
    path = out / f"{name}.evidence.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps(evidence_to_json(evidence), indent=1, ensure_ascii=False, allow_nan=False)
    path.write_text(text + "\n", encoding="utf-8")
    findings = [finding.tool for finding in diagnose(evidence).findings]
    expected = EXPECTED.get(name, [])
    return {
        "name": name,
        "right": (findings[0] in expected) if findings and expected else findings == expected,
        "first": findings[:1],
        "expected": expected,
        "all": findings,
        "level": evidence.level,
        "kernels": [f"{k.name[:40]} {k.owner} {k.time_us}" for k in evidence.kernels],
        "bytes": path.stat().st_size,
        "seconds": round(seconds, 2),
        "took_s": dict(profile.took_s),
        "remarks": list(profile.remarks),
        "disagreement": profile.disagreement,
    }


def anonymised(evidence: Evidence) -> Evidence:
    """Return evidence that says no more than a fixture needs: figures of six digits, no rules."""

    def short(value: float | None) -> float | None:
        return None if value is None else float(f"{value:.{DIGITS}g}")

    kernels = tuple(
        replace(
            kernel,
            time_us=short(kernel.time_us),
            share=short(kernel.share),
            metrics={name: short(value) for name, value in kernel.metrics.items()},
            rules=(),
        )
        for kernel in evidence.kernels
    )
    return replace(evidence, kernels=kernels)


if __name__ == "__main__":
    sys.exit(main())
