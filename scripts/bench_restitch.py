"""Put compiled models together again from their own kernels: the same bits, and at what cost.

    python scripts/bench_restitch.py models=level2/1,level3/1 sizes=small device=cpu --json

For each model of KernelBench (bench_restitch_models.py; a clone is named by KOPT_KERNELBENCH or
`clone=DIR`) two forms are held against the compiled baseline, bit for bit, results and whatever
state a call changes: `object`, the live module with a shim round each launch, and `file`, the
exported text that is imported anew, on inputs of two seeds. Then a chain of `target_ms` is timed:
pairs of the compiled model and its exported file, in turns, `pairs` of them; `overhead` is the
median of their ratios less 1, with its 95 % interval. On a busy host that interval is wide: `host`
is the processor's time of one call where there is next to nothing to compute, compiled and
stitched, and their difference as a share of `target_ms`. `sizes=small` reduces sizes; `auto` does
on a CPU. No model is begun after `limit_s`. Exit code 1 where a bit differs or a model cannot be
put together that was taken apart.
"""

from __future__ import annotations

import contextlib
import gc
import json
import os
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from typing import Any

from bench_restitch_chain import chain_overhead, host_cost
from bench_restitch_models import MODELS, models, smaller
from bench_restitch_parts import (
    cloned,
    import_exported,
    load_subject_of,
    same_bits,
    set_state,
    state_of,
)

from kopt.errors import ConfigError, ProblemError
from kopt.problem import Problem

SETTINGS: dict[str, str] = {
    "models": ",".join(MODELS),
    "clone": "",
    "sizes": "auto",
    "device": "auto",
    "target_ms": "5",
    "pairs": "40",
    "limit_s": "3000",
}
USAGE_EXIT = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """What became of one model."""

    model: str
    outcome: str
    """`identical`, `different`, the cause that nothing was taken apart for, or `failed`."""
    launches: int = 0
    object_same: bool | None = None
    file_same: bool | None = None
    reason: str = ""
    wall_s: float = 0.0

    @property
    def is_wrong(self) -> bool:
        """Whether it is a finding against the stitching."""
        return self.outcome in ("different", "failed")


def main(arguments: list[str]) -> int:
    """Run the benchmark and return the exit code."""
    as_json = "--json" in arguments
    try:
        settings = settings_of([each for each in arguments if each != "--json"])
        clone = settings["clone"] or None
        problems = models(tuple(filter(None, settings["models"].split(","))), clone=clone)
    except (ValueError, ConfigError) as error:
        print(f"bench_restitch: {error}", file=sys.stderr)
        return USAGE_EXIT
    device = device_of(settings["device"])
    sizes = settings["sizes"] if settings["sizes"] != "auto" else _sizes_for(device)
    ends_s = time.monotonic() + float(settings["limit_s"])
    rows = []
    for problem in problems:
        if time.monotonic() > ends_s:
            break
        row = stitched(problem, device=device, is_small=sizes == "small")
        rows.append(row)
        print(_line(row), file=sys.stderr, flush=True)
    overhead = chain_overhead(
        device=device, target_ms=float(settings["target_ms"]), pairs=int(settings["pairs"])
    )
    overhead |= host_cost(device=device, target_ms=float(settings["target_ms"]))
    record = {
        "device": device,
        "sizes": sizes,
        "load": round(os.getloadavg()[0], 1),
        "identical": sum(row.outcome == "identical" for row in rows),
        "wrong": sum(row.is_wrong for row in rows),
        "left_out": len(problems) - len(rows),
        "models": [asdict(row) for row in rows],
        **overhead,
    }
    print(json.dumps(record) if as_json else _text(rows, record, target_ms=settings["target_ms"]))
    return 1 if record["wrong"] else 0


def settings_of(arguments: list[str]) -> dict[str, str]:
    """Return the settings with the overrides applied.

    Raises:
        ValueError: an argument is not a known name=value.
    """
    settings = dict(SETTINGS)
    for argument in arguments:
        name, separator, value = argument.partition("=")
        if not separator or name not in settings:
            raise ValueError(f"expected one of {', '.join(SETTINGS)} as name=value, got {argument}")
        settings[name] = value
    return settings


