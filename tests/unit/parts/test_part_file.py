"""A part of a user's file: found by its path, run once, and refused in a line."""

from __future__ import annotations

from pathlib import Path

import pytest

from kopt.errors import ConfigError
from kopt.part_file import is_part_of_file, load_part, part_label, with_whole_path
from kopt.registry import Registry

FILE = "class Mine:\n    pass\n\n\nNO = 3\n"


@pytest.fixture
def mine(tmp_path: Path) -> Path:
    path = tmp_path / "mine.py"
    path.write_text(FILE)
    return path


def test_a_part_is_named_by_file_and_name() -> None:
    assert is_part_of_file("a/mine.py:Mine")
    assert not is_part_of_file("acme/mine")
    assert not is_part_of_file("mine.py")
    assert part_label("/a/mine.py:Mine") == "Mine"
    assert part_label("mcts") == "mcts"


def test_its_path_is_made_whole(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    assert with_whole_path("mine.py:Mine") == f"{tmp_path}/mine.py:Mine"
    assert with_whole_path("acme/mine") == "acme/mine"


def test_a_file_runs_once_and_two_of_one_name_are_two(mine: Path, tmp_path: Path) -> None:
    first = load_part(f"{mine}:Mine", what="search")
    assert load_part(f"{mine}:Mine", what="search") is first
    other = tmp_path / "other" / "mine.py"
    other.parent.mkdir()
    other.write_text(FILE)
    assert load_part(f"{other}:Mine", what="search") is not first


def test_a_registry_takes_it_like_any_part(mine: Path) -> None:
    table: Registry[object] = Registry("search")
    assert type(table.create(f"{mine}:Mine")).__name__ == "Mine"
    with pytest.raises(ConfigError, match="expected a class or a function, found 3"):
        table.get(f"{mine}:NO")


@pytest.mark.parametrize(
    ("text", "name", "words"),
    [
        (None, "X", "expected a Python file, found none"),
        ("class Y: ...", "X", "defines no X; it has Y"),
        ("1 / 0", "X", "ZeroDivisionError: division by zero"),
        ("def", "X", "SyntaxError"),
    ],
)
def test_what_cannot_be_used_is_named(
    text: str | None, name: str, words: str, tmp_path: Path
) -> None:
    path = tmp_path / "broken.py"
    if text is not None:
        path.write_text(text)
    with pytest.raises(ConfigError) as caught:
        load_part(f"{path}:{name}", what="search")
    assert words in str(caught.value)
    assert str(caught.value).startswith("search file ")
