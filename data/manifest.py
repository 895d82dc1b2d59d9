"""The manifest of a run: what ran, with which versions, on what. Imports none of what it names."""

from __future__ import annotations

import hashlib
import os
import platform
import sys
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import kopt
from kopt.candidate import LANGUAGES
from kopt.data.problems.revision import checked_out_commit
from kopt.foreign_language import taken_languages
from kopt.ports import Target
from kopt.version import __version__

SCHEMA_VERSION = 1
PACKAGES = ("torch", "triton", "ray", "numpy", "pyarrow", "hydra-core", "pydantic", "openai")
"""Distributions whose versions a result depends on, or a reader may ask for."""


def make_manifest(
    config: Mapping[str, Any],
    *,
    name: str,
    created_ns: int,
    argv: Sequence[str],
    device: Mapping[str, Any] | None = None,
    secret: int | None = None,
) -> dict[str, Any]:
    """Return the manifest as plain JSON values.

    Args:
        config: the resolved configuration, plain.
        name: of the run.
        created_ns: nanoseconds since the epoch.
        argv: the command line.
        device: what was found of the device: `name`, `arch`, `driver`, `count`, ….
        secret: seed of the hidden inputs. Only its commitment is written, never itself.
    """
    return {
        "schema": SCHEMA_VERSION,
        "name": name,
        "created": datetime.fromtimestamp(created_ns / 1e9, tz=UTC).isoformat(),
        "argv": list(argv),
        "config": dict(config),
        "versions": versions(),
        "host": {
            "system": platform.platform(),
            "machine": platform.machine(),
            "cpu": cpu_model(),
            "cores": os.cpu_count(),
        },
        "device": None if device is None else dict(device),
        "git_revision": checked_out_commit(Path(kopt.__file__).resolve().parent.parent),
        "seed_commitment": None if secret is None else seed_commitment(secret),
    }


def resumed(earlier: Mapping[str, Any], now: Mapping[str, Any]) -> dict[str, Any]:
    """Return the manifest of a run that goes on: the earlier one, and what differs this time.

    Args:
        earlier: the manifest in the run folder.
        now: `make_manifest`'s of this process; what it says otherwise than the earlier one is
            added to the list `resumes`, one entry a process, with its time and command line.
    """
    entry = {
        key: value
        for key, value in now.items()
        if key in ("created", "argv") or (key != "resumes" and earlier.get(key) != value)
    }
    return {**earlier, "resumes": [*earlier.get("resumes", []), entry]}


def target_of(manifest: Mapping[str, Any]) -> Target | None:
    """Return what a run's candidates were written for; None where its manifest does not say.

    Of its languages, those that this process knows: of others no prompt can be made.
    """
    device: Mapping[str, Any] = manifest.get("device") or {}
    if not {"kind", "name", "arch"} <= set(device):
        return None
    named = device.get("languages")
    known = (*LANGUAGES, *taken_languages())
    languages = LANGUAGES if named is None else [name for name in named if name in known]
    return Target(
        device=device["kind"],
        name=device["name"],
        arch=device["arch"],
        languages=tuple(languages),
    )


def seed_commitment(secret: int) -> str:
    """Return the sha256 that binds a run to its secret seed without telling it."""
    return hashlib.sha256(f"kopt seed {secret}".encode()).hexdigest()


def versions() -> dict[str, str | None]:
    """Return the versions of kopt, Python and PACKAGES; None for what is not installed."""
    found: dict[str, str | None] = {"kopt": __version__, "python": sys.version.split()[0]}
    for package in PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = None
    return found


def cpu_model() -> str:
    """Return the CPU's model as the kernel names it; the machine's name where it does not."""
    try:
        with Path("/proc/cpuinfo").open(encoding="utf-8") as lines:
            for line in lines:
                key, _, value = line.partition(":")
                if key.strip() == "model name":
                    return value.strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()
