"""The registry: names to factories, without silent overrides."""

from __future__ import annotations

from importlib.metadata import EntryPoint, EntryPoints

import pytest

from kopt import registry as registry_module
from kopt.errors import ConfigError
from kopt.registry import Registry


@pytest.fixture
def registry() -> Registry[list[int]]:
    table: Registry[list[int]] = Registry("part")

    @table.register("pair")
    def pair(left: int, *, right: int) -> list[int]:
        return [left, right]

    table.register("empty")(list)
    return table


def test_a_part_is_built_by_its_name(registry) -> None:
    assert registry.create("pair", 1, right=2) == [1, 2]
    assert registry.get("empty") is list
    assert registry.names() == list(registry) == ["empty", "pair"]


def test_an_unknown_name_lists_those_there_are(registry) -> None:
    with pytest.raises(ConfigError, match="unknown part 'pear'; there are: empty, pair"):
        registry.create("pear")


def test_a_name_is_filed_once(registry) -> None:
    with pytest.raises(ValueError, match="part 'pair' is registered twice"):
        registry.register("pair")(list)
    assert registry.create("pair", 1, right=2) == [1, 2]


def test_a_third_party_part_is_loaded_when_it_is_asked_for(monkeypatch) -> None:
    points = EntryPoints(
        [
            EntryPoint(name="theirs/deque", value="collections:deque", group="kopt.parts"),
            EntryPoint(name="theirs/broken", value="no_such_module:x", group="kopt.parts"),
        ]
    )
    monkeypatch.setattr(registry_module, "entry_points", points.select)
    table: Registry[object] = Registry("part", entry_point_group="kopt.parts")
    assert table.names() == ["theirs/broken", "theirs/deque"]
    assert list(table.create("theirs/deque", [1, 2])) == [1, 2]  # the broken one is not touched
    with pytest.raises(ModuleNotFoundError):
        table.get("theirs/broken")
