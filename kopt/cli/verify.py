"""`kopt verify`: claims measured again. Of a run of ours, or of a KernelBench run folder.

What is asked for is told by what the folders hold: a run of ours, a folder of KernelBench's
samples, a clone of KernelBench. The last two may stand in either place.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TextIO

from kopt.cli.arguments import command_parser, parse
from kopt.cli.compose import compose_config
from kopt.cli.exit_codes import DONE, FAILED
from kopt.cli.output import reserved_stdout, write_json
from kopt.data.kernelbench_runs import is_kernelbench_run, precision_of
from kopt.data.problems.config import KernelBenchConfig, ProblemsConfig
from kopt.data.problems.kernelbench_source import KernelBenchSource
from kopt.data.rundir import RunDir
from kopt.errors import ConfigError

if TYPE_CHECKING:
    from kopt.cli.verify_rescored import Rescoring
    from kopt.config import RunConfig

EPILOG = """\
examples:
  kopt verify runs/first                    every claimed win, in fresh processes, on new inputs
  kopt verify runs/first evaluate=tf32      the same, under another ladder
  kopt verify KernelBench/runs/mine --kernelbench KernelBench
                                            KernelBench's samples under our gates, its tolerances
  kopt verify KernelBench/runs/mine evaluate=strict
exit codes: 0 all claims hold, 1 one does not, 2 bad usage or a folder that cannot be used"""

Kind = Literal["run", "samples", "clone"]
EXPECTED = (
    "expected a run folder (manifest.json), a KernelBench run folder "
    "(level_1_problem_1_sample_0_kernel.py) or a clone of KernelBench"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What is to be verified."""

    run: Path | None = None
    samples: Path | None = None
    clone: Path | None = None


def main(arguments: Sequence[str]) -> int:
    """Verify; 0 where all holds, 1 where a claim does not.

    Raises:
        ConfigError: a folder is missing or of no use, a run is still going or of another device,
            or an override does not fit.
        StoreError: a folder is damaged, or results cannot be written.
        KeyboardInterrupt: the user stopped it; what was judged of a KernelBench run is written.
    """
    parser = command_parser(
        "verify",
        description="Measure every claimed win again, or re-score a KernelBench run folder.",
        epilog=EPILOG,
    )
    parser.add_argument(
        "words", nargs="*", metavar="RUN", help="a run folder; KEY=VALUE are Hydra overrides"
    )
    parser.add_argument(
        "--kernelbench", metavar="DIR", help="a clone of KernelBench, or a run folder of it"
    )
    parser.add_argument(
        "--out", metavar="DIR", help="where a re-scoring is written (default: RUN/kopt)"
    )
    parser.add_argument(
        "--any-device",
        action="store_true",
        help="compare with a run of another device all the same",
    )
    options = parse(parser, arguments)
    if options is None:
        return DONE
    overrides = [word for word in options.words if _is_override(word)]
    folders = [word for word in options.words if word not in overrides]
    if len(folders) > 1:
        raise ConfigError(f"verify takes one RUN, got {len(folders)}: {', '.join(folders)}")
    plan = plan_of([*folders, *([options.kernelbench] if options.kernelbench else [])])
    if options.out is not None and plan.samples is None:
        raise ConfigError("--out says where a re-scoring of a KernelBench run is written; none is")
    if options.any_device and plan.run is None:
        raise ConfigError("--any-device is of a run of ours; samples are measured here anyway")
    out = None if options.out is None else Path(options.out)
    if not options.json:
        return _verify(plan, overrides, out=out, any_device=options.any_device, show=sys.stdout)[0]
    with reserved_stdout() as stdout:
        code, record = _verify(
            plan, overrides, out=out, any_device=options.any_device, show=sys.stderr
        )
        write_json(stdout, record)
    return code


