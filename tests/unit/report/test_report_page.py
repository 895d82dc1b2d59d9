"""`kopt report` on run folders: the page's structure, its truth, hostile text in it."""

from __future__ import annotations

import base64
import csv
import gzip
import hashlib
import json
from html.parser import HTMLParser
from pathlib import Path

import pytest

pytest.importorskip("plotly", reason="the extra `report` is not installed")

from kopt.analysis.study import Asked
from kopt.cli import main
from kopt.cli.stats_runs import count
from kopt.data.rundir import RunDir
from kopt.report.contents import NO_BLOCK, contents
from kopt.report.page import html
from kopt.report.reading import read_run
from kopt.report.report import Report, make_report
from kopt.testing.sample_run import write_sample_run

HOSTILE = (
    "</script><script>alert(1)</script><img src=x onerror=alert(2)>\" onload='alert(3)' {{7*7}}"
)
LIBRARY = "window.Plotly = {};"


class Page(HTMLParser):
    """What of a page the tests ask for."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.scripts: list[tuple[dict[str, str | None], str]] = []
        self.rows: list[list[str]] = []
        self.words = ""
        self._script: list[str] | None = None
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag == "script":
            self._script = []
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th") and self.rows:
            self.rows[-1].append("")

    def handle_endtag(self, tag):
        if tag == "script" and self._script is not None:
            attributes = next(a for t, a in reversed(self.tags) if t == "script")
            self.scripts.append((attributes, "".join(self._script)))
            self._script = None

    def handle_data(self, data):
        if self._script is not None:
            self._script.append(data)
            return
        self.words += data
        if self.rows and self.rows[-1]:
            self.rows[-1][-1] += data

    def block(self, name: str):
        text = next(text for attributes, text in self.scripts if attributes.get("id") == name)
        return json.loads(gzip.decompress(base64.b64decode(text)))

    def row(self, problem: str, arm: str) -> list[str]:
        rows = [[" ".join(cell.split()) for cell in row] for row in self.rows]
        return next(row for row in rows if row[:1] and row[0].startswith(problem) and row[1] == arm)


def report_of(folder: Path, *, most: int = 5000) -> Report:
    asked = Asked()
    counted = count([str(folder)], asked=asked, over="recorded", with_unfinished=False)
    runs = [read_run(RunDir.open(r.path), label=r.label, status=r.status) for r in counted.runs]
    return make_report(
        runs, counted.study, asked=asked, title=folder.name, most=most, notes=counted.notes
    )


def page_of(folder: Path) -> Page:
    return Page(html(report_of(folder), plotly_js=LIBRARY, made_ns=0))


@pytest.fixture(scope="module")
def run(tmp_path_factory) -> Path:
    return write_sample_run(tmp_path_factory.mktemp("runs") / "first").path


@pytest.fixture(scope="module")
def page(run) -> Page:
    return page_of(run)


def test_every_part_of_the_page_is_there(page):
    sections = [attributes["id"] for tag, attributes in page.tags if tag == "section"]
    assert sections == ["summary", "problems", "charts", "ablations", "tree", "cost", "about"]
    links = [a["href"] for tag, a in page.tags if tag == "a"]
    assert links == [f"#{section}" for section in sections]
    ids = [a["id"] for _, a in page.tags if "id" in a]
    assert len(ids) == len(set(ids))


def test_every_chart_of_the_page_has_its_figure_and_words(page):
    charts = [a for _, a in page.tags if "data-chart" in a]
    figures = page.block("data-main")["charts"]
    assert sorted(a["data-chart"] for a in charts) == sorted(figures)
    assert len(figures) == 11
    assert all(len(a["aria-label"]) > 40 for a in charts)


def test_a_win_is_marked_and_a_matched_search_is_not(page):
    # Of the sample: 4.00 with ± 1 % is a win; 1.005 is not, nor is a degenerate problem's.
    assert page.row("set/p0", "mcts-openai")[3:6] == ["✓ optimized", "4.00×", "3.96 to 4.04"]
    assert page.row("set/p3", "greedy-openai")[3] == "matched"
    assert page.row("set/p5", "mcts-openai")[3:6] == ["unsolved", "–", ""]
    assert page.row("set/p4", "mcts-openai")[0] == "set/p4 degenerate"


def test_the_headline_counts_wins_of_sound_problems_alone(page):
    # 4 of mcts and 3 of greedy, of 5 problems each that are not degenerate.
    assert (
        "7 of 10 searches found a kernel that is surely faster, on 4 of 5 problems." in page.words
    )
    assert "the faster of eager and compile" in page.words
    assert "ladder strict" in page.words


def test_a_baseline_that_was_not_measured_is_said(page):
    row = next(row for row in page.rows if row and row[0] == "mcts-openai")
    assert "not measured" in [cell.strip() for cell in row]


def test_arms_are_compared_with_their_chances(page):
    # Four pairs differ, all one way: one-sided p = 1/16.
    row = next(row for row in page.rows if row and row[0] == "mcts-openai ÷ greedy-openai")
    assert row[4:7] == ["4 / 1 / 0", "0.062", "0.12"]


def test_the_page_asks_nothing_of_a_network(run):
    text = html(report_of(run), plotly_js=LIBRARY, made_ns=0)
    page = Page(text)
    assert not [a for _, a in page.tags if "src" in a]
    assert not [tag for tag, _ in page.tags if tag in ("link", "iframe", "object", "embed")]
    policy = next(a for _, a in page.tags if a.get("http-equiv") == "Content-Security-Policy")
    assert policy["content"].startswith("default-src 'none'")
    assert "unsafe-eval" not in policy["content"]
    assert "http" not in policy["content"]


def test_only_the_scripts_of_the_page_may_run(page):
    policy = next(a for _, a in page.tags if a.get("http-equiv") == "Content-Security-Policy")
    running = [text for attributes, text in page.scripts if "type" not in attributes]
    assert len(running) == 1
    for script in (*running, LIBRARY):
        digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
        assert f"'sha256-{digest}'" in policy["content"]


def test_hostile_text_stays_text(tmp_path, run, page):
    hostile = page_of(
        write_sample_run(tmp_path / "first", words=HOSTILE, source=f"# {HOSTILE}\n").path
    )
    assert len(hostile.scripts) == len(page.scripts)
    assert [tag for tag, _ in hostile.tags] == [tag for tag, _ in page.tags]
    handlers = [a for _, a in hostile.tags for name in a if name.startswith("on")]
    assert handlers == []
    assert any(HOSTILE in text for text in hostile.block("data-block-0")["texts"])


def test_names_of_a_run_are_text_as_well(tmp_path):
    folder = write_sample_run(tmp_path / "<script>alert(4)<").path
    found = page_of(folder)
    assert "<script>alert(4)<" in found.words
    assert len([1 for attributes, _ in found.scripts if "type" not in attributes]) == 1


def test_a_candidate_is_told_with_everything_that_is_known(page):
    node = page.block("data-block-0")["nodes"]["6"]
    assert node["verdict"]["is_win"]
    assert node["verdict"]["speedup_ci"] == [pytest.approx(3.96), pytest.approx(4.04)]
    assert node["verdict"]["ladder"] == "strict"
    assert "+    node = 6  # set/p0/mcts-openai/0" in node["changes"]
    assert node["measured"]["roof"]["sol_share"] == 1.0
    assert node["measured"]["findings"][0]["tool"] == "uncoalesced"
    assert [role for role, _ in node["dialogue"]["messages"]] == ["system", "user"]


def test_a_candidate_that_was_not_profiled_says_so(page):
    node = page.block("data-block-0")["nodes"]["1"]
    assert node["verdict"]["kind"] == "incorrect"
    assert node["changes"] is None
    assert node["measured"] == {"note": "No evidence was collected of this candidate."}


def test_the_ways_to_the_best_candidates_are_told_however_few_are_asked_for(run):
    runs = report_of(run).runs
    found = contents(runs, most=3)
    # The first search: nodes 1 to 3, and node 6 on the way to its best. Each of the nine other
    # searches with a correct candidate: nodes 2 and 6.
    assert found.trees[0]["block"] == [0, 0, 0, NO_BLOCK, NO_BLOCK, 0]
    assert found.candidates == 72
    assert found.told == 4 + 9 * 2


def test_a_lost_text_is_said_and_not_made_up(tmp_path):
    run = write_sample_run(tmp_path / "first")
    for path in run.artefacts.folder.glob("*/*"):
        path.unlink()
    found = page_of(run.path).block("data-block-0")
    assert found["nodes"]["6"]["measured"]["note"].startswith("The evidence cannot be read")
    assert found["texts"] == ["(this text is not in the run's artefacts any more)"]


def test_the_command_writes_the_page_and_its_tables(run, tmp_path, capfd):
    out = tmp_path / "out"
    assert main(["report", str(run), "--out", str(out), "--json"]) == 0
    said = json.loads(capfd.readouterr().out)
    assert said["searches"] == 12
    assert said["candidates"] == said["in_full"] == 72
    names = ["arms.csv", "comparisons.csv", "report.html", "searches.csv", "stats.json"]
    assert sorted(path.name for path in out.iterdir()) == names
    with (out / "searches.csv").open(newline="", encoding="utf-8") as lines:
        rows = list(csv.DictReader(lines))
    assert len(rows) == 12
    assert sum(row["is_win"] == "True" for row in rows) == 7
    assert rows[0]["speedup"] == "4.0"
    with (out / "arms.csv").open(newline="", encoding="utf-8") as lines:
        assert [row["arm"] for row in csv.DictReader(lines)] == ["mcts-openai", "greedy-openai"]


def test_a_report_of_one_run_lies_in_its_folder(tmp_path, capfd):
    run = write_sample_run(tmp_path / "first")
    assert main(["report", str(run.path)]) == 0
    assert (run.path / "report" / "report.html").is_file()
    assert "12 search(es), 72 candidate(s), 72 of them in full" in capfd.readouterr().out
    assert main(["stats", str(run.path)]) == 0  # the folder is a run's as before


def test_what_is_no_run_is_one_line(tmp_path, capfd):
    assert main(["report", str(tmp_path)]) == 2
    assert capfd.readouterr().err.startswith(f"kopt: {tmp_path}: expected a run folder")


def test_a_text_that_a_spreadsheet_would_run_is_held(tmp_path):
    from kopt.report.csv_tables import _csv

    assert _csv([{"a": "=1+1", "b": -1.0}]).splitlines() == ["a,b", "'=1+1,-1.0"]
