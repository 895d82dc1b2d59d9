"""The configuration of a verification: the run's own, with what a user may change."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.resources import files
from typing import Any

from kopt.config import RunConfig, load
from kopt.errors import ConfigError

CHANGEABLE = ("evaluate", "cluster", "device")
"""Sections of the run's configuration that a verification may change."""
GROUPS = ("evaluate", "cluster")
"""Those that are config groups too: `evaluate=tf32`."""


def verified_config(manifest: dict[str, Any], overrides: Sequence[str]) -> RunConfig:
    """Return the run's own configuration with the overrides applied, and no secret.

    Raises:
        ConfigError: an override cannot be read, or its section is none of CHANGEABLE.
    """
    plain: dict[str, Any] = dict(manifest["config"])
    for text in overrides:
        _apply(plain, text)
    plain["evaluate"] = {**plain.get("evaluate", {}), "secret": None}
    return load(plain)


def _apply(plain: dict[str, Any], text: str) -> None:
    """Apply one override, `evaluate=tf32` or `cluster.devices=2`, to a plain configuration."""
    from hydra.core.override_parser.overrides_parser import OverridesParser

    from kopt.cli.compose import hydra_errors

    with hydra_errors():
        override = OverridesParser.create().parse_override(text)
    path = override.key_or_group.split(".")
    if path[0] not in CHANGEABLE or override.is_delete() or override.is_sweep_override():
        raise ConfigError(
            f"override {text!r}: a verification may change {', '.join(CHANGEABLE)} only; "
            "all else is the run's"
        )
    value = override.value()
    if len(path) == 1 and path[0] in GROUPS:
        plain[path[0]] = {**plain.get(path[0], {}), **_group_choice(path[0], str(value))}
        return
    inner = plain
    for part in path[:-1]:
        inner[part] = dict(inner.get(part) or {})
        inner = inner[part]
    inner[path[-1]] = value


def _group_choice(group: str, name: str) -> dict[str, Any]:
    from omegaconf import OmegaConf

    from kopt.cli.compose import CONF_PACKAGE, YAML, config_groups

    choices = config_groups()[group]
    if name not in choices:
        raise ConfigError(f"conf {group}: no choice {name!r}; there are: {', '.join(choices)}")
    text = (files(CONF_PACKAGE) / group / f"{name}{YAML}").read_text(encoding="utf-8")
    return {str(key): value for key, value in dict(OmegaConf.create(text)).items()}
