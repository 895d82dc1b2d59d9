"""`kopt run -m`: the combinations of `key=a,b`, as the jobs of one fleet, through Hydra's launcher.

Hydra composes each job and makes its folder; the launcher (kopt.cli.plugins) hands over all of
them at once. Another launcher (`hydra/launcher=basic`) runs them one after the other.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kopt.cli.alike import check_alike
from kopt.cli.arms import name_arms
from kopt.cli.compose import CONF_NAME, CONF_PACKAGE, hydra_errors, hydra_overrides, to_mapping
from kopt.cli.exit_codes import BAD_CONFIG, INTERRUPTED
from kopt.cli.launching import LAUNCHER, LAUNCHER_GROUP, make_launcher_known
from kopt.cli.prepared import Known, Prepared, Refused, prepare, why_refused
from kopt.cli.run import run_prepared
from kopt.config import load
from kopt.errors import ConfigError, KoptError

if TYPE_CHECKING:
    from omegaconf import DictConfig

SWEEP_DIR = "hydra.sweep.dir"
OF_THE_WHOLE = ("name", "out")
"""Keys that a multirun has once, for all of its jobs."""


def sweep(overrides: Sequence[str], *, plan: bool, as_json: bool) -> int:
    """Run every combination and return the worst exit code; one that fails stops no other.

    Args:
        overrides: as the user typed them.
        plan: only tell what each would do.
        as_json: print one JSON object.

    Raises:
        ConfigError: an override cannot be read, or the jobs cannot be one fleet.
        KeyboardInterrupt: the user stopped it before it began.
    """
    import hydra

    additions = hydra_overrides(overrides, sweep=True)
    make_launcher_known()
    multirun = _Multirun(plan=plan, as_json=as_json)

    def one(composed: DictConfig) -> Any:  # noqa: ANN401 - what Hydra gives back to its sweeper
        return multirun.take(composed)

    one.together = multirun.together  # type: ignore[attr-defined] # the launcher looks for it
    task = hydra.main(
        version_base="1.3", config_path=f"pkg://{CONF_PACKAGE}", config_name=CONF_NAME
    )
    if not any(text.split("=")[0].lstrip("+") == LAUNCHER_GROUP for text in additions):
        additions.insert(0, f"{LAUNCHER_GROUP}={LAUNCHER}")
    with ExitStack() as stack:
        if not any(text.split("=")[0].lstrip("+") == SWEEP_DIR for text in additions):
            folder = (
                Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="kopt-plan-")))
                if plan
                else _new_folder(additions)
            )
            if not plan:
                stack.callback(_remove_unless, folder, lambda: multirun.has_begun)
            additions.append(f"{SWEEP_DIR}={_quoted(str(folder))}")
        before = sys.argv
        os.environ["HYDRA_FULL_ERROR"] = (
            "1"  # else Hydra prints and leaves: we turn errors to lines
        )
        try:
            sys.argv = ["kopt", "--multirun", *additions]
            with hydra_errors():
                task(one)()
        except _Interrupted:
            return INTERRUPTED
        finally:
            sys.argv = before
            del os.environ["HYDRA_FULL_ERROR"]
    return max(multirun.codes, default=0)


class _Multirun:
    """The jobs of one `kopt run -m`, as Hydra hands them over."""

    def __init__(self, *, plan: bool, as_json: bool) -> None:
        self._plan = plan
        self._as_json = as_json
        self._known: Known = {}
        self.codes: list[int] = []
        self.has_begun = False
        """Whether a job was run: if none can be, nothing is left behind."""

    def take(self, composed: DictConfig) -> Any:  # noqa: ANN401 - given back to `together` or Hydra
        """Make one job ready; with another launcher than ours, run it."""
        from hydra.core.hydra_config import HydraConfig

        job = HydraConfig.get()
        is_ours = str(job.launcher._target_).endswith(".KoptLauncher")
        overrides = tuple(each.lstrip("+") for each in job.overrides.task)
        number, folder = int(job.job.num), Path(job.runtime.output_dir)
        try:
            ready = prepare(load(to_mapping(composed)), known=self._known)
        except KoptError as error:
            # A combination that cannot run is said before any starts; the others have their turn.
            lines = tuple(str(error).splitlines())
            if not is_ours:
                sys.stderr.writelines(f"kopt: job {number}: {line}\n" for line in lines)
            self.codes.append(BAD_CONFIG)
            return Refused(number=number, overrides=overrides, lines=lines)
        prepared = Prepared(
            config=ready.config,
            problems=ready.problems,
            seeds=ready.seeds,
            number=number,
            overrides=overrides,
            folder=folder,
        )
        if is_ours:
            return prepared
        self.has_begun = True
        code = run_prepared(prepared, plan=self._plan, as_json=self._as_json)
        self.codes.append(code)
        if code == INTERRUPTED:
            raise KeyboardInterrupt
        return code

    def together(self, jobs: Sequence[Prepared | Refused]) -> list[float | None]:
        """Run the jobs as one fleet; return each one's mean speed-up, for sweepers that learn.

        Raises:
            ConfigError: they cannot be one fleet.
            KeyboardInterrupt: the user stopped it.
        """
        ready = name_arms([job for job in jobs if isinstance(job, Prepared)])
        refused = [job for job in jobs if isinstance(job, Refused)]
        sys.stderr.writelines(
            f"kopt: {numbers}: {line}\n" for numbers, line in why_refused(refused)
        )
        values: dict[int, float] = {}
        if ready:
            check_alike([job.config for job in ready])
        if ready and self._plan:
            from kopt.cli.fleet_plan import print_fleet_plan

            print_fleet_plan(ready, refused, as_json=self._as_json)
        elif ready:
            from kopt.cli.fleet_session import begin_fleet

            self.has_begun = True
            code, values = begin_fleet(ready, refused, as_json=self._as_json)
            self.codes.append(code)
            if code == INTERRUPTED:
                raise _Interrupted
        return [values.get(job.number) for job in jobs]


class _Interrupted(KeyboardInterrupt):
    """The fleet has been told of and its jobs can be resumed; nothing more is to be said."""


def _new_folder(additions: Sequence[str]) -> Path:
    """Make the folder of a multirun, where the user's `out` and `name` say.

    Raises:
        ConfigError: there is a folder of that name, or one of the two is swept over.
        StoreError: it cannot be made.
    """
    from hydra.core.override_parser.overrides_parser import OverridesParser

    from kopt.clock import SystemClock
    from kopt.data.rundir import RunDir

    given: dict[str, str | None] = {"out": "runs", "name": None}
    for text in additions:
        override = OverridesParser.create().parse_override(text)
        if override.key_or_group not in OF_THE_WHOLE:
            continue
        if override.is_sweep_override():
            raise ConfigError(
                f"override {text.lstrip('+')!r}: the jobs of a multirun lie in one folder; give "
                f"one {override.key_or_group}"
            )
        value = override.value()
        given[override.key_or_group] = None if value is None else str(value)
    return RunDir.create(given["out"] or "runs", given["name"], clock=SystemClock()).path


def _remove_unless(folder: Path, has_begun: Callable[[], bool]) -> None:
    """Remove the folder that was made for a multirun of which no job can run."""
    if not has_begun():
        shutil.rmtree(folder, ignore_errors=True)


def _quoted(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
