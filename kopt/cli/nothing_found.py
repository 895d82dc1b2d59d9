"""Why a problem's searches found nothing faster, and what to try. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from kopt.data.fold import SearchState
from kopt.evaluation import EvalJson
from kopt.events import SearchExtended

MORE = 4
"""How many times the iterations of a search that had too few are proposed."""
NEAR_THE_LIMIT = 0.8
"""Share of the speed of light above which little is left to gain."""
MAX_REASON = 160
"""Characters of a verdict's reason that are shown."""
LIMIT = "limits."
"""What the reason of an end by a limit begins with (kopt.driver.limits)."""
OTHER_AUTHORS = (
    "another author: programmer=openai programmer.model=NAME, programmer=mailbox (you), or a "
    "kernel of yours to start from, search.seeds=[my_kernel.py]"
)
WIDER = (
    "if the problem allows a larger error: evaluate=tf32 or evaluate=loose (they change what counts"
    " as right)"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class NothingFound:
    """What is said of a problem without a win."""

    why: str
    """One line; empty where none of the searches has ended."""
    tries: tuple[str, ...]
    """One line each, the most promising first."""


def nothing_found(
    searches: Sequence[tuple[str, SearchState]], *, best: EvalJson | None, run: str
) -> NothingFound:
    """Return why a problem has no kernel that is surely faster, and what to try.

    Args:
        searches: of the problem, with their names; at least one, none with a win.
        best: evaluation of the fastest correct candidate; None: none is.
        run: the run folder's path, as a user would type it.
    """
    if all(search.ended is None for _, search in searches):
        return NothingFound(why="", tries=())  # there may be something yet
    verdicts = [
        evaluation
        for _, search in searches
        for expansion in search.expansions.values()
        for evaluation in expansion.verdicts.values()
    ]
    if best is not None:
        correct = sum(each["kind"] == "correct" for each in verdicts)
        return NothingFound(
            why=f"{correct} of {len(verdicts)} candidates are right, none surely faster: "
            + _of_best(best),
            tries=tuple(_tries_with_best(searches, best, run=run)),
        )
    if verdicts:
        return NothingFound(
            why=_of_failures(verdicts), tries=tuple(_tries_after_failures(searches, verdicts, run))
        )
    reasons = [search.ended.reason for _, search in searches if search.ended is not None]
    why = _short(reasons[-1].removeprefix("exhausted: "))
    if why.startswith(LIMIT):
        why = f"{why} was reached first"
    return NothingFound(
        why=f"no candidate was written: {why}", tries=tuple(_go_on(searches, run=run))
    )


def _of_best(best: EvalJson) -> str:
    low, high = best["speedup_ci"] or (0.0, 0.0)
    text = f"the fastest reached {best['speedup'] or 0.0:.2f}x [{low:.2f}, {high:.2f}]"
    if best["baseline"] is not None:
        text += f" over {best['baseline']}"
    share = best["sol_share"]
    if share is not None and share >= NEAR_THE_LIMIT:
        text += f", {share:.0%} of what the device can do at most: little is left to gain"
    return text


def _of_failures(verdicts: Sequence[EvalJson]) -> str:
    kinds = Counter(each["kind"] for each in verdicts)
    counts = ", ".join(f"{count} {kind}" for kind, count in kinds.most_common())
    commonest = kinds.most_common(1)[0][0]
    last = [each["reason"] for each in verdicts if each["kind"] == commonest][-1]
    return f"none of {len(verdicts)} candidates is right ({counts}); the last said: {_short(last)}"


def _tries_with_best(
    searches: Sequence[tuple[str, SearchState]], best: EvalJson, *, run: str
) -> Iterator[str]:
    yield from _go_on(searches, run=run)
    if (best["sol_share"] or 0.0) >= NEAR_THE_LIMIT:
        yield WIDER


def _tries_after_failures(
    searches: Sequence[tuple[str, SearchState]], verdicts: Sequence[EvalJson], run: str
) -> Iterator[str]:
    kinds = Counter(each["kind"] for each in verdicts)
    commonest = kinds.most_common(1)[0][0]
    yield f"what became of each candidate: kopt watch {run} --search {searches[0][0]}"
    if commonest == "compile_failed":
        yield "kopt doctor: compilers, and packages that are missing"
    elif commonest == "timed_out":
        yield "more time: evaluate.timeouts.… (each stage has its own), or smaller inputs"
    elif commonest == "incorrect":
        yield WIDER
    yield from _go_on(searches, run=run)


def _go_on(searches: Sequence[tuple[str, SearchState]], *, run: str) -> Iterator[str]:
    """What the ends of the searches say: more of the same, or something else."""
    ended = [search.ended.reason for _, search in searches if search.ended is not None]
    limits = sorted({reason.partition("=")[0] for reason in ended if reason.startswith(LIMIT)})
    for limit in limits:
        yield f"more of what ended it: kopt resume {run} {limit}=MORE"
    if any(reason == "budget" for reason in ended):
        iterations = max(_iterations(search) for _, search in searches)
        yield f"more candidates: kopt resume {run} search.iterations={MORE * max(1, iterations)}"
    yield OTHER_AUTHORS


def _iterations(search: SearchState) -> int:
    """Expansions that the search may ask for, as it was last told."""
    configs = [each.policy_config for each in search.operations if isinstance(each, SearchExtended)]
    last = [search.started.policy_config, *configs][-1]
    return int((last.get("search") or {}).get("iterations") or 0)


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= MAX_REASON else f"{line[: MAX_REASON - 1]}…"
