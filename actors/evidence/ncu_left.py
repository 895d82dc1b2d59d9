"""What a run of ncu left: its pages, its own words, and what its program said of the jobs.

All of it is untrusted: candidates ran in there.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from kopt.actors.evidence.command import Done, run_command
from kopt.tools.collect.ncu_rules import RulesReport, parse_rules
from kopt.tools.collect.unreadable import MAX_TEXT, UnreadableProfile

LOG = "ncu.csv"
REPORT = "profile.ncu-rep"
SAID = "report.jsonl"
"""A line of the program's for each job it got to: `pid`, `failed`, `took_s`, `at_s`."""
IMPORT_S = 60.0


def printed(
    path: str, done: Done, *, folder: Path, with_rules: bool
) -> tuple[str, RulesReport | None]:
    """Return the raw page, and the rules.

    Raises:
        UnreadableProfile: ncu was killed at its deadline, or left nothing.
        OSError: its file cannot be read.
    """
    log = folder / LOG
    if done.returncode is None:
        raise UnreadableProfile("ncu", f"did not end within {done.seconds:.0f} s and was killed")
    if not with_rules:
        if not log.is_file():
            words = done.output.strip().splitlines()
            raise UnreadableProfile("ncu", f"wrote nothing: {(words or ['no output'])[-1][:300]}")
        with log.open(encoding="utf-8", errors="replace") as file:
            return file.read(MAX_TEXT), None
    report = folder / REPORT
    if not report.is_file():
        raise UnreadableProfile("ncu", done.output[-300:].strip() or "wrote no report")
    read = [path, "--import", str(report), "--csv"]
    raw = run_command([*read, "--page", "raw", "--print-units", "base"], timeout_s=IMPORT_S)
    details = run_command([*read, "--page", "details"], timeout_s=IMPORT_S)
    return raw.output, parse_rules(details.output)


def said_of_jobs(folder: Path, num_jobs: int) -> list[dict[str, Any]]:
    """Return what the program said of each job; empty for those it did not get to."""
    report = folder / SAID
    lines: list[str] = []
    if report.is_file():
        with report.open(encoding="utf-8", errors="replace") as file:
            lines = file.read(1 << 20).splitlines()
    said: list[dict[str, Any]] = []
    for line in lines[:num_jobs]:
        try:
            record = json.loads(line)
        except ValueError:
            record = {}
        said.append(record if isinstance(record, dict) else {})
    return [*said, *({} for _ in range(num_jobs - len(said)))]


def own_words(folder: Path) -> str:
    """Return what ncu itself said, without its table."""
    log = folder / LOG
    if not log.is_file():
        return "no log"
    with log.open(encoding="utf-8", errors="replace") as file:
        lines = file.read(1 << 16).splitlines()
    return "\n".join(line for line in lines if line.startswith("=="))


def one_line(text: str) -> str:
    """Return the last line of a text that says anything, bounded."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1][:300] if lines else "no reason given"
