"""What a configuration asks of this machine, found out before anything starts."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from kopt.actors.programmers.config import RecordedConfig
from kopt.cli.probe import command_output
from kopt.config import RunConfig
from kopt.errors import ConfigError


def count_gpus() -> int:
    """Return the NVIDIA GPUs of this machine; 0 where there is no driver."""
    listed = command_output(["nvidia-smi", "-L"])
    if listed is not None:
        return sum(line.startswith("GPU ") for line in listed.splitlines())
    return len(list(Path("/dev").glob("nvidia[0-9]*")))


def check_hardware(config: RunConfig, *, count_gpus_here: Callable[[], int] = count_gpus) -> None:
    """Find that an arm can run here; a cluster that is joined says so itself.

    Args:
        config: of the run.
        count_gpus_here: counts this machine's GPUs; called only where it matters.

    Raises:
        ConfigError: it cannot; the text says what is missing.
    """
    if config.cluster.address != "local":
        return
    if config.device == "cuda" and not count_gpus_here():
        raise ConfigError(
            "device=cuda: expected a GPU, found none here; take device=cpu, join a cluster "
            "(cluster.address), or see kopt doctor"
        )
    played = isinstance(config.programmer, RecordedConfig) and config.programmer.verdicts
    if config.energy != "off" and not played and (config.device == "cpu" or not count_gpus_here()):
        raise ConfigError(
            f"energy={config.energy}: expected a GPU, whose counters and power are read, found "
            "the CPU as the device; take energy=off"
        )
