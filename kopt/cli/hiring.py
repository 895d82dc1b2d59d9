"""Programmers for questions that come before a run's searches: a cluster for them, and no more.

Loads Ray. The cluster is closed again before anything is compiled anew, so that a served model is
not beside what is timed.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from kopt.actors.cluster import open_cluster
from kopt.actors.programmers.registry import Workplace, create_programmer
from kopt.actors.quiet import Quiet
from kopt.cli.compiled import CompiledJob
from kopt.cli.fleet_site import SHARED_KINDS
from kopt.ports import Programmer


@contextmanager
def hired(jobs: Sequence[CompiledJob]) -> Iterator[Callable[[CompiledJob], Programmer]]:
    """Open the cluster of jobs, and give each its programmer; who asked closes them.

    Args:
        jobs: at least one, of one fleet.

    Raises:
        ConfigError: the cluster or its device is not there. The function given raises it where a
            programmer cannot be set up as its section says.
    """
    config = jobs[0].config
    sections = {job.config.programmer.model_dump_json(): job.config.programmer for job in jobs}
    logs = jobs[0].run.path / "logs"
    logs.mkdir(exist_ok=True)
    made: dict[str, Programmer] = {}
    with open_cluster(
        config.cluster,
        device=config.device,
        log_dir=logs,
        reserved_gpus=lambda device: sum(each.reserved_gpus(device) for each in sections.values()),
    ) as cluster:
        quiet = Quiet(cluster.device)

        def programmer_of(job: CompiledJob) -> Programmer:
            section = job.config.programmer
            key = section.model_dump_json()
            if section.kind in SHARED_KINDS and key in made:
                return made[key]
            made[key] = create_programmer(
                section,
                Workplace(
                    cluster=cluster,
                    cluster_config=config.cluster,
                    evaluate=job.config.evaluate,
                    quiet=quiet,
                    run_dir=job.run.path,
                    arm=job.config.arm_name,
                    warn=_say,
                ),
            )
            return made[key]

        yield programmer_of


def _say(line: str) -> None:
    sys.stderr.write(f"kopt: {line}\n")
