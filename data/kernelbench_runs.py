"""A run folder of KernelBench: its samples, what its harness claimed of them, and its result file.

runs/<name>/
  level_L_problem_P_sample_S_kernel.py   the samples
  eval_results.json                      what its harness said, by problem id (one level a run)
  generation_config.yaml                 how they were made, the precision among it

Times there are milliseconds. Source: KernelBench notes A5, A6, A9.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from kopt.data.atomic import make_folder, store_error, write_bytes
from kopt.errors import StoreError
from kopt.evaluation import EvalJson
from kopt.problem import Dtype

SAMPLE_NAME = re.compile(r"level_(\d+)_problem_(\d+)_sample_(\d+)_kernel\.py")
RESULTS_NAME = "eval_results.json"
CONFIG_NAME = "generation_config.yaml"
BASELINE_NAME = "baseline_time_torch.json"
"""Its eager baseline, in `results/timing/<hardware>/` of a clone."""
MAX_RESULTS_BYTES = 256 << 20

_PRECISION = re.compile(r"^precision:\s*['\"]?(\w+)", re.M)
_DTYPES: dict[str, Dtype] = {
    "fp16": "float16",
    "bf16": "bfloat16",
    "float16": "float16",
    "bfloat16": "bfloat16",
}
"""Its precisions that problems are cast to; fp32 leaves them as they are."""
_LOAD_STAGES = ("static", "build", "import", "construct")

ClaimKind = Literal["win", "correct", "failed", "unknown"]


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Sample:
    """One generated kernel."""

    level: int
    problem_id: int
    sample_id: int
    path: Path

    @property
    def problem_name(self) -> str:
        """The problem's name in kopt: `level2/18` within the set."""
        return f"level{self.level}/{self.problem_id}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """What KernelBench's harness said of a sample."""

    kind: ClaimKind
    """`win`: correct, and faster than its own eager baseline on the same hardware; `correct`: no
    faster, or nothing is known to compare with; `failed`; `unknown`: it said nothing."""
    runtime_ms: float | None = None
    """Mean time of one call; None where not measured."""
    speedup: float | None = None
    """Its eager baseline ÷ runtime; None where there is no baseline of that hardware."""
    hardware: str | None = None


UNKNOWN = Claim(kind="unknown")


def is_kernelbench_run(folder: Path) -> bool:
    """Return whether a folder holds samples."""
    try:
        return any(SAMPLE_NAME.fullmatch(path.name) for path in folder.iterdir())
    except OSError:
        return False


def samples_in(folder: Path) -> list[Sample]:
    """Return a run folder's samples by level, problem and number.

    Raises:
        StoreError: the folder cannot be read.
    """
    try:
        found = [(path, SAMPLE_NAME.fullmatch(path.name)) for path in folder.iterdir()]
    except OSError as error:
        raise store_error(folder, error) from error
    return sorted(
        Sample(level=int(match[1]), problem_id=int(match[2]), sample_id=int(match[3]), path=path)
        for path, match in found
        if match is not None
    )


def precision_of(folder: Path) -> Dtype | None:
    """Return the dtype that the run's own configuration names; None for fp32 or where none is."""
    try:
        text = (folder / CONFIG_NAME).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    match = _PRECISION.search(text)
    return _DTYPES.get(match[1].lower()) if match else None


def claims_of(
    folder: Path, samples: Iterable[Sample], *, clone: Path | None
) -> dict[Sample, Claim]:
    """Return what the run's result file claims of each sample.

    The file names no level: where a folder has samples of several, nothing is claimed of any.

    Args:
        folder: the run's.
        samples: of it.
        clone: of KernelBench, with its baselines' times; None where there is none to read.

    Raises:
        StoreError: the result file is damaged.
    """
    listed = list(samples)
    path = folder / RESULTS_NAME
    if not path.is_file() or len({sample.level for sample in listed}) > 1:
        return dict.fromkeys(listed, UNKNOWN)
    entries = _entries(path)
    level = listed[0].level if listed else 0
    baselines = {} if clone is None else _baselines(clone, level)
    return {
        sample: _claim(entries.get((sample.problem_id, sample.sample_id)), sample, baselines)
        for sample in listed
    }


