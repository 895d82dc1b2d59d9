"""The probe of Ray clusters: whether one runs that `cluster.address=auto` would join."""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping
from pathlib import Path

from kopt.cli.probe import Probe

VARIABLE = "RAY_ADDRESS"
NOTED = Path("/tmp/ray/ray_current_cluster")
"""Where `ray start` leaves the address of the cluster of this machine."""
CONNECT_S = 2.0


def ray_probe(environment: Mapping[str, str] = os.environ, *, noted: Path = NOTED) -> Probe:
    """Look for the cluster that this machine knows of.

    Args:
        environment: of this process.
        noted: file with the address of the machine's own cluster.
    """
    named = environment.get(VARIABLE, "").strip()
    try:
        address = named or noted.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError):
        address = ""
    if address in ("", "auto", "local"):
        return Probe(name="Ray cluster", ok=True, found="none runs: kopt starts one for each run")
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if host and port.isdigit() and _answers(host, int(port)):
        found = f"{address} answers: cluster.address=auto joins it"
        return Probe(name="Ray cluster", ok=True, found=found)
    if not named:  # a file that a cluster which was killed has left
        return Probe(name="Ray cluster", ok=True, found="none runs: kopt starts one for each run")
    return Probe(
        name="Ray cluster",
        ok=False,
        found=f"{VARIABLE}={address} does not answer",
        fix=f"start it (scripts/cluster/README.md), or unset {VARIABLE}",
    )


def _answers(host: str, port: int) -> bool:
    try:
        socket.create_connection((host, port), timeout=CONNECT_S).close()
    except OSError:
        return False
    return True
