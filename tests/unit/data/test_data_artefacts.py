"""Artefacts: kept once, found by their bytes' sha256, and damage is noticed."""

from __future__ import annotations

from pathlib import Path

import pytest

from kopt.data.artefacts import Artefacts
from kopt.errors import StoreError

# sha256 of the three bytes "abc" (FIPS 180-2, appendix B.1).
ABC = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"


def test_a_text_lies_under_its_sha256_in_plain(tmp_path: Path) -> None:
    assert Artefacts(tmp_path).put("abc") == ABC
    assert (tmp_path / "ba" / ABC).read_bytes() == b"abc"


def test_a_text_that_is_there_is_left_alone(tmp_path: Path) -> None:
    artefacts = Artefacts(tmp_path)
    artefacts.put("abc")
    inode = artefacts.path(ABC).stat().st_ino
    artefacts.put("abc")
    assert artefacts.path(ABC).stat().st_ino == inode
    assert [path.name for path in (tmp_path / "ba").iterdir()] == [ABC]


def test_damage_is_noticed(tmp_path: Path) -> None:
    artefacts = Artefacts(tmp_path)
    artefacts.put("abc")
    artefacts.path(ABC).write_bytes(b"abd")
    with pytest.raises(StoreError, match="damaged"):
        artefacts.get(ABC)


@pytest.mark.parametrize("name", ["", "../../etc/passwd", "0" * 63, ABC.upper(), ABC + "\n"])
def test_a_name_is_a_sha256(tmp_path: Path, name: str) -> None:
    with pytest.raises(StoreError, match="expected the name of an artefact"):
        Artefacts(tmp_path).get(name)


def test_a_folder_that_cannot_be_made_is_one_clear_line(tmp_path: Path) -> None:
    (tmp_path / "artefacts").write_text("a file")
    with pytest.raises(StoreError, match=r"File exists|Not a directory"):
        Artefacts(tmp_path / "artefacts").put("abc")
