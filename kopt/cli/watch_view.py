"""A frame of `kopt watch`: what a run came to and does now, in 80 columns."""

from __future__ import annotations

from dataclasses import dataclass

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from kopt.cli.progress import duration
from kopt.cli.standing import Best, SearchStanding
from kopt.cli.watch_state import RECENT_S, Spending, Step, Watched
from kopt.data.lanes_file import LanesSeen

BARS = "▁▂▃▄▅▆▇█"
TREND_WIDTH = 10
SHORTEST_NAME = 10
MAX_PROBLEMS = 15
"""Problems shown: those with work under way first."""
MAX_FAILURES = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """What is known of a run beside its journal, at one look."""

    name: str
    """Of the run."""
    status: str
    """`running`, `ended`, `failed`, `interrupted`."""
    owner: str | None
    """Who drives it: `pid 7 on host`; None where nobody does."""
    device: str
    """Kind and name; empty where it is not known."""
    num_devices: int
    lanes: LanesSeen | None
    """None where nobody drives it."""
    now_ns: int
    """For an ended run, when it ended."""


def frame(watched: Watched, moment: Moment) -> RenderableType:
    """Return what the terminal shows of a run."""
    parts: list[RenderableType] = [
        Text(line, overflow="ellipsis", no_wrap=True) for line in heading(watched, moment)
    ]
    parts += [Text(), _lanes(watched, moment), Text(), *_problems(watched, moment)]
    if watched.failures:
        parts += [Text(), _failures(watched, moment)]
    return Group(*parts)


def heading(watched: Watched, moment: Moment) -> list[str]:
    """Return the lines on the run as a whole: where it stands, its pace, its cost."""
    standing = watched.standing
    state = moment.status if moment.owner is None else f"{moment.status} ({moment.owner})"
    where = f"; {moment.num_devices} x {moment.device}" if moment.device else ""
    total = standing.told + standing.left
    of_all = f" of at most {total:,}" if standing.budget else ""
    per_hour = watched.live_per_hour(num_devices=moment.num_devices, now_ns=moment.now_ns)
    recent = watched.recent_per_hour(num_devices=moment.num_devices, now_ns=moment.now_ns)
    pace = "pace not known yet" if per_hour is None else f"{per_hour:,.0f} run an hour on a device"
    if recent is not None and moment.owner is not None:
        pace += f" ({recent:,.0f} in the last {duration(RECENT_S)})"
    return [
        f"{moment.name}: {state}, {duration(watched.active_s(now_ns=moment.now_ns))}{where}",
        f"{standing.ended} of {standing.num_searches} searches ended; "
        f"{standing.told:,}{of_all} candidates told, {watched.kinds['correct']:,} correct",
        f"{watched.live:,} run, {watched.cached:,} known before; {pace}",
        cost_line(watched.spending),
    ]


def cost_line(spending: Spending) -> str:
    """Return one line on what models were paid."""
    paid = f"{spending.cost_usd:,.2f} USD" if spending.cost_usd else "no money"
    return f"cost {count(spending.tokens_in)} tokens in, {count(spending.tokens_out)} out, {paid}"


def lanes_table(lanes: LanesSeen) -> Table:
    """Return a row for each lane, as whoever drives it reported it last."""
    table = table_of("lane", numbers=("now", "places", "waiting", "taken"))
    for lane in lanes.lanes:
        table.add_row(
            lane.name,
            str(lane.num_calls),
            str(lane.num_places),
            str(lane.num_waiting),
            f"{lane.occupancy:.0%}",
        )
    return table


def _lanes(watched: Watched, moment: Moment) -> Table:
    table = table_of("lane", numbers=("now", "places", "waiting", "taken", "mean wait"))
    is_driven = moment.owner is not None
    if is_driven:
        table.add_row("programmer", str(watched.standing.writing), "", "", "", "")
    for lane in moment.lanes.lanes if moment.lanes is not None else ():
        table.add_row(
            lane.name,
            str(lane.num_calls),
            str(lane.num_places),
            str(lane.num_waiting),
            f"{lane.occupancy:.0%}",
            _mean_wait(watched, lane.name),
        )
    if moment.lanes is None:
        for name in watched.waits:
            table.add_row(name, "", "", "", "", _mean_wait(watched, name))
    share = watched.share_of_devices(
        "profiled", num_devices=moment.num_devices, now_ns=moment.now_ns
    )
    if watched.profiles and share is not None:
        table.add_row("profile", "", "", "", f"{share:.0%}", "")
    return table


