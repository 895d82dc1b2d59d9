"""Which wins a run claims, and when a measurement upholds one."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from kopt.cli import main
from kopt.cli.verify_claims import Win, is_win, refusal, wins_of
from kopt.cli.verify_config import verified_config
from kopt.cli.verify_run import check_device
from kopt.config import load, to_plain
from kopt.data.best import write_best
from kopt.data.fold import fold
from kopt.data.journal import Journal
from kopt.data.journal_files import read_events
from kopt.data.lock import RunLock
from kopt.data.manifest import make_manifest
from kopt.data.rundir import RunDir
from kopt.errors import ConfigError, StoreError
from kopt.evaluation import EvalJson, to_json
from kopt.ports import Target
from kopt.problem import Problem
from kopt.testing.fakes import ManualClock, correct, evaluation_of, source_candidate
from kopt.testing.sample_journal import write_search
from kopt.verdict import Incorrect

PROBLEM = Problem(name="mine/sum", source="class Model: ...\n")
FAST, SLOW, WRONG = (source_candidate(f"# {name}\n") for name in ("fast", "slow", "wrong"))
REFUSED = Incorrect(check="values:own#0", detail="expected 1, found 2")
HERE = Target(device="cpu", name="a CPU", arch="x86_64", languages=("torch",))


@pytest.fixture
def run(tmp_path: Path) -> RunDir:
    """A run with one win (2x), one correct candidate that is slower (0.9x), one wrong one."""
    run = RunDir(tmp_path / "first")
    run.path.mkdir()
    run.keep_problem(PROBLEM)
    slots = [(FAST, correct(2.0)), (SLOW, correct(0.9)), (WRONG, REFUSED)]
    with Journal(run.path, run=run.name, clock=ManualClock()) as sink:
        write_search(sink, problem=PROBLEM, seed=0, expansions=[[slot] for slot in slots])
    config = load({"problem": "mine/sum", "device": "cpu"})
    run.write_manifest(
        make_manifest(
            to_plain(config),
            name=run.name,
            created_ns=0,
            argv=["kopt"],
            device={"kind": "cpu", "name": "a CPU", "arch": "x86_64", "count": 1},
        )
    )
    write_best(run, fold(read_events(run.path)))
    return run


def rank1(run: RunDir) -> Path:
    (path,) = run.best_folder.glob("*/rank1.py")
    return path


def found(speedup: float, low: float, high: float) -> EvalJson:
    record = to_json(evaluation_of(correct(speedup), problem=PROBLEM, candidate=FAST))
    record["speedup_ci"] = (low, high)
    return record


def win(speedup: float, low: float, high: float) -> Win:
    return Win(
        problem=PROBLEM,
        candidate=FAST,
        where="best/sum/rank1.py",
        speedup=speedup,
        speedup_ci=(low, high),
        baseline="eager",
        device="cpu",
    )


def test_a_win_is_above_one_percent_with_its_interval_above_one() -> None:
    assert is_win(found(1.02, 1.005, 1.03))
    assert not is_win(found(1.005, 1.004, 1.006))
    assert not is_win(found(1.3, 0.98, 1.6))
    assert not is_win({"kind": "correct", "speedup": "2", "speedup_ci": None})


@pytest.mark.parametrize(
    ("claimed", "measured", "why"),
    [
        ((2.0, 1.9, 2.1), (1.9, 1.8, 1.95), ""),  # the intervals meet between 1.9 and 1.95
        ((2.0, 1.99, 2.01), (1.91, 1.90, 1.92), ""),  # apart, and within 5 %
        ((2.0, 1.99, 2.01), (2.6, 2.5, 2.7), ""),  # better than claimed
        ((2.0, 1.99, 2.01), (1.5, 1.4, 1.6), "slower than claimed by 25%"),
        (
            (1.02, 1.005, 1.035),
            (0.99, 0.97, 1.01),
            "no faster than eager for sure: 0.99 [0.97, 1.01]",
        ),
        ((5.0, 4.9, 5.1), (1.5, 0.4, 6.0), "no faster than eager for sure: 1.50 [0.40, 6.00]"),
    ],
)
def test_a_win_is_upheld_near_its_claim_and_above_one(claimed, measured, why) -> None:
    assert refusal(win(*claimed), found(*measured)) == why


def test_times_of_two_protocols_uphold_nothing() -> None:
    record = found(2.0, 1.9, 2.1)
    record["protocol"] = "do_bench"
    assert refusal(win(2.0, 1.9, 2.1), record) == (
        "timed by do_bench, claimed by abba: their times do not compare"
    )
    assert refusal(replace(win(2.0, 1.9, 2.1), protocol="do_bench"), record) == ""


def test_a_candidate_that_is_wrong_now_upholds_nothing() -> None:
    record = to_json(evaluation_of(REFUSED, problem=PROBLEM, candidate=FAST))
    assert refusal(win(2.0, 1.9, 2.1), record).startswith("incorrect: values:own#0")


def test_the_wins_of_a_run_are_those_of_its_best_folder(run: RunDir) -> None:
    (claimed,) = wins_of(run, keep=3)
    assert claimed.candidate.candidate_id == FAST.candidate_id
    assert claimed.where == "best/mine-sum/rank1.py"
    assert claimed.speedup == 2.0
    assert claimed.fault == ""


def test_a_changed_file_is_refused_and_the_journal_stands_for_what_was_judged(run: RunDir) -> None:
    rank1(run).write_text("# another\n")
    changed, kept = wins_of(run, keep=3)
    assert "not what was judged" in changed.fault
    assert kept.candidate.candidate_id == FAST.candidate_id
    assert kept.where.startswith("journal")


def test_a_missing_file_is_refused(run: RunDir) -> None:
    rank1(run).unlink()
    missing, _ = wins_of(run, keep=3)
    assert "no such file" in missing.fault


def test_an_interrupted_run_without_a_best_folder_is_read_from_its_journal(run: RunDir) -> None:
    for path in sorted(run.best_folder.rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()
    (claimed,) = wins_of(run, keep=3)
    assert claimed.where == "journal (not in best/mine-sum/rank1.py)"


def test_a_damaged_claim_is_one_error_that_names_the_file(run: RunDir) -> None:
    rank1(run).with_suffix(".json").write_text("{")
    with pytest.raises(StoreError, match=r"rank1\.json: not JSON"):
        wins_of(run, keep=3)


def test_a_run_of_another_device_is_refused() -> None:
    with pytest.raises(ConfigError, match="measured on NVIDIA H200, here is a CPU"):
        check_device({"name": "NVIDIA H200"}, HERE)
    check_device({"name": "a CPU"}, HERE)
    check_device(None, HERE)


def test_a_verification_keeps_the_runs_settings_and_draws_another_secret(run: RunDir) -> None:
    manifest = run.read_manifest()
    manifest["config"]["evaluate"] |= {"ladder": "loose", "secret": 7, "trials": 5}
    config = verified_config(manifest, ["cluster.devices=2"])
    assert (config.evaluate.ladder, config.evaluate.trials) == ("loose", 5)
    assert config.evaluate.secret is None
    assert config.cluster.devices == 2
    assert verified_config(manifest, ["evaluate=tf32"]).evaluate.ladder == "tf32"
    assert verified_config(manifest, ["evaluate=tf32"]).evaluate.trials == 5
    with pytest.raises(ConfigError, match="no choice 'tf23'"):
        verified_config(manifest, ["evaluate=tf23"])
    with pytest.raises(ConfigError, match="may change evaluate, cluster, device only"):
        verified_config(manifest, ["search.iterations=3"])


def test_only_faulty_claims_need_no_device(run: RunDir, capfd: pytest.CaptureFixture[str]) -> None:
    rank1(run).write_text("# another\n")
    journal = run.path / "journal"
    for path in journal.iterdir():
        path.unlink()
    journal.rmdir()
    assert main(["verify", str(run.path), "--json"]) == 1
    record = json.loads(capfd.readouterr().out)
    assert (record["claimed"], record["failed"], record["holds"]) == (1, 1, False)
    assert "not what was judged" in record["wins"][0]["why"]


def test_a_run_that_claims_nothing_has_nothing_to_verify(
    run: RunDir, capfd: pytest.CaptureFixture[str]
) -> None:
    for path in (*run.path.glob("journal/*"), *run.best_folder.rglob("rank*")):
        path.unlink()
    (run.path / "journal").rmdir()
    assert main(["verify", str(run.path)]) == 0
    assert "claims no win" in capfd.readouterr().out


def test_a_run_that_is_still_going_is_refused(
    run: RunDir, capfd: pytest.CaptureFixture[str]
) -> None:
    lock = RunLock(run.path)
    try:
        assert main(["verify", str(run.path)]) == 2
    finally:
        lock.release()
    (line,) = capfd.readouterr().err.splitlines()
    assert "still going (pid" in line


def test_folders_of_no_use_are_one_line_each(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "file.py"
    file.touch()
    for arguments, words in (
        ([], "takes a run folder"),
        ([str(tmp_path / "none")], "no such folder"),
        ([str(file)], "is a file"),
        ([str(tmp_path)], "found neither"),
        (["a", "b"], "takes one RUN"),
    ):
        assert main(["verify", *arguments]) == 2
        (line,) = capfd.readouterr().err.splitlines()
        assert words in line
