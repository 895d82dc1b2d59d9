"""Probes of the profilers: each is tried once on this machine, and what was found is kept."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from kopt.cli.probe import Probe

LOOK_S = 420.0
"""Loading torch, a trace, and ncu on a tiny kernel in up to three ways."""


def profiler_probes(*, cache: Path, device: str) -> list[Probe]:
    """Return a row for each profiler, and one for the level of evidence that follows.

    Args:
        cache: kopt's cache; what was found is kept there until a driver or tool changes.
        device: `cpu` or `cuda`.
    """
    from kopt.actors.evidence.capabilities import load_capabilities

    found = load_capabilities(cache, device=device)
    if found is None:
        why = _look(cache, device)
        found = load_capabilities(cache, device=device)
        if found is None:
            return [Probe(name="evidence", ok=False, found="profilers could not be tried", fix=why)]
    rows = [
        Probe(name=name, ok=ability.ok, found=ability.found, fix=ability.fix)
        for name, ability in found.rows().items()
    ]
    told = {
        "ncu": "counters, timeline and code",
        "timeline": "timeline and code",
        "static": "code and times alone",
    }[found.level]
    if found.missing_counters:
        told += f"; this GPU lacks {len(found.missing_counters)} counters: their tools stay silent"
    is_deep = found.level != "static"
    fix = "" if is_deep else "turn on a profiler named above"
    rows.append(Probe(name="evidence", ok=is_deep, found=f"{found.level}: {told}", fix=fix))
    return rows


def _look(cache: Path, device: str) -> str:
    """Have a process of its own look; return what went wrong."""
    command = [sys.executable, "-m", "kopt.actors.evidence.probe", device, str(cache)]
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=LOOK_S,
            check=False,
            errors="replace",
        )
    except subprocess.TimeoutExpired:
        return f"they did not answer within {LOOK_S:g} s"
    words = done.stderr.strip().splitlines()
    return words[-1][:200] if words else "the cache cannot be written"
