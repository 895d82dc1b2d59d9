"""The strategist's call of a run: asked once, kept before it is used, and never guessed at."""

from __future__ import annotations

import json
import runpy
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from kopt.actors.compiled.order import Order
from kopt.actors.programmers.config import RecordedConfig
from kopt.actors.programmers.recorded import RecordedProgrammer
from kopt.agent_call import AgentCall
from kopt.cli.compiled import CompiledJob, TakenModel, begun_models, models_folder
from kopt.cli.compiled_fleet import cut_models
from kopt.cli.fleet_entry import FleetEntry
from kopt.cli.job import spent
from kopt.cli.resume import kept_problems, unsearched_models
from kopt.cli.strategist import Hire, settle_groups
from kopt.cli.watch_state import Watched
from kopt.compiled.record import Apart, to_json
from kopt.compiled.wishes import decided
from kopt.config import load
from kopt.data.fold import fold
from kopt.data.journal import Journal, read_events
from kopt.data.record import Record
from kopt.data.rundir import RunDir
from kopt.driver.tracked_scalars import TrackedScalars
from kopt.errors import AnswerAwaited, ProgrammerRefused
from kopt.events import AgentCalled, SearchStarted
from kopt.ports import Completion, Programmer
from kopt.problem import Problem
from kopt.testing.role_player import USAGE, RolePlayer
from kopt.testing.small_workplace import small_workplace

GOLDEN = Path(__file__).parents[2] / "golden" / "prompts"
APART: Apart = replace(
    runpy.run_path(str(GOLDEN / "regen_prompts.py"))["taken_apart"](),
    problems={"two_layers/one": "# one\n"},
)
"""Its first pair is at the places 12 and 32 and fused by the rule, its second at 20 and apart."""
MODEL = Problem(name="two_layers", source="class Model: ...\n")
KEEP_FIRST = '{"pairs": [{"pair": 1, "decision": "keep", "reason": "unlike"}]}'
AS_THE_RULE = '{"pairs": [{"pair": 1, "decision": "fuse"}, {"pair": 2, "decision": "keep"}]}'


class Player(RolePlayer):
    """A programmer that only answers calls."""

    async def write(self, request: Any) -> Any:
        raise AssertionError("no program is asked for")

    async def close(self) -> None:
        """Nothing is open."""


def job(
    folder: Path, *, apart: Apart = APART, pipeline: str = "agents", **more: Any
) -> CompiledJob:
    """A job of one model that was taken apart."""
    config = load(
        {
            "problem": "x",
            "mode": "compiled",
            "device": "cpu",
            "programmer": {"kind": "openai", "base_url": "http://localhost:1/v1", "model": "m"},
            "pipeline": {"kind": pipeline},
            **more,
        }
    )
    run = RunDir(folder)
    place = models_folder(run) / MODEL.file_name
    place.mkdir(parents=True, exist_ok=True)
    order = Order(problem=MODEL, folder=str(place), cache="cache", device="cpu")
    (place / "order.json").write_text(
        json.dumps(
            {
                "problem": {"name": MODEL.name, "source": MODEL.source},
                "folder": str(place),
                "cache": "cache",
                "device": "cpu",
            }
        )
    )
    (place / "apart.json").write_text(json.dumps(to_json(apart)))
    return CompiledJob(config=config, run=run, models=[TakenModel(order=order, apart=apart)])


def hiring(programmer: Programmer) -> Hire:
    @contextmanager
    def hire(jobs: Sequence[CompiledJob]) -> Iterator[Callable[[CompiledJob], Programmer]]:
        assert jobs
        yield lambda job: programmer

    return hire


def nobody(jobs: Sequence[CompiledJob]) -> AbstractContextManager[Any]:
    raise AssertionError("nobody is to be asked")


class Cutter:
    """In place of the process that cuts anew."""

    def __init__(self, **outcome: Any) -> None:
        self.orders: list[Order] = []
        self._outcome = outcome

    def __call__(self, order: Order, *, timeout_s: float) -> Apart:
        assert timeout_s > 0
        self.orders.append(order)
        choices, _ = decided(APART.choices, order.wishes)
        return replace(APART, **{"choices": tuple(choices), **self._outcome})


