"""`kopt doctor`: what is installed, what is off and why, and how to turn it on."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from kopt.cli.arguments import command_parser, parse
from kopt.cli.doctor_sandbox import sandbox_probes
from kopt.cli.exit_codes import DONE, FAILED
from kopt.cli.output import write_json
from kopt.cli.probe import Probe
from kopt.cli.probe_gpu import gpu_probe, gpu_probes
from kopt.cli.probe_host import host_probes
from kopt.cli.probe_model import model_probes
from kopt.cli.probe_profilers import profiler_probes
from kopt.cli.probe_ray import ray_probe
from kopt.cli.probe_software import software_probes
from kopt.data.problems import open_sources
from kopt.data.problems.config import ProblemsConfig
from kopt.environment import cache_dir


def main(arguments: Sequence[str]) -> int:
    """Probe this machine; 1 where something is off that nothing runs without."""
    parser = command_parser("doctor", description="Say what is installed, and what is off and why.")
    parser.add_argument("--out", default="runs", help="folder of run folders (default: runs)")
    options = parse(parser, arguments)
    if options is None:
        return DONE
    device = "cuda" if gpu_probe().ok else "cpu"  # whose profilers are of use
    probes = [
        *software_probes(),
        ray_probe(),
        *host_probes(out=Path(options.out), cache=cache_dir()),
        *gpu_probes(),
        *sandbox_probes(),
        *profiler_probes(cache=cache_dir(), device=device),
        *model_probes(),
        *_problem_sets(),
    ]
    if options.json:
        write_json(sys.stdout, {"ok": not _broken(probes), "rows": [asdict(p) for p in probes]})
    else:
        sys.stdout.write(_table(probes))
    return FAILED if _broken(probes) else DONE


def _problem_sets() -> list[Probe]:
    """A row for each set of problems."""
    probes = []
    for name, source in open_sources(ProblemsConfig()).items():
        reason = source.missing()
        if reason is None:
            found = f"{len(source.names())} problems"
            probes.append(Probe(name=f"problems: {name}", ok=True, found=found))
        else:
            why, _, fix = reason.partition("; ")
            probes.append(Probe(name=f"problems: {name}", ok=False, found=why, fix=fix))
    return probes


def _broken(probes: Sequence[Probe]) -> list[Probe]:
    return [probe for probe in probes if probe.needed and not probe.ok]


def _table(probes: Sequence[Probe]) -> str:
    width = max(len(probe.name) for probe in probes)
    lines = []
    for probe in probes:
        mark = "ok " if probe.ok else ("OFF" if probe.needed else "off")
        lines.append(f"{mark}  {probe.name:<{width}}  {probe.found}")
        if probe.fix:
            lines.append(f"     {'':<{width}}  -> {probe.fix}")
    broken = _broken(probes)
    off = sum(not probe.ok for probe in probes)
    if broken:
        lines.append(f"kopt cannot run: {', '.join(probe.name for probe in broken)}")
    else:
        lines.append(f"kopt can run; {off} thing(s) off" if off else "kopt can run; all is on")
    return "\n".join(lines) + "\n"
