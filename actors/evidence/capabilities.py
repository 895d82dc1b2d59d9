"""What a machine has of profilers, as it was found: kept in a file under the cache.

A level of evidence follows: `ncu` (counters, timeline, SASS), `timeline` (timeline, SASS), `static`
(SASS and times alone). Torch is not imported here: `kopt doctor` reads it too.
"""

from __future__ import annotations

import json
import os
import platform
import subprocess
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Literal

from kopt.actors.evidence.tool_paths import find_tool
from kopt.evidence import EvidenceLevel
from kopt.identity import text_id

VERSION = 2
"""Raised with what is looked for: counters that are asked for by name."""
ASK_S = 20.0
_DRIVER = Path("/proc/driver/nvidia/version")


@dataclass(frozen=True, slots=True, kw_only=True)
class Ability:
    """One profiler."""

    ok: bool
    found: str
    """What it is, or why it is off, in one line."""
    fix: str = ""
    """How to turn it on; empty where it is on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Capabilities:
    """What was found for one kind of device."""

    device: Literal["cpu", "cuda"]
    fingerprint: str
    """Of driver and tools: other ones are looked at anew."""
    counters: Ability
    """ncu, with permission."""
    timeline: Ability
    """torch.profiler, with CUPTI on a GPU."""
    disassembly: Ability
    energy: Ability
    ncu_path: str | None = None
    ncu_forks: bool = False
    ncu_landlock: bool = False
    counter_names: tuple[str, ...] = ()
    """Those of ours that the GPU has."""
    missing_counters: tuple[str, ...] = ()
    roof: dict[str, float] = field(default_factory=dict)
    """Of a CPU: `tb_per_s`, `fp32_tflops`, `fp64_tflops`, as measured."""

    @property
    def level(self) -> EvidenceLevel:
        """The deepest level there is."""
        if self.counters.ok:
            return "ncu"
        return "timeline" if self.timeline.ok else "static"

    def rows(self) -> dict[str, Ability]:
        """Return each ability under the name that a person is shown."""
        return {
            "ncu": self.counters,
            "timeline": self.timeline,
            "disassembly": self.disassembly,
            "energy": self.energy,
        }


def capabilities_file(cache_dir: Path, *, device: str) -> Path:
    """Return where they are kept."""
    return cache_dir / "evidence" / f"capabilities-{device}.json"


def load_capabilities(cache_dir: Path, *, device: str) -> Capabilities | None:
    """Return what was found on this machine; None where nobody looked, or tools have changed."""
    try:
        record = json.loads(capabilities_file(cache_dir, device=device).read_text("utf-8"))
        if record.pop("version") != VERSION or record["fingerprint"] != fingerprint(device):
            return None
        for name in ("counters", "timeline", "disassembly", "energy"):
            record[name] = Ability(**record[name])
        for name in ("counter_names", "missing_counters"):
            record[name] = tuple(record[name])
        return Capabilities(**record)
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None


def save_capabilities(found: Capabilities, cache_dir: Path) -> None:
    """Keep them; a cache that cannot be written costs the next one a probe."""
    path = capabilities_file(cache_dir, device=found.device)
    record: dict[str, Any] = {"version": VERSION, **asdict(found)}
    with suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        aside = path.with_suffix(f".{os.getpid()}.new")
        aside.write_text(json.dumps(record, indent=1), encoding="utf-8")
        os.replace(aside, path)


def fingerprint(device: str) -> str:
    """Return what changes when the driver, a tool, torch or the user does."""
    parts = [
        str(VERSION),
        device,
        platform.node(),
        _driver(),
        str(os.geteuid()),
        *(f"{name}:{find_tool(name)}" for name in ("ncu", "cuobjdump", "nvdisasm", "objdump")),
        ncu_version() or "",
        *(f"{package}:{_version(package)}" for package in ("torch", "triton", "nvidia-ml-py")),
        str(len(os.sched_getaffinity(0))) if device == "cpu" else "",
    ]
    return text_id("\0".join(parts))[:32]


def ncu_version() -> str | None:
    """Return ncu's version line; None where it does not answer."""
    path = find_tool("ncu")
    if path is None:
        return None
    try:
        done = subprocess.run(
            [path, "--version"],
            capture_output=True,
            text=True,
            timeout=ASK_S,
            check=False,
            errors="replace",
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    lines = [line.strip() for line in done.stdout.splitlines() if "Version" in line]
    return lines[0] if lines and done.returncode == 0 else None


def _driver() -> str:
    try:
        return _DRIVER.read_text(encoding="utf-8", errors="replace").splitlines()[0]
    except (OSError, IndexError):
        return ""


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return ""