def settled(one: CompiledJob, player: Player, cutter: Cutter) -> Apart:
    ((model,),), awaiting = settle_groups([one], hire=hiring(player), cut_anew=cutter)
    assert awaiting == 0
    record = json.loads((model.folder / "apart.json").read_text())
    assert record == json.loads(json.dumps(to_json(model.apart))), "what holds is in the folder"
    return model.apart


def said(text: str | Completion) -> Player:
    return Player(lambda call: text)


def test_a_model_is_cut_anew_as_the_strategist_decides(tmp_path: Path) -> None:
    player, cutter = said(KEEP_FIRST), Cutter()
    apart = settled(job(tmp_path), player, cutter)
    (call,) = player.calls
    assert (call.search, call.place.agent, call.problem) == ("", "strategist", MODEL)
    (order,) = cutter.orders
    assert [(wish.place, wish.fuse) for wish in order.wishes] == [(12, False), (32, False)]
    assert [(c.place, c.fused, c.decided_by, c.reason) for c in apart.choices] == [
        (12, False, "model", "unlike"),
        (20, False, "rule", ""),
        (32, False, "model", "unlike"),
    ]
    assert apart.strategist == (
        "decided 2 of 3 choice(s), 2 otherwise than the rule; by the rule: pair 2: not decided"
    )


def test_a_reader_finds_what_was_asked_and_said(tmp_path: Path) -> None:
    one = job(tmp_path)
    settled(one, said(KEEP_FIRST), Cutter())
    text = (one.models[0].folder / "strategist.md").read_text()
    assert "### Pair 1 (at 2 places alike" in text
    assert KEEP_FIRST in text


