"""Recorded and planted evidence, and what the tools say of it: written by scripts/regen_golden.py.

`recorded/` holds what profilers printed of an elementwise `exp` on an H200 (Nsight Compute 2025.3:
raw page with the columns that are read, details page; the disassembly of such a kernel, compiled by
Triton for sm_90), and the evidence of the kernels of `planted_sources/`, which
`scripts/record_planted.py` writes on a GPU and nothing else does. `planted/` is made by hand
(kopt.testing.planted_evidence) and no measurement.
"""

from __future__ import annotations

import json
from pathlib import Path

from kopt.cli.findings import findings_json
from kopt.data.evidence_json import evidence_from_json, evidence_to_json
from kopt.evidence import Evidence
from kopt.testing.planted_evidence import DEVICE, ELEMENTWISE, planted_evidence
from kopt.tools.collect.assemble import Collected, assemble
from kopt.tools.collect.ncu_raw import parse_raw
from kopt.tools.collect.ncu_rules import parse_rules
from kopt.tools.collect.sass import parse_sass
from kopt.tools.collect.usage import parse_usage
from kopt.tools.feedback import feedback
from kopt.tools.hardware import find_gpu
from kopt.tools.roofline import analyse_reference

FOLDER = Path(__file__).resolve().parent
RECORDED = FOLDER / "recorded"


def recorded_evidence() -> Evidence:
    """Return the evidence of the recorded profile."""
    collected = Collected(
        device=DEVICE,
        arch="sm_90",
        ncu_calls=2,
        ncu=parse_raw((RECORDED / "exp.ncu_raw.csv").read_text(encoding="utf-8")),
        rules=parse_rules((RECORDED / "exp.ncu_details.csv").read_text(encoding="utf-8")),
        sass=parse_sass((RECORDED / "exp.sass.txt").read_text(encoding="utf-8")),
        usage=parse_usage((RECORDED / "exp.res_usage.txt").read_text(encoding="utf-8")),
        roofline=analyse_reference(ELEMENTWISE, find_gpu(DEVICE)),
    )
    return assemble(collected).evidence


def golden_findings() -> dict[str, str]:
    """Return the text of each file, by its path below this folder."""
    evidences = {"recorded/exp": recorded_evidence()}
    evidences |= {f"planted/{name}": made for name, (made, _) in planted_evidence().items()}
    files = {}
    for stem, evidence in evidences.items():
        told = findings_json(evidence, feedback(evidence))
        files[f"{stem}.evidence.json"] = _text(evidence_to_json(evidence))
        files[f"{stem}.findings.json"] = _text(told)
    for path in sorted(RECORDED.glob("*.evidence.json")):
        name = path.name.replace(".evidence.", ".findings.")
        evidence = evidence_from_json(json.loads(path.read_text(encoding="utf-8")))
        files.setdefault(f"recorded/{name}", _text(findings_json(evidence, feedback(evidence))))
    return files


def _text(value: object) -> str:
    return json.dumps(value, indent=1, ensure_ascii=False, allow_nan=False) + "\n"
