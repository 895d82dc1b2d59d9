"""The live view of a fleet on standard error: a table on a terminal, a line a search elsewhere."""

from __future__ import annotations

import threading
import time
from types import TracebackType
from typing import Self

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from kopt.cli.standing import Best, SearchStanding, Standing
from kopt.events import EventBody, SearchEnded, Told
from kopt.ports import Target

REFRESH_HZ = 2
"""Few enough that drawing does not disturb what is timed on the same CPU."""
MAX_ROWS = 15
"""Problems shown at once: those with work under way first."""


class Progress:
    """Shows events as they come. A context manager; `observe` is the driver's observer."""

    def __init__(self, *, searches: int, budget: int, console: Console | None = None) -> None:
        """Prepare the view.

        Args:
            searches: of the whole fleet.
            budget: candidates of one search, at most.
            console: to draw on; None takes standard error.
        """
        self._console = console or Console(stderr=True, highlight=False)
        self._standing = Standing(searches=searches, budget=budget)
        self._lock = threading.Lock()  # the live view draws from a thread of its own
        self._began_s = time.monotonic()
        self._told_before = 0
        self._device = ""
        self._live: Live | None = None

    def __enter__(self) -> Self:
        if self._console.is_terminal:
            self._live = Live(
                get_renderable=self.render,
                console=self._console,
                refresh_per_second=REFRESH_HZ,
                transient=True,
                redirect_stdout=False,
                redirect_stderr=False,
            )
            self._live.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._live is not None:
            self._live.stop()

    def recall(self, search: str, event: EventBody) -> None:
        """Take in an event of an earlier part of the run: what is left does not depend on it."""
        with self._lock:
            self._standing.observe(search, event)
            self._told_before += isinstance(event, Told)

    def on_target(self, target: Target) -> None:
        """Show which device candidates are written for."""
        with self._lock:
            self._device = f"{target.device}: {target.name}"
            self._began_s = time.monotonic()
        self.say(f"searching on {self._device}")

    def observe(self, search: str, event: EventBody) -> None:
        """Take one event in; without a terminal, the end of a search is a line."""
        with self._lock:
            self._standing.observe(search, event)
            standing = self._standing.searches.get(search)
            line = ""
            if isinstance(event, SearchEnded) and standing is not None:
                line = end_line(search, standing, self._standing.best.get(standing.problem))
        if line:
            self.say(line)

    def render(self) -> RenderableType:
        """Return what the terminal shows now."""
        with self._lock:
            return self._render()

    def say(self, line: str) -> None:
        """Show one line."""
        self._console.print(line, markup=False, soft_wrap=True)

    def _render(self) -> RenderableType:
        standing = self._standing
        elapsed_s = time.monotonic() - self._began_s
        left_s = standing.seconds_left(
            told_here=standing.told - self._told_before, elapsed_s=elapsed_s
        )
        table = Table(box=None, padding=(0, 2, 0, 0))
        for name in ("problem", "done", "in flight", "correct", "best so far"):
            table.add_column(name, no_wrap=True)
        rows = _by_problem(standing)
        for problem, searches in rows[:MAX_ROWS]:
            table.add_row(
                problem,
                str(sum(search.told for search in searches)),
                _flight(searches),
                str(sum(search.correct for search in searches)),
                _best_text(standing.best.get(problem)),
            )
        total = standing.told + standing.left
        lanes = Text(
            f"{standing.told} candidates done, {standing.writing} being written, "
            f"{standing.judging} being judged"
        )
        times = Text(
            f"{standing.ended} of {standing.num_searches} searches ended; "
            f"{duration(elapsed_s)} gone"
            + ("" if left_s is None else f", at most {duration(left_s)} left")
        )
        bar = Table.grid()  # a bar alone would not end its line
        bar.add_row(ProgressBar(total=max(1, total), completed=standing.told, width=60))
        hidden = len(rows) - MAX_ROWS
        more = [Text(f"… and {hidden} more problems")] if hidden > 0 else []
        return Group(Text(self._device), bar, lanes, times, table, *more)


def end_line(search: str, standing: SearchStanding, best: Best | None) -> str:
    """Return one line for a search that ended."""
    if standing.failed:
        return f"{search}: {standing.ended}"
    found = f"no correct candidate ({standing.ended})" if best is None else _best_text(best)
    faulty = f", {standing.faulty} answer(s) without one" if standing.faulty else ""
    return f"{search}: {found}; {standing.told} candidates, {standing.correct} correct{faulty}"


def duration(seconds: float) -> str:
    """Return seconds as `42 s`, `3 min 20 s` or `2 h 05 min`."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02d} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02d} min"


def _best_text(best: Best | None) -> str:
    if best is None:
        return "-"
    return f"{best.speedup:.2f}x [{best.low:.2f}, {best.high:.2f}] over {best.baseline}"


def _flight(searches: list[SearchStanding]) -> str:
    writing = sum(sum(search.writing.values()) for search in searches)
    judging = sum(len(search.judging) for search in searches)
    if all(search.ended is not None for search in searches):
        return "ended"
    return f"{writing} written, {judging} judged" if writing or judging else "waiting"


def _by_problem(standing: Standing) -> list[tuple[str, list[SearchStanding]]]:
    grouped: dict[str, list[SearchStanding]] = {}
    for search in standing.searches.values():
        grouped.setdefault(search.problem, []).append(search)
    # sorted() is stable: within both groups the order of starting stays.
    return sorted(grouped.items(), key=lambda row: all(s.ended is not None for s in row[1]))
