"""`kopt verify` of a KernelBench run folder: each sample judged by our gates, and what vanishes.

Written beside each other, in `<folder>/kopt/` unless told otherwise: `eval_results.json` in
KernelBench's own form, and `kopt_results.json` with everything. The folder's own result file, where
there is one, is what is checked, and is left as it is.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from kopt.candidate import Candidate
from kopt.cli.verify_rescored import (
    Rescoring,
    Scored,
    Standing,
    closing_text,
    scored_text,
    standing_of,
    write_results,
)
from kopt.config import RunConfig
from kopt.data.kernelbench_runs import claims_of, samples_in
from kopt.data.problems import open_sources
from kopt.data.problems.file_source import read_source
from kopt.errors import ConfigError, StoreError
from kopt.evaluation import EvalJson
from kopt.ports import Target
from kopt.problem import Problem
from kopt.prompts.language import language_of

if TYPE_CHECKING:
    from kopt.cli.verify_judge import Judged

OWN_FOLDER = "kopt"
SET = "kernelbench"


def rescore(
    folder: Path, *, config: RunConfig, clone: Path | None, out: Path | None, show: TextIO
) -> Rescoring:
    """Judge every sample of a run folder, and write the results.

    Interrupted, what was judged so far is written.

    Args:
        folder: of the run.
        config: its `problems` section finds KernelBench, its `evaluate` section says how.
        clone: with the times of KernelBench's baselines; None where there is none.
        out: where results are written; None is a folder within the run's.
        show: where each sample is told as it is known.

    Raises:
        ConfigError: KernelBench is not here, or the device asked for is not.
        StoreError: the folder or its result file cannot be read, or ours not be written.
        KeyboardInterrupt: the user stopped it.
    """
    samples = samples_in(folder)
    rescoring = Rescoring(
        folder=folder,
        out=out or folder / OWN_FOLDER,
        ladder=config.evaluate.ladder,
        samples=samples,
        claims=claims_of(folder, samples, clone=clone),
        show=show,
    )
    source = open_sources(config.problems)[SET]
    if (reason := source.missing()) is not None:
        raise ConfigError(f"{folder} was scored against KernelBench, which is not here: {reason}")
    names = set(source.names())
    problems = {
        name: source.load(name) for name in {s.problem_name for s in samples} if name in names
    }
    _probe_writable(rescoring.out)
    try:
        _judge(rescoring, config, problems)
    finally:
        if rescoring.scored:
            write_results(rescoring)
        show.write(closing_text(rescoring))
    return rescoring


def _judge(rescoring: Rescoring, config: RunConfig, problems: Mapping[str, Problem]) -> None:
    jobs: list[tuple[Problem, Candidate]] = []
    positions: list[int] = []
    for position, sample in enumerate(rescoring.samples):
        problem = problems.get(sample.problem_name)
        if problem is None:
            why = f"KernelBench has no {sample.problem_name} that can run here"
            _add(rescoring, position, None, "not_judged", why)
            continue
        try:
            source = read_source(sample.path)
        except ConfigError as error:
            _add(rescoring, position, None, "not_judged", str(error))
            continue
        jobs.append((problem, Candidate(source=source, language=language_of(source))))
        positions.append(position)
    if not jobs:
        return
    from kopt.cli.verify_judge import judge_all

    def on_target(target: Target) -> None:
        rescoring.device = target.name

    def on_judged(job: int, judged: Judged) -> None:
        position = positions[job]
        if isinstance(judged, str):
            _add(rescoring, position, None, "not_judged", judged)
            return
        standing, why = standing_of(rescoring.claims[rescoring.samples[position]], judged)
        _add(rescoring, position, judged, standing, why)

    judge_all(jobs, config=config, log_dir=None, on_target=on_target, on_judged=on_judged)


def _add(
    rescoring: Rescoring, position: int, found: EvalJson | None, standing: Standing, why: str
) -> None:
    sample = rescoring.samples[position]
    scored = Scored(
        sample=sample, claim=rescoring.claims[sample], found=found, standing=standing, why=why
    )
    rescoring.scored[position] = scored
    rescoring.show.write(scored_text(scored))
    rescoring.show.flush()


def _probe_writable(out: Path) -> None:
    """Find out before hours of judging whether results can be written."""
    probe = out / ".kopt-probe"
    try:
        out.mkdir(parents=True, exist_ok=True)
        probe.touch()
        probe.unlink()
    except OSError as error:
        raise StoreError(
            str(out), f"results cannot be written there ({error.strerror}); name a folder by --out"
        ) from error
