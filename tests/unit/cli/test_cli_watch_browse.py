"""`kopt watch` led by keys: searches, a tree that opens and closes, a node; in 80 x 24."""

from __future__ import annotations

import fcntl
import io
import os
import pty
import re
import select
import struct
import subprocess
import sys
import termios
import tty
from pathlib import Path

import pytest
from rich.console import Console

from kopt.cli import main
from kopt.cli.watch_browse import Browse
from kopt.cli.watch_keys import Keys, named
from kopt.cli.watched_run import WatchedRun
from kopt.errors import ConfigError

NAME = "set/one/arm/0"
HEIGHT = 24


class Screen:
    """A run that is walked through on a terminal of 80 x 24."""

    def __init__(self, folder: Path, *, search: str | None = None, node: str | None = None) -> None:
        self.run = WatchedRun(str(folder), search=search)
        self.run.look()
        self.view = Browse(self.run, depth=1, node=node)

    def press(self, *keys: str) -> list[str]:
        """The lines that are shown after the keys."""
        for key in keys:
            assert self.view.press(key)
        console = Console(width=80, height=HEIGHT, record=True, file=io.StringIO())
        console.print(self.view.draw(console), end="")
        lines = console.export_text().splitlines()
        assert len(lines) <= HEIGHT
        assert max(map(len, lines)) <= 80
        return lines


def numbers(lines: list[str]) -> list[int]:
    """Of the nodes that are shown."""
    found = (re.match(r" *(\d+) (?:correct|incorrect|c|t)", line) for line in lines[2:-1])
    return [int(match[1]) for match in found if match]


def test_keys_lead_from_the_run_to_a_node_and_back(folder: Path) -> None:
    screen = Screen(folder)
    assert screen.press()[0].startswith("first: ended")
    searches = screen.press("enter")
    assert searches[1].startswith(NAME)
    tree = screen.press("enter")
    assert tree[0] == NAME
    best = re.match(r"16 nodes, 0 under way; best is node (\d+)", tree[1])
    assert best is not None
    node = screen.press("enter")
    assert node[0].startswith(f"node {best[1]} of {NAME}")
    assert screen.press("back") == tree
    assert screen.press("back")[1].startswith(NAME)
    assert screen.press("back")[0].startswith("first: ended")
    assert not screen.view.press("q")


def test_a_node_opens_and_closes_and_leads_to_its_parent(folder: Path) -> None:
    screen = Screen(folder, search=NAME)
    tree = screen.run.tree
    assert tree is not None
    parent = next(number for number in tree.first if tree.nodes[number].children)
    while screen.view._node != tree.first[0]:  # from the best one up to the first line
        screen.press("up")
    while screen.view._node != parent:
        screen.press("down")
    screen.press("left")  # it is open where the way to the best leads through it
    shut = numbers(screen.press("left") if parent in screen.view._opened else screen.press())
    children = tree.nodes[parent].children
    assert not set(children) & set(shut)
    assert set(children) <= set(numbers(screen.press("right")))
    screen.press("down")
    assert screen.view._node == children[0]
    screen.press("left")
    assert screen.view._node == parent
    best = tree.best()
    screen.press("b")
    assert best is not None
    assert screen.view._node == best.node


def test_a_long_node_scrolls_to_its_end_and_no_further(folder: Path) -> None:
    screen = Screen(folder, search=NAME, node="1")
    screen.view._room = 3
    first = screen.press()
    last = screen.press(*["page down"] * 50)
    assert screen.press("down") == last
    assert "+" not in last[-1]
    assert screen.press(*["page up"] * 50) == first


def test_keys_that_mean_nothing_change_nothing(folder: Path) -> None:
    screen = Screen(folder)
    for deeper in ([], ["enter"], ["enter"], ["enter"]):
        before = screen.press(*deeper)
        assert screen.press("x", "é", "home") == before


def test_a_node_that_is_not_there_is_named(folder: Path) -> None:
    with pytest.raises(ConfigError, match="has nodes 1 to 16"):
        Screen(folder, search=NAME, node="99")


def test_what_is_new_is_shown_where_the_user_is(tmp_path: Path) -> None:
    (tmp_path / "journal").mkdir()
    screen = Screen(tmp_path)
    assert screen.press("enter")[0].startswith("search")
    assert screen.press("down", "enter")[0].startswith("search")  # none yet: nothing to enter


def test_to_browse_needs_a_terminal(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["watch", str(folder), "--browse"]) == 2
    assert "expected a terminal" in capfd.readouterr().err


@pytest.mark.parametrize(
    ("sent", "keys"),
    [
        ("\x1b[A\x1b[B", ["up", "down"]),
        ("\x1bOC", ["right"]),
        ("jq", ["j", "q"]),
        ("\r", ["enter"]),
        ("\x1b", ["back"]),
        ("\x1b[5~\x1b[15~\x1b[1;5C", ["page up"]),  # F5 and control-right have no name here
        ("\x01", []),
    ],
)
def test_what_a_terminal_sends_is_named(sent: str, keys: list[str]) -> None:
    assert named(sent) == keys


def test_keys_come_without_enter_and_the_terminal_is_as_it_was_after() -> None:
    here, there = pty.openpty()
    try:
        before = termios.tcgetattr(there)
        with Keys(there) as keys:
            assert keys.wait(0.0) == []
            os.write(here, b"\x1b[B")
            assert keys.wait(10.0) == ["down"]
        assert termios.tcgetattr(there) == before
    finally:
        os.close(here)
        os.close(there)


def test_an_ended_run_is_walked_through_at_a_terminal_of_its_own(folder: Path) -> None:
    here, there = pty.openpty()
    tty.setraw(there)
    fcntl.ioctl(there, termios.TIOCSWINSZ, struct.pack("HHHH", HEIGHT, 80, 0, 0))
    command = [sys.executable, "-m", "kopt", "watch", str(folder), "--browse"]
    environment = {**os.environ, "TERM": "xterm"}
    with subprocess.Popen(
        command, stdin=there, stdout=there, stderr=there, env=environment
    ) as watcher:
        try:
            assert "enter its searches" in read_until(here, "leave")
            os.write(here, b"\r")
            assert "enter its tree" in read_until(here, "leave")
            os.write(here, b"\r")
            assert "(best)" in read_until(here, "leave")
            os.write(here, b"q")
            assert "first: ended" in read_until(here, "failure")
            assert watcher.wait(timeout=60) == 0
        finally:
            watcher.kill()
    os.close(here)
    os.close(there)


def read_until(terminal: int, word: str) -> str:
    """What a terminal was sent up to a word."""
    shown = ""
    while word not in shown:
        ready, _, _ = select.select([terminal], [], [], 120.0)
        assert ready, shown
        shown += os.read(terminal, 1 << 16).decode("utf-8", errors="replace")
    return shown
