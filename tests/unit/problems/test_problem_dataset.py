from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from kopt.data.problems import resolve
from kopt.data.problems.config import KernelBenchConfig, ProblemsConfig
from kopt.errors import ConfigError
from kopt.problem import Problem


def config_of(dataset: Path | str, **more: str) -> ProblemsConfig:
    return ProblemsConfig(kernelbench=KernelBenchConfig(dataset=str(dataset), **more))


def problems_of(dataset: Path | str, pattern: str = "kernelbench/*") -> list[Problem]:
    return resolve([pattern], config_of(dataset))


def error_of(dataset: Path | str, **more: str) -> str:
    with pytest.raises(ConfigError) as caught:
        resolve(["kernelbench/level1/1"], config_of(dataset, **more))
    text = str(caught.value)
    assert "\n" not in text
    return text


@pytest.fixture
def folder(tmp_path: Path, write_split) -> Path:
    write_split(tmp_path / "set/data/level_1-00000-of-00001.parquet", (1, 10, 3), (1, 2, 4))
    write_split(tmp_path / "set/data/level_2-00000-of-00001.parquet", (2, 18, 5))
    write_split(tmp_path / "set/data/level_4-00000-of-00001.parquet", (4, 1, 6))
    return tmp_path / "set"


def test_a_folder_of_parquet_files_is_the_set_in_order(folder: Path):
    assert [problem.name for problem in problems_of(folder)] == [
        "kernelbench/level1/2",
        "kernelbench/level1/10",
        "kernelbench/level2/18",
    ]


def test_a_row_gives_source_and_labels(folder: Path, problem_source):
    (problem,) = problems_of(folder, "kernelbench/level2/18")
    assert problem.source == problem_source(5)
    assert problem.revision.startswith("sha256:")
    assert (problem.licence, problem.family) == ("MIT", "elementwise")


def test_the_same_text_is_the_same_problem_wherever_it_is_from(
    folder: Path, tmp_path: Path, problem_source
):
    path = tmp_path / "mine.py"
    path.write_text(problem_source(5))
    (of_file,) = resolve([str(path)], ProblemsConfig())
    (of_data,) = problems_of(folder, "kernelbench/level2/18")
    assert of_file.problem_id == of_data.problem_id


def test_a_data_set_goes_before_a_clone(folder: Path, git_clone):
    config = config_of(folder, path=str(git_clone.root))
    (problem,) = resolve(["kernelbench/level2/18"], config)
    assert "x * 5" in problem.source


def test_the_digest_tells_two_data_sets_apart(folder: Path, write_split):
    before = problems_of(folder)[0].revision
    write_split(folder / "data/level_2-00000-of-00001.parquet", (2, 18, 7))
    assert problems_of(folder)[0].revision != before


def test_files_of_hidden_folders_are_not_read(folder: Path):
    (folder / ".cache").mkdir()
    (folder / ".cache/x.parquet").write_bytes(b"not parquet")
    assert len(problems_of(folder)) == 3


def test_the_dtype_reaches_it(folder: Path):
    config = ProblemsConfig(dtype="bfloat16", kernelbench=KernelBenchConfig(dataset=str(folder)))
    assert {p.dtype for p in resolve(["kernelbench/*"], config)} == {"bfloat16"}


def test_a_folder_has_no_revisions(folder: Path):
    assert "revision=v0.1 cannot be told from the files of" in error_of(folder, revision="v0.1")


def test_what_is_neither_folder_nor_id_is_refused(tmp_path: Path):
    assert "is no folder" in error_of(tmp_path / "absent")
    assert "no id on the hub, such as ScalingIntelligence/KernelBench" in error_of("KernelBench")


def test_a_folder_without_parquet_files(tmp_path: Path):
    assert f"{tmp_path} holds no Parquet file" in error_of(tmp_path)


def test_a_file_that_is_no_parquet(folder: Path):
    path = folder / "data/level_1-00000-of-00001.parquet"
    path.write_bytes(b"PAR1 but no more")
    assert f"{path} is no readable Parquet file: " in error_of(folder)
    path.write_bytes(b"")
    assert f"{path} is no readable Parquet file: " in error_of(folder)


def test_a_pointer_of_git_lfs_says_what_to_run(folder: Path):
    path = folder / "data/level_1-00000-of-00001.parquet"
    path.write_text("version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 1\n")
    assert "run `git lfs pull`" in error_of(folder)


def test_a_missing_column_is_named_beside_those_there_are(tmp_path: Path, write_split):
    write_split(tmp_path / "level_1.parquet", (1, 1, 1), drop=("problem_id",))
    words = error_of(tmp_path)
    assert "has no column problem_id; it has code, level, name" in words


def test_columns_of_other_types_are_named(tmp_path: Path):
    table = pa.table({"code": ["x"], "level": ["one"], "problem_id": [1], "name": ["n"]})
    pq.write_table(table, tmp_path / "level_1.parquet")
    assert "row 0 of" in error_of(tmp_path)
    assert "found code str, level str, problem_id int" in error_of(tmp_path)


def test_a_row_without_text_is_named(tmp_path: Path):
    table = pa.table({"code": pa.array([None], pa.string()), "level": [1], "problem_id": [1]})
    pq.write_table(table, tmp_path / "level_1.parquet")
    assert "found code NoneType" in error_of(tmp_path)


def test_two_rows_of_one_id_are_refused(tmp_path: Path, write_split):
    write_split(tmp_path / "level_1.parquet", (1, 1, 1), (1, 1, 2))
    assert "level1/1 is both row 0 of" in error_of(tmp_path)


def test_a_set_of_level_four_alone_holds_nothing_to_search(tmp_path: Path, write_split):
    write_split(tmp_path / "level_4.parquet", (4, 1, 1))
    assert "holds no problem of levels 1, 2, 3" in error_of(tmp_path)
