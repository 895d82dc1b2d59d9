"""The work of references, counted once for a machine: small files below kopt's cache.

A file is named by the problem's identity and by everything else that changes the figures: the flags
of the ladder, the module's mode, torch, whose operations are counted, and the rules of counting.
"""

from __future__ import annotations

import json
import os
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch

from kopt.actors.evidence.order import Order
from kopt.identity import content_id
from kopt.problem import Problem

VERSION = 1
"""Raised with the rules of counting (`reference_work`, `operator_costs`) and the form."""
MAX_BYTES = 1 << 16
"""Of a file."""
_SAYS_MORE = ("look", "reference", "candidate", "num_threads")
"""Fields of an order that change no figure, or are the problem's own."""


def work_file(problem: Problem, order: Order, *, device: str, cache_dir: Path) -> Path:
    """Return where the work of a problem's reference is kept.

    Args:
        problem: whose reference.
        order: to count it, with the flags.
        device: kind of device: operations of a CPU differ from a GPU's.
        cache_dir: kopt's cache.
    """
    flags = {name: value for name, value in asdict(order).items() if name not in _SAYS_MORE}
    fields = {
        "problem": problem.problem_id,
        "flags": flags,
        "device": device,
        "torch": torch.__version__,
    }
    return cache_dir / "evidence" / "work" / f"{content_id('work', VERSION, fields)}.json"


def load_work(path: Path) -> dict[str, Any] | None:
    """Return the report that is kept; None where there is none, or none that can be read."""
    try:
        if path.stat().st_size > MAX_BYTES:
            return None
        record = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return None
    return record if isinstance(record, dict) else None


def save_work(path: Path, report: dict[str, Any]) -> None:
    """Keep a report; a cache that cannot be written costs the next one its counting."""
    with suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        aside = path.with_suffix(f".{os.getpid()}.new")
        aside.write_text(json.dumps(report), encoding="utf-8")
        os.replace(aside, path)
