import json
import os
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from kopt.cli import main
from kopt.cli.resume import _place

PROBLEM = """
import torch

class Model(torch.nn.Module):
    def forward(self, x):
        return x + 1

def get_inputs():
    return [torch.randn(4)]
"""
CASES = "\ndef get_input_cases():\n    return [[torch.randn(3)], [torch.randn(5)]]\n"


@pytest.fixture(autouse=True)
def no_clone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.delenv("KOPT_KERNELBENCH", raising=False)
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    path = tmp_path / "zoo"
    path.mkdir()
    (path / "a.py").write_text(PROBLEM)
    (path / "b.py").write_text(PROBLEM + CASES)
    (path / "helper.py").write_text("x = 1\n")
    return path


@pytest.fixture
def dataset(tmp_path: Path) -> Path:
    path = tmp_path / "set/level_1.parquet"
    path.parent.mkdir()
    rows = {"code": [PROBLEM], "level": [1], "name": ["1_Add"], "problem_id": [1]}
    pq.write_table(pa.table(rows), path)
    return path.parent


def listed(capfd: pytest.CaptureFixture[str], *arguments: str) -> dict:
    assert main(["problems", "--json", *arguments]) == 0
    return json.loads(capfd.readouterr().out)


def complaint(capfd: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main(arguments) == 2
    out, err = capfd.readouterr()
    assert out == ""
    (line,) = err.splitlines()
    return line


def test_a_folder_is_listed_with_what_was_skipped(folder, capfd):
    record = listed(capfd, "zoo")
    assert [row["name"] for row in record["problems"]] == ["zoo/a", "zoo/b"]
    assert record["skipped"] == ["zoo/helper.py is no problem: it defines no class Model"]
    assert main(["problems", "zoo"]) == 0
    assert "skipped: zoo/helper.py is no problem" in capfd.readouterr().out


def test_input_cases_are_counted(folder, capfd):
    assert [row["cases"] for row in listed(capfd, "zoo")["problems"]] == [1, 3]
    main(["problems", "zoo"])
    lines = capfd.readouterr().out.splitlines()
    assert "cases" not in lines[0]
    assert lines[1].endswith("3 input cases")


def test_overrides_of_the_section_are_taken(folder, dataset, capfd):
    setting = f"problems.kernelbench.dataset={dataset}"
    (row,) = listed(capfd, "kernelbench/*", setting)["problems"]
    (other,) = listed(capfd, "kernelbench/*", setting, "problems.dtype=float16")["problems"]
    assert row["name"] == other["name"] == "kernelbench/level1/1"
    assert row["problem"] != other["problem"]
    names = [
        row["name"] for row in listed(capfd, "problems.folders.mine=zoo", "mine/*")["problems"]
    ]
    assert names == ["mine/a", "mine/b"]


def test_a_named_folder_is_among_all_sets(folder, capfd):
    names = [row["name"] for row in listed(capfd, "problems.folders.mine=zoo")["problems"]]
    assert {"builtin/softmax", "mine/a"} <= set(names)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--kernelbench", "absent"], "set kernelbench: no KernelBench/level1 in absent"),
        (["problems.kernelbench.dataset=absent"], "set kernelbench: problems.kernelbench.dataset"),
        (["problems.folders.mine=absent"], "set mine: folder absent is not there"),
        (["problems.kernelbench.revison=v0.1"], "did you mean problems.kernelbench.revision?"),
        (["problems.folders.a/b=x"], "problems.folders"),
        (["--kernelbench", "x", "problems.kernelbench.dataset=y"], "--kernelbench names a clone"),
    ],
)
def test_a_set_that_was_named_and_cannot_be_read_is_one_line(arguments, words, capfd):
    assert words in complaint(capfd, "problems", *arguments)


def test_a_run_warns_of_what_it_skips_and_goes_on(folder):
    command = [sys.executable, "-m", "kopt", "run", "problem=zoo", "--plan", "--json"]
    answer = subprocess.run(command, capture_output=True, text=True, check=True)
    assert [row["problem"] for row in json.loads(answer.stdout)["problems"]] == ["zoo/a", "zoo/b"]
    assert answer.stderr == "skipped: zoo/helper.py is no problem: it defines no class Model\n"


def test_eval_takes_a_folder_of_one_problem_only(folder, capfd):
    assert "names 2 problems; eval takes one" in capfd_line(capfd, "eval", "zoo", "zoo/a.py")


def capfd_line(capfd: pytest.CaptureFixture[str], *arguments: str) -> str:
    """The last line on stderr of a call that ends with exit code 2."""
    assert main(arguments) == 2
    return capfd.readouterr().err.splitlines()[-1]


def test_a_resumed_run_has_a_folders_problems_in_the_order_asked():
    patterns = ("builtin/softmax", "path/to/zoo", "builtin/layer_norm")
    names = ["builtin/layer_norm", "zoo/b", "zoo/a", "builtin/softmax"]
    assert sorted(names, key=lambda name: _place(name, patterns)) == [
        "builtin/softmax",
        "zoo/a",
        "zoo/b",
        "builtin/layer_norm",
    ]


def test_listing_loads_neither_the_hub_nor_pyarrow():
    program = (
        "import sys\nfrom kopt.cli import main\nmain(['problems'])\n"
        "heavy = {'huggingface_hub', 'pyarrow', 'hydra', 'torch'}\n"
        "print('loaded', *sorted(heavy & set(sys.modules)))"
    )
    command = [sys.executable, "-c", program]
    listed = subprocess.run(
        command, env=dict(os.environ), capture_output=True, text=True, check=True
    )
    assert listed.stdout.splitlines()[-1] == "loaded"
