"""`fleet.json`: what the folder of a multirun holds, so that its jobs can go on together.

<folder>/
  fleet.json      the jobs, in order: folder, arm, the overrides that tell it from the others
  multirun.yaml   Hydra's own record
  0/, 1/, …       a run folder each (kopt.data.rundir)
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from kopt.data.atomic import store_error, write_bytes
from kopt.errors import ConfigError, StoreError

FLEET_FILE = "fleet.json"
SCHEMA = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetJob:
    """One job of a multirun."""

    folder: str
    """Relative to the multirun's, unless the user put it elsewhere."""
    arm: str
    overrides: tuple[str, ...]


def write_fleet_file(folder: Path, jobs: Sequence[FleetJob]) -> None:
    """Write or replace the file, whole.

    Raises:
        StoreError: it cannot be written.
    """
    record = {"schema": SCHEMA, "jobs": [asdict(job) for job in jobs]}
    write_bytes(folder / FLEET_FILE, (json.dumps(record, indent=2) + "\n").encode())


def read_fleet_file(folder: Path) -> list[FleetJob]:
    """Return the jobs of a multirun, in order.

    Raises:
        StoreError: the file is missing or damaged.
    """
    path = folder / FLEET_FILE
    try:
        record = json.loads(path.read_bytes())
        return [
            FleetJob(
                folder=str(job["folder"]),
                arm=str(job["arm"]),
                overrides=tuple(map(str, job["overrides"])),
            )
            for job in record["jobs"]
        ]
    except OSError as error:
        raise store_error(path, error) from error
    except (ValueError, KeyError, TypeError) as error:
        raise StoreError(str(path), f"damaged: {error!r}") from error


def is_fleet(folder: Path | str) -> bool:
    """Whether a folder is a multirun's."""
    return (Path(folder) / FLEET_FILE).is_file()


def run_of_arm(folder: Path | str, arm: str) -> Path:
    """Return the run folder of the one job of an arm; a folder that is no multirun's is its own.

    Args:
        folder: of a run, or of a multirun.
        arm: that is looked for.

    Raises:
        ConfigError: no job of the multirun has that arm, or several have.
        StoreError: `fleet.json` is damaged.
    """
    if not is_fleet(folder):
        return Path(folder)
    jobs = read_fleet_file(Path(folder))
    found = [job.folder for job in jobs if job.arm == arm]
    if len(found) == 1:
        return Path(folder) / found[0]
    if not found:
        arms = ", ".join(dict.fromkeys(job.arm for job in jobs))
        raise ConfigError(f"{folder}: no job of arm {arm}; there are: {arms}")
    raise ConfigError(
        f"{folder}: {len(found)} jobs of arm {arm}; name the folder of one: {', '.join(found)}"
    )
