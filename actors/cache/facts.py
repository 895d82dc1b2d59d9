"""What a host has that a verdict depends on: software, driver, processor, sandbox, our own code.

Asked on the hosts that judge, which need not be the driver's. What differs in any of it is another
key: a verdict of another driver version, or of yesterday's evaluator, is not found.
"""

from __future__ import annotations

import asyncio
import functools
import hashlib
import json
import os
import subprocess
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import kopt
from kopt.actors.build.compilers import find_compilers
from kopt.data.manifest import cpu_model
from kopt.environment import sandbox_levels
from kopt.version import __version__

ASK_S = 120.0
"""For all hosts to say what they have: each starts a process for it."""
PROBE_S = 30.0

_PACKAGES = ("torch", "triton", "numpy", "nvidia-cutlass-dsl", "helion")
_VARIABLES = (
    "CUDA_HOME",
    "LD_LIBRARY_PATH",
    "OPENBLAS_CORETYPE",
    "TORCH_CUDA_ARCH_LIST",
)
"""Passed on to children (kopt.actors.supervisor.environment), and able to change what they do."""
_NOT_JUDGING = ("cache", "lint", "programmers", "rewriter")
"""Folders of kopt.actors that decide nothing about a candidate."""
_GUARDS = frozenset({"user", "mount", "landlock"})
"""Levels of the sandbox each of which keeps a candidate from writing to the cache."""

Facts = dict[str, str]


def host_facts(device: str) -> Facts:
    """Return what this host has, name to value.

    Args:
        device: `cpu` or `cuda`; a processor's model and cores are facts of the first alone.

    Raises:
        OSError: it cannot be told.
    """
    facts = {
        "kopt": __version__,
        "code": code_digest(),
        "python": sys.version,
        "compilers": find_compilers().fingerprint,
        "sandbox": _sandbox(),
        **{f"package {name}": _version(name) for name in _PACKAGES},
        **{f"variable {name}": os.environ.get(name, "") for name in _VARIABLES},
    }
    if device == "cpu":
        facts |= {"processor": cpu_model(), "cores": str(len(os.sched_getaffinity(0)))}
    else:
        facts |= {"driver": _driver()}
    return facts


def keeps_out(facts: Facts) -> bool:
    """Whether candidates on this host cannot write to the cache: else nothing in it is proof."""
    return bool(_GUARDS & set(facts["sandbox"].split("+")))


async def judging_facts(device: str) -> list[Facts]:
    """Return the facts of every host of the Ray cluster that may judge, each kind once, in order.

    Raises:
        OSError: a host does not answer, or cannot tell, or there is none.
    """
    import ray
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    here = ray.get_runtime_context().get_node_id()
    nodes = [node for node in ray.nodes() if node["Alive"]]
    if device == "cuda":
        nodes = [node for node in nodes if node["Resources"].get("GPU")]
    if not nodes:
        raise OSError("no host of the cluster can judge")
    asked: list[Any] = []
    for node_id in sorted(node["NodeID"] for node in nodes):
        if node_id == here:
            asked.append(asyncio.to_thread(host_facts, device))
            continue
        place = NodeAffinitySchedulingStrategy(node_id=node_id, soft=False)
        ask = ray.remote(host_facts).options(num_cpus=0, scheduling_strategy=place)
        asked.append(ask.remote(device))
    try:
        found = await asyncio.wait_for(asyncio.gather(*asked), ASK_S)
    except (TimeoutError, ray.exceptions.RayError) as error:
        raise OSError(f"a host does not say what it has ({type(error).__name__})") from error
    kinds = {json.dumps(facts, sort_keys=True): facts for facts in found}
    return [kinds[key] for key in sorted(kinds)]


@functools.cache
def code_digest() -> str:
    """Return a digest of kopt's own files that have a say in a verdict."""
    root = Path(kopt.__file__).resolve().parent
    actors = (root / "actors").resolve()
    files = [path for path in root.glob("*.py") if path.is_file()]
    for path in actors.rglob("*"):
        if path.suffix in (".py", ".cpp", ".h", ".cu"):
            inside = path.relative_to(actors)
            if inside.parts[0] not in _NOT_JUDGING:
                files.append(path)
    digest = hashlib.sha256()
    for path in sorted(files, key=lambda each: (each.parent != root, each.parts)):
        name = path.relative_to(root if path.parent == root else actors)
        digest.update(f"{name}\0{path.stat().st_size}\0".encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()


def _sandbox() -> str:
    """Return the levels that confine candidates here: those available, of those wanted.

    Tried in a process of its own, which must have neither threads nor a device.

    Raises:
        OSError: they cannot be tried.
    """
    from kopt.actors.child.sandbox.levels import joined, wanted_levels

    try:
        answer = subprocess.run(
            [sys.executable, "-m", "kopt.actors.child.sandbox.probe"],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=PROBE_S,
            check=False,
        )
        why: dict[str, str] = json.loads(answer.stdout)
    except (subprocess.TimeoutExpired, ValueError) as error:
        raise OSError("what confines candidates here cannot be tried") from error
    wanted = wanted_levels(sandbox_levels())
    return joined([level for level in wanted if why.get(level) == ""])


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return ""


def _driver() -> str:
    try:
        return Path("/proc/driver/nvidia/version").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
