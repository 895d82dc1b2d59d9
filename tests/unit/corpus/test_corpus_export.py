"""Exports: what is in them, what is left out and counted, and that nothing private comes out."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import datasets
import pyarrow.parquet as pq
import pytest

from kopt.cli import main
from kopt.data.corpus.columns import CORPUS_SCHEMA
from kopt.data.rundir import RunDir

Make = Callable[..., RunDir]
SECRETS = (
    "sk-proj-abcdefghijklmnop1234",
    "hf_abcdefghijklmnopqrstuv",
    "mallory",
    "gpu-node-17",
    "hunter2hunter2",
)


def exported(run: RunDir, out: Path, kind: str, *more: str) -> dict[str, Any]:
    """The card of an export."""
    assert main(["export", str(run.path), "--format", kind, "--out", str(out), *more]) == 0
    return json.loads((out / "card.json").read_text())


def rows(out: Path, table: str = "data", split: str = "*") -> list[dict[str, Any]]:
    files = sorted((out / table).glob(f"{split}-*.parquet"))
    return [row for file in files for row in pq.read_table(file).to_pylist()]


def test_a_corpus_has_a_row_for_each_candidate_and_each_completion_without_one(
    make_run: Make, tmp_path: Path
) -> None:
    card = exported(make_run(), tmp_path / "out", "corpus")
    found = rows(tmp_path / "out")
    # 3 + 1 completions of the first expansion, 2 of the second, 1 of the other search.
    assert len(found) == 7
    assert card["rows"] == {"data": {"train": 7}}
    assert card["tried"] == {"correct": 4, "cheated": 1, "incorrect": 1}
    (fault,) = [row for row in found if row["candidate"] is None]
    assert "10 code blocks" in fault["fault"]
    assert fault["completion"] == "ten code blocks"
    assert sum(card["completions_without_candidate"].values()) == 1
    assert card["lost"] == {"expansion without an answer": 1}
    # What was paid is in the rows once: seven completions at 0.25 USD and 10 tokens.
    assert sum(row["cost_usd"] for row in found) == pytest.approx(1.75)
    assert sum(row["tokens_out"] for row in found) == 70


def test_a_row_has_messages_lineage_verdict_and_tokens(make_run: Make, tmp_path: Path) -> None:
    exported(make_run(), tmp_path / "out", "corpus")
    (row,) = [each for each in rows(tmp_path / "out") if each["speedup"] == 4.0]
    assert [message["role"] for message in row["messages"]] == ["system", "user"]
    assert (row["lineage"], row["depth"], row["parent_node"]) == ([1], 2, 1)
    assert (row["verdict"], row["mode"], row["completion"]) == ("correct", "optimize", "four")
    assert row["speedup_lo"] == pytest.approx(3.96)
    assert (row["token_ids"], row["logprobs"]) == ([7], [-0.5])
    assert row["reasoning"] == "it reads twice"
    assert json.loads(row["eval"])["checks"] == [{"name": "parses", "passed": True, "detail": ""}]
    assert (row["problem_licence"], row["arch"]) == ("MIT", "x86_64")
    schema = pq.read_schema(tmp_path / "out" / "data" / "train-00000.parquet")
    assert schema.equals(CORPUS_SCHEMA)
    assert all(b"note" in (field.metadata or {}) for field in schema)


@pytest.mark.parametrize("kind", ["corpus", "sft", "dpo", "rl", "guidelines"])
def test_nothing_private_comes_out_and_equal_runs_give_equal_bytes(
    make_run: Make, tmp_path: Path, kind: str
) -> None:
    run = make_run()
    exported(run, tmp_path / "one", kind)
    exported(run, tmp_path / "two", kind)
    files = sorted(path for path in (tmp_path / "one").rglob("*") if path.is_file())
    assert files
    for path in files:
        twin = tmp_path / "two" / path.relative_to(tmp_path / "one")
        assert path.read_bytes() == twin.read_bytes(), path
        text = (
            path.read_text() if path.suffix != ".parquet" else str(pq.read_table(path).to_pylist())
        )
        assert [secret for secret in SECRETS if secret in text] == [], path


def test_sft_has_single_turns_and_lineages_that_end_right(make_run: Make, tmp_path: Path) -> None:
    card = exported(make_run(), tmp_path / "out", "sft")
    found = rows(tmp_path / "out")
    # Four right ones, and the two of the second expansion once more as lineages.
    assert sorted(row["turns"] for row in found) == [1, 1, 1, 1, 2, 2]
    (longest,) = [row for row in found if row["turns"] == 2 and row["speedup"] == 4.0]
    roles = [message["role"] for message in longest["messages"]]
    assert roles == ["system", "user", "assistant", "user", "assistant"]
    assert longest["messages"][2]["content"] == "one"
    assert longest["turn_verdicts"] == ["correct", "correct"]
    assert card["left_out"] == {"verdict cheated": 1, "verdict incorrect": 1, "not judged": 1}


def test_sft_takes_what_is_surely_fast_enough(make_run: Make, tmp_path: Path) -> None:
    # The low ends are 1.98, 3.96, 2.079 and 1.485.
    card = exported(make_run(), tmp_path / "out", "sft", "--min-speedup", "2", "--turns", "single")
    assert sorted(row["speedup"] for row in rows(tmp_path / "out")) == [2.1, 4.0]
    assert card["left_out"]["not fast enough"] == 2


def test_dpo_pairs_answers_to_one_prompt(make_run: Make, tmp_path: Path) -> None:
    exported(make_run(), tmp_path / "out", "dpo")
    found = rows(tmp_path / "out")
    pairs = {
        (row["chosen"][0]["content"], row["rejected"][0]["content"].split()[0], row["preference"])
        for row in found
    }
    assert pairs == {
        ("one", "two", "correct_over_wrong"),
        ("one", "ten", "correct_over_wrong"),
        ("one", "three", "correct_over_wrong"),
        ("four", "five", "faster_over_slower"),
    }
    (faster,) = [row for row in found if row["preference"] == "faster_over_slower"]
    assert faster["margin"] == pytest.approx(3.96 / 2.121)
    assert {row["rejected_verdict"] for row in found} == {
        "incorrect",
        "cheated",
        "no_candidate",
        "correct",
    }


def test_a_margin_keeps_noise_out_of_pairs(make_run: Make, tmp_path: Path) -> None:
    card = exported(make_run(), tmp_path / "out", "dpo", "--margin", "0.9")
    assert card["values"]["preference"] == {"correct_over_wrong": 3}


def test_rl_has_episodes_with_rewards_and_prompts(make_run: Make, tmp_path: Path) -> None:
    exported(make_run(), tmp_path / "out", "rl")
    episodes = rows(tmp_path / "out", "episodes")
    # Leaves: two failures and two children of the right one; and the other search's.
    assert sorted(row["num_steps"] for row in episodes) == [1, 1, 1, 2, 2]
    (best,) = [row for row in episodes if row["best_reward"] > 1.0]
    assert [step["reward"] for step in best["steps"]] == pytest.approx([0.6931, 1.3863], abs=1e-4)
    assert best["steps"][1]["token_ids"] == [7]
    # The shared first step is new once.
    two = [row for row in episodes if row["num_steps"] == 2]
    assert [row["steps"][0]["is_new"] for row in two] == [True, False]
    prompts = rows(tmp_path / "out", "prompts")
    assert len(prompts) == 3
    assert {row["reward_model"]["style"] for row in prompts} == {"rule"}
    assert all(row["problem_source"].startswith("class Model:") for row in prompts)


def test_guidelines_are_a_cold_start_of_the_tracker(make_run: Make, tmp_path: Path) -> None:
    from kopt.data.strategies import StrategyFile

    exported(make_run(), tmp_path / "out", "guidelines")
    found = json.loads((tmp_path / "out" / "guidelines.json").read_text())["guidelines"]
    fusion = {"technique": "fusion", "family": "norm", "bottleneck": "", "tried": 3}
    assert {**fusion, "succeeded": 1, "advice": None} in found
    tallies = StrategyFile(tmp_path / "out" / "tracker.json").read()
    assert {(each.label, each.tried) for each in tallies} == {
        ("fusion", 3),
        ("vector loads", 2),
        ("shared-memory tiling", 1),
    }


def test_splits_go_by_family(make_run: Make, tmp_path: Path) -> None:
    card = exported(make_run(), tmp_path / "out", "corpus", "--test-family", "conv")
    assert card["families"] == {"test": ["conv"], "train": ["norm"]}
    assert {row["problem_family"] for row in rows(tmp_path / "out", split="test")} == {"conv"}


def test_excluded_problems_are_found_by_their_text_whatever_its_layout(
    make_run: Make, tmp_path: Path
) -> None:
    twin = tmp_path / "twin.py"
    twin.write_text("class Model:\n\n    a = 1  # the same\n\ndef get_inputs(): return []\n")
    same = tmp_path / "same.py"
    same.write_text("class Model:\n  # other layout\n  a   = 1\n")
    from kopt.data.corpus.near_duplicates import source_digest

    assert source_digest(same.read_text()) == source_digest("class Model:\n    a = 1\n")
    assert source_digest(twin.read_text()) != source_digest(same.read_text())


def test_datasets_reads_every_table(make_run: Make, tmp_path: Path) -> None:
    run = make_run()
    for kind, name, expected in (("sft", "data", 6), ("dpo", "data", 4), ("rl", "prompts", 3)):
        out = tmp_path / kind
        exported(run, out, kind)
        found = datasets.load_dataset(str(out), name, cache_dir=str(tmp_path / "cache"))
        assert found["train"].num_rows == expected


def test_an_export_never_writes_over_files(
    make_run: Make, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    run = make_run()
    command = ["export", str(run.path), "--format", "sft", "--out", str(run.path)]
    assert main(command) == 2
    assert "expected a new or empty folder" in capfd.readouterr().err