def eval_entry(sample_id: int, record: EvalJson) -> dict[str, Any]:
    """Return a verdict as an entry of KernelBench's result file.

    `runtime` is our cold median, in milliseconds, -1 unless correct; its own harness has the mean.
    """
    kind, stage = record["kind"], record["stage"]
    compiled = kind != "compile_failed" and not (
        kind in ("crashed", "timed_out") and stage in _LOAD_STAGES
    )
    metadata: dict[str, Any] = {
        "hardware": record["device"],
        "scored_by": "kopt",
        "kopt_kind": kind,
        "kopt_ladder": record["ladder"],
        "kopt_reason": record["reason"],
        "kopt_degenerate": record["degenerate"],
    }
    why = {
        "compile_failed": "compilation_error",
        "crashed": "runtime_error",
        "timed_out": "runtime_error",
        "incorrect": "correctness_issue",
        "cheated": "correctness_issue",
    }.get(kind)
    if why is not None:
        metadata[why] = record["log"] or record["reason"]
    is_correct = kind == "correct"
    time_us, ci_us = record["time_us"], record["time_ci_us"]
    stats: dict[str, Any] = {}
    if is_correct and time_us is not None and ci_us is not None:
        stats = {
            "median": time_us / 1e3,
            "median_ci95": [ci_us[0] / 1e3, ci_us[1] / 1e3],
            "num_trials": record["num_pairs"],
            "hardware": record["device"],
        }
        metadata |= {
            "kopt_speedup": record["speedup"],
            "kopt_speedup_ci": record["speedup_ci"],
            "kopt_baseline": record["baseline"],
        }
    return {
        "sample_id": sample_id,
        "compiled": compiled,
        "correctness": is_correct,
        "metadata": metadata,
        "runtime": stats["median"] if stats else -1.0,
        "runtime_stats": stats,
    }


def write_eval_results(path: Path, entries: Mapping[int, list[dict[str, Any]]]) -> None:
    """Write a result file as KernelBench's analysis reads it, problem ids ascending.

    Args:
        path: of the file; its folder is made.
        entries: problem id to its entries.

    Raises:
        StoreError: it cannot be written.
    """
    make_folder(path.parent)
    ordered = {
        str(problem_id): sorted(entries[problem_id], key=lambda entry: int(entry["sample_id"]))
        for problem_id in sorted(entries)
    }
    write_bytes(path, (json.dumps(ordered, indent=4, allow_nan=False) + "\n").encode("utf-8"))


def _entries(path: Path) -> dict[tuple[int, int], dict[str, Any]]:
    """A result file's entries by problem and sample; older files have one object a problem."""
    try:
        if path.stat().st_size > MAX_RESULTS_BYTES:
            raise StoreError(str(path), f"more than {MAX_RESULTS_BYTES} bytes; not read")
        value = json.loads(path.read_bytes())
        found: dict[tuple[int, int], dict[str, Any]] = {}
        for problem_id, entries in value.items():
            for entry in entries if isinstance(entries, list) else [entries]:
                found[int(problem_id), int(entry.get("sample_id", 0))] = entry
    except OSError as error:
        raise store_error(path, error) from error
    except (ValueError, AttributeError, TypeError) as error:
        raise StoreError(
            str(path), f"not KernelBench's results, {{problem id: [samples]}}: {error}"
        ) from error
    return found


def _baselines(clone: Path, level: int) -> dict[tuple[str, int], float]:
    """(hardware, problem id) to the eager baseline's mean time, in milliseconds."""
    found: dict[tuple[str, int], float] = {}
    for path in sorted(clone.glob(f"results/timing/*/{BASELINE_NAME}")):
        try:
            rows = json.loads(path.read_bytes())[f"level{level}"]
            for name, row in rows.items():
                found[str(row["hardware"]), int(name.partition("_")[0])] = float(row["mean"])
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            continue  # of another level or form: nothing to compare with
    return found


def _claim(
    entry: dict[str, Any] | None, sample: Sample, baselines: Mapping[tuple[str, int], float]
) -> Claim:
    if entry is None:
        return UNKNOWN
    if entry.get("correctness") is not True:
        return Claim(kind="failed")
    runtime = entry.get("runtime")
    runtime_ms = float(runtime) if isinstance(runtime, int | float) and runtime > 0 else None
    stats, metadata = entry.get("runtime_stats"), entry.get("metadata")
    hardware = next(
        (
            str(part["hardware"])
            for part in (stats, metadata)
            if isinstance(part, dict) and part.get("hardware")
        ),
        None,
    )
    baseline_ms = baselines.get((hardware or "", sample.problem_id))
    speedup = None
    if baseline_ms is not None and runtime_ms is not None and math.isfinite(runtime_ms):
        speedup = baseline_ms / runtime_ms
    return Claim(
        kind="win" if speedup is not None and speedup > 1.0 else "correct",
        runtime_ms=runtime_ms,
        speedup=speedup,
        hardware=hardware,
    )
