"""What the build lane orders of a Triton candidate, and the name of what comes of it.

The order is a source that a build child imports, as it would a candidate; the lane itself imports
neither Triton nor anything of the candidate's. See `triton_ahead` for what the child does.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
from dataclasses import asdict
from pathlib import Path

from kopt.actors.build.compilers import find_compilers
from kopt.actors.build.gpu_facts import GpuFacts
from kopt.candidate import Candidate
from kopt.problem import Problem

REPORT = "triton_ahead.json"
"""In the folder of builds: the kernels in the cache, those that do not compile, and where the run
ended early. For logs and tests: the candidate could have written it too."""
_ORDER = "from kopt.actors.build.triton_ahead import compile_ahead\n\ncompile_ahead({order!r})\n"
_OURS = ("triton_ahead.py", "triton_ahead_device.py", "triton_ahead_driver.py")


def order_to_compile(
    *, problem: Problem, candidate: Candidate, gpu: GpuFacts, mode: str, num_workers: int
) -> str:
    """Return the source that makes a child compile ahead when it is imported there.

    Args:
        problem: for the arguments of the constructor and of forward.
        candidate: whose kernels are compiled.
        gpu: to compile for.
        mode: of the module, `train` or `eval`.
        num_workers: kernels that are compiled at once.
    """
    order = {
        "problem": problem.source,
        "dtype": problem.dtype,
        "candidate": candidate.source,
        "gpu": asdict(gpu),
        "mode": mode,
        "num_workers": num_workers,
    }
    return _ORDER.format(order=json.dumps(order))


def triton_build_key(*, problem: Problem, candidate: Candidate, gpu: GpuFacts, mode: str) -> str:
    """Return the name of what is compiled ahead: another one wherever that may differ.

    Shapes and dtypes come from the problem, and with them what kernels are specialised for.
    """
    own = [(Path(__file__).parent / name).read_text(encoding="utf-8") for name in _OURS]
    parts = (
        "triton 1",
        candidate.language,
        problem.problem_id,
        mode,
        json.dumps(asdict(gpu), sort_keys=True),
        _triton_version(),
        find_compilers().fingerprint,
        *own,
        candidate.source,
    )
    return hashlib.sha256("\0".join(parts).encode(errors="surrogatepass")).hexdigest()


def _triton_version() -> str:
    """Return Triton's version; empty where it is not installed, and nothing is compiled."""
    try:
        return importlib.metadata.version("triton")
    except importlib.metadata.PackageNotFoundError:
        return ""
