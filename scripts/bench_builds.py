"""Builds of C++ (or CUDA) candidates: torch's own path, the light path, and a warm cache.

Usage: python scripts/bench_builds.py [device=cpu|cuda] [only=NAME,…] [rounds=1] [--json]

Each candidate is imported in a fresh process with an empty folder of builds, once as torch builds
it and once through kopt's light toolchain, in turn; then again in a fresh process with the light
build in place, as a device lane does. Every process calls the candidate and prints what came of it,
which must be the same three times. The table has wall seconds of the import and processor seconds
of the compilers. The one-off set-up of the toolchain is timed apart. The last line with --json is
one object, `ratio` last: stock seconds to light seconds over all candidates.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path

from bench_builds_candidates import CPU, CUDA

from kopt.actors.build.compilers import find_compilers
from kopt.actors.build.toolchain import compiler_environment, provide_toolchain

PROCESS_S = 900.0
_CHILD = """
import hashlib, json, os, resource, sys, time
import torch, torch.utils.cpp_extension
began_s = time.monotonic()
words, failed = {}, ""
try:
    exec(compile(open(sys.argv[1]).read(), sys.argv[1], "exec"), words)
except Exception as error:
    failed = type(error).__name__ + ": " + str(error)
import_s = time.monotonic() - began_s
usage = resource.getrusage(resource.RUSAGE_CHILDREN)
said = []
for call in words.get("calls", list)() if not failed else []:
    try:
        out = call()
    except Exception as error:
        said.append([type(error).__name__, str(error).splitlines()[0]])
        continue
    flat = []
    def walk(value):
        if isinstance(value, (list, tuple)):
            for each in value:
                walk(each)
        else:
            flat.append(value)
    walk(out)
    for value in flat:
        if isinstance(value, torch.Tensor):
            data = value.detach().cpu().contiguous()
            dtype, shape = str(data.dtype), list(data.shape)
            digest = hashlib.sha256(data.reshape(-1).view(torch.uint8).numpy().tobytes())
            said.append([dtype, shape, digest.hexdigest()[:16]])
        else:
            said.append([type(value).__name__, repr(value)])
print(json.dumps({"import_s": import_s, "cpu_s": usage.ru_utime + usage.ru_stime, "said": said,
                  "failed": failed}))
sys.stdout.flush()
os._exit(0)
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One candidate's figures, in seconds."""

    name: str
    stock_s: float
    light_s: float
    warm_s: float
    stock_cpu_s: float
    light_cpu_s: float
    is_light: bool
    """It was built, or found wrong, through the light headers; otherwise torch's path decided."""
    is_same: bool
    """What it said and gave is the same three times."""


def main() -> None:
    """Run and print."""
    given = dict(word.split("=", 1) for word in sys.argv[1:] if "=" in word)
    unknown = set(given) - {"device", "only", "rounds"}
    if unknown or given.get("device", "cpu") not in ("cpu", "cuda"):
        sys.exit("expected device=cpu|cuda, only=NAME,… and rounds=N, found " + " ".join(given))
    candidates = CUDA if given.get("device") == "cuda" else CPU
    only = given["only"].split(",") if "only" in given else list(candidates)
    with tempfile.TemporaryDirectory() as folder:
        began_s = time.monotonic()
        reason = provide_toolchain(Path(folder))
        setup_s = time.monotonic() - began_s
        if reason is not None:
            sys.exit(f"the light toolchain cannot be set up: {reason}")
        rows = [
            measure(name, candidates[name], Path(folder), number=number)
            for number in range(int(given.get("rounds", "1")))
            for name in only
        ]
    report(rows, setup_s=setup_s)


