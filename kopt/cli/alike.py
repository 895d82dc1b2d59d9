"""Which jobs can be one fleet, and which of them judge alike. Loads neither ray nor torch."""

from __future__ import annotations

from collections.abc import Sequence

from kopt.config import RunConfig
from kopt.errors import ConfigError


def check_alike(configs: Sequence[RunConfig]) -> None:
    """Find that jobs can be one fleet: on one cluster and kind of device, shared in one way.

    Raises:
        ConfigError: they cannot; the text names what differs.
    """
    first = configs[0]
    for config in configs[1:]:
        for key, one, other in (
            ("device", first.device, config.device),
            ("fleet.share", first.fleet.share, config.fleet.share),
            *(
                (f"cluster.{name}", getattr(first.cluster, name), getattr(config.cluster, name))
                for name in type(first.cluster).model_fields
            ),
        ):
            if one != other:
                raise ConfigError(
                    f"{key}={one} and {key}={other} in one multirun: its jobs run as one fleet on "
                    "one cluster; give one value, or start a command for each"
                )


def by_protocol(configs: Sequence[RunConfig]) -> list[list[int]]:
    """Return the numbers of the jobs that judge alike, group by group, in order of appearance."""
    groups: dict[str, list[int]] = {}
    for number, config in enumerate(configs):
        groups.setdefault(config.evaluate.model_dump_json(), []).append(number)
    return list(groups.values())