def device_of(name: str) -> str:
    """Return the device that a name asks for."""
    import torch

    return name if name != "auto" else "cuda" if torch.cuda.is_available() else "cpu"


def stitched(problem: Problem, *, device: str, is_small: bool) -> Row:
    """Take one model apart and put it together again, at the first size that runs."""
    began_s = time.monotonic()
    reason = ""
    for each in smaller(problem) if is_small else [problem]:
        try:
            row = _stitched(each, device=device)
        except ProblemError as error:  # sizes that do not fit each other
            reason = str(error)
            continue
        except Exception as error:  # noqa: BLE001 - one model's failure is that model's row
            row = Row(
                model=problem.name, outcome="failed", reason=f"{type(error).__name__}: {error}"
            )
        wall_s = round(time.monotonic() - began_s, 1)
        return Row(**{**asdict(row), "wall_s": wall_s})
    return Row(model=problem.name, outcome="does not run", reason=reason)


def _stitched(problem: Problem, *, device: str) -> Row:
    """Of one size.

    Raises:
        ProblemError: the model does not run at it.
    """
    import torch

    from kopt.actors.compiled.capture import capture, run_again
    from kopt.actors.compiled.obstacles import Obstacle, obstacle_of
    from kopt.actors.compiled.recipes import make_recipe
    from kopt.actors.compiled.take_apart import restitched_bits

    gc.collect()
    if device == "cuda":
        torch.cuda.empty_cache()
    with tempfile.TemporaryDirectory() as folder:
        subject = load_subject_of(problem, device=device, folder=folder)
        try:
            with torch.no_grad():
                subject.model(*subject.given)
        except Exception as error:  # a model's own: it does not run at these sizes
            raise ProblemError(problem.name, f"{type(error).__name__}: {error}") from error
        before = state_of(subject.model)
        captured = capture(subject.model, subject.given)
        obstacle = obstacle_of(captured)
        try:
            if obstacle is not None:
                raise obstacle
            recipe = make_recipe(captured, file=subject.file, given=subject.given)
        except Obstacle as found:
            return Row(model=problem.name, outcome=found.cause, reason=found.reason)
        launches = sum(len(piece.code.launches) for piece in captured.pieces)
        object_same = restitched_bits(captured.pieces[0])
        again = import_exported(
            problem, recipe, given=len(subject.given), folder=folder, device=device
        )
        file_same = True
        for given in (subject.given, subject.again):
            set_state(subject.model, before)
            wanted = cloned(run_again(captured, given).result)
            wanted_state = state_of(subject.model)
            set_state(again, before)
            found = again(*given)
            state_same = same_bits(list(wanted_state.values()), list(state_of(again).values()))
            file_same &= same_bits(wanted, found) and state_same
    same = object_same and file_same
    return Row(
        model=problem.name,
        outcome="identical" if same else "different",
        launches=launches,
        object_same=object_same,
        file_same=file_same,
    )


def _sizes_for(device: str) -> str:
    return "small" if device == "cpu" else "full"


def _line(row: Row) -> str:
    how = "" if row.outcome == "identical" else f": {row.reason[:120]}"
    return f"{row.model:<24} {row.outcome:<12} {row.launches:>3} launches {row.wall_s:>6.1f} s{how}"


def _text(rows: list[Row], record: dict[str, Any], *, target_ms: str) -> str:
    low, high = record["overhead_ci"]
    return "\n".join(
        [
            *map(_line, rows),
            f"{record['identical']} of {len(rows)} identical bit for bit, {record['wrong']} wrong, "
            f"{record['left_out']} not begun; {record['device']}, sizes {record['sizes']}, "
            f"load {record['load']}",
            f"a chain of {record['chain_ms']:g} ms: {record['overhead']:+.2%} "
            f"[{low:+.2%}, {high:+.2%}], {record['extra_us']:g} us more",
            f"a call alone: {record['host']['compiled']:g} us compiled, "
            f"{record['host']['stitched']:g} us stitched, {record['host']['share']:+.2%} of "
            f"{target_ms} ms",
        ]
    )


if __name__ == "__main__":
    with contextlib.suppress(BrokenPipeError):
        sys.exit(main(sys.argv[1:]))
