"""Probes of the sandbox: which levels confine candidates here, and how to get the others."""

from __future__ import annotations

import json
import os
import subprocess
import sys

from kopt.cli.probe import MAX_SHOWN, PROBE_TIMEOUT_S, Probe
from kopt.environment import SANDBOX_VARIABLE, sandbox_levels

GIVES = {
    "process": "limits, an environment without keys, no capabilities but for files",
    "user": "candidates run as a user of their own, that owns nothing",
    "namespace": "candidates have no network, and mounts of their own",
    "pid": "candidates see and signal their own processes alone",
    "mount": "files are read-only, scratch is in memory and bounded",
    "landlock": "writes go to a candidate's own folders alone",
    "seccomp": "no sockets, tracing, mounting or io_uring",
    "cgroup": "memory and processes of a candidate are bounded together",
}
_NAMESPACES = (
    "allow unprivileged user namespaces (sysctl user.max_user_namespaces, on Ubuntu also "
    "kernel.apparmor_restrict_unprivileged_userns=0), or give the container CAP_SYS_ADMIN"
)
FIXES = {
    "user": "run in a container whose users are those of the host, or not as root",
    "namespace": _NAMESPACES,
    "pid": f"{_NAMESPACES}, with /proc whole (docker: --security-opt systempaths=unconfined)",
    "mount": f"{_NAMESPACES}, on Linux >= 5.12",
    "landlock": "use Linux >= 5.19 with landlock among its LSMs (lsm= of the command line)",
    "seccomp": "use a kernel with CONFIG_SECCOMP_FILTER, on x86-64 or aarch64",
    "cgroup": "start kopt as root on the host or from a systemd user session, with control groups "
    "of version 2 (a container needs /sys/fs/cgroup writable)",
}


def sandbox_probes() -> list[Probe]:
    """Look for the levels, in the order in which a verdict names them."""
    why = _unavailable()
    if why is None:
        found = "the levels cannot be tried here: what confines a candidate is in its verdict"
        return [Probe(name="sandbox", ok=False, found=found, fix="run kopt on Linux")]
    rows = [_row(level, reason) for level, reason in why.items()]
    stated = sandbox_levels()
    if stated is not None:
        found = f"{SANDBOX_VARIABLE}={stated}: no other level is used"
        rows.append(Probe(name="sandbox", ok=False, found=found, fix=f"unset {SANDBOX_VARIABLE}"))
    return rows


def _row(level: str, reason: str) -> Probe:
    name = f"sandbox: {level}"
    if level == "user" and os.geteuid() != 0:
        return Probe(name=name, ok=True, found="kopt does not run as root: nothing to give up")
    if reason:
        found = f"off ({reason})"[:MAX_SHOWN]
        return Probe(name=name, ok=False, found=found, fix=FIXES.get(level, ""))
    return Probe(name=name, ok=True, found=GIVES.get(level, "on"))


def _unavailable() -> dict[str, str] | None:
    """Return each level's reason for being off, tried in a process of its own."""
    try:
        answer = subprocess.run(
            [sys.executable, "-m", "kopt.actors.child.sandbox.probe"],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=PROBE_TIMEOUT_S,
            check=True,
        )
        why = json.loads(answer.stdout)
    except (OSError, subprocess.SubprocessError, ValueError):
        return None
    return {str(level): str(reason) for level, reason in why.items()}
