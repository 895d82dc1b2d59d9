"""An order to take a model apart, and the process that carries it out. Loads no torch."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

from pydantic import TypeAdapter

from kopt.actors.build.inductor import inductor_environment
from kopt.compiled.record import Apart, from_json
from kopt.compiled.wishes import Wish
from kopt.errors import ProblemError
from kopt.problem import Problem

LAST_LINES = 3
"""Of a worker's last words that are told."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """A model to take apart."""

    problem: Problem
    folder: str
    """Where its record and its logs go; made."""
    cache: str
    """Where the compiler keeps what it makes."""
    device: Literal["cpu", "cuda"]
    module_mode: Literal["train", "eval"] = "train"
    max_autotune: bool = False
    merge: bool = True
    wishes: tuple[Wish, ...] = ()
    """What a model decided of the choices that an earlier order of this model found."""
    seeds: tuple[int, int] = (0, 42)
    """Of the inputs that references are tried on (KernelOPT App. B)."""


_ORDER: TypeAdapter[Order] = TypeAdapter(Order)


def order_from_json(text: str | bytes) -> Order:
    """Read an order, as `carry_out` wrote it.

    Raises:
        ValueError: it is none.
    """
    return _ORDER.validate_json(text)


def carry_out(order: Order, *, timeout_s: float) -> Apart:
    """Take a model apart in a process of its own.

    Args:
        order: what to do.
        timeout_s: after which it is ended, its compilers with it.

    Returns:
        What was found. Where the process ends early or late, a record that says so.

    Raises:
        ProblemError: the model's file breaks its contract.
        StoreError: its record cannot be read.
    """
    folder = Path(order.folder)
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "order.json"
    path.write_text(json.dumps(asdict(order), indent=1), encoding="utf-8")
    log_path = folder / "worker.log"
    environment = os.environ | {
        "TORCHINDUCTOR_CACHE_DIR": order.cache,
        "TRITON_CACHE_DIR": str(Path(order.cache) / "triton"),
        # Threads that spin take the cores of whatever else runs on the host.
        "GOMP_SPINCOUNT": "10000",
    }
    with log_path.open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "kopt.actors.compiled.worker", str(path)],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            env=environment | inductor_environment(environment),
            start_new_session=True,  # compilers fork: they end with it
        )
        try:
            code = process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            reason = f"it was not compiled and cut within {timeout_s:g} s"
            return Apart(model=order.problem.name, cause="timeout", reason=reason)
        finally:
            _end(process)
    words = _last_words(log_path)
    if code == 3:
        raise ProblemError(order.problem.name, words)
    record = folder / "apart.json"
    if code != 0 or not record.is_file():
        how = f"signal {-code}" if code < 0 else f"exit code {code}"
        reason = f"the process that compiled it ended with {how}: {words}"
        return Apart(model=order.problem.name, cause="crash", reason=reason)
    return from_json(record.read_bytes(), where=str(record))


def _end(process: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _last_words(path: Path) -> str:
    lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    told = [line.strip() for line in lines if line.strip()][-LAST_LINES:]
    return " ".join(told)[-500:] or "it said nothing"
