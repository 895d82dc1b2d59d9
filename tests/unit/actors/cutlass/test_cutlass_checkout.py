"""Reading a tree: confined to it, bounded, and unharmed by what a folder may hold."""

from __future__ import annotations

import os

import pytest

from kopt.actors.cutlass.checkout import (
    MAX_ENTRIES,
    MAX_FILE_BYTES,
    MAX_READ_CHARACTERS,
    MAX_READ_LINES,
    Refused,
)
from kopt.actors.cutlass.library import MAX_RESULT, Library
from kopt.cutlass.calls import Search
from kopt.testing.toy_cutlass import TEXTS

ARCH = "include/cute/arch/mma_sm90_toy.hpp"


def refusal(call, *arguments, **named) -> str:
    with pytest.raises(Refused) as raised:
        call(*arguments, **named)
    assert "\n" not in str(raised.value)
    return str(raised.value)


def test_lines_come_with_their_numbers(toy) -> None:
    assert toy.read(ARCH, start=3, lines=2) == (
        f"{ARCH}, lines 3 to 4 of 32; go on from line 5:\n"
        "     3  template <int N>\n     4  CUTE_HOST_DEVICE"
    )


def test_a_path_may_be_as_in_an_include(toy) -> None:
    assert toy.read("cute/tensor.hpp", start=1, lines=9).startswith("include/cute/tensor.hpp,")


def test_a_folder_is_listed_with_sizes(toy) -> None:
    assert toy.list_folder("include/cute").split("\n") == [
        "include/cute/ holds:",
        "arch/",
        "atom/",
        f"layout.hpp  {len(TEXTS['include/cute/layout.hpp'])} bytes",
        "tensor.hpp  40 bytes",
    ]
    assert "examples/" in toy.list_folder(".")


@pytest.mark.parametrize(
    "path",
    [
        "../secret",
        "include/../../secret",
        "/etc/passwd",
        "~/secret",
        "include/cute/link.hpp",
        "include/linked/secret",
        "include/circle",
        "include/cute\0",
        "a\nb",
        "x" * 5_000,
        "",
        "nowhere.hpp",
    ],
)
def test_nothing_outside_is_read_or_listed(toy, path: str) -> None:
    outside = toy.root.parent
    (outside / "secret").write_text("hunter2")
    (toy.root / "include/cute/link.hpp").symlink_to(outside / "secret")
    (toy.root / "include/linked").symlink_to(outside)
    (toy.root / "include/circle").symlink_to(toy.root / "include/circle")
    for call, named in ((toy.read, {"start": 1, "lines": 1}), (toy.list_folder, {})):
        assert "hunter2" not in refusal(call, path or "nothing", **named)
    assert "link" not in toy.list_folder("include/cute")
    assert not any("link" in name for name in toy.texts())


def test_a_link_within_the_tree_is_followed(toy) -> None:
    (toy.root / "include/cute/same.hpp").symlink_to(toy.root / ARCH)
    assert toy.read("cute/same.hpp", start=1, lines=1).startswith(ARCH)


def test_what_is_no_text_file_is_refused(toy) -> None:
    (toy.root / "include/binary.hpp").write_bytes(b"a\0b")
    os.mkfifo(toy.root / "include/pipe.hpp")
    with (toy.root / "include/huge.hpp").open("wb") as file:
        file.truncate(MAX_FILE_BYTES + 1)
    assert "is binary" in refusal(toy.read, "binary.hpp", start=1, lines=1)
    assert "no regular file" in refusal(toy.read, "pipe.hpp", start=1, lines=1)
    assert "too large" in refusal(toy.read, "huge.hpp", start=1, lines=1)
    assert "is a folder" in refusal(toy.read, "cute", start=1, lines=1)
    assert "is a file" in refusal(toy.list_folder, "cute/tensor.hpp")
    assert set(toy.texts()) == set(TEXTS)


def test_a_line_that_is_not_there_is_refused_with_those_that_are(toy) -> None:
    said = refusal(toy.read, ARCH, start=1_000, lines=1)
    assert said == f"{ARCH} has lines 1 to 32, not 1000."
    refusal(toy.read, ARCH, start=0, lines=1)


def test_reads_and_listings_are_bounded(toy) -> None:
    (toy.root / "include/long.hpp").write_text("x" * 100_000 + "\n" + "line\n" * 5_000)
    for number in range(MAX_ENTRIES + 20):
        (toy.root / f"include/cute/{number}.hpp").touch()
    text = toy.read("long.hpp", start=1, lines=10**9)
    assert "lines 1 to 400 of 5001" in text
    assert text.count("\n") == MAX_READ_LINES
    assert len(text) < MAX_READ_CHARACTERS + 500
    assert "… 99600 more" in text
    assert toy.list_folder("include/cute").endswith("… 24 more")


def test_bytes_that_are_no_utf8_are_shown_as_such(toy) -> None:
    (toy.root / "include/latin.hpp").write_bytes(b"caf\xe9")
    assert "caf�" in toy.read("latin.hpp", start=1, lines=1)


def test_a_search_shows_the_lines_round_each_place(toy) -> None:
    text = Library(toy).answer(Search(query="warp_wait", path="include/cute/arch"))
    assert text.startswith(
        f"{ARCH}:6\n     4  CUTE_HOST_DEVICE\n     5  void\n     6  warp_wait()\n"
    )


def test_a_search_that_finds_nothing_says_so(toy) -> None:
    said = Library(toy).answer(Search(query="quaternion", path="include"))
    assert said == f"Nothing is found in include ({len(TEXTS)} files): try fewer or other words."


def test_a_search_s_result_is_bounded(toy) -> None:
    for number in range(20):
        (toy.root / f"include/cute/wide{number}.hpp").write_text(("word " * 300 + "\n") * 20)
    text = Library(toy).answer(Search(query="word", path=None))
    assert len(text) < MAX_RESULT + 100
    assert "more places" in text


def test_a_tree_that_is_gone_is_one_line(toy) -> None:
    library = Library(toy)
    for path in sorted(toy.root.rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()
    assert refusal(library.answer, Search(query="a", path=None)) == "The tree cannot be read."
