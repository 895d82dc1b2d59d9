import json
import subprocess
import sys
from pathlib import Path

import pytest

from kopt.cli import main
from kopt.cli.dispatch import COMMANDS
from kopt.version import __version__

HEAVY = ("torch", "ray", "triton", "hydra", "omegaconf", "openai", "pyarrow", "scipy", "numpy")


def complaint(capfd: pytest.CaptureFixture[str], *arguments: str) -> str:
    """The one line that a wrong call leaves, all else silent."""
    assert main(arguments) == 2
    out, err = capfd.readouterr()
    assert out == ""
    (line,) = err.splitlines()
    assert line.startswith("kopt: ")
    return line.removeprefix("kopt: ")


@pytest.mark.parametrize("arguments", [["--help"], ["problems"], ["--version"], ["run", "--help"]])
def test_what_only_tells_loads_nothing_heavy(arguments: list[str]):
    program = (
        "import sys\nfrom kopt.cli import main\n"
        f"code = main({arguments!r})\n"
        f"heavy = [name for name in {HEAVY!r} if name in sys.modules]\n"
        "sys.exit(f'loaded: {heavy}' if heavy else code)\n"
    )
    answer = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert (answer.returncode, answer.stderr) == (0, "")
    assert answer.stdout


def test_help_names_every_command(capfd: pytest.CaptureFixture[str]):
    assert main(["--help"]) == 0
    text = capfd.readouterr().out
    assert all(f"  {name}" in text for name in COMMANDS)
    assert main([]) == 2


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help_of_its_own(command: str, capfd: pytest.CaptureFixture[str]):
    assert main([command, "--help"]) == 0
    out, err = capfd.readouterr()
    assert out.startswith(f"usage: kopt {command}")
    assert err == ""


def test_version(capfd: pytest.CaptureFixture[str]):
    assert main(["--version"]) == 0
    assert capfd.readouterr().out == f"kopt {__version__}\n"


def test_a_mistyped_command_is_answered_with_the_one_meant(capfd: pytest.CaptureFixture[str]):
    assert complaint(capfd, "rnu") == "no command 'rnu'; did you mean run?"
    assert complaint(capfd, "qqqq").startswith("no command 'qqqq'; there are: run, eval")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["run", "problem=builtin/sofmax"], "did you mean builtin/softmax"),
        (["run", "problem=nowhere.py"], "no such file: nowhere.py"),
        (["run", "searhc=mcts"], "did you mean search?"),
        (["run", "search.iteration=3"], "did you mean search.iterations"),
        (["run", "search.iterations=0"], "greater than or equal to 1 (got 0)"),
        (["run", "--paln"], "unrecognized arguments: --paln"),
        (["run", "problem=kernelbench/level1/1"], "KOPT_KERNELBENCH"),
        (["eval", "builtin/softmax"], "the following arguments are required: CANDIDATE"),
        (["eval", "builtin/softmax", "nowhere.py"], "no such file: nowhere.py"),
        (["eval", "builtin/*", "nowhere.py"], "eval takes one"),
        (["resume", "nowhere"], "expected a run folder"),
        (["replay", "nowhere"], "expected a run folder"),
        (["problems", "builtin/sofmax"], "did you mean builtin/softmax"),
    ],
)
def test_bad_input_is_one_line_and_exit_2(
    arguments: list[str],
    words: str,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
):
    monkeypatch.delenv("KOPT_KERNELBENCH", raising=False)
    monkeypatch.chdir(tmp_path)
    assert words in complaint(capfd, *arguments)
    assert list(tmp_path.iterdir()) == []


def test_a_problem_file_without_model_is_refused_before_anything_starts(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text("def get_inputs():\n    return []\n")
    assert complaint(capfd, "run", "problem=mine.py") == ("problem mine: it defines no class Model")
    assert not (tmp_path / "runs").exists()


def test_problems_lists_what_is_broken(capfd: pytest.CaptureFixture[str], tmp_path: Path):
    path = tmp_path / "mine.py"
    path.write_text("x = 1\n")
    assert main(["problems", str(path), "builtin/softmax"]) == 1
    assert "broken: it defines no class Model" in capfd.readouterr().out


def test_problems_as_json_is_one_object(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.delenv("KOPT_KERNELBENCH", raising=False)
    assert main(["problems", "--json"]) == 0
    record = json.loads(capfd.readouterr().out)
    assert "builtin/softmax" in [row["name"] for row in record["problems"]]
    assert "no clone" in record["missing"]["kernelbench"]


def test_the_plan_counts_searches_and_candidates(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    monkeypatch.chdir(tmp_path)
    overrides = ["problem=[builtin/softmax,builtin/layer_norm]", "seed=[0,1,2]"]
    small = ["search.iterations=4", "search.candidates=2"]
    assert main(["run", "--plan", "--json", *overrides, *small]) == 0
    plan = json.loads(capfd.readouterr().out)
    # 2 problems x 3 seeds; 4 x 2 candidates each.
    assert (plan["searches"], plan["candidates"], plan["device_s"]) == (6, 48, None)
    assert main(["run", "--plan", *overrides, *small]) == 0
    assert "6 search(es), at most 48 candidates" in capfd.readouterr().out
    assert list(tmp_path.iterdir()) == []


def test_a_sweep_runs_each_combination_and_gives_the_worst_code(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    monkeypatch.chdir(tmp_path)
    arguments = ["run", "-m", "--plan", "--json", "search=mcts,best_of_n"]
    assert main([*arguments, "problem=builtin/softmax,builtin/sofmax"]) == 2
    out, err = capfd.readouterr()
    plan = json.loads(out)
    assert [job["arm"] for job in plan["jobs"]] == ["mcts-rewriter", "best_of_n-rewriter"]
    assert (plan["searches"], [job["job"] for job in plan["refused"]]) == (2, [1, 3])
    assert [line.split(";")[0] for line in err.splitlines()] == [
        "kopt: jobs 1, 3: unknown problem 'builtin/sofmax'"
    ]
    assert list(tmp_path.iterdir()) == []


def test_a_full_disk_is_one_line(capfd: pytest.CaptureFixture[str]):
    with Path("/dev/full").open("w") as full:
        command = [sys.executable, "-m", "kopt", "problems", "--json", "builtin/softmax"]
        answer = subprocess.run(
            command, stdout=full, stderr=subprocess.PIPE, text=True, check=False
        )
    assert answer.returncode == 2
    assert answer.stderr == "kopt: standard output cannot be written: No space left on device\n"


def test_a_reader_that_has_enough_is_no_error():
    program = f"{sys.executable} -m kopt problems --json | true; exit ${{PIPESTATUS[0]}}"
    answer = subprocess.run(["bash", "-c", program], capture_output=True, check=False)
    assert answer.stderr == b""


def test_doctor_gives_a_row_for_each_thing(capfd: pytest.CaptureFixture[str]):
    assert main(["doctor", "--json"]) == 0
    rows = json.loads(capfd.readouterr().out)["rows"]
    names = [row["name"] for row in rows]
    assert {"python", "torch", "ray", "g++", "GPU", "ncu", "/dev/shm"} <= set(names)
    assert len(names) == len(set(names))
    assert all(row["ok"] != bool(row["fix"]) for row in rows)
