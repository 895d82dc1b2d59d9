"""`kopt findings`: the tools on a recorded profile; no GPU, no torch."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from kopt.cli.arguments import command_parser, parse
from kopt.cli.exit_codes import DONE
from kopt.cli.output import write_json
from kopt.data.evidence_json import evidence_from_json
from kopt.errors import ConfigError
from kopt.evidence import Evidence
from kopt.finding import Finding
from kopt.prompts.evidence_text import kernels_text, roofline_text, timeline_text
from kopt.prompts.feedback_text import feedback_text
from kopt.tools.diagnosis import MAX_FINDINGS, Diagnosis, Silent
from kopt.tools.feedback import FEEDBACK_MODES, Feedback, feedback
from kopt.tools.loading import load_tool_file

SCHEMA_VERSION = 1
MAX_BYTES = 64 * 2**20
"""Of an evidence file."""


def main(arguments: Sequence[str]) -> int:
    """Print what the tools find in an evidence file.

    Raises:
        ConfigError: the file is no evidence, or a tools file does not run.
    """
    parser = command_parser(
        "findings", description="Ask the micro-profiling tools about a recorded profile."
    )
    parser.add_argument("evidence", metavar="EVIDENCE", help="a JSON file of `kopt profile --json`")
    parser.add_argument(
        "--feedback",
        choices=FEEDBACK_MODES,
        default="tools",
        help="what is told: findings, NVIDIA's first rules, fifty counters, nothing",
    )
    parser.add_argument(
        "--max",
        type=int,
        default=MAX_FINDINGS,
        metavar="N",
        help=f"most findings, {MAX_FINDINGS} by default; 0: all",
    )
    parser.add_argument(
        "--tools",
        action="append",
        default=[],
        metavar="FILE",
        help="a Python file with tools of your own; may be given several times",
    )
    options = parse(parser, arguments)
    if options is None:
        return DONE
    if options.max < 0:
        raise ConfigError(f"--max: expected 0 or more, found {options.max}")
    for path in options.tools:
        load_tool_file(path)
    evidence = read_evidence(options.evidence)
    told = feedback(evidence, mode=options.feedback, max_findings=options.max or None)
    if options.json:
        write_json(sys.stdout, findings_json(evidence, told))
    else:
        sys.stdout.write(findings_table(evidence, told))
    return DONE


def read_evidence(path: str) -> Evidence:
    """Return the evidence in a file: alone, or under `evidence` in what `kopt profile` printed.

    Raises:
        ConfigError: there is no such file, or it holds no evidence; a line for each fault.
    """
    file = Path(path)
    try:
        size = file.stat().st_size
        if size > MAX_BYTES:
            raise ConfigError(f"{path}: {size} bytes; expected an evidence file of at most 64 MiB")
        record = json.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror}") from None
    except (ValueError, RecursionError) as error:
        if isinstance(error, ConfigError):
            raise
        raise ConfigError(f"{path}: expected JSON, found {_short(error)}") from None
    if isinstance(record, dict) and isinstance(record.get("evidence"), dict):
        record = record["evidence"]
    try:
        return evidence_from_json(record)
    except ConfigError as error:
        raise ConfigError(
            "\n".join(f"{path}: {line}" for line in str(error).splitlines())
        ) from None


def findings_json(evidence: Evidence, told: Feedback) -> dict[str, Any]:
    """Return what `kopt findings --json` prints.

    `findings`, `remarks` and `energy_notes` are Finding objects; `text` is what a prompt is told.
    """
    diagnosis = told.diagnosis or Diagnosis()
    roofline = evidence.roofline
    return {
        "schema": SCHEMA_VERSION,
        "device": evidence.device,
        "arch": evidence.arch,
        "level": evidence.level,
        "feedback": told.mode,
        "class": None if roofline is None else roofline.bottleneck,
        "findings": [asdict(finding) for finding in diagnosis.findings],
        "left_out": diagnosis.left_out,
        "remarks": [asdict(finding) for finding in diagnosis.remarks],
        "energy_notes": [asdict(finding) for finding in diagnosis.energy_notes],
        "silent": [asdict(silent) for silent in diagnosis.silent],
        "not_asked": list(diagnosis.not_asked),
        "rules": [asdict(kernel) for kernel in told.rules],
        "counters": {
            kernel.kernel: {row.name: row.value for row in kernel.rows} for kernel in told.counters
        },
        "text": feedback_text(evidence, told, with_energy=True),
    }


def findings_table(evidence: Evidence, told: Feedback) -> str:
    """Return what a person is shown."""
    lines = [f"{evidence.device} ({evidence.arch}), evidence: {evidence.level}"]
    lines += filter(None, [roofline_text(evidence)])
    if told.diagnosis is None:
        text = feedback_text(evidence, told)
        return "\n".join(filter(None, [*lines, "", text])) + "\n"
    diagnosis = told.diagnosis
    if evidence.timeline is not None:
        lines.append(timeline_text(evidence.timeline))
    if evidence.kernels:
        lines.append(kernels_text(evidence))
    for number, finding in enumerate(diagnosis.findings, start=1):
        lines += ["", *_finding_lines(finding, mark=f"{number}.")]
    if not diagnosis.findings:
        lines += ["", "no findings"]
    if diagnosis.left_out:
        lines += ["", f"{diagnosis.left_out} less severe left out (--max 0 shows all)"]
    for title, group in (("headroom", diagnosis.remarks), ("energy", diagnosis.energy_notes)):
        for finding in group:
            lines += ["", *_finding_lines(finding, mark=f"{title}:")]
    if diagnosis.silent:
        lines += ["", *_silent_lines(evidence, diagnosis.silent)]
    if diagnosis.not_asked:
        lines.append(f"not asked, for other classes: {', '.join(diagnosis.not_asked)}")
    return "\n".join(lines) + "\n"


def _finding_lines(finding: Finding, *, mark: str) -> list[str]:
    where = f"  ({finding.kernel:.60})" if finding.kernel else ""
    lines = [
        f"{mark} {finding.severity.upper():<8}  {finding.tool}: {finding.title}{where}",
        f"   {finding.summary}",
        f"   cause: {finding.root_cause}",
    ]
    lines += [f"   - {each}" for each in finding.recommendations]
    lines.append(f"   expected: {finding.expected_improvement}")
    return lines


def _silent_lines(evidence: Evidence, silent: Sequence[Silent]) -> list[str]:
    """A line for each tool that broke or lacks a figure, one for all that lack a whole profiler."""
    absent = _absent_profilers(evidence)
    by_profiler: dict[str, list[str]] = {}
    lines = []
    for each in silent:
        sources = dict.fromkeys(_profiler(name) for name in each.missing)
        gone = [source for source in sources if source in absent]
        if gone and not each.fault:
            by_profiler.setdefault(" and ".join(gone), []).append(each.tool)
        else:
            lines.append(f"silent: {each.tool}: {each.fault or 'needs ' + _few(each.missing)}")
    return [
        *(f"silent without {source}: {', '.join(tools)}" for source, tools in by_profiler.items()),
        *lines,
    ]


def _absent_profilers(evidence: Evidence) -> set[str]:
    has = {
        "counters": any(kernel.metrics for kernel in evidence.kernels),
        "a disassembly": any(kernel.sass for kernel in evidence.kernels),
        "a timeline": evidence.timeline is not None,
        "a roofline": evidence.roofline is not None,
    }
    return {source for source, there in has.items() if not there}


def _profiler(figure: str) -> str:
    if figure.startswith(("timeline", "roofline")):
        return f"a {figure.partition('.')[0]}"
    if figure.startswith("evidence"):
        return "the evaluation's time"
    return "a disassembly" if figure.startswith("sass") else "counters"


def _few(names: Sequence[str], *, most: int = 3) -> str:
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def _short(error: Exception) -> str:
    return str(error).splitlines()[0][:120]
