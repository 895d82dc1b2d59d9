import shutil
import subprocess
from pathlib import Path

import pytest

from kopt.data.problems import resolve
from kopt.data.problems.clone_edition import REVISIONS
from kopt.data.problems.config import KernelBenchConfig, ProblemsConfig
from kopt.data.problems.git_objects import resolve_commit
from kopt.errors import ConfigError
from kopt.problem import Problem


def config_of(path: Path, revision: str | None = None) -> ProblemsConfig:
    return ProblemsConfig(kernelbench=KernelBenchConfig(path=str(path), revision=revision))


def problems_of(path: Path, revision: str | None = None) -> list[Problem]:
    return resolve(["kernelbench/*"], config_of(path, revision))


def error_of(path: Path, revision: str | None = None, pattern: str = "kernelbench/*") -> str:
    with pytest.raises(ConfigError) as caught:
        resolve([pattern], config_of(path, revision))
    text = str(caught.value)
    assert "\n" not in text
    return text


def git(*arguments: str) -> None:
    subprocess.run(["git", "-c", "protocol.file.allow=always", *arguments], check=True)


def test_a_tag_is_read_without_touching_the_files(git_clone):
    kept = git_clone.root / "KernelBench/level1/2_New.py"
    before = kept.read_text(), kept.stat().st_mtime_ns
    assert [problem.name for problem in problems_of(git_clone.root, "old")] == [
        "kernelbench/level1/1",
        "kernelbench/level2/18",
    ]
    assert (kept.read_text(), kept.stat().st_mtime_ns) == before


def test_two_revisions_of_one_name_are_two_problems(git_clone):
    old, new = (problems_of(git_clone.root, revision)[0] for revision in ("old", "main"))
    assert old.name == new.name == "kernelbench/level1/1"
    assert "x * 1" in old.source
    assert "x * 2" in new.source
    assert old.problem_id != new.problem_id
    assert (old.revision, new.revision) == (f"old {git_clone.old}", f"main {git_clone.new}")


def test_one_text_at_two_revisions_is_one_problem(git_clone):
    old, new = (problems_of(git_clone.root, revision)[-1] for revision in ("old", "main"))
    assert old.name == "kernelbench/level2/18"
    assert old.problem_id == new.problem_id


@pytest.mark.parametrize("name", ["v0.1", "old", "main~1"])
def test_branches_tags_and_expressions_name_commits(git_clone, name: str):
    (problem, _) = problems_of(git_clone.root, name)
    assert problem.revision == f"{name} {git_clone.old}"


@pytest.mark.parametrize("digits", [40, 12, 7])
def test_a_commit_may_be_cut_short_and_stands_alone_as_revision(git_clone, digits: int):
    (problem, _) = problems_of(git_clone.root, git_clone.old[:digits])
    assert problem.revision == git_clone.old


def test_changed_files_do_not_show_at_a_revision(git_clone):
    git_clone.write("level1/1_Add.py", factor=9)
    assert "x * 2" in problems_of(git_clone.root, "main")[0].source
    assert "x * 9" in problems_of(git_clone.root)[0].source


def test_a_fresh_clone_has_branches_of_its_remote_only(git_clone, tmp_path: Path):
    copy = tmp_path / "copy"
    git("clone", "-q", str(git_clone.root), str(copy))
    assert problems_of(copy, "v0.1")[0].revision == f"v0.1 {git_clone.old}"


def test_a_bare_repository_is_read_at_its_head_or_a_revision(git_clone, tmp_path: Path):
    bare = tmp_path / "bare.git"
    git("clone", "-q", "--bare", str(git_clone.root), str(bare))
    assert problems_of(bare)[0].revision == git_clone.new
    assert problems_of(bare, "old")[0].revision == f"old {git_clone.old}"


def test_a_clone_with_nothing_checked_out_is_read_at_its_head(git_clone, tmp_path: Path):
    copy = tmp_path / "copy"
    git("clone", "-q", "--no-checkout", str(git_clone.root), str(copy))
    assert problems_of(copy)[0].revision == git_clone.new


def test_the_inner_folder_names_the_clone_for_a_revision_too(git_clone):
    assert problems_of(git_clone.root / "KernelBench", "old")[0].revision.startswith("old ")


