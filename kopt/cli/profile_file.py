"""`kopt profile`: evidence and findings of one candidate file, in this process and its children."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

from kopt.candidate import Candidate
from kopt.cli.arguments import Parser, command_parser, parse
from kopt.cli.evaluate import first_device
from kopt.cli.exit_codes import DONE, NOT_CORRECT
from kopt.cli.findings import findings_json, findings_table
from kopt.cli.output import reserved_stdout, write_json
from kopt.cli.subject import add_subject, read_subject
from kopt.config import RunConfig
from kopt.data.evidence_json import evidence_to_json
from kopt.environment import cache_dir
from kopt.errors import ConfigError, ProfileFailed
from kopt.evidence import Evidence, EvidenceLevel
from kopt.problem import Problem
from kopt.tools.collect.host_code import fma_share, vector_bits
from kopt.tools.feedback import FEEDBACK_MODES, Feedback, feedback

if TYPE_CHECKING:
    from kopt.actors.evidence.profiler import Profile

EPILOG = """\
examples:
  kopt profile builtin/softmax candidate.py
  kopt profile my/problem.py my/candidate.py --json --out evidence.json
  kopt profile builtin/softmax candidate.py --level timeline device=cuda
The candidate is profiled and not judged: `kopt eval` says whether it is right and how fast it is.
exit codes: 0 profiled, 1 no evidence could be had, 2 bad usage, 3 the candidate does not build"""
UNVERIFIED = "unverified: profiled, and not judged (`kopt eval` judges)"


def main(arguments: Sequence[str]) -> int:
    """Profile one candidate, and say what the tools find.

    Raises:
        ConfigError: a file, problem, device or override cannot be used.
        ProfileFailed: no evidence at all could be had.
    """
    options = parse(_parser(), arguments)
    if options is None:
        return DONE
    problem, candidate, config = read_subject(options, verb="profile")
    with reserved_stdout() as out:
        profile = _profiled(problem, candidate, config=config, options=options)
        if isinstance(profile, str):
            sys.stderr.write(f"kopt: the candidate does not build: {profile}\n")
            return NOT_CORRECT
        evidence = profile.evidence
        if evidence is None:
            raise ProfileFailed(f"no evidence: {profile.failed}")
        if options.out:
            _write(Path(options.out), evidence)
        told = feedback(evidence, mode=options.feedback)
        if options.json:
            write_json(out, profile_json(profile, evidence, told))
        else:
            out.write(profile_text(profile, evidence, told))
    return DONE


def _parser() -> Parser:
    parser = command_parser("profile", description="Profile one candidate file.", epilog=EPILOG)
    add_subject(parser)
    parser.add_argument(
        "--level",
        choices=get_args(EvidenceLevel),
        default="ncu",
        help="no deeper than this: counters, timeline and code; timeline and code; code alone",
    )
    parser.add_argument(
        "--feedback",
        choices=FEEDBACK_MODES,
        default="tools",
        help="what is told: findings, NVIDIA's first rules, fifty counters, nothing",
    )
    parser.add_argument(
        "--reference",
        action="store_true",
        help="measure the reference by ncu too: its class as measured beside the theoretical one",
    )
    parser.add_argument(
        "--energy",
        action="store_true",
        help="measure the energy of a call too, beside the reference's (GPU, half a minute)",
    )
    parser.add_argument("--out", metavar="FILE", help="write the evidence there too, as JSON")
    return parser


def profile_json(profile: Profile, evidence: Evidence, told: Feedback) -> dict[str, Any]:
    """Return what `kopt profile --json` prints: the evidence JSON, and beside it what was told."""
    said = findings_json(evidence, told)
    return {
        **evidence_to_json(evidence),
        "verified": False,
        "disagreement": profile.disagreement,
        "remarks": list(profile.remarks),
        "measured_energy": None if profile.energy is None else asdict(profile.energy),
        "took_s": dict(profile.took_s),
        "findings": said["findings"],
        "told": said,
    }


def profile_text(profile: Profile, evidence: Evidence, told: Feedback) -> str:
    """Return what a person is shown."""
    lines = [findings_table(evidence, told), UNVERIFIED]
    if profile.disagreement:
        lines.append(f"its output is not the reference's: {profile.disagreement}")
    lines += host_lines(evidence)
    if profile.energy is not None:
        lines.append(f"energy: {profile.energy.words()}")
    lines += [f"left out: {remark}" for remark in profile.remarks]
    if profile.took_s:
        stages = (f"{stage} {seconds:.1f}" for stage, seconds in profile.took_s.items())
        lines.append(f"took, s: {', '.join(stages)}")
    return "\n".join(lines) + "\n"


def host_lines(evidence: Evidence) -> list[str]:
    """Return a line on the code of a CPU extension: how wide it works, how much it fuses."""
    if evidence.arch.startswith("sm_"):
        return []
    lines = []
    for kernel in evidence.kernels:
        bits, share = vector_bits(kernel.sass), fma_share(kernel.sass)
        if bits is not None and share is not None:
            width = "one element at a time" if bits == 32 else f"vectors of {bits} bits"
            lines.append(
                f"its compiled code: {width}; {share:.0%} of its arithmetic are multiply-adds"
            )
    return lines


def _profiled(
    problem: Problem, candidate: Candidate, *, config: RunConfig, options: argparse.Namespace
) -> Profile | str:
    """Build and profile it; the reason where it does not build."""
    from kopt.actors.evidence.early import start_early

    cache = cache_dir()
    with_rules = options.feedback == "rules"
    with ExitStack() as stack:
        level = None if with_rules else options.level
        early = start_early(cache, device=config.device, level=level)
        if early is not None:
            stack.callback(early.close)
        device = first_device(config)
        from kopt.actors.evidence.device_lock import device_lock
        from kopt.actors.evidence.profiler import DeviceProfiler, Subject

        # It loads while the candidate is built.
        aside = stack.enter_context(ThreadPoolExecutor(max_workers=1))
        refusal = aside.submit(_refusal, problem, candidate, config=config, stack=stack)
        profiler = DeviceProfiler(
            config.evaluate,
            device,
            str(cache),
            is_lasting=False,
            ready_for=level,
            early=early,
        )
        stack.callback(profiler.close)
        why = refusal.result()
        if why:
            return why
        with device_lock(cache, device=device):
            (profile,) = profiler.profile(
                [Subject(problem=problem, candidate=candidate)],
                level=options.level,
                with_rules=with_rules,
                with_reference=options.reference,
                with_energy=options.energy,
            )
    return profile


def _refusal(problem: Problem, candidate: Candidate, *, config: RunConfig, stack: ExitStack) -> str:
    """Build it; return why it does not build, or nothing. The stack ends what built it."""
    if candidate.language == "triton":
        return ""  # its kernels are compiled as they are launched
    from kopt.actors.builder import Builder

    builder = Builder(config.evaluate, first_device(config), str(cache_dir()))
    stack.callback(builder.close)  # once it has loaded, for which nobody waits
    verdict = builder.build(problem, candidate).verdict
    return "" if verdict is None else verdict.reason


def _write(path: Path, evidence: Evidence) -> None:
    try:
        text = json.dumps(evidence_to_json(evidence), indent=1, ensure_ascii=False)
        path.write_text(text + "\n", encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"--out {path}: cannot be written: {error.strerror}") from None
