import logging
from pathlib import Path

import pytest

from kopt.data.problems import resolve, select
from kopt.data.problems.config import ProblemsConfig
from kopt.errors import ConfigError

NONE = ProblemsConfig()


def error_of(*patterns: str, config: ProblemsConfig = NONE) -> str:
    with pytest.raises(ConfigError) as caught:
        resolve(patterns, config)
    text = str(caught.value)
    assert "\n" not in text
    return text


@pytest.fixture
def folder(tmp_path: Path, problem_source) -> Path:
    for name, factor in (("10_a", 1), ("2_b", 2), ("norms/rms", 3)):
        path = tmp_path / f"zoo/{name}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(problem_source(factor))
    return tmp_path / "zoo"


def names_of(*patterns: str, config: ProblemsConfig = NONE) -> list[str]:
    return [problem.name for problem in resolve(patterns, config)]


@pytest.mark.parametrize("end", ["", "/"])
def test_a_folder_is_every_problem_file_in_it_at_any_depth(folder: Path, end: str):
    assert names_of(f"{folder}{end}") == ["zoo/2_b", "zoo/10_a", "zoo/norms/rms"]


def test_a_folder_may_be_the_one_that_we_are_in(folder: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(folder)
    assert names_of(".") == ["zoo/2_b", "zoo/10_a", "zoo/norms/rms"]


def test_files_of_one_stem_in_two_folders_are_two_problems(folder: Path, problem_source):
    (folder / "rms.py").write_text(problem_source(9))
    assert {"zoo/rms", "zoo/norms/rms"} <= set(names_of(str(folder)))


def test_python_files_that_are_no_problem_are_left_out_by_name(
    folder: Path, caplog: pytest.LogCaptureFixture
):
    (folder / "helper.py").write_text("x = 1\n")
    (folder / "broken.py").write_text("def f(:\n")
    (folder / "binary.py").write_bytes(b"\xff")
    (folder / "notes.txt").write_text("no Python")
    selection = select([str(folder)], NONE)
    assert [problem.name for problem in selection.problems] == names_of(str(folder))
    binary, broken, helper = selection.skipped
    assert binary == f"{folder / 'binary.py'} is not UTF-8 text (byte 0)"
    assert broken.startswith(f"{folder / 'broken.py'} is no problem: line 1: ")
    assert helper == f"{folder / 'helper.py'} is no problem: it defines no class Model"
    assert [line.levelno for line in caplog.records] == [logging.WARNING] * 3
    assert caplog.messages[2] == f"skipped: {helper}"


@pytest.mark.parametrize(
    "name", ["__init__.py", "__pycache__/x.py", ".hidden.py", ".git/hooks/x.py"]
)
def test_what_is_never_a_problem_is_passed_over_without_a_word(folder: Path, name: str):
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("x = 1\n")
    assert select([str(folder)], NONE).skipped == []


def test_a_file_that_defines_the_contract_wrongly_is_not_left_out(folder: Path, problem_source):
    (folder / "bad.py").write_text(problem_source(1).replace("self, x", "self, x, y"))
    assert "zoo/bad" in names_of(str(folder))


def test_an_empty_folder_and_one_without_problems(tmp_path: Path):
    assert error_of(str(tmp_path)) == f"folder {tmp_path} holds no Python file"
    (tmp_path / "x.py").write_text("x = 1\n")
    words = error_of(str(tmp_path))
    assert words.startswith(f"folder {tmp_path} holds no problem: ")
    assert words.endswith("x.py is no problem: it defines no class Model")


def test_the_revision_of_a_folder_is_a_digest_of_its_problems(folder: Path, problem_source):
    before = {problem.revision for problem in resolve([str(folder)], NONE)}
    assert len(before) == 1
    assert min(before).startswith("sha256:")
    (folder / "2_b.py").write_text(problem_source(7))
    assert {problem.revision for problem in resolve([str(folder)], NONE)} != before


def test_a_glob_over_folders_takes_each(folder: Path):
    assert names_of(f"{folder}/n*") == ["norms/rms"]
    assert names_of(f"{folder.parent}/z*/norms") == ["norms/rms"]


def test_a_glob_over_files_at_any_depth(folder: Path):
    assert names_of(f"{folder}/**/*.py") == ["10_a", "2_b", "rms"]


def test_a_named_folder_is_a_set_like_any_other(folder: Path):
    config = ProblemsConfig(folders={"mine": str(folder)}, dtype="float16")
    assert names_of("mine/2_b", config=config) == ["mine/2_b"]
    assert names_of("mine/norms/*", config=config) == ["mine/norms/rms"]
    assert {p.dtype for p in resolve(["mine/*"], config)} == {"float16"}
    assert "did you mean mine/norms/rms" in error_of("mine/norms/rmss", config=config)


def test_a_named_folder_that_is_not_there(tmp_path: Path):
    absent = ProblemsConfig(folders={"mine": str(tmp_path / "absent")})
    assert f"folder {tmp_path / 'absent'} is not there" in error_of("mine/x", config=absent)
    path = tmp_path / "file"
    path.write_text("")
    config = ProblemsConfig(folders={"mine": str(path)})
    assert "is a file, not a folder" in error_of("mine/x", config=config)


def test_a_folder_cannot_take_the_name_of_a_set(tmp_path: Path):
    config = ProblemsConfig(folders={"builtin": str(tmp_path)})
    assert "problems.folders.builtin: there is a set of that name" in error_of("x", config=config)


def test_a_set_goes_before_a_folder_of_its_name(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, problem_source
):
    monkeypatch.chdir(tmp_path)
    inner = tmp_path / "builtin/more"
    inner.mkdir(parents=True)
    (inner / "x.py").write_text(problem_source(1))
    assert "did you mean ./builtin/more?" in error_of("builtin/more")
    assert names_of("./builtin/more") == ["more/x"]


def test_an_unknown_set_has_the_sets_there_are():
    words = error_of("kernlbench/level9/1")
    assert "did you mean kernelbench/…?" in words
    assert "sets: builtin, kernelbench" in words
