"""The mailbox in rounds: nobody is waited for, and what was answered meanwhile is taken."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from kopt.actors.programmers.config import MailboxConfig
from kopt.actors.programmers.postbox import MailboxProgrammer
from kopt.actors.programmers.postbox.letter import letter_text, messages_of, prompt_id
from kopt.data.rundir import RunDir
from kopt.errors import AnswerAwaited
from kopt.expansion import first_expansion
from kopt.memory.history import History
from kopt.ports import Answer, WriteRequest
from kopt.prompts import build
from kopt.testing.small_fleet import SMALL_TARGET, small_problem
from kopt.testing.small_workplace import small_workplace

POLL_S = 0.01
SETTLE_S = 0.05


def request(ordinal: int = 0, *, wanted: int = 2) -> WriteRequest:
    return WriteRequest(
        problem=small_problem(),
        target=SMALL_TARGET,
        search="set/one/arm/0",
        arm="arm",
        seed=0,
        expansion=first_expansion(
            num_candidates=wanted, ordinal=ordinal, first_child=ordinal * wanted, seed=1
        ),
        parent=None,
    )


def written(identifier: str, *numbers: int) -> str:
    blocks = [
        f"strategy: idea {n}\n\n```python\nfrom torch import nn\n\n\nclass ModelNew(nn.Module):\n"
        f"    def forward(self, x):\n        return x + {n}\n```\n"
        for n in numbers
    ]
    return f"prompt: {identifier}\n\n" + "\n".join(blocks)


class Round:
    """One sitting with a mailbox in a run folder."""

    def __init__(self, run_dir: Path, *, wait_s: float | None = 0.0) -> None:
        self.said: list[str] = []
        self.box = run_dir / "mailbox"
        self.programmer = MailboxProgrammer(
            MailboxConfig(wait_s=wait_s, poll_s=POLL_S, settle_s=SETTLE_S),
            small_workplace(run_dir, warn=self.said.append),
        )

    def play(self, *requests: WriteRequest) -> list[Answer | BaseException]:
        async def all_at_once() -> list[Answer | BaseException]:
            try:
                async with asyncio.timeout(20):
                    return await asyncio.gather(
                        *map(self.programmer.write, requests), return_exceptions=True
                    )
            finally:
                await self.programmer.close()

        return asyncio.run(all_at_once())

    def open(self) -> list[str]:
        return sorted(path.stem for path in (self.box / "prompts").glob("*.md"))

    def put(self, identifier: str, text: str) -> None:
        (self.box / "answers" / f"{identifier}.md").write_text(text)


def strategies(answer: Answer | BaseException) -> list[str]:
    assert isinstance(answer, Answer), answer
    return [candidate.strategy for candidate in answer.candidates]


def test_a_round_lays_prompts_out_and_ends(tmp_path: Path) -> None:
    first = Round(tmp_path)
    outcomes = first.play(request(0), request(1))
    assert [type(outcome) for outcome in outcomes] == [AnswerAwaited, AnswerAwaited]
    assert len(first.open()) == 2
    assert not (first.box / "expired").exists()


def test_the_next_round_takes_what_was_answered_and_leaves_the_rest(tmp_path: Path) -> None:
    Round(tmp_path).play(request(0), request(1), request(2))
    second = Round(tmp_path)
    one, two, three = second.open()
    second.put(one, written(one, 3, 4))
    second.put(two, written(two, 5))  # fewer than wanted: taken once the file has settled
    outcomes = second.play(request(0), request(1), request(2))
    assert strategies(outcomes[0]) == ["idea 3", "idea 4"]
    assert strategies(outcomes[1]) == ["idea 5"]
    assert isinstance(outcomes[2], AnswerAwaited)
    assert second.open() == [three]


def test_an_answer_that_cannot_be_used_is_refused_before_the_round_ends(tmp_path: Path) -> None:
    Round(tmp_path).play(request())
    second = Round(tmp_path)
    (identifier,) = second.open()
    second.put(identifier, f"prompt: {identifier}\n\nI would fuse it.\n")
    second.put("another", written("another", 3))
    (outcome,) = second.play(request())
    assert isinstance(outcome, AnswerAwaited)
    assert second.open() == [identifier]
    assert "no code block" in (second.box / "refused.log").read_text()
    assert any("'another.md' in answers/ has no prompt's name" in line for line in second.said)


def test_a_prompt_is_waited_for_as_long_as_is_said(tmp_path: Path) -> None:
    patient = Round(tmp_path, wait_s=20.0)

    async def answered_late() -> Answer:
        asked = asyncio.create_task(patient.programmer.write(request()))
        while not patient.open():
            await asyncio.sleep(POLL_S)
        await asyncio.sleep(5 * POLL_S)
        (identifier,) = patient.open()
        patient.put(identifier, written(identifier, 3, 4))
        async with asyncio.timeout(10):
            answer = await asked
        await patient.programmer.close()
        return answer

    assert strategies(asyncio.run(answered_late())) == ["idea 3", "idea 4"]


def test_a_run_that_was_moved_or_renamed_finds_its_answers(tmp_path: Path) -> None:
    run = RunDir(tmp_path / "here")
    run.path.mkdir()
    run.write_manifest({"name": "here", "created": "2026-03-01T14:05:33+00:00"})
    Round(run.path).play(request())
    (tmp_path / "elsewhere").mkdir()
    moved = tmp_path / "elsewhere" / "renamed"
    run.path.rename(moved)
    second = Round(moved)
    (identifier,) = second.open()
    second.put(identifier, written(identifier, 3, 4))
    assert strategies(*second.play(request())) == ["idea 3", "idea 4"]


def test_runs_of_one_name_that_began_at_other_times_share_no_answers(tmp_path: Path) -> None:
    identities = []
    for number in range(2):
        run = RunDir(tmp_path / str(number) / "run")
        run.path.mkdir(parents=True)
        run.write_manifest({"name": "run", "created": f"2026-03-0{number + 1}T14:05:33+00:00"})
        identities.append(run.identity())
    ids = {prompt_id(request(), run=identity) for identity in identities}
    assert len(ids) == 2
    unknown = RunDir(tmp_path / "none")
    assert unknown.identity() == "none"


@pytest.mark.parametrize("taken_before", [False, True])
def test_what_is_journalled_is_the_prompt_as_it_was_answered(
    tmp_path: Path, *, taken_before: bool
) -> None:
    Round(tmp_path).play(request())
    later = replace(request(), history=History(lineage=(), older=0, siblings=(), earlier=0))
    changed = replace(later, problem=replace(later.problem, source=later.problem.source))
    second = Round(tmp_path)
    (identifier,) = second.open()
    letter = second.box / "prompts" / f"{identifier}.md"
    letter.write_text(letter.read_text().replace("You make PyTorch modules", "You made modules"))
    second.put(identifier, written(identifier, 3, 4))
    (answer,) = second.play(changed)
    if taken_before:  # a driver died before it had journalled the answer
        (answer,) = Round(tmp_path).play(changed)
    assert isinstance(answer, Answer)
    assert answer.messages[0].text.startswith("You made modules")
    assert answer.messages[1] == build(changed, form="file")[1]


def test_a_letter_gives_its_messages_back() -> None:
    messages = build(request(), form="file")
    assert messages_of(letter_text("x", request(), messages)) == messages
    assert messages_of("nothing of a letter") == ()


def test_a_prompt_that_wants_several_says_so_where_it_says_the_form(tmp_path: Path) -> None:
    system, user = build(request(wanted=3), form="file")
    assert "Exactly one block" not in system.text
    assert user.text.endswith(
        "Answer with up to 3 candidates, each a different idea: for each `strategy:`, `language:` "
        "and one block that holds the whole module."
    )
    (_, one) = build(request(wanted=1), form="file")
    assert one.text.endswith(
        "Answer with one candidate: `strategy:`, `language:` and one block that holds the whole "
        "module."
    )
