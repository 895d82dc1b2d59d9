"""Why a server ended, in one line, from its exit code and its last words. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from kopt.actors.programmers.openai.words import one_line

EndKind = Literal["port", "memory", "package", "other"]

MAX_WORDS = 240
_PREFIX = re.compile(
    r"^(?:\([^()]* pid=\d+\)\s*)*(?:[A-Z]+ \d\d-\d\d \d\d:\d\d:\d\d \[[^\]]*\]\s*)?"
)
"""What vLLM puts before each line: the process, then level, time and place."""
_PORT = re.compile(r"address already in use|Errno 98", re.I)
_MEMORY = re.compile(
    r"out of memory|no available memory|(not enough|insufficient) memory|cannot allocate memory"
    r"|bad_alloc|MemoryError|less than desired (GPU|device) memory"
    r"|larger than the available KV cache",
    re.I,
)
_PACKAGE = re.compile(
    r"No module named '?([\w.]+)|error while (finding module|loading shared)", re.I
)
_ERROR = re.compile(r"^(?:[\w.]*(?:Error|Exception|Interrupt)\b|Value error,|[\w.]+: error:).*\S")
_SECOND_HAND = re.compile(r"root cause|initialization failed|validation error for|EngineDeadError")
"""Errors that only say that there was one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """How a server ended."""

    kind: EndKind
    """`port`: another program has it; `memory`: it wants more than there is; `package`: its
    environment lacks something; `other`: in its own words."""
    reason: str
    """One line: what it did, what it said, what to do."""


def ending_of(code: int, lines: Sequence[str], *, log: str) -> Ending:
    """Return how a server ended.

    Args:
        code: of its process; negative: ended by that signal.
        lines: the last of its log, in order.
        log: where all of it lies.
    """
    bare = [_PREFIX.sub("", line).strip() for line in lines]
    text = "\n".join(bare)
    how = f"ended by signal {-code}" if code < 0 else f"ended with exit code {code}"
    if _PORT.search(text):
        return Ending(
            kind="port",
            reason="its port is taken by another program; set programmer.vllm.port to one of a "
            f"free range, or leave it to the pool (null); log: {log}",
        )
    if memory := _last(bare, _MEMORY):
        return Ending(kind="memory", reason=_of_memory(how, memory, log))
    errors = [line for line in bare if _ERROR.match(line)]
    said = next((line for line in reversed(errors) if not _SECOND_HAND.search(line)), "")
    if code == -9:
        what = "killed (by the system, where memory ran out)"
        return Ending(kind="memory", reason=_of_memory(what, said, log))
    if package := _PACKAGE.search(text):
        return Ending(
            kind="package",
            reason=f"{how}: {one_line(package[0], limit=MAX_WORDS)}; make its environment anew "
            f"with scripts/vllm_env.sh; log: {log}",
        )
    said = said or next((line for line in reversed(bare) if line), "it said nothing")
    return Ending(kind="other", reason=f"{how}: {one_line(said, limit=MAX_WORDS)}; log: {log}")


def _of_memory(how: str, said: str, log: str) -> str:
    words = f": {one_line(said, limit=MAX_WORDS)}" if said else ""
    return (
        f"{how}{words}; lower programmer.vllm.max_model_len or cpu_kv_cache_gib, raise "
        f"gpu_memory_utilization or tensor_parallel, or name a smaller model; log: {log}"
    )


def _last(lines: Sequence[str], pattern: re.Pattern[str]) -> str:
    return next((line for line in reversed(lines) if pattern.search(line)), "")
