"""Views over a corpus: what they count, by hand, of the run in conftest."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import duckdb
import pytest

from kopt.data.corpus.views import VIEWS, VIEWS_FILE, views_sql
from kopt.data.exports.choice import Choice
from kopt.data.exports.export import export
from kopt.data.rundir import RunDir

Make = Callable[..., RunDir]
Ask = Callable[[str], list[tuple[Any, ...]]]


@pytest.fixture
def ask(make_run: Make, tmp_path: Path) -> Iterator[Ask]:
    """Answers a query on two runs that are alike but for their names, in one corpus."""
    runs = [make_run(name="one"), make_run(name="two")]
    out = tmp_path / "corpus"
    export(runs, out, format="corpus", choice=Choice(), settings={})
    with duckdb.connect() as connection:
        connection.execute(views_sql([f"{out}/data/*.parquet"]))
        yield lambda query: connection.execute(query).fetchall()


def test_every_view_is_there_and_has_rows(ask: Ask) -> None:
    made = {name for (name,) in ask("SELECT view_name FROM duckdb_views() WHERE NOT internal")}
    assert made == set(VIEWS)
    assert {name: bool(ask(f"FROM {name}")) for name in VIEWS if name != "model_pairs"} == (
        dict.fromkeys(set(VIEWS) - {"model_pairs"}, True)
    )


def test_a_corpus_comes_with_its_views(
    make_run: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "corpus"
    export([make_run()], out, format="corpus", choice=Choice(), settings={})
    monkeypatch.chdir(out)
    with duckdb.connect() as connection:
        connection.execute((out / VIEWS_FILE).read_text())
        assert connection.execute("SELECT count(*) FROM tried").fetchall() == [(7,)]


def test_a_step_is_held_against_what_it_was_made_from(ask: Ask) -> None:
    found = ask(
        "SELECT gain, improved, parent_verdict FROM steps WHERE run = 'one' AND depth = 2 "
        "ORDER BY gain DESC"
    )
    # 4.0 and 2.1 over 2.0; the low ends are 3.96 and 2.079.
    assert found == [
        (pytest.approx(2.0), True, "correct"),
        (pytest.approx(1.05), True, "correct"),
    ]


def test_strategies_are_counted_by_technique_and_family(ask: Ask) -> None:
    found = ask(
        "SELECT technique, problem_family, tried, correct, improved, geomean_gain FROM strategies"
    )
    assert found == [
        ("fusion", "norm", 6, 2, 2, pytest.approx(2.0)),
        ("vector loads", "norm", 4, 4, 4, pytest.approx((2.0 * 1.05) ** 0.5)),
        ("shared-memory tiling", "conv", 2, 2, 2, pytest.approx(1.5)),
    ]


def test_tools_are_counted_with_what_came_of_their_findings(ask: Ask) -> None:
    found = ask("SELECT tool, profiled, fired, hit_rate, children, improved FROM tools")
    assert found == [("coalescing", 2, 2, 1.0, 4, 4), ("occupancy", 2, 2, 1.0, 4, 4)]


def test_models_are_counted_with_their_cost(ask: Ask) -> None:
    ((author, problems, candidates, right, cheated, best, cost),) = ask(
        "SELECT author, problems, candidates, correct_share, cheated_share, best_speedup, cost_usd "
        "FROM models"
    )
    assert (author, problems, candidates, best) == ("m", 2, 12, 4.0)
    assert (right, cheated) == (pytest.approx(8 / 12), pytest.approx(2 / 12))
    assert cost == pytest.approx(3.0)  # the completions without a candidate are not theirs


def test_errors_and_faults_are_named(ask: Ask) -> None:
    assert ask("SELECT verdict, what, times FROM errors") == [
        ("cheated", "two_clocks", 2),
        ("incorrect", "values", 2),
    ]
    ((fault, times),) = ask("SELECT fault, times FROM faults")
    assert "10 code blocks" in fault
    assert times == 2


def test_authors_are_held_against_each_other_on_problems_of_both(tmp_path: Path) -> None:
    sql = views_sql(["x.parquet"])
    tried = (
        "CREATE TABLE tried AS SELECT * FROM (VALUES "
        "('r', 's1', 1, 0, 'c1', 'ann', 'p', 'correct', 2.0, 1.9, 2.1),"
        "('r', 's2', 1, 0, 'c2', 'bob', 'p', 'correct', 1.5, 1.4, 1.6),"
        "('r', 's3', 1, 0, 'c3', 'ann', 'q', 'incorrect', NULL, NULL, NULL),"
        "('r', 's4', 1, 0, 'c4', 'bob', 'q', 'correct', 3.0, 2.9, 3.1),"
        "('r', 's5', 1, 0, 'c5', 'ann', 'alone', 'correct', 9.0, 8.0, 9.5)) AS t(run, search, node,"
        " parent_node, candidate, programmer, problem, verdict, speedup, speedup_lo, speedup_hi);"
        "ALTER TABLE tried ADD COLUMN sampling VARCHAR; ALTER TABLE tried ADD COLUMN findings "
        "VARCHAR; ALTER TABLE tried ADD COLUMN ladder VARCHAR DEFAULT 'strict'; ALTER TABLE tried "
        "ADD COLUMN track VARCHAR DEFAULT 'kernels'; ALTER TABLE tried ADD COLUMN device VARCHAR "
        "DEFAULT 'cpu';"
    )
    start, end = sql.index("CREATE OR REPLACE VIEW steps"), sql.index("CREATE OR REPLACE VIEW mod")
    pairs = sql[sql.index("CREATE OR REPLACE VIEW model_pairs") :].split(";")[0]
    with duckdb.connect() as connection:
        connection.execute(tried + sql[start:end] + pairs)
        found = connection.execute(
            "SELECT author, other, problems, wins, losses, geomean_ratio FROM model_pairs"
        ).fetchall()
    assert found == [
        ("ann", "bob", 2, 1, 1, pytest.approx(2.0 / 1.5)),
        ("bob", "ann", 2, 1, 1, pytest.approx(1.5 / 2.0)),
    ]
