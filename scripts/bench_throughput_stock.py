"""The other side of bench_throughput.py: one candidate judged in a process of its own.

Usage: python scripts/bench_throughput_stock.py JOB.json   prints one JSON object last

On `cuda` it is KernelBench's own `eval_kernel_against_ref`, imported from a local clone, with what
its scripts give it: 5 trials of correctness, 100 of timing. Packages that its modules import and
its evaluation does not use are stood in for where they are not installed. On `cpu`, where that
evaluation does not run, it is the same steps on torch's stock `load_inline` path.

The process is what its users have: a fresh interpreter that imports torch, builds, checks, times.
"""

from __future__ import annotations

import contextlib
import importlib.machinery
import importlib.util
import io
import json
import os
import sys
import time
import types
from pathlib import Path
from typing import Any

CORRECT_TRIALS = 5
TIMED_TRIALS = 100
_UNUSED = ("dotenv", "litellm", "openai", "requests", "tqdm", "datasets", "modal")
"""What KernelBench's modules import for other ends than evaluation."""


def main() -> None:
    """Judge the candidate of the job file and print what came of it."""
    job = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    began_s = time.monotonic()
    said = io.StringIO()
    judge = _judge_cpu if job["device"] == "cpu" else _judge_cuda
    with contextlib.redirect_stdout(said):
        answer = judge(job)
    answer["judged_s"] = time.monotonic() - began_s
    print(json.dumps(answer, default=str))


def import_kernelbench(clone: str) -> tuple[Any, list[str]]:
    """Return its module of evaluation, and the packages that were stood in for.

    Raises:
        ImportError: the clone has none, or needs what is neither here nor known to be unused.
    """
    stood_in = []
    for name in _UNUSED:
        if importlib.util.find_spec(name) is None:
            sys.modules[name] = _StandIn(name)
            stood_in.append(name)
    sys.path.insert(0, str(Path(clone) / "src"))
    from kernelbench import eval as evaluation

    return evaluation, stood_in


class _StandIn(types.ModuleType):
    """A module that has every name: a function that gives nothing back."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.__spec__ = importlib.machinery.ModuleSpec(name, None)

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - whatever is asked for
        if name.startswith("__"):
            raise AttributeError(name)
        return lambda *_, **__: None


def _judge_cuda(job: dict[str, Any]) -> dict[str, Any]:
    import torch

    evaluation, stood_in = import_kernelbench(job["clone"])
    # Its scripts name one architecture; torch's default would build for several.
    os.environ["TORCH_CUDA_ARCH_LIST"] = "{}.{}".format(*torch.cuda.get_device_capability())
    result = evaluation.eval_kernel_against_ref(
        job["reference"],
        job["candidate"],
        num_correct_trials=CORRECT_TRIALS,
        num_perf_trials=TIMED_TRIALS,
        measure_performance=True,
        timing_method="cuda_event",
        build_dir=job["build_dir"],
        device=torch.device("cuda:0"),
        backend="triton" if job["language"] == "triton" else "cuda",
        precision=torch.float32,
    )
    if result is None:
        return {"verdict": "retry", "reason": "it asks to be called again", "stood_in": stood_in}
    words = {key: str(value)[-300:] for key, value in result.metadata.items()}
    verdict = "correct" if result.correctness else "wrong" if result.compiled else "not_compiling"
    return {
        "verdict": verdict,
        "time_us": _us(result.runtime),
        "reference_us": _us(result.ref_runtime),
        "reason": json.dumps(words),
        "stood_in": stood_in,
    }


def _us(time_ms: float) -> float | None:
    """Return microseconds; KernelBench has -1 for what it did not time."""
    return 1e3 * time_ms if time_ms > 0 else None


def _judge_cpu(job: dict[str, Any]) -> dict[str, Any]:
    """Import, check and time as KernelBench does, on the host."""
    import torch

    os.environ["TORCH_EXTENSIONS_DIR"] = job["build_dir"]
    words: dict[str, Any] = {}
    exec(compile(job["reference"], "<reference>", "exec"), words)
    arguments, inputs = words["get_init_inputs"](), words["get_inputs"]
    with torch.no_grad():
        torch.manual_seed(42)
        model = words["Model"](*arguments)
        try:
            exec(compile(job["candidate"], "<candidate>", "exec"), words)
            torch.manual_seed(42)
            made = words["ModelNew"](*arguments)
        except Exception as error:  # noqa: BLE001 - whatever it raises is the verdict
            return {"verdict": "not_compiling", "reason": str(error)[-300:]}
        try:
            for trial in range(CORRECT_TRIALS):
                torch.manual_seed(trial)
                given = inputs()
                expected, found = model(*given), made(*given)
                if expected.shape != found.shape or not torch.allclose(
                    expected, found, atol=1e-4, rtol=1e-4
                ):
                    return {"verdict": "wrong", "reason": f"trial {trial} differs"}
        except Exception as error:  # noqa: BLE001 - likewise
            return {"verdict": "wrong", "reason": str(error)[-300:]}
        torch.manual_seed(42)
        given = inputs()
        times = {"time_us": _time_us(made, given), "reference_us": _time_us(model, given)}
    return {"verdict": "correct", "reason": "", **times}


def _time_us(module: Any, given: list[Any]) -> float:  # noqa: ANN401 - a torch module
    """Return the mean of the timed trials, after three that are not."""
    for _ in range(3):
        module(*given)
    began_s = time.perf_counter()
    for _ in range(TIMED_TRIALS):
        module(*given)
    return 1e6 * (time.perf_counter() - began_s) / TIMED_TRIALS


if __name__ == "__main__":
    main()