def plan_of(folders: Sequence[str]) -> Plan:
    """Return what folders ask for, in whatever order they come.

    Raises:
        ConfigError: there is none, one is missing or of no use, or they do not go together.
    """
    if not folders:
        raise ConfigError("verify takes a run folder; `kopt verify --help` says more")
    kinds: dict[Kind, Path] = {}
    for text in folders:
        path = Path(text).expanduser()
        kind = kind_of(path)
        if kind in kinds:
            raise ConfigError(f"{kinds[kind]} and {path} are both of one kind; name one of them")
        kinds[kind] = path
    plan = Plan(run=kinds.get("run"), samples=kinds.get("samples"), clone=kinds.get("clone"))
    if plan.samples is None and plan.clone is not None:
        hint = "leave it out: a run keeps its own problems" if plan.run else EXPECTED
        raise ConfigError(f"{plan.clone} is a clone of KernelBench and holds no samples; {hint}")
    return plan


def kind_of(path: Path) -> Kind:
    """Return what a folder is.

    Raises:
        ConfigError: it is missing, cannot be read, or is none of them.
    """
    if not path.exists():
        raise ConfigError(f"no such folder: {path} (looked for in {Path.cwd()})")
    if not path.is_dir():
        raise ConfigError(f"{path} is a file; {EXPECTED}")
    try:
        next(path.iterdir(), None)
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror}") from None
    if (path / "manifest.json").is_file() or (path / "journal").is_dir():
        return "run"
    if is_kernelbench_run(path):
        return "samples"
    source = KernelBenchSource(ProblemsConfig(kernelbench=KernelBenchConfig(path=str(path))))
    if source.missing() is None:
        return "clone"
    raise ConfigError(f"{path}: {EXPECTED}, found neither")


def _verify(
    plan: Plan,
    overrides: Sequence[str],
    *,
    out: Path | None,
    any_device: bool,
    show: TextIO,
) -> tuple[int, dict[str, Any]]:
    """Run what is planned; return the exit code and the JSON object."""
    code, record = DONE, dict[str, Any]()
    if plan.run is not None:
        from kopt.cli.verify_run import verify_run

        verification = verify_run(
            RunDir.open(plan.run), overrides, any_device=any_device, show=show
        )
        code = DONE if verification.holds else FAILED
        record = verification.to_json()
    if plan.samples is not None:
        rescoring = _rescore(plan, overrides, out=out, show=show)
        code = code if rescoring.holds else FAILED
        record["kernelbench"] = rescoring.to_json()
    return code, record


def _rescore(plan: Plan, overrides: Sequence[str], *, out: Path | None, show: TextIO) -> Rescoring:
    from kopt.cli.verify_kernelbench import rescore

    assert plan.samples is not None
    config = rescoring_config(plan.samples, overrides, clone=plan.clone)
    known = config.problems.kernelbench.path
    clone = plan.clone or (None if known is None else Path(known).expanduser())
    return rescore(plan.samples, config=config, clone=clone, out=out, show=show)


def rescoring_config(folder: Path, overrides: Sequence[str], *, clone: Path | None) -> RunConfig:
    """Return how samples are judged: by KernelBench's tolerances unless told otherwise.

    The dtype is the one that the run's own configuration names, unless an override does.

    Raises:
        ConfigError: an override cannot be read or does not fit.
    """
    chosen = any(text.lstrip("+").startswith("evaluate=") for text in overrides)
    config = compose_config([*([] if chosen else ["evaluate=kernelbench"]), *overrides])
    problems = config.problems
    if clone is not None:
        kernelbench = KernelBenchConfig(path=str(clone), revision=problems.kernelbench.revision)
        problems = problems.model_copy(update={"kernelbench": kernelbench})
    if not any("problems" in text and "=" in text for text in overrides):
        problems = problems.model_copy(update={"dtype": precision_of(folder)})
    return config.model_copy(update={"problems": problems})


def _is_override(word: str) -> bool:
    return "=" in word and not Path(word).expanduser().exists()
