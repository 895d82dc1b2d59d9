"""Interfaces of packages: read from what is installed, once for each version, and kept."""

from __future__ import annotations

import sys
from dataclasses import replace
from importlib import metadata
from pathlib import Path

import pytest

from kopt.actors.apis import installed
from kopt.actors.apis.installed import with_apis
from kopt.actors.apis.pages import PAGES, Page, installed_version
from kopt.actors.apis.reader import main, read, signature_of
from kopt.ports import Target

GPU = Target(device="cuda", name="a GPU", arch="sm_90", languages=("triton", "cuda", "torch"))
PACKAGE = """
import enum


class Kind(enum.Enum):
    PLAIN = "plain"


class constexpr:
    def __repr__(self):
        return "constexpr[7]"


def load(pointer, mask: int = None, *, kind=Kind.PLAIN, depth=constexpr(), _semantic=None) -> int:
    "Has types, and a parameter of the compiler's."


class Wrapped:
    def __init__(self, fn):
        self.fn = fn

    def __call__(self, *args):
        pass


total = Wrapped(lambda x, axis=0: x)
number = 7


def _private(x):
    pass


class Block:
    pass
"""


@pytest.fixture
def page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Page:
    (tmp_path / "kopt_test_language.py").write_text(PACKAGE, encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "kopt_test_language", raising=False)
    return Page(
        package="kopt-test-language",
        modules=(("kopt_test_language", "kt"),),
        first=("kt.load", "kt.of_another_version", "kt.number", "kt.total"),
    )


def test_signatures_are_the_packages_own_without_types_and_hidden_parameters(page: Page) -> None:
    found = read(page)
    assert found["signatures"] == [
        "kt.load(pointer, mask=None, *, kind='plain', depth=7)",
        "kt.total(x, axis=0)",
    ]
    # Functions before classes; nothing private, nothing that is no function or class.
    assert found["names"] == ["kt.constexpr", "kt.Block", "kt.Kind", "kt.Wrapped"]


def test_what_has_no_signature_has_none() -> None:
    assert signature_of(7) is None
    assert signature_of(dict) is None
    assert signature_of(lambda a, b=3: a) == "(a, b=3)"


def test_a_language_without_a_package_is_refused_in_one_line(capsys) -> None:
    assert main(["cuda"]) == 2
    assert main([]) == 2
    err = capsys.readouterr().err.splitlines()
    assert err[0] == "expected one of triton, helion, cute, found 'cuda'"


def test_absent_packages_have_no_interface(tmp_path: Path, monkeypatch) -> None:
    def absent(name: str) -> str:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "version", absent)
    said: list[str] = []
    assert all(installed_version(language) is None for language in PAGES)
    assert with_apis(GPU, cache_dir=tmp_path, warn=said.append) == GPU
    assert said == []


def test_a_package_that_cannot_be_imported_is_said_and_left_out(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(metadata, "version", lambda name: "1.0")
    monkeypatch.setattr(sys, "executable", "/bin/false")
    said: list[str] = []
    assert with_apis(GPU, cache_dir=tmp_path, warn=said.append) == GPU
    assert said == ["prompts have no signatures of triton, it cannot be read: exit code 1"]


def test_a_package_that_hangs_is_left_out(tmp_path, monkeypatch) -> None:
    hanging = tmp_path / "hanging"
    hanging.write_text("#!/bin/sh\nexec sleep 60\n", encoding="utf-8")
    hanging.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(hanging))
    monkeypatch.setattr(metadata, "version", lambda name: "1.0")
    monkeypatch.setattr(installed, "READ_S", 0.1)
    said: list[str] = []
    assert with_apis(GPU, cache_dir=tmp_path / "cache", warn=said.append) == GPU
    assert said == [
        "prompts have no signatures of triton, it cannot be read: not imported within 0.1 s"
    ]


def test_the_installed_triton_is_read_once_and_kept(tmp_path, monkeypatch) -> None:
    version = pytest.importorskip("triton").__version__
    said: list[str] = []
    target = with_apis(GPU, cache_dir=tmp_path, warn=said.append)
    (api,) = target.apis
    assert (api.language, api.package, api.version) == ("triton", "triton", version)
    (load,) = (each for each in api.signatures if each.startswith("tl.load("))
    assert load.startswith("tl.load(pointer, mask=None, other=None")
    assert not any("_semantic" in each or "_builder" in each for each in api.signatures)
    assert len(api.signatures) > 20
    assert "tl.abs" in api.names
    monkeypatch.setattr(sys, "executable", "/bin/false")  # whoever reads again fails
    assert with_apis(GPU, cache_dir=tmp_path, warn=said.append) == target
    assert said == []


def test_a_cache_that_cannot_be_written_costs_time_and_no_more(tmp_path) -> None:
    pytest.importorskip("triton")
    place = tmp_path / "file"
    place.write_text("", encoding="utf-8")
    assert with_apis(GPU, cache_dir=place / "cache", warn=pytest.fail).apis


def test_languages_that_are_not_offered_are_not_read(tmp_path) -> None:
    cpu = replace(GPU, device="cpu", languages=("cpp", "torch"))
    assert with_apis(cpu, cache_dir=tmp_path, warn=pytest.fail) == cpu
    assert not list(tmp_path.rglob("value"))


@pytest.mark.parametrize("language", ["helion", "cute"])
def test_the_pages_of_installed_packages_name_what_there_is(language) -> None:
    if installed_version(language) is None:
        pytest.skip(f"{PAGES[language].package} is not installed")
    found = read(PAGES[language])
    assert len(found["signatures"]) > len(PAGES[language].first) // 2
