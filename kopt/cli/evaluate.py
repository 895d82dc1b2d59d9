"""`kopt eval`: the verdict on one candidate file, in this process and its children, without Ray."""

from __future__ import annotations

import secrets
import sys
from collections.abc import Sequence
from typing import Any, Literal

from kopt.candidate import Candidate
from kopt.cli.arguments import command_parser, parse
from kopt.cli.exit_codes import DONE, NOT_CORRECT
from kopt.cli.output import reserved_stdout, write_json
from kopt.cli.subject import add_subject, read_subject
from kopt.config import RunConfig
from kopt.environment import cache_dir
from kopt.errors import ConfigError, ProblemError
from kopt.evaluation import Check, Evaluation, to_json
from kopt.problem import Problem
from kopt.verdict import Correct

EPILOG = """\
examples:
  kopt eval builtin/softmax candidate.py
  kopt eval my/problem.py my/candidate.py --json device=cpu evaluate=tf32
exit codes: 0 correct (fast or slow), 3 any other verdict, 2 bad usage or a broken problem"""


def main(arguments: Sequence[str]) -> int:
    """Judge one candidate; 0 correct, 3 not.

    Raises:
        ConfigError: a file, problem, device or override cannot be used.
    """
    parser = command_parser("eval", description="Judge one candidate file.", epilog=EPILOG)
    add_subject(parser)
    options = parse(parser, arguments)
    if options is None:
        return DONE
    problem, candidate, config = read_subject(options, verb="eval")
    try:
        if not options.json:
            evaluation = judge(problem, candidate, config=config)
            sys.stdout.write(evaluation_text(evaluation))
        else:
            with reserved_stdout() as out:
                evaluation = judge(problem, candidate, config=config)
                write_json(out, to_json(evaluation))
    except ProblemError as error:
        raise ConfigError(str(error)) from error
    return DONE if isinstance(evaluation.verdict, Correct) else NOT_CORRECT


def judge(problem: Problem, candidate: Candidate, *, config: RunConfig) -> Evaluation:
    """Build, verify and time one candidate on this machine's first device.

    Raises:
        ProblemError: the reference breaks its contract or cannot run here.
        ConfigError: the device asked for is not here.
    """
    from kopt.actors.builder import Builder, unbuilt
    from kopt.actors.device_worker import DeviceWorker

    device = first_device(config)
    evaluate = config.evaluate
    if evaluate.secret is None:
        evaluate = evaluate.model_copy(update={"secret": secrets.randbits(63)})
    cache = str(cache_dir())
    worker = DeviceWorker(evaluate, device, 0, cache)
    builder = Builder(evaluate, device, cache)
    try:
        built = builder.build(problem, candidate)
        if built.verdict is None:
            return worker.evaluate(problem, candidate, built)
        target = worker.target()
        return unbuilt(built, built.verdict, problem, candidate, config=evaluate, target=target)
    finally:
        builder.close()
        worker.close()


def evaluation_text(evaluation: Evaluation) -> str:
    """Return an evaluation for a person: the verdict, what was checked, the times."""
    record = to_json(evaluation)
    lines = [f"{record['kind']}: {record['reason']}"]
    if record["log"]:
        lines += [f"  | {line}" for line in record["log"].splitlines()]
    lines.append("")
    lines += [_check_line("gate", gate) for gate in evaluation.gates]
    lines += [_check_line("check", check) for check in evaluation.checks]
    if record["error"] is not None:
        error = record["error"]
        lines.append(
            f"error against float64: max {_number(error['max_abs'])}, "
            f"relative norm {_number(error['rel_norm'])}, rho {_number(error['rho'])}"
        )
    if record["time_us"] is not None:
        lines.append("")
        lines += [
            f"{name:<14} {value:12,.2f} us"
            for name, value in (
                ("candidate", record["time_us"]),
                ("eager", record["eager_us"]),
                ("compile", record["compile_us"]),
                ("max_autotune", record["max_autotune_us"]),
                ("given kernel", record["given_us"]),
                ("speed of light", record["sol_us"]),
            )
            if value is not None
        ]
    lines += _whose(evaluation)
    stages = ", ".join(f"{name} {seconds:.2f}" for name, seconds in evaluation.timeline_s.items())
    lines.append("")
    lines.append(
        f"{record['language']} on {record['device']}, ladder {record['ladder']}, "
        + (f"timed by {record['protocol']}, " if record["protocol"] not in (None, "abba") else "")
        + f"sandbox {record['sandbox']}"
        + (f"; seconds: {stages}" if stages else "")
    )
    if record["degenerate"]:
        lines.append("the problem is degenerate: a speed-up on it means little")
    return "\n".join(lines) + "\n"


def _whose(evaluation: Evaluation) -> list[str]:
    """Whose work it is, in a line or two; none where that was not looked at."""
    lines = []
    if evaluation.library_share is not None:
        own = 1.0 - evaluation.library_share
        lines.append(f"own kernels {own:.0%} of the time, libraries and torch the rest")
    if any(check.name == "fallback" and not check.passed for check in evaluation.checks):
        lines.append("it falls back: what runs is the reference's own path")
    return ["", *lines] if lines else []


def first_device(config: RunConfig) -> Literal["cpu", "cuda"]:
    """Return the device that a command in this process works on: a GPU where there is one.

    Raises:
        ConfigError: the device asked for is not here.
    """
    if config.device == "cpu":
        return "cpu"
    import torch

    if torch.cuda.is_available():
        return "cuda"
    if config.device == "cuda":
        raise ConfigError("device=cuda: torch sees no GPU; use device=cpu, or see `kopt doctor`")
    return "cpu"


def _check_line(what: str, check: Check) -> str:
    mark = "ok  " if check.passed else "FAIL"
    return f"{mark} {what:<5} {check.name}" + (f": {check.detail}" if check.detail else "")


def _number(value: Any) -> str:  # noqa: ANN401 - a number or null of the JSON form
    return "-" if value is None else f"{value:.3g}"
