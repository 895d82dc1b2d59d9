import subprocess
from pathlib import Path

import pytest

from kopt.data.problems import check_contracts, resolve
from kopt.data.problems.config import KernelBenchConfig, ProblemsConfig
from kopt.data.problems.revision import checked_out_commit, folder_revision
from kopt.errors import ConfigError
from kopt.problem import Problem

NONE = ProblemsConfig(kernelbench=KernelBenchConfig(path=None))


def error_of(*patterns: str, config: ProblemsConfig = NONE) -> str:
    with pytest.raises(ConfigError) as caught:
        resolve(patterns, config)
    text = str(caught.value)
    assert "\n" not in text
    return text


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    for level, names in ((1, ["1_Add", "10_Mul", "2_Sub"]), (2, ["18_Sum"]), (4, ["1_Big"])):
        folder = tmp_path / "clone" / "KernelBench" / f"level{level}"
        folder.mkdir(parents=True)
        for name in names:
            (folder / f"{name}.py").write_text(f"# {level} {name}\n")
    return tmp_path / "clone"


def config_of(clone: Path) -> ProblemsConfig:
    return ProblemsConfig(kernelbench=KernelBenchConfig(path=str(clone)))


def names_of(patterns: list[str], config: ProblemsConfig = NONE) -> list[str]:
    return [problem.name for problem in resolve(patterns, config)]


def test_a_name_gives_one_problem_with_its_labels():
    (problem,) = resolve(["builtin/softmax"], NONE)
    assert problem.name == "builtin/softmax"
    assert problem.family == "softmax"
    assert problem.revision.startswith("kopt ")
    assert problem.licence == "Apache-2.0"


def test_the_dtype_of_the_section_is_every_problems():
    (problem,) = resolve(["builtin/softmax"], ProblemsConfig(dtype="float16"))
    assert problem.dtype == "float16"
    assert problem.problem_id != resolve(["builtin/softmax"], NONE)[0].problem_id


def test_order_is_that_of_asking_and_nothing_comes_twice():
    names = names_of(["builtin/softmax", "builtin/*norm*", "builtin/s*"])
    assert names[0] == "builtin/softmax"
    assert len(names) == len(set(names)) == 4


def test_a_set_is_listed_in_its_own_order(clone: Path):
    assert names_of(["kernelbench/*"], config_of(clone)) == [
        "kernelbench/level1/1",
        "kernelbench/level1/2",
        "kernelbench/level1/10",
        "kernelbench/level2/18",
    ]


def test_a_clone_may_be_named_by_its_inner_folder(clone: Path):
    assert names_of(["kernelbench/level2/18"], config_of(clone / "KernelBench"))


def test_without_a_clone_the_error_says_how_to_get_one(tmp_path: Path):
    assert "KOPT_KERNELBENCH" in error_of("kernelbench/level2/18")
    assert f"no KernelBench/level1 in {tmp_path}" in error_of(
        "kernelbench/level2/18", config=config_of(tmp_path)
    )


def test_the_environment_names_the_clone(clone: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("KOPT_KERNELBENCH", str(clone))
    assert names_of(["kernelbench/level2/*"], ProblemsConfig()) == ["kernelbench/level2/18"]


def test_a_file_is_a_problem_named_by_its_stem(tmp_path: Path):
    path = tmp_path / "mine.py"
    path.write_text("x = 1\n")
    (problem,) = resolve([str(path)], NONE)
    assert (problem.name, problem.source) == ("mine", "x = 1\n")


def test_a_glob_over_files(tmp_path: Path):
    for name in ("b", "a"):
        (tmp_path / f"{name}.py").write_text(f"# {name}\n")
    assert names_of([str(tmp_path / "*.py")]) == ["a", "b"]
    assert "no file matches" in error_of(str(tmp_path / "z*.py"))


def test_two_different_files_of_one_name_are_refused(tmp_path: Path):
    for folder in ("one", "two"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "p.py").write_text(f"# {folder}\n")
    words = error_of(str(tmp_path / "one/p.py"), str(tmp_path / "two/p.py"))
    assert "two different problems would be named 'p'" in words


def test_an_unknown_name_is_answered_with_close_ones():
    assert "did you mean builtin/softmax" in error_of("builtin/sofmax")
    assert "did you mean builtin/softmax" in error_of("softmax")
    assert "did you mean builtin/*" in error_of("builtin")
    assert "`kopt problems` lists them" in error_of("qqqqq")


def test_a_glob_that_matches_nothing_is_unknown():
    assert error_of("builtin/zz*").startswith("unknown problem 'builtin/zz*'")


@pytest.mark.parametrize("what", ["missing", "folder", "binary"])
def test_a_file_that_cannot_be_read_is_one_line(tmp_path: Path, what: str):
    path = tmp_path / "x.py"
    if what == "folder":
        path.mkdir()
    elif what == "binary":
        path.write_bytes(b"\xff\xfe\x00")
    words = {"missing": "no such file", "folder": "is a folder", "binary": "not UTF-8"}
    assert words[what] in error_of(str(path))


def test_nothing_asked_for_is_an_error():
    assert "no problem is asked for" in error_of()


def test_every_fault_of_every_problem_is_a_line():
    twice = "class Model:\n    pass\n\n\ndef get_inputs(n):\n    return []\n"
    with pytest.raises(ConfigError) as caught:
        check_contracts([Problem(name="a", source=twice), Problem(name="b", source="def")])
    lines = str(caught.value).splitlines()
    assert [line.split(":")[0] for line in lines] == ["problem a", "problem a", "problem b"]


def test_a_file_that_is_none_of_the_inputs_has_one_line():
    with pytest.raises(ConfigError) as caught:
        check_contracts([Problem(name="a", source="x = 1")])
    (line,) = str(caught.value).splitlines()
    assert line.startswith("problem a: it defines no class Model and no get_inputs(): expected ")
    assert "Triton, Helion, CUDA or load_inline kernel" in line


def git(folder: Path, *arguments: str) -> str:
    author = ["-c", "user.name=t", "-c", "user.email=t@example.invalid"]
    command = ["git", "-C", str(folder), *author, *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def test_the_revision_of_a_clone_is_its_commit_and_says_dirty(clone: Path):
    git(clone, "init", "-q")
    git(clone, "add", ".")
    git(clone, "commit", "-qm", "x")
    commit = git(clone, "rev-parse", "HEAD")
    (problem,) = resolve(["kernelbench/level1/1"], config_of(clone))
    assert (problem.revision, problem.licence) == (commit, "MIT")
    git(clone, "pack-refs", "--all")
    assert checked_out_commit(clone) == commit
    git(clone, "checkout", "-q", "--detach")
    assert checked_out_commit(clone) == commit
    git(clone, "worktree", "add", "-q", str(clone.parent / "tree"))
    assert checked_out_commit(clone.parent / "tree") == commit
    (clone / "KernelBench/level1/1_Add.py").write_text("# changed\n")
    (problem,) = resolve(["kernelbench/level1/1"], config_of(clone))
    assert problem.revision == f"{commit}-dirty"


def test_without_git_the_revision_is_a_digest_of_the_files(clone: Path):
    files = sorted(clone.rglob("*.py"))
    before = folder_revision(clone, files=files, under="KernelBench")
    assert before.startswith("sha256:")
    files[0].write_text("# changed\n")
    assert folder_revision(clone, files=files, under="KernelBench") != before
