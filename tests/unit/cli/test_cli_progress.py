import io

from rich.console import Console

from kopt.cli.progress import Progress, duration
from kopt.cli.standing import Standing
from kopt.evaluation import Evaluation, to_json
from kopt.events import (
    AnswerReceived,
    CandidateMade,
    EventBody,
    ExpansionAsked,
    ExpansionCancelled,
    SearchEnded,
    SearchStarted,
    Told,
    VerdictReached,
)
from kopt.timing import Timing
from kopt.verdict import Correct, Incorrect, NumericError, Verdict

SEARCH = "builtin/softmax/mcts-rewriter/0"


def started() -> EventBody:
    return SearchStarted(
        problem="p",
        problem_name="builtin/softmax",
        arm="mcts-rewriter",
        seed=0,
        policy="mcts",
        policy_config={},
    )


def asked(expansion: int, n: int = 2) -> EventBody:
    return ExpansionAsked(
        expansion=expansion, parent_node=0, parent=None, mode="initial", n=n, first_child=0, seed=1
    )


def answered(expansion: int, candidates: int = 2) -> EventBody:
    return AnswerReceived(
        expansion=expansion,
        index=0,
        candidates=candidates,
        answer="a",
        text=None,
        tool_calls=[],
        tokens_in=0,
        tokens_out=0,
        cost_usd=0.0,
        exhausted=False,
        note="",
    )


def made(expansion: int, index: int) -> EventBody:
    return CandidateMade(
        candidate="c",
        expansion=expansion,
        index=index,
        source="s",
        language="cpp",
        parent=None,
        strategy="",
        programmer="rewriter",
    )


def correct(speedup: float) -> Verdict:
    timing = Timing(
        time_us=100.0,
        time_ci_us=(99.0, 101.0),
        baseline="compile",
        baseline_us=100.0 * speedup,
        speedup=speedup,
        speedup_ci=(speedup - 0.1, speedup + 0.1),
        eager_us=500.0,
        compile_us=100.0 * speedup,
    )
    return Correct(timing=timing, error=NumericError(max_abs=0.0, rel_norm=0.0, rho=1.0))


def judged(expansion: int, index: int, verdict: Verdict) -> EventBody:
    evaluation = Evaluation(
        verdict=verdict,
        problem="p",
        candidate="c",
        language="cpp",
        ladder="strict",
        device="cpu",
    )
    return VerdictReached(
        candidate="c", expansion=expansion, index=index, cached=False, eval=to_json(evaluation)
    )


def told(expansion: int, index: int) -> EventBody:
    return Told(expansion=expansion, index=index, node=1, reward=0.0)


def observed(*events: EventBody, searches: int = 1, budget: int = 10) -> Standing:
    standing = Standing(searches=searches, budget=budget)
    for event in events:
        standing.observe(SEARCH, event)
    return standing


def lanes(standing: Standing) -> tuple[int, int, int]:
    return standing.writing, standing.judging, standing.told


def test_a_slot_is_in_one_lane_at_a_time():
    events = [started(), asked(0), answered(0), made(0, 0), made(0, 1)]
    assert lanes(observed(*events[:2])) == (2, 0, 0)
    assert lanes(observed(*events[:4])) == (1, 1, 0)
    assert lanes(observed(*events)) == (0, 2, 0)
    events += [judged(0, 0, Incorrect(check="x", detail="y"))]
    assert lanes(observed(*events)) == (0, 1, 0)
    assert lanes(observed(*events, told(0, 0))) == (0, 1, 1)


def test_a_cancelled_expansion_leaves_every_lane():
    cancel = ExpansionCancelled(expansion=0, exhausted=False, reason="x")
    assert lanes(observed(started(), asked(0), cancel)) == (0, 0, 0)
    assert lanes(observed(started(), asked(0), answered(0, 1), made(0, 0), cancel)) == (0, 0, 0)
    assert lanes(observed(started(), asked(0), answered(0, 0), cancel)) == (0, 0, 0)


def test_the_best_is_the_fastest_correct_candidate():
    standing = observed(
        started(),
        asked(0, 3),
        judged(0, 0, correct(1.5)),
        judged(0, 1, correct(2.5)),
        judged(0, 2, correct(2.0)),
    )
    best = standing.best["builtin/softmax"]
    assert (best.speedup, best.low, best.baseline) == (2.5, 2.4, "compile")


def test_what_is_left_is_the_budget_of_the_searches_that_run():
    events = [started(), asked(0), told(0, 0), told(0, 1)]
    assert observed(*events, searches=2).left == 18
    ended = SearchEnded(reason="exhausted", failed=False)
    assert observed(*events, ended, searches=2).left == 10
    assert observed(*events, searches=2).seconds_left(told_here=2, elapsed_s=4.0) == 36.0
    assert observed(started()).seconds_left(told_here=0, elapsed_s=4.0) is None


def test_without_a_terminal_the_end_of_a_search_is_one_line():
    stream = io.StringIO()
    with Progress(searches=1, budget=4, console=Console(file=stream)) as progress:
        for event in (
            started(),
            asked(0),
            judged(0, 0, correct(1.5)),
            told(0, 0),
            SearchEnded(reason="budget", failed=False),
        ):
            progress.observe(SEARCH, event)
    assert stream.getvalue() == (
        f"{SEARCH}: 1.50x [1.40, 1.60] over compile; 1 candidates, 1 correct\n"
    )


def test_a_failed_search_says_why():
    stream = io.StringIO()
    with Progress(searches=1, budget=4, console=Console(file=stream)) as progress:
        progress.observe(SEARCH, started())
        progress.observe(SEARCH, SearchEnded(reason="failed: no Model", failed=True))
    assert stream.getvalue() == f"{SEARCH}: failed: no Model\n"


def test_the_live_view_shows_lanes_and_best():
    console = Console(file=io.StringIO(), width=120)
    progress = Progress(searches=1, budget=4, console=console)
    for event in (started(), asked(0), judged(0, 0, correct(1.5))):
        progress.recall(SEARCH, event)
    with console.capture() as capture:
        console.print(progress.render())
    text = capture.get()
    assert "builtin/softmax" in text
    assert "1.50x" in text
    assert "2 being written" in text


def test_durations_are_read_at_a_glance():
    assert [duration(s) for s in (5.4, 200, 7500)] == ["5 s", "3 min 20 s", "2 h 05 min"]
