"""`kopt resume` of a multirun's folder: all of its jobs again, as one fleet."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from kopt.cli.exit_codes import BAD_CONFIG
from kopt.cli.fleet_entry import FleetEntry
from kopt.cli.prepared import Refused
from kopt.cli.resume import kept_problems, resumed_config, unsearched_models
from kopt.config import RunConfig
from kopt.data.fleet_file import read_fleet_file
from kopt.data.rundir import RunDir
from kopt.errors import ConfigError, KoptError


def resume_fleet(folder: Path, overrides: Sequence[str], *, as_json: bool) -> int:
    """Go on with every job of a multirun; return the exit code.

    Args:
        folder: of the multirun.
        overrides: as for one run, the same for each job.
        as_json: print one JSON object instead of the table.

    Raises:
        ConfigError: an override may not be changed, or no job can go on.
        StoreError: `fleet.json` is damaged.
    """
    from kopt.cli.fleet_session import run_together

    jobs: list[FleetEntry] = []
    lost: list[Refused] = []
    for number, kept in enumerate(read_fleet_file(folder)):
        try:
            run = RunDir.open(folder / kept.folder)
            config = resumed_config(run, overrides)
            entry = FleetEntry(kept.folder, config, [], run, is_resumed=True)
            if not _has_no_problems(run, config):
                entry = entry._replace(problems=kept_problems(run, config))
            else:
                entry = entry._replace(models=unsearched_models(run))
            jobs.append(entry)
        except KoptError as error:
            lines = tuple(str(error).splitlines())
            sys.stderr.writelines(f"kopt: job {kept.folder}: {line}\n" for line in lines)
            lost.append(Refused(number=number, overrides=kept.overrides, lines=lines))
    if not jobs:
        raise ConfigError(f"{folder}: no job of it can go on; start it anew")
    code, _ = run_together(jobs, whole=folder, refused=lost, as_json=as_json)
    return max(code, BAD_CONFIG) if lost else code


def _has_no_problems(run: RunDir, config: RunConfig) -> bool:
    """Whether a job began without a problem: none could be cut, or its groups were not settled."""
    return config.mode == "compiled" and not run.problems_folder.is_dir()
