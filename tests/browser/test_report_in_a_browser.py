"""The report as a reader has it: drawn, filtered, walked through; silent, and off every network."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

pytest.importorskip("plotly", reason="the extra `report` is not installed")

from kopt.cli import main
from kopt.testing.sample_run import write_sample_run

pytestmark = pytest.mark.browser

HOSTILE = "</script><script>alert(1)</script><img src=x onerror=alert(2)>"
CANDIDATES = 5000
OPEN_S = 3.0


class Opened:
    """A page, and everything that it said."""

    def __init__(self, browser, path: Path, *, scheme: str = "light", width: int = 1400) -> None:
        context = browser.new_context(
            viewport={"width": width, "height": 900}, color_scheme=scheme, offline=True
        )
        self.context = context
        self.page = context.new_page()
        self.said: list[str] = []
        self.asked: list[str] = []
        self.page.on("console", lambda message: self.said.append(message.text))
        self.page.on("pageerror", lambda error: self.said.append(str(error)))
        self.page.on("dialog", lambda dialog: self.said.append(dialog.message))
        self.page.on("request", lambda request: self.asked.append(request.url))
        self.page.goto(path.as_uri())
        self.page.wait_for_selector("html[data-ready]", state="attached", timeout=60_000)

    def count(self, selector: str) -> int:
        return self.page.locator(selector).count()

    def text(self, selector: str) -> str:
        return self.page.locator(selector).inner_text()

    def measure(self, expression: str):
        return self.page.evaluate(expression)

    def check(self, path: Path) -> None:
        """Nothing was said, asked or left out."""
        assert self.said == []
        assert self.asked == [path.as_uri()]
        assert self.page.locator("#trouble").is_hidden()
        self.context.close()


@pytest.fixture(scope="module")
def report(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("runs")
    run = write_sample_run(folder / "first", words=HOSTILE, source=f"# {HOSTILE}\n")
    assert main(["report", str(run.path), "--out", str(folder / "out")]) == 0
    return folder / "out" / "report.html"


@pytest.mark.parametrize(("scheme", "width"), [("light", 1400), ("dark", 1400), ("light", 390)])
def test_every_chart_is_drawn_and_nothing_spills(browser, report, scheme, width):
    opened = Opened(browser, report, scheme=scheme, width=width)
    charts = opened.count("[data-chart]")
    assert charts == 11
    assert opened.count("[data-chart] .main-svg:first-child") == charts
    assert opened.measure("document.documentElement.dataset.theme") == scheme
    assert opened.measure("document.documentElement.scrollWidth <= innerWidth")
    opened.check(report)


def test_filters_leave_the_rows_that_fit(browser, report):
    opened = Opened(browser, report)
    shown = "#searches tbody tr:not([hidden])"
    assert opened.count(shown) == 12
    opened.page.check("#f-wins")
    assert opened.count(shown) == 7
    assert opened.text("#f-count") == "7 of 12"
    opened.page.select_option("#f-arm", "greedy-openai")
    assert opened.count(shown) == 3
    opened.page.fill("#f-text", "P1")
    assert opened.count(shown) == 1
    opened.page.fill("#f-text", "nothing of that kind")
    assert opened.page.locator("#f-none").is_visible()
    opened.check(report)


def test_columns_sort_both_ways_with_the_unknown_last(browser, report):
    opened = Opened(browser, report)
    head = opened.page.locator("#searches thead button", has_text="speed-up").first
    column = "#searches tbody tr td:nth-child(5)"
    head.click()
    falling = opened.page.locator(column).all_inner_texts()
    assert falling[:3] == ["4.00×", "2.00×", "2.00×"]
    assert falling[-2:] == ["–", "–"]
    head.click()
    rising = opened.page.locator(column).all_inner_texts()
    assert rising[0] == "1.00×"
    assert rising[-2:] == ["–", "–"]
    opened.check(report)


def test_the_tree_is_walked_and_its_panel_tells_of_each_node(browser, report):
    opened = Opened(browser, report)
    assert opened.text("#t-panel h3") == "Node 6: correct, 4.00×"
    assert opened.count("#t-panel .line.add") == 1
    opened.page.click("#t-parent")
    opened.page.wait_for_selector("#t-panel h3:has-text('Node 2')")
    assert opened.page.locator("#t-parent").is_disabled()
    opened.page.click("#t-back")
    opened.page.wait_for_selector("#t-panel h3:has-text('Node 1: incorrect')")
    opened.page.get_by_text("Findings (0)").click()
    assert "No evidence was collected of this candidate." in opened.text("#t-panel")
    opened.page.locator("#searches tbody tr").nth(5).locator("[data-tree]").click()
    opened.page.wait_for_selector("#t-said:has-text('none of them correct')")
    opened.check(report)


def test_a_click_on_a_node_opens_it_and_the_wheel_zooms(browser, report):
    opened = Opened(browser, report)
    opened.page.locator("#tree").scroll_into_view_if_needed()
    points = opened.page.locator("#t-picture .scatterlayer .trace .points path.point")
    assert points.count() >= 8  # ROOT, six nodes, the rings
    before = opened.measure("document.getElementById('t-picture').layout.xaxis.range.join()")
    box = opened.page.locator("#t-picture .nsewdrag").bounding_box()
    opened.page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    opened.page.mouse.wheel(0, -300)
    opened.page.wait_for_timeout(400)
    after = opened.measure("document.getElementById('t-picture').layout.xaxis.range.join()")
    assert after != before
    opened.page.click("#t-fit")
    opened.page.wait_for_timeout(200)
    place = opened.measure(
        """() => { const plot = document.getElementById('t-picture');
        const box = plot.querySelector('.nsewdrag').getBoundingClientRect();
        const { xaxis, yaxis } = plot._fullLayout;
        const at = plot.data.flatMap((trace) => (trace.customdata || []).map((node, i) =>
          [node, trace.x[i], trace.y[i]])).find(([node]) => node === 2);
        return [box.x + xaxis.d2p(at[1]), box.y + yaxis.d2p(at[2])]; }"""
    )
    opened.page.mouse.click(*place)
    opened.page.wait_for_selector("#t-panel h3:has-text('Node 2')")
    opened.check(report)


def test_the_roofline_is_drawn_with_the_candidate_on_it(browser, report):
    opened = Opened(browser, report)
    opened.page.locator("#t-panel summary", has_text="Roofline").click()
    opened.page.wait_for_selector("#t-panel .main-svg")
    assert "100 %" in opened.text("#t-panel")
    opened.check(report)


def test_hostile_words_are_shown_as_they_are(browser, report):
    opened = Opened(browser, report)
    assert HOSTILE in opened.text("#t-panel")
    opened.page.locator("#t-panel summary", has_text="Messages").click()
    opened.page.locator("#t-panel summary", has_text="answer 1").click()
    assert opened.count("#t-panel img") == 0
    assert opened.count("#t-panel script") == 0
    opened.check(report)


def test_the_theme_turns_and_charts_follow(browser, report):
    opened = Opened(browser, report)
    colour = "document.querySelector('[data-chart] .xtick text').style.fill"
    light = opened.measure(colour)
    opened.page.click("#theme")
    opened.page.click("#theme")
    assert opened.text("#theme") == "Theme: dark"
    opened.page.wait_for_timeout(500)
    assert opened.measure(colour) != light
    opened.check(report)


def test_paper_has_the_tables_and_every_chart(browser, report, tmp_path):
    opened = Opened(browser, report, scheme="dark")
    opened.page.pdf(path=tmp_path / "report.pdf")
    assert (tmp_path / "report.pdf").stat().st_size > 20_000
    opened.page.emulate_media(media="print")
    assert opened.page.locator("#searches").is_visible()
    assert opened.page.locator("#tree").is_hidden()
    opened.check(report)


@pytest.mark.alone
def test_five_thousand_candidates_open_in_three_seconds(browser, tmp_path, capfd):
    """By the processor's time of the page's one thread: a busy host must not fail it."""
    # 12 searches of 2 candidates an expansion.
    run = write_sample_run(tmp_path / "wide", expansions=CANDIDATES // 24 + 1)
    assert main(["report", str(run.path), "--out", str(tmp_path), "--json"]) == 0
    assert json.loads(capfd.readouterr().out)["in_full"] >= CANDIDATES
    path = tmp_path / "report.html"
    page = browser.new_page()
    profiler = page.context.new_cdp_session(page)
    profiler.send("Performance.enable", {"timeDomain": "threadTicks"})
    page.goto(path.as_uri())
    page.wait_for_selector("html[data-ready]", state="attached", timeout=120_000)
    figures = profiler.send("Performance.getMetrics")["metrics"]
    assert next(each["value"] for each in figures if each["name"] == "TaskDuration") < OPEN_S
    page.close()