def measure(name: str, source: str, folder: Path, *, number: int) -> Row:
    """Build one candidate the three ways."""
    path = folder / f"{name}_{number}.py"
    path.write_text(source, encoding="utf-8")
    light = compiler_environment(folder)
    stock = {key: value for key, value in light.items() if key == "TORCH_CUDA_ARCH_LIST"}
    builds = {way: folder / f"builds_{name}_{number}_{way}" for way in ("stock", "light")}
    first = run(path, builds["stock"], stock)
    second = run(path, builds["light"], light)
    third = run(path, builds["light"], light)
    said = [(each["said"], _words(each["failed"], folder)) for each in (first, second, third)]
    print(f"  {name}: {first['import_s']:.1f} s, {second['import_s']:.1f} s", file=sys.stderr)
    if not said[0] == said[1] == said[2]:
        print(f"    differs: {json.dumps(said)[:2000]}", file=sys.stderr)
    return Row(
        name=name,
        stock_s=first["import_s"],
        light_s=second["import_s"],
        warm_s=third["import_s"],
        stock_cpu_s=first["cpu_s"],
        light_cpu_s=second["cpu_s"],
        is_light=not any(builds["light"].rglob("*.stock")),
        is_same=said[0] == said[1] == said[2],
    )


def run(path: Path, builds: Path, variables: dict[str, str]) -> dict[str, object]:
    """Import and call a candidate in a fresh process; return what it reports."""
    builds.mkdir(exist_ok=True)
    search = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    environment = {
        key: value for key, value in os.environ.items() if key not in ("CXX", "PYTORCH_NVCC")
    }
    environment |= {"PATH": search, "TORCH_EXTENSIONS_DIR": str(builds), **variables}
    done = subprocess.run(
        [sys.executable, "-c", _CHILD, str(path)],
        env=environment,
        cwd=builds,
        capture_output=True,
        text=True,
        timeout=PROCESS_S,
        check=False,
    )
    if done.returncode != 0:
        sys.exit(f"{path.stem} ended with {done.returncode}: {done.stderr[-2000:]}")
    return dict(json.loads(done.stdout.splitlines()[-1]))


def _words(log: object, folder: Path) -> list[str]:
    """Return what compilers say was wrong, without the folders it was built in."""
    lines = str(log).replace(str(folder), "").splitlines()
    errors = [line.split("/")[-1] for line in lines if "error:" in line]
    return errors or lines[:1]


def report(rows: list[Row], *, setup_s: float) -> None:
    """Print the table, and the object."""
    compilers = find_compilers()
    print(f"set-up of the toolchain, once on a node: {setup_s:.1f} s; {compilers.cxx}")
    print(f"{'candidate':<16}{'stock':>8}{'light':>8}{'warm':>8}{'ratio':>8}  processor s")
    for row in rows:
        ratio = row.stock_s / row.light_s
        print(
            f"{row.name:<16}{row.stock_s:>8.1f}{row.light_s:>8.1f}{row.warm_s:>8.2f}{ratio:>7.1f}x"
            f"  {row.stock_cpu_s:.1f} / {row.light_cpu_s:.1f}"
            f"{'' if row.is_light else '  torch decided'}{'' if row.is_same else '  DIFFERS'}"
        )
    through = [row for row in rows if row.is_light]
    totals = {
        "setup_s": setup_s,
        "candidates": len(rows),
        "same_outputs": all(row.is_same for row in rows),
        "built_light": len(through),
        "ratio_built_light": _ratio(through),
        "ratio_cpu": sum(row.stock_cpu_s for row in rows) / sum(row.light_cpu_s for row in rows),
        "ratio_warm": sum(row.stock_s for row in rows) / sum(row.warm_s for row in rows),
        "ratio": _ratio(rows),
    }
    print(
        f"{totals['ratio']:.1f}x over all {len(rows)}, {totals['ratio_built_light']:.1f}x over the "
        f"{len(through)} decided light, {totals['ratio_warm']:.1f}x warm; outputs "
        f"{'the same' if totals['same_outputs'] else 'DIFFER'}"
    )
    if "--json" in sys.argv:
        print(json.dumps({"rows": [asdict(row) for row in rows], **totals}))


def _ratio(rows: list[Row]) -> float:
    light_s = sum(row.light_s for row in rows)
    return sum(row.stock_s for row in rows) / light_s if light_s else 0.0


if __name__ == "__main__":
    main()
