"""Triton candidates compiled ahead on CPUs, and what the device is then spared.

Usage: python scripts/bench_builds_triton.py [device=cpu|cuda] [only=NAME,…] [--json]

Each candidate is built by kopt's build lane for this node's GPU (device=cpu: for an H200) with an
empty cache. With device=cuda a fresh process then imports and calls it, once with an empty cache
of Triton, as it would be without the build lane, and once with what the lane left: the seconds
from the import to the first result, and the kernels compiled in them. The last line with --json
is one object, `ratio` last: device seconds without to device seconds with.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path

from kopt.actors.build.gpu_facts import KNOWN, gpu_of_node
from kopt.actors.build.triton_order import REPORT
from kopt.actors.builder import Builder
from kopt.actors.config import EvaluateConfig
from kopt.candidate import Candidate
from kopt.problem import Problem

PROCESS_S = 600.0
_MODEL = """
import torch
from torch import nn
class Model(nn.Module):
    def forward(self, x, w):
        return torch.softmax(x @ w, -1)
def get_inputs():
    return [torch.randn(1024, 1024), torch.randn(1024, 1024)]
"""
_HEAD = """
import torch
import triton
import triton.language as tl
from torch import nn
"""
_ROWS = """
@triton.jit
def softmax(x, y, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    at = tl.program_id(0) * n + i
    v = tl.load(x + at, mask=i < n, other=-float("inf"))
    e = tl.exp(v - tl.max(v, 0))
    tl.store(y + at, e / tl.sum(e, 0), mask=i < n)
"""
_ROWS_MODEL = """
class ModelNew(nn.Module):
    def forward(self, x, w):
        x = x @ w
        y = torch.empty_like(x)
        softmax[(x.shape[0],)](x, y, x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]))
        return y
