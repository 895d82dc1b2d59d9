"""`kopt prompt`: a node's prompt, found again in the journal of a run."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from kopt.actors.programmers.config import MailboxConfig
from kopt.actors.programmers.postbox import MailboxProgrammer
from kopt.candidate import Candidate
from kopt.cli import main
from kopt.config import load
from kopt.data.fold import RunState, fold
from kopt.data.journal import Journal
from kopt.data.journal_files import read_events
from kopt.data.rundir import RunDir
from kopt.driver.loop import Driver, Pace
from kopt.driver.task import SearchSpec, SearchTask
from kopt.ports import Answer, Completion, Programmer, Target, Usage, WriteRequest
from kopt.problem import Problem
from kopt.prompts import build
from kopt.search.searches import create_search
from kopt.testing.fakes import (
    InstantEvaluator,
    ManualClock,
    ScriptedProgrammer,
    fresh_candidates,
    hashed_verdict,
)
from kopt.testing.small_workplace import small_workplace
from kopt.verdict import Incorrect, Verdict

TARGET = Target(device="cpu", name="test", arch="x86_64", languages=("torch",))
PROBLEM = Problem(name="p", source="class Model: ...\n")


def told_in_words(request: WriteRequest) -> Answer:
    answer = fresh_candidates(request)
    return Answer(
        candidates=answer.candidates,
        messages=build(request),
        sampling={"model": "m", "seed": request.expansion.seed},
        completions=(Completion(text="…", usage=Usage(tokens_in=11)),),
    )


def mostly_wrong(problem: Problem, candidate: Candidate) -> Verdict:
    if int(candidate.candidate_id[0], 16) % 3:
        return Incorrect(check="values:own#0", detail="expected 1, found 2", error=None)
    return hashed_verdict(problem, candidate)


def make_run(
    folder: Path,
    *,
    script=told_in_words,
    judge=hashed_verdict,
    seeds: tuple[int, ...] = (0,),
    iterations: int = 4,
    mailbox: bool = False,
) -> RunDir:
    search = {"kind": "mcts", "iterations": iterations}
    config = load({"problem": "builtin/softmax", "search": search})
    clock = ManualClock()
    run = RunDir.create(folder, "first", clock=clock)
    programmer: Programmer = ScriptedProgrammer(script)
    if mailbox:
        section = MailboxConfig(wait_s=0.0, poll_s=0.01, settle_s=0.0)
        run.write_manifest({"name": "first", "created": "now", "config": plain_of(section)})
        programmer = MailboxProgrammer(section, small_workplace(run.path, warn=lambda line: None))
    tasks = [
        SearchTask(
            spec=SearchSpec(
                problem=PROBLEM, arm="default", seed=seed, policy="mcts", policy_config={}
            ),
            tree=create_search(config.search, rule=config.reward.rule(), seed=seed),
        )
        for seed in seeds
    ]
    with Journal(run.path, run=run.name, clock=clock) as journal:
        run.keep_problem(PROBLEM)
        driver = Driver(
            tasks,
            programmer=programmer,
            evaluator=InstantEvaluator(judge),
            sink=journal,
            clock=clock,
            target=TARGET,
            pace=Pace(max_in_flight=1),
        )
        asyncio.run(driver.run())
    return run


def plain_of(section: MailboxConfig) -> dict[str, object]:
    return {"programmer": section.model_dump(mode="json")}


def folded(run: RunDir) -> RunState:
    return fold(read_events(run.path))


@pytest.fixture
def run(tmp_path: Path) -> RunDir:
    return make_run(tmp_path)


def printed(capfd: pytest.CaptureFixture[str], *arguments: str) -> dict[str, object]:
    assert main(["prompt", *arguments, "--json"]) == 0
    record = json.loads(capfd.readouterr().out)
    assert isinstance(record, dict)
    return record


def complaint(capfd: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main(["prompt", *arguments]) == 2
    (line,) = capfd.readouterr().err.splitlines()
    return line


def test_a_nodes_prompt_is_printed_as_it_was_sent(run: RunDir, capfd) -> None:
    state = folded(run).searches["p/default/0"]
    expansion = state.expansions[1]
    told = next(iter(expansion.told.values()))
    candidate = expansion.candidates[told.index].candidate
    record = printed(capfd, str(run.path), str(told.node))
    assert (record["expansion"], record["node"], record["candidate"]) == (1, told.node, candidate)
    assert record["sampling"] == {"model": "m", "seed": expansion.asked.seed}
    assert record["tokens"] == 11
    assert record["mode"] == expansion.asked.mode
    messages = record["messages"]
    assert isinstance(messages, list)
    assert [message["role"] for message in messages] == ["system", "user"]
    assert "class Model: ..." in messages[1]["text"]
    # The same by the candidate's id and by the expansion.
    assert printed(capfd, str(run.path), candidate[:12]) == record
    assert printed(capfd, str(run.path), "@1")["messages"] == messages
    assert main(["prompt", str(run.path), str(told.node)]) == 0
    text = capfd.readouterr().out
    assert text.startswith(
        f"##### {expansion.asked.mode}, @1 of p/default/0, node {told.node} #####\n\n"
        "=== system ===\n\nYou make PyTorch modules faster"
    )
    assert "\n=== user ===\n\n## Reference" in text


def test_what_is_not_in_the_run_is_said_in_one_line(run: RunDir, capfd) -> None:
    path = str(run.path)
    assert "node 0 is ROOT" in complaint(capfd, path, "0")
    assert "no node, candidate or @expansion '999'" in complaint(capfd, path, "999")
    assert "no node, candidate or @expansion '@99'" in complaint(capfd, path, "@99")
    assert "no node, candidate or @expansion 'zzzz'" in complaint(capfd, path, "zzzz")
    assert "no node, candidate or @expansion ''" in complaint(capfd, path, "")
    assert "no search 'q'; there are: p/default/0" in complaint(capfd, path, "1", "--search", "q")
    assert "expected a run folder" in complaint(capfd, str(run.path.parent), "1")


def test_a_node_that_several_searches_have_wants_the_search(tmp_path: Path, capfd) -> None:
    run = make_run(tmp_path, seeds=(0, 1))
    line = complaint(capfd, str(run.path), "1")
    assert "'1' is in several searches; add --search NAME" in line
    record = printed(capfd, str(run.path), "1", "--search", "p/default/1")
    assert record["search"] == "p/default/1"
    # An id is of one search's candidate here: it needs no name.
    candidate = str(record["candidate"])
    assert printed(capfd, str(run.path), candidate) == record


def test_a_programmer_that_is_not_asked_in_words_has_no_prompt(tmp_path: Path, capfd) -> None:
    run = make_run(tmp_path, script=fresh_candidates)
    line = complaint(capfd, str(run.path), "1")
    assert "its programmer (scripted) is not asked in words" in line


def test_a_prompt_that_lies_open_in_a_mailbox_is_printed(tmp_path: Path, capfd) -> None:
    run = make_run(tmp_path, mailbox=True)
    letter, *_ = sorted((run.path / "mailbox" / "prompts").glob("*.md"))
    record = printed(capfd, str(run.path), "@0")
    assert (record["mode"], record["is_open"], record["node"]) == ("initial", True, None)
    messages = record["messages"]
    assert isinstance(messages, list)
    assert [message["role"] for message in messages] == ["system", "user"]
    assert all(message["text"] in letter.read_text() for message in messages)
    assert main(["prompt", str(run.path), "@0"]) == 0
    text, said = capfd.readouterr()
    assert text.startswith(
        "##### initial, @0 of p/default/0, open: not answered yet #####\n\n=== system ===\n\n"
    )
    assert said == f"about {record['estimated_tokens']:,} tokens\n"
    # Somebody tidied up: it is neither in the journal nor in the mailbox.
    letter.unlink()
    assert "no prompt is known yet" in complaint(capfd, str(run.path), "@0")


def test_the_stable_part_is_reported_with_each_prompt(run: RunDir, capfd) -> None:
    sent = [
        expansion.prompt for expansion in folded(run).searches["p/default/0"].expansions.values()
    ]
    first, second = (printed(capfd, str(run.path), f"@{number}") for number in (0, 1))
    stable = first["stable_tokens"]
    assert len(sent) > 1
    assert first["shared_tokens"] is None
    assert isinstance(stable, int)
    # The one before shares at least what all share, and no prompt is shorter than that.
    assert stable <= second["shared_tokens"] <= second["estimated_tokens"]
    assert stable > 1_000
    assert main(["prompt", str(run.path), "@1"]) == 0
    (line,) = capfd.readouterr().err.splitlines()
    assert line == (
        f"about {second['estimated_tokens']:,} tokens; {stable:,} of them stand at the start of "
        f"all {len(sent)} prompts of its search, {second['shared_tokens']:,} at that of the one "
        "before it"
    )


def test_prompts_of_all_three_modes_are_printed_with_what_each_is_about(
    tmp_path: Path, capfd
) -> None:
    run = make_run(tmp_path, judge=mostly_wrong, iterations=24)
    texts: dict[str, str] = {}
    for number in folded(run).searches["p/default/0"].expansions:
        record = printed(capfd, str(run.path), f"@{number}")
        messages = record["messages"]
        assert isinstance(messages, list)
        texts.setdefault(str(record["mode"]), messages[1]["text"])
    assert set(texts) == {"initial", "debug", "optimize"}
    assert "## The version" not in texts["initial"]
    assert "Mend the version below" in texts["debug"]
    assert "Make it faster" in texts["optimize"]
    for mode in ("debug", "optimize"):
        assert "## The version" in texts[mode]
        assert "## What became of it" in texts[mode]