def test_a_multirun_that_waits_for_an_answer_keeps_every_job(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def later(call: AgentCall) -> str:
        raise AnswerAwaited("later")

    monkeypatch.setattr("kopt.cli.strategist._hire", lambda: hiring(Player(later)))
    asks = job(tmp_path / "asks")
    alone = job(tmp_path / "alone", pipeline="single")
    plain = load({"problem": "x", "device": "cpu"})
    run = RunDir(tmp_path / "plain")
    run.path.mkdir()
    entries = [
        FleetEntry("0", asks.config, (), asks.run, is_resumed=True, models=asks.models),
        FleetEntry("1", alone.config, (), alone.run, is_resumed=True, models=alone.models),
        FleetEntry("2", plain, [MODEL], run),
    ]
    cut = cut_models(entries)
    assert (cut.awaiting, [each.run for each in cut.waiting]) == (1, [asks.run])
    for one in (asks, alone):
        assert one.run.read_manifest()["config"]["mode"] == "compiled"
        assert len(unsearched_models(one.run)) == 1
    assert kept_problems(run, plain) == [MODEL]


def test_the_call_is_journalled_and_paid_for(tmp_path: Path) -> None:
    settled(job(tmp_path), said(KEEP_FIRST), Cutter())
    state = fold(read_events(tmp_path))
    (event,) = state.calls
    assert (event.agent, event.problem) == ("strategist", MODEL.problem_id)
    assert (event.tokens_in, event.tokens_out) == (USAGE.tokens_in, USAGE.tokens_out)
    total = spent(state)
    assert (total.tokens, total.cost_usd) == (110, 0.5)


def test_who_agrees_with_the_rule_costs_no_second_cut(tmp_path: Path) -> None:
    cutter = Cutter()
    apart = settled(job(tmp_path), said(AS_THE_RULE), cutter)
    assert cutter.orders == []
    assert [choice.decided_by for choice in apart.choices] == ["model"] * 3
    assert apart.strategist == "decided 3 of 3 choice(s), 0 otherwise than the rule"


@pytest.mark.parametrize(
    ("answer", "fault"),
    [
        ("I cannot say.", "by the rule: no JSON object"),
        (Completion(text="", fault="it stopped"), "by the rule: nothing was said: it stopped"),
    ],
)
def test_without_an_answer_the_rule_s_groups_stay(
    tmp_path: Path, answer: str | Completion, fault: str
) -> None:
    cutter = Cutter()
    apart = settled(job(tmp_path), said(answer), cutter)
    assert replace(apart, strategist="") == APART
    assert apart.strategist.endswith(fault)
    assert cutter.orders == []


def test_who_refuses_is_named_and_the_run_goes_on(tmp_path: Path) -> None:
    def refuse(call: AgentCall) -> str:
        raise ProgrammerRefused("openai", "the key is wrong")

    apart = settled(job(tmp_path), Player(refuse), Cutter())
    assert apart.strategist.endswith(
        "nobody answered: programmer openai cannot write: the key is wrong"
    )
    assert fold(read_events(tmp_path)).calls == []


def test_a_cut_that_fails_leaves_the_rule_s_groups(tmp_path: Path) -> None:
    apart = settled(job(tmp_path), said(KEEP_FIRST), Cutter(cause="timeout", reason="too long"))
    assert replace(apart, strategist="") == APART
    assert apart.strategist.endswith("by the rule: cutting anew failed (timeout: too long)")


def test_a_second_compile_without_the_choices_says_so(tmp_path: Path) -> None:
    apart = settled(job(tmp_path), said(KEEP_FIRST), Cutter(choices=APART.choices[1:2]))
    assert apart.strategist.endswith("2 choice(s) were not there when it was compiled anew")


@pytest.mark.parametrize("case", ["no choice", "one author", "decided before"])
def test_where_there_is_nothing_to_decide_nobody_is_asked(tmp_path: Path, case: str) -> None:
    one = job(tmp_path)
    if case == "no choice":
        one = job(tmp_path, apart=replace(APART, choices=()))
    elif case == "one author":
        one = job(tmp_path, pipeline="single")
    else:
        one = job(tmp_path, apart=replace(APART, strategist="decided"))
    before = list(one.models)
    assert settle_groups([one], hire=nobody, cut_anew=Cutter()) == ([before], 0)
    assert not (tmp_path / "journal").exists()


def test_a_resumed_run_does_not_ask_again(tmp_path: Path) -> None:
    """Killed between the answer and the cut: the journal has the one, the folder not the other."""

    class Killed(Cutter):
        def __call__(self, order: Order, *, timeout_s: float) -> Apart:
            raise KeyboardInterrupt

    first = job(tmp_path)
    with pytest.raises(KeyboardInterrupt):
        settle_groups([first], hire=hiring(said(KEEP_FIRST)), cut_anew=Killed())
    assert RunDir(tmp_path).read_manifest()["config"]["mode"] == "compiled"
    again = replace(first, models=begun_models(first.run))
    cutter = Cutter()
    ((model,),), _ = settle_groups([again], hire=nobody, cut_anew=cutter)
    assert [choice.decided_by for choice in model.apart.choices] == ["model", "rule", "model"]
    assert len(cutter.orders) == 1
    assert len(fold(read_events(tmp_path)).calls) == 1


def test_an_answer_that_comes_later_suspends_and_nothing_is_cut(tmp_path: Path) -> None:
    def later(call: AgentCall) -> str:
        raise AnswerAwaited("later")

    one, cutter = job(tmp_path), Cutter()
    models, awaiting = settle_groups([one], hire=hiring(Player(later)), cut_anew=cutter)
    assert (models, awaiting, cutter.orders) == ([list(one.models)], 1, [])
    assert settled(replace(one, models=begun_models(one.run)), said(KEEP_FIRST), cutter).strategist


def test_jobs_that_compile_alike_share_one_answer_and_pay_once(tmp_path: Path) -> None:
    jobs = [job(tmp_path / name, search={"kind": "best_of_n"}) for name in ("a", "b")]
    other = job(tmp_path / "c", pipeline="single")
    player, cutter = said(KEEP_FIRST), Cutter()
    models, _ = settle_groups([*jobs, other], hire=hiring(player), cut_anew=cutter)
    assert len(player.calls) == len(cutter.orders) == 1
    assert models[0][0].apart == models[1][0].apart
    assert models[2][0].apart == APART
    costs = [
        [call.cost_usd for call in fold(read_events(tmp_path / name)).calls] for name in ("a", "b")
    ]
    assert costs == [[0.5], [0.0]]


def test_models_of_equal_source_are_asked_about_once_and_the_run_goes_on(tmp_path: Path) -> None:
    one = job(tmp_path)
    (model,) = one.models
    place = models_folder(one.run) / "copy"
    place.mkdir(parents=True)
    order = replace(model.order, problem=replace(MODEL, name="copy"), folder=str(place))
    twice = replace(one, models=[model, replace(model, order=order)])
    player = said(KEEP_FIRST)
    ((first, second),), _ = settle_groups([twice], hire=hiring(player), cut_anew=Cutter())
    assert len(player.calls) == 1
    assert first.apart.choices == second.apart.choices
    assert len(fold(read_events(tmp_path)).calls) == 1


def test_words_of_a_model_are_one_line_of_text(tmp_path: Path) -> None:
    answer = '{"pairs": [{"pair": "\\u001b[2Jx\\ud800", "decision": "keep"}]}'
    apart = settled(job(tmp_path), said(answer), Cutter())
    assert "there is no pair" in apart.strategist
    assert apart.strategist.isprintable()
    apart.strategist.encode("utf-8")


def test_a_recording_plays_the_answer_again(tmp_path: Path) -> None:
    settled(job(tmp_path / "first"), said(KEEP_FIRST), Cutter())
    run = RunDir(tmp_path / "first")
    with Journal(run.path, run="first", clock=_Clock()) as journal:
        started = SearchStarted(
            problem="p", problem_name="p", arm="arm", seed=0, policy="beam", policy_config={}
        )
        journal.append("p/arm/0", started)
    warn: list[str] = []
    recorded = RecordedProgrammer(
        RecordedConfig(run=str(run.path)), small_workplace(tmp_path, warn=warn.append)
    )
    again = job(tmp_path / "again")
    ((model,),), _ = settle_groups([again], hire=hiring(recorded), cut_anew=Cutter())
    assert [choice.decided_by for choice in model.apart.choices] == ["model", "rule", "model"]
    (event,) = fold(read_events(tmp_path / "again")).calls
    assert isinstance(event, AgentCalled)
    assert event.cost_usd == 0.5


def entry(one: CompiledJob, *, label: str) -> FleetEntry:
    """A job of a multirun that is gone on with before its searches."""
    models = unsearched_models(one.run)
    return FleetEntry(label, one.config, (), one.run, is_resumed=True, models=models)


def test_jobs_gone_on_with_before_their_searches_are_cut_as_was_decided(tmp_path: Path) -> None:
    done = replace(APART, strategist="decided 3 of 3 choice(s)")
    jobs = [job(tmp_path / name, apart=done) for name in ("a", "b")]
    nothing = job(tmp_path / "c", apart=replace(APART, problems={}))
    assert unsearched_models(nothing.run) == []
    entries = [entry(one, label=str(n)) for n, one in enumerate([*jobs, nothing])]
    cut = cut_models(entries)
    assert cut.awaiting == 0
    assert [[each.name for each in job.problems] for job in cut.entries] == [
        ["two_layers/one"],
        ["two_layers/one"],
        [],
    ]


def test_the_bill_of_a_run_has_each_call_once() -> None:
    """A search's call is paid for in its expansion's answer; a strategist's is of no search."""
    call = AgentCalled(
        expansion=0,
        agent="planner",
        slot=0,
        turn=0,
        messages="",
        sampling={},
        text=None,
        tokens_in=100,
        tokens_out=10,
        cost_usd=0.5,
    )
    scalars, watched = TrackedScalars(), Watched(searches=1, budget=1)
    for search in ("", "s"):
        scalars.observe(search, call)
        watched.observe(Record(seq=0, time_ns=1, run="r", search=search, body=call))
    assert scalars.values()["tokens"] == 110
    assert (watched.spending.tokens_in, watched.spending.cost_usd) == (100, 0.5)


class _Clock:
    def now_ns(self) -> int:
        return 1

    def monotonic_s(self) -> float:
        return 0.0
