"""From a user's overrides to a RunConfig: Hydra composes, kopt.config validates.

An override of a key that no YAML states (`search.c_uct=1`) is handed to Hydra as an addition:
kopt.config alone knows which keys there are, and says which one a typo may mean.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Any

from kopt.config import RunConfig, load
from kopt.errors import ConfigError

CONF_PACKAGE = "kopt.conf"
CONF_NAME = "config"
YAML = ".yaml"
QUOTED_BY_USER = re.compile(r"""[\[\]{}'"(),$]""")
"""What marks a value as Hydra syntax: it is not quoted for the user then."""
OVERRIDE = re.compile(
    r"(?P<sign>\+{0,2}|~)(?P<key>[^=+~]+?)(?P<package>@[^=]*)?=(?P<value>.*)", re.S
)


def config_groups() -> dict[str, list[str]]:
    """Return the config groups and their choices: `search` has `best_of_n` and `mcts`.

    A choice in a folder of its group is named with it: `experiment` has `kernelpro/tools`.
    """
    return {
        folder.name: sorted(_choices(folder))
        for folder in files(CONF_PACKAGE).iterdir()
        if folder.is_dir() and not folder.name.startswith("_")
    }


def _choices(folder: Traversable, prefix: str = "") -> Iterator[str]:
    for item in folder.iterdir():
        if item.is_dir():
            yield from _choices(item, f"{prefix}{item.name}/")
        elif item.name.endswith(YAML):
            yield prefix + item.name.removesuffix(YAML)


def swept_by_experiment(overrides: Sequence[str]) -> list[str]:
    """Return the keys that the chosen experiment sweeps over; empty where it is one run.

    Args:
        overrides: as the user typed them; they compose.
    """
    if not any(text.startswith("experiment=") for text in overrides):
        return []
    from hydra import compose, initialize_config_module

    additions = hydra_overrides(overrides, sweep=False)
    with hydra_errors(), initialize_config_module(CONF_PACKAGE, version_base="1.3"):
        composed = compose(CONF_NAME, overrides=additions, return_hydra_config=True)
    return [str(key).lstrip("+") for key in composed.hydra.sweeper.params or {}]


def compose_config(overrides: Sequence[str]) -> RunConfig:
    """Compose conf/config.yaml with the overrides, and validate the result.

    Raises:
        ConfigError: an override cannot be read, or the configuration is not valid; one line for
            each fault.
    """
    from hydra import compose, initialize_config_module

    additions = hydra_overrides(overrides, sweep=False)
    with hydra_errors(), initialize_config_module(CONF_PACKAGE, version_base="1.3"):
        plain = to_mapping(compose(CONF_NAME, overrides=additions))
    return load(plain)


def to_mapping(composed: Any) -> dict[str, Any]:  # noqa: ANN401 - a DictConfig; omegaconf is lazy
    """Return a composed configuration as a plain mapping, interpolations resolved."""
    from omegaconf import OmegaConf

    plain = OmegaConf.to_container(composed, resolve=True, throw_on_missing=True)
    assert isinstance(plain, dict), "Hydra composes a mapping"
    return {str(key): value for key, value in plain.items() if key != "hydra"}


def hydra_overrides(overrides: Sequence[str], *, sweep: bool) -> list[str]:
    """Return the overrides as Hydra takes them: keys that are no config group become additions.

    A value that Hydra's grammar cannot read but that is plain text (`~/x.py`, `a=b`) is quoted.

    Args:
        overrides: as the user typed them.
        sweep: whether `key=a,b` is welcome.

    Raises:
        ConfigError: one is not `key=value`, cannot be read, names a choice that a config group
            does not have, contradicts another, or is a sweep where none is welcome.
    """
    from hydra.core.override_parser.overrides_parser import OverridesParser
    from hydra.errors import HydraException

    groups, parser = config_groups(), OverridesParser.create()
    additions: list[str] = []
    given: dict[str, str] = {}
    for text in overrides:
        addition = _addition(text, groups)
        try:
            override = parser.parse_override(addition)
        except HydraException as error:
            if QUOTED_BY_USER.search(text):
                raise ConfigError(
                    f"override {text!r} cannot be read: {_one_line(str(error))}"
                ) from None
            key, _, value = addition.partition("=")
            addition = f"{key}='{value}'"
            override = parser.parse_override(addition)
        if override.is_sweep_override() and not sweep:
            raise ConfigError(f"override {text!r} is a sweep; add -m, or give a list: key=[a,b]")
        before = given.setdefault(override.get_key_element().lstrip("+"), text)
        if before.partition("=")[2] != text.partition("=")[2]:
            raise ConfigError(f"overrides {before!r} and {text!r} contradict each other; give one")
        additions.append(addition)
    return additions


def _addition(text: str, groups: dict[str, list[str]]) -> str:
    match = OVERRIDE.fullmatch(text)
    if match is None:
        if text.startswith("~"):
            return text
        raise ConfigError(f"override {text!r} is not key=value; `kopt --help` shows examples")
    key, value = match["key"].strip(), match["value"]
    if key in groups:
        _check_choices(key, value, groups[key])
        return text
    if match["sign"] or key.split(".")[0] == "hydra" or "/" in key:
        return text
    return f"++{text}"


def _check_choices(group: str, value: str, choices: list[str]) -> None:
    if value.startswith("["):
        raise ConfigError(f"conf {group}: takes one choice, got {value}; -m {group}=a,b sweeps")
    for name in re.split(r"[,\s\[\]]+", value):
        if name and name != "null" and "(" not in value and name not in choices:
            close = difflib.get_close_matches(name, choices, n=2)
            hint = f"did you mean {' or '.join(close)}? " if close else ""
            raise ConfigError(
                f"conf {group}: no choice {name!r}; {hint}there are: {', '.join(choices)}"
            )


@contextmanager
def hydra_errors() -> Iterator[None]:
    """Turn the errors of Hydra and OmegaConf into ConfigErrors of one line each."""
    from hydra.errors import HydraException
    from omegaconf.errors import OmegaConfBaseException

    try:
        yield
    except (HydraException, OmegaConfBaseException) as error:
        raise ConfigError(_one_line(str(error))) from None


def _one_line(text: str) -> str:
    """The parts of Hydra's text that say something, joined; `full_key` and pointers left out."""
    parts = []
    for line in text.splitlines():
        part = line.strip()
        if not part or part.startswith(("See https", "full_key:", "object_type=", "^")):
            continue
        parts.append(part)
    return " ".join(parts)
