"""Hydra's launcher `kopt`: the jobs of a multirun, all of them run together.

Hydra imports this module whenever it starts, so that it imports nothing heavy. A task function
with an attribute `together` is run in two steps: called once for each job it prepares, and
`together` is then called once with what it returned, in order, and gives each job's return value.
Any other task function is run job by job; one that raises ends no other.
"""

# No `from __future__ import annotations`: Hydra runs a plug-in before it is in sys.modules, and
# the dataclass below would not find its own module.
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hydra.core.config_store import ConfigStore
from hydra.core.utils import JobReturn, JobStatus, configure_log, run_job, setup_globals
from hydra.plugins.launcher import Launcher
from hydra.types import HydraContext, TaskFunction
from omegaconf import DictConfig, open_dict


@dataclass
class KoptLauncherConf:
    """What `hydra/launcher=kopt` stands for."""

    _target_: str = "hydra_plugins.kopt_launcher.KoptLauncher"


ConfigStore.instance().store(
    group="hydra/launcher", name="kopt", node=KoptLauncherConf, provider="kopt"
)


class KoptLauncher(Launcher):
    """Runs the jobs of a multirun together, in this process."""

    def __init__(self) -> None:
        """Wait for `setup`."""
        self._config: DictConfig | None = None
        self._task_function: TaskFunction | None = None
        self._hydra_context: HydraContext | None = None

    def setup(
        self, *, hydra_context: HydraContext, task_function: TaskFunction, config: DictConfig
    ) -> None:
        """Take what Hydra hands over (its Launcher port)."""
        self._hydra_context = hydra_context
        self._task_function = task_function
        self._config = config

    def launch(
        self, job_overrides: Sequence[Sequence[str]], initial_job_idx: int
    ) -> Sequence[JobReturn]:
        """Run the jobs of one batch (Hydra's Launcher port).

        Args:
            job_overrides: the overrides of each job.
            initial_job_idx: number of the first of them.

        Raises:
            Whatever `together` raises, which no job is to blame for.
        """
        assert self._config is not None
        assert self._task_function is not None
        setup_globals()
        configure_log(self._config.hydra.hydra_logging, self._config.hydra.verbose)
        Path(str(self._config.hydra.sweep.dir)).mkdir(parents=True, exist_ok=True)
        returns = [
            self._run(overrides, number)
            for number, overrides in enumerate(job_overrides, start=initial_job_idx)
        ]
        together: Any = getattr(self._task_function, "together", None)
        if together is not None:
            done = [each for each in returns if each.status is JobStatus.COMPLETED]
            values = together([each.return_value for each in done])
            for each, value in zip(done, values, strict=True):
                each.return_value = value
        return returns

    def _run(self, overrides: Sequence[str], number: int) -> JobReturn:
        assert self._config is not None
        assert self._task_function is not None
        assert self._hydra_context is not None
        config = self._hydra_context.config_loader.load_sweep_config(self._config, list(overrides))
        with open_dict(config):
            config.hydra.job.id = number
            config.hydra.job.num = number
        done = run_job(
            hydra_context=self._hydra_context,
            task_function=self._task_function,
            config=config,
            job_dir_key="hydra.sweep.dir",
            job_subdir_key="hydra.sweep.subdir",
        )
        configure_log(self._config.hydra.hydra_logging, self._config.hydra.verbose)
        return done