def _problems(watched: Watched, moment: Moment) -> list[RenderableType]:
    by_problem: dict[str, list[SearchStanding]] = {}
    for search in watched.standing.searches.values():
        by_problem.setdefault(search.problem, []).append(search)
    # sorted() is stable: within both groups the order of starting stays.
    rows = sorted(by_problem.items(), key=lambda row: all(s.ended is not None for s in row[1]))
    table = table_of("problem", numbers=("told", "correct", "best"), words=("interval", "trend"))
    for problem, searches in rows[:MAX_PROBLEMS]:
        best = watched.standing.best.get(problem)
        table.add_row(
            name_cell(problem),
            str(sum(search.told for search in searches)),
            str(sum(search.correct for search in searches)),
            "-" if best is None else f"{best.speedup:.2f}x",
            _interval(best),
            trend(
                watched.trends.get(problem, []),
                first_ns=watched.first_ns,
                last_ns=moment.now_ns,
            ),
        )
    hidden = len(rows) - MAX_PROBLEMS
    more = [Text(f"… and {hidden} more problems")] if hidden > 0 else []
    return [table, *more]


def _failures(watched: Watched, moment: Moment) -> Table:
    table = table_of("failure", numbers=("all", "recent"), words=("newest",), giving_way="newest")
    recent = watched.recent_failures(now_ns=moment.now_ns)
    order = sorted(watched.failures, key=lambda kind: (-recent[kind], kind))
    for kind in order[:MAX_FAILURES]:
        failure = watched.failures[kind]
        where = failure.search.rpartition("/")[0].rpartition("/")[0]
        newest = f"{where}: {failure.newest}" if where else failure.newest
        table.add_row(kind, str(failure.count), str(recent[kind]), name_cell(newest))
    return table


def searches_table(watched: Watched, *, chosen: int, style: str) -> Table:
    """Return a row for each search, in the order started, below one line of titles.

    Args:
        watched: the run so far.
        chosen: place of the row that is drawn in `style`.
        style: of that row.
    """
    table = table_of("search", numbers=("told", "correct", "best"), words=("state",))
    for place, (name, search) in enumerate(watched.standing.searches.items()):
        best = watched.best.get(name)
        table.add_row(
            name_cell(name),
            str(search.told),
            str(search.correct),
            "-" if best is None else f"{best['speedup'] or 0.0:.2f}x",
            search.ended or f"{len(search.judging)} judged, {sum(search.writing.values())} written",
            style=style if place == chosen else None,
        )
    return table


def trend(steps: list[Step], *, first_ns: int, last_ns: int, width: int = TREND_WIDTH) -> str:
    """Return the best so far over time as a line of bars; a blank where there was none.

    Args:
        steps: each better than the one before.
        first_ns: time of the left end.
        last_ns: time of the right end.
        width: bars, >= 1.
    """
    if not steps:
        return ""
    low, high = steps[0].speedup, steps[-1].speedup
    bars = []
    for place in range(width):
        until_ns = first_ns + (last_ns - first_ns) * (place + 1) / width
        if place == width - 1:
            until_ns = max(until_ns, steps[-1].time_ns)
        known = [step.speedup for step in steps if step.time_ns <= until_ns]
        if not known:
            bars.append(" ")
            continue
        share = 1.0 if high <= low else (known[-1] - low) / (high - low)
        bars.append(BARS[min(len(BARS) - 1, int(share * len(BARS)))])
    return "".join(bars)


def count(number: int) -> str:
    """Return a number of tokens as `812`, `12.3k` or `4.56M`."""
    if number < 1_000:
        return str(number)
    return f"{number / 1e3:.1f}k" if number < 1_000_000 else f"{number / 1e6:.2f}M"


def _mean_wait(watched: Watched, lane: str) -> str:
    waits = watched.waits.get(lane)
    return f"{sum(waits) / len(waits):.1f} s" if waits else ""


def _interval(best: Best | None) -> str:
    return "" if best is None else f"[{best.low:.2f}, {best.high:.2f}] {best.baseline}"


def name_cell(text: str) -> Text:
    """Return a cell of the column that gives way: one line, cut where it must be."""
    return Text(text, no_wrap=True, overflow="ellipsis")


def table_of(
    name: str, *, numbers: tuple[str, ...], words: tuple[str, ...] = (), giving_way: str = ""
) -> Table:
    """Return an empty table, of which one column gives way where the terminal is narrow.

    The cells of that one are texts that do not wrap (`name_cell`); the column must say that it may.

    Args:
        name: title of the first column.
        numbers: titles of the columns after it.
        words: titles of the last ones.
        giving_way: title of the column that does; empty: the first.
    """
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False)
    for title in (name, *numbers, *words):
        is_giving = title == (giving_way or name)
        table.add_column(
            title,
            no_wrap=not is_giving,
            overflow="ellipsis",
            min_width=SHORTEST_NAME if is_giving else None,
            justify="right" if title in numbers else "left",
        )
    return table