def test_variables_that_a_git_hook_sets_do_not_lead_elsewhere(
    git_clone, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "elsewhere"))
    assert problems_of(git_clone.root, "old")[0].revision == f"old {git_clone.old}"


def test_links_at_a_revision_are_no_problems(git_clone):
    (git_clone.root / "KernelBench/level1/3_Link.py").symlink_to("1_Add.py")
    commit = git_clone.commit()
    assert "kernelbench/level1/3" not in [p.name for p in problems_of(git_clone.root, commit)]


def test_an_unknown_revision_has_close_ones_or_a_list(git_clone):
    assert "no revision 'v0.11'; did you mean v0.1" in error_of(git_clone.root, "v0.11")
    words = error_of(git_clone.root, "zzz")
    assert "no revision 'zzz'; there are: v0, v0.1, v0.2, main, old, and any" in words


def test_a_release_whose_commit_is_not_in_the_clone_says_so(git_clone):
    words = error_of(git_clone.root, "v0.2")
    assert f"v0.2 is commit {REVISIONS['v0.2'][:12]}, which this clone does not have" in words


def test_a_release_is_its_known_commit_where_nothing_is_named_so(git_clone):
    known = {"release": git_clone.old}
    assert resolve_commit(git_clone.root, "release", known=known) == git_clone.old


def test_the_clones_own_name_goes_before_a_known_commit(git_clone):
    known = {"main": git_clone.old}
    assert resolve_commit(git_clone.root, "main", known=known) == git_clone.new


def test_a_folder_that_is_no_clone_has_no_revisions(git_clone, tmp_path: Path):
    shutil.rmtree(git_clone.root / ".git")
    words = error_of(git_clone.root, "v0.1")
    assert "problems.kernelbench.revision=v0.1 is read from a git clone" in words
    assert "not a git repository" in words


def test_a_folder_within_another_repository_is_no_clone(git_clone, tmp_path: Path):
    shutil.rmtree(git_clone.root / ".git")
    git("init", "-q", str(tmp_path))
    assert "not the root of a repository" in error_of(git_clone.root, "v0.1")


def test_a_commit_without_problems_says_so(git_clone):
    shutil.rmtree(git_clone.root / "KernelBench")
    commit = git_clone.commit()
    assert f"commit {commit[:12]} of" in error_of(git_clone.root, commit)
    assert "holds no problem of levels 1, 2, 3" in error_of(git_clone.root, commit)


def test_text_that_is_not_utf8_names_file_and_revision(git_clone):
    (git_clone.root / "KernelBench/level1/1_Add.py").write_bytes(b"\xff")
    commit = git_clone.commit()
    words = error_of(git_clone.root, commit)
    assert f"KernelBench/level1/1_Add.py of {commit} is not UTF-8" in words


def test_two_files_of_one_id_are_refused(git_clone):
    git_clone.write("level1/1_Sub.py", factor=3)
    assert "level1/1 is both KernelBench/level1/1_Add.py and" in error_of(git_clone.root)


def test_without_git_the_error_says_to_install_it(git_clone, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("PATH", "")
    assert "git is not installed" in error_of(git_clone.root, "old")


@pytest.mark.parametrize("revision", ["--help", "a b", ""])
def test_what_cannot_be_a_revision_is_refused_by_the_configuration(revision: str):
    with pytest.raises(ValueError, match="revision"):
        KernelBenchConfig(revision=revision)


def test_an_unknown_id_or_level_says_what_there_is(git_clone):
    assert "kernelbench/level1 has 2: kernelbench/level1/1 to kernelbench/level1/2" in error_of(
        git_clone.root, pattern="kernelbench/level1/77"
    )
    assert "kernelbench has kernelbench/level1/…, kernelbench/level2/…" in error_of(
        git_clone.root, pattern="kernelbench/zzzzzzzzzz/q"
    )
    assert "did you mean kernelbench/level1/*" in error_of(
        git_clone.root, pattern="kernelbench/level1"
    )


@pytest.mark.parametrize("revision", [None, "old"])
def test_the_dtype_reaches_a_clone(git_clone, revision: str | None):
    config = config_of(git_clone.root, revision).model_copy(update={"dtype": "float64"})
    assert {problem.dtype for problem in resolve(["kernelbench/*"], config)} == {"float64"}
