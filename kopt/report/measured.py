"""What was measured of a candidate beside its time: evidence, findings, a model's analysis."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

from kopt.data.artefacts import Artefacts
from kopt.data.evidence_json import evidence_from_json
from kopt.data.fold import ProfileState
from kopt.errors import ConfigError, StoreError
from kopt.evidence import Evidence, KernelEvidence
from kopt.report.roof import roof_of

MAX_KERNELS = 12
"""Kernels of a candidate that are shown, those that take longest."""
NOT_PROFILED = "No evidence was collected of this candidate."


def measured(
    profile: ProfileState | None, *, artefacts: Artefacts, time_us: float | None
) -> dict[str, Any]:
    """Return evidence and findings as plain values; what is missing is said in `note`.

    Args:
        profile: of the candidate; None where it was not profiled.
        artefacts: of its run.
        time_us: of one call, as its evaluation timed it.
    """
    if profile is None:
        return {"note": NOT_PROFILED}
    taken = profile.evidence
    if taken.ref is None:
        return {"note": f"{NOT_PROFILED[:-1]}: {taken.reason or 'no reason is on record'}"}
    found: dict[str, Any] = {"note": "", "level": taken.level, "profiled_s": taken.profiled_s}
    try:
        evidence = evidence_from_json(json.loads(artefacts.get(taken.ref)))
    except (StoreError, ConfigError, ValueError) as error:
        found["note"] = f"The evidence cannot be read: {error}"
    else:
        found |= _evidence(evidence, time_us=time_us)
    if profile.findings is not None:
        made = profile.findings
        found["findings"] = [*made.findings]
        found["remarks"] = [*made.remarks, *made.energy_notes]
        found["left_out"] = made.left_out
        found["silent"] = list(made.silent)
    if profile.analysis is not None:
        found["analysis"] = profile.analysis.analysis or {"fault": profile.analysis.fault}
    return found


def _evidence(evidence: Evidence, *, time_us: float | None) -> dict[str, Any]:
    roofline, timeline, energy = evidence.roofline, evidence.timeline, evidence.energy
    roof = roof_of(roofline, time_us=time_us or evidence.time_us)
    longest = sorted(evidence.kernels, key=lambda kernel: -(kernel.time_us or 0.0))
    return {
        "device": evidence.device,
        "roof": None if roof is None else asdict(roof),
        "roofline": None
        if roofline is None
        else {
            "class": roofline.bottleneck,
            "theoretical": roofline.theoretical,
            "measured": roofline.measured,
            "confidence": roofline.confidence,
            "precision": roofline.precision,
            "sol_us": roofline.sol_us,
            "reachable_us": roofline.reachable_us,
        },
        "timeline": None if timeline is None else asdict(timeline),
        "energy": None if energy is None else asdict(energy),
        "kernels": [_kernel(kernel) for kernel in longest[:MAX_KERNELS]],
        "kernels_left_out": max(0, len(longest) - MAX_KERNELS),
    }


def _kernel(kernel: KernelEvidence) -> dict[str, Any]:
    return {
        "name": kernel.name,
        "owner": kernel.owner,
        "launches": kernel.launches,
        "time_us": kernel.time_us,
        "share": kernel.share,
        "registers": kernel.registers,
        "spill_bytes": kernel.spill_bytes,
        "smem_bytes": kernel.smem_bytes,
    }