"""
_TILES = """
CONFIGS = [
    triton.Config({{"BM": m, "BN": n, "BK": k}}, num_warps=w, num_stages=s)
    for m, n, k, w, s in {tiles}
]
@triton.autotune(configs=CONFIGS, key=["K"])
@triton.jit
def matmul(a, b, c, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    columns = tl.program_id(1) * BN + tl.arange(0, BN)
    inner = tl.arange(0, BK)
    total = tl.zeros((BM, BN), tl.float32)
    for k in range(0, K, BK):
        x = tl.load(a + rows[:, None] * K + (k + inner)[None, :])
        y = tl.load(b + (k + inner)[:, None] * N + columns[None, :])
        total = tl.dot(x, y, total)
    tl.store(c + rows[:, None] * N + columns[None, :], total)
"""
_TILES_MODEL = """
class ModelNew(nn.Module):
    def forward(self, x, w):
        (M, K), N = x.shape, w.shape[1]
        z = torch.empty(M, N, device=x.device, dtype=x.dtype)
        matmul[lambda m: (M // m["BM"], N // m["BN"])](x, w, z, N, K)
        return torch.softmax(z, -1)
"""
_FEW = [(64, 64, 32, 4, 2), (128, 64, 32, 4, 3)]
_MANY = [(m, n, 32, w, s) for m in (64, 128) for n in (64, 128) for w in (4, 8) for s in (2, 3)]
CANDIDATES = {
    "one_kernel": _HEAD + _ROWS + _ROWS_MODEL,
    "2_configs": _HEAD + _TILES.format(tiles=_FEW) + _TILES_MODEL,
    "16_configs": _HEAD + _TILES.format(tiles=_MANY) + _TILES_MODEL,
}
_CHILD = """
import importlib.util, json, sys, time
import torch, triton
found = []
triton.knobs.compilation.listener = lambda **facts: found.append(facts["cache_hit"])
x, w = torch.randn(1024, 1024, device="cuda"), torch.randn(1024, 1024, device="cuda")
torch.softmax(x @ w, -1).sum().item()
began_s = time.monotonic()
spec = importlib.util.spec_from_file_location("candidate", sys.argv[1])
module = importlib.util.module_from_spec(spec)
sys.modules["candidate"] = module
spec.loader.exec_module(module)
with torch.no_grad():
    module.ModelNew().cuda()(x, w).sum().item()
print(json.dumps({"first_s": time.monotonic() - began_s, "compiled": found.count(False)}))
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One candidate's figures; those of the device are None where it was not asked."""

    name: str
    kernels: int
    ahead_s: float
    device_s: float | None = None
    """To the first result, with nothing compiled ahead."""
    device_after_s: float | None = None
    """The same, with what was compiled ahead."""
    compiled_after: int | None = None
    """Kernels that the device lane still compiled."""


def main() -> None:
    """Run and print."""
    given = dict(word.split("=", 1) for word in sys.argv[1:] if "=" in word)
    if set(given) - {"device", "only"} or given.get("device", "cpu") not in ("cpu", "cuda"):
        sys.exit("expected device=cpu|cuda and only=NAME,…, found " + " ".join(given))
    on_device = given.get("device") == "cuda"
    gpu = gpu_of_node() if on_device else KNOWN["9.0"]
    if gpu is None:
        sys.exit("device=cuda: expected a GPU, found none; see kopt doctor")
    only = given["only"].split(",") if "only" in given else list(CANDIDATES)
    config = EvaluateConfig(secret=0, compile=False)
    with tempfile.TemporaryDirectory() as folder:
        builder = Builder(config, "cuda", folder, gpu=gpu)
        try:
            builder.build(_problem(), Candidate(source=_HEAD + _ROWS, language="triton"))
            rows = [measure(name, builder, Path(folder), on_device=on_device) for name in only]
        finally:
            builder.close()
    report(rows, name=gpu.name)


def _problem() -> Problem:
    return Problem(name="bench", source=_MODEL)


def measure(name: str, builder: Builder, folder: Path, *, on_device: bool) -> Row:
    """Build one candidate ahead, and call it both ways."""
    built = builder.build(_problem(), Candidate(source=CANDIDATES[name], language="triton"))
    assert built.build_dir is not None
    told = json.loads((Path(built.build_dir) / REPORT).read_text(encoding="utf-8"))
    if told["failed"] or told["stopped"]:
        sys.exit(f"{name} was not compiled ahead: {told}")
    row = Row(name=name, kernels=len(told["compiled"]), ahead_s=built.build_s)
    if not on_device:
        return row
    source = folder / f"{name}.py"
    source.write_text(CANDIDATES[name], encoding="utf-8")
    without = call(source, folder / f"{name}_cache")
    after = call(source, Path(built.build_dir) / "triton")
    return Row(
        name=name,
        kernels=row.kernels,
        ahead_s=row.ahead_s,
        device_s=without["first_s"],
        device_after_s=after["first_s"],
        compiled_after=int(after["compiled"]),
    )


def call(source: Path, cache: Path) -> dict[str, float]:
    """Import and call a candidate in a fresh process with this cache of Triton."""
    done = subprocess.run(
        [sys.executable, "-c", _CHILD, str(source)],
        env={**os.environ, "TRITON_CACHE_DIR": str(cache), "TRITON_DEFAULT_FP_FUSION": "1"},
        capture_output=True,
        text=True,
        timeout=PROCESS_S,
        check=False,
    )
    if done.returncode != 0:
        sys.exit(f"{source.stem} ended with {done.returncode}: {done.stderr[-2000:]}")
    return dict(json.loads(done.stdout.splitlines()[-1]))


def report(rows: list[Row], *, name: str) -> None:
    """Print the table, and the object."""
    print(f"compiled for {name} with {len(os.sched_getaffinity(0))} cores")
    print(f"{'candidate':<14}{'kernels':>8}{'ahead':>9}{'device':>9}{'after':>9}{'compiled':>10}")
    for row in rows:
        seconds = (row.ahead_s, row.device_s, row.device_after_s)
        cells = "".join(f"{'—' if each is None else f'{each:.2f}':>9}" for each in seconds)
        left = "—" if row.compiled_after is None else row.compiled_after
        print(f"{row.name:<14}{row.kernels:>8}{cells}{left:>10}")
    without = sum(row.device_s or 0.0 for row in rows)
    after = sum(row.device_after_s or 0.0 for row in rows)
    if "--json" in sys.argv:
        ratio = without / after if after else None
        print(json.dumps({"gpu": name, "rows": [asdict(row) for row in rows], "ratio": ratio}))


if __name__ == "__main__":
    main()
