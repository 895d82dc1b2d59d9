"""The mailbox: a person or an agent answers through files, carefully or not."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path

import pytest

from kopt.actors.programmers.config import MailboxConfig
from kopt.actors.programmers.postbox import MailboxProgrammer
from kopt.actors.programmers.postbox.folder import MAX_ANSWER_BYTES
from kopt.actors.programmers.postbox.guide import EXAMPLE_ID, example_answer
from kopt.actors.programmers.postbox.reply import read_reply, read_words
from kopt.agent_call import AgentCall, CallPlace
from kopt.data.results import result_rows
from kopt.errors import AnswerAwaited, ConfigError, ProgrammerUnavailable
from kopt.expansion import first_expansion
from kopt.ports import Answer, Message, Target, WriteRequest
from kopt.problem import Problem
from kopt.search.config import BestOfNConfig
from kopt.testing.fakes import InstantEvaluator
from kopt.testing.small_fleet import run_in_folder, small_tasks
from kopt.testing.small_workplace import small_workplace

NEVER_S = 1_000.0
"""A time that no test waits for."""
POLL_S = 0.01
REFERENCE = """
import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x):
        return x + 1


def get_inputs():
    return [torch.randn(4)]
"""


def request(ordinal: int = 0, *, wanted: int = 1, seed: int = 0) -> WriteRequest:
    return WriteRequest(
        problem=Problem(name="set/Plus One", source=REFERENCE),
        target=Target(device="cpu", name="test", arch="x86_64", languages=("torch",)),
        search=f"set/Plus One/arm/{seed}",
        arm="arm",
        seed=seed,
        expansion=first_expansion(
            num_candidates=wanted, ordinal=ordinal, first_child=ordinal * wanted, seed=1
        ),
        parent=None,
    )


def module(number: int) -> str:
    return (
        "from torch import nn\n\n\nclass ModelNew(nn.Module):\n"
        f"    def forward(self, x):\n        return x + {number} - {number - 1}\n"
    )


def answer_text(prompt_id: str, *numbers: int) -> str:
    blocks = [f"strategy: idea {n}\n\n```python\n{module(n)}```\n" for n in numbers]
    return f"prompt: {prompt_id}\n\n" + "\n".join(blocks)


class Box:
    """A mailbox with the programmer on one side and the tests' person on the other."""

    def __init__(self, run_dir: Path, *, folder: Path | None = None, **config: float):
        self.said: list[str] = []
        self.run_dir = run_dir
        self.path = folder or run_dir / "mailbox"
        settings = {"poll_s": POLL_S, "settle_s": 0.0, **config}
        self.programmer = MailboxProgrammer(
            MailboxConfig(folder=None if folder is None else str(folder), **settings),  # type: ignore[arg-type]
            small_workplace(run_dir, warn=self.said.append),
        )

    def open(self) -> list[str]:
        return sorted(path.stem for path in (self.path / "prompts").glob("*.md"))

    def put(self, prompt_id: str, text: str | bytes) -> Path:
        """Write an answer as a careful writer does: whole, then renamed."""
        path = self.path / "answers" / f"{prompt_id}.md"
        draft = path.with_suffix(".md.tmp")
        draft.write_bytes(text if isinstance(text, bytes) else text.encode())
        draft.rename(path)
        return path

    def refused(self) -> list[str]:
        log = self.path / "refused.log"
        return log.read_text().splitlines() if log.exists() else []

    def heard(self, words: str) -> list[str]:
        return [line for line in self.said if words in line]


async def until(condition: Callable[[], object]) -> None:
    """Wait for something that must come."""
    async with asyncio.timeout(20):
        while not condition():
            await asyncio.sleep(POLL_S)


async def a_few_rounds() -> None:
    """Let the postman look a few times."""
    for _ in range(8):
        await asyncio.sleep(POLL_S)


def exchange(
    box: Box, person: Callable[[str], Awaitable[None]], *, wanted: int = 1, ordinal: int = 0
) -> Answer:
    """One prompt, and a person who is given its id."""

    async def both() -> Answer:
        asked = asyncio.create_task(box.programmer.write(request(ordinal, wanted=wanted)))
        try:
            await until(lambda: box.open() or asked.done())
            if not asked.done():
                (prompt_id,) = box.open()
                await person(prompt_id)
            async with asyncio.timeout(20):
                return await asked
        finally:
            asked.cancel()
            await box.programmer.close()

    return asyncio.run(both())


def strategies(answer: Answer) -> list[str]:
    return [candidate.strategy for candidate in answer.candidates]


def test_a_prompt_says_what_is_wanted_and_its_answer_is_taken(tmp_path: Path) -> None:
    box = Box(tmp_path, settle_s=NEVER_S)

    async def person(prompt_id: str) -> None:
        prompt = (box.path / "prompts" / f"{prompt_id}.md").read_text()
        assert prompt.startswith(
            f"id: {prompt_id}\n"
            "problem: set/Plus One\n"
            "search: set/Plus One/arm/0, expansion 0\n"
            "mode: initial\n"
            "candidates wanted: 2, or fewer; each a different idea\n"
            f"answer in: answers/{prompt_id}.md\n"
        )
        assert "----- user -----" in prompt
        assert "return x + 1" in prompt
        box.put(prompt_id, answer_text(prompt_id, 3, 4))

    answer = exchange(box, person, wanted=2)
    (taken,) = (box.path / "taken").glob("*.prompt.md")
    prompt_id = taken.name.removesuffix(".prompt.md")
    assert prompt_id.startswith("plus_one-0000-")
    assert strategies(answer) == ["idea 3", "idea 4"]
    assert {candidate.programmer for candidate in answer.candidates} == {"mailbox"}
    assert answer.messages[-1].role == "user"
    assert answer.sampling == {"prompt": prompt_id}
    assert [completion.text for completion in answer.completions] == [answer_text(prompt_id, 3, 4)]
    assert answer.completions[0].usage.tokens_in == 0
    assert box.open() == []
    assert list((box.path / "answers").iterdir()) == []


def test_the_readmes_example_is_read_as_two_candidates(tmp_path: Path) -> None:
    box = Box(tmp_path, settle_s=2.5)
    readme = (box.path / "README.md").read_text()
    assert example_answer() in readme
    assert "not changed for 2.5 s" in readme
    reply = read_reply(example_answer().encode(), prompt_id=EXAMPLE_ID, request=request(wanted=2))
    assert reply.fault == ""
    assert reply.is_whole
    assert len(reply.candidates) == 2
    assert reply.candidates[1].strategy.startswith("exponentials in base 2")


def test_several_prompts_are_open_and_answered_in_any_order(tmp_path: Path) -> None:
    box = Box(tmp_path)

    async def both() -> list[Answer]:
        asked = [asyncio.create_task(box.programmer.write(request(n))) for n in range(5)]
        await until(lambda: len(box.open()) == 5)
        for prompt_id in reversed(box.open()):
            box.put(prompt_id, answer_text(prompt_id, int(prompt_id.split("-")[1]) + 10))
        answers = await asyncio.gather(*asked)
        await box.programmer.close()
        return answers

    answers = asyncio.run(both())
    assert [strategies(answer) for answer in answers] == [[f"idea {n + 10}"] for n in range(5)]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "its first line must be `prompt: {id}`"),
        ("hello\n", "its first line must be `prompt: {id}`"),
        ("prompt: other-0001-aabbccdd\n", "it answers prompt other-0001-aabbccdd, and its name"),
        ("prompt: {id}\n", "the answer is empty"),
        ("prompt: {id}\nI would use ModelNew with a fused kernel.\n", "no code block"),
        ("prompt: {id}\n```python\nclass ModelNew:\n    def for", "cut off"),
        (b"prompt: {id}\n\xff\xfe", "not UTF-8 text (byte "),
    ],
)
def test_an_answer_that_cannot_be_used_is_refused_and_its_prompt_stays_open(
    tmp_path: Path, text: str | bytes, reason: str
) -> None:
    box = Box(tmp_path)

    async def person(prompt_id: str) -> None:
        bad = text if isinstance(text, bytes) else text.replace("{id}", prompt_id).encode()
        box.put(prompt_id, bad.replace(b"{id}", prompt_id.encode()))
        await until(lambda: box.refused() and box.heard("is refused"))  # one after the other
        assert box.open() == [prompt_id]
        (line,) = box.refused()
        assert line.startswith(f"{prompt_id}.refused-1.md: ")
        assert reason.replace("{id}", prompt_id) in line
        assert (box.path / "answers" / f"{prompt_id}.refused-1.md").exists()
        assert len(box.heard("is refused")) == 1
        box.put(prompt_id, answer_text(prompt_id, 3))

    answer = exchange(box, person)
    assert strategies(answer) == ["idea 3"]
    faults = [completion.fault for completion in answer.completions]
    assert len(faults) == 2, "the refused one is counted"
    assert faults[0] != ""
    assert faults[1] == ""


@pytest.mark.parametrize("kind", ["link", "folder", "pipe", "large"])
def test_what_is_no_plain_file_of_a_sane_size_is_refused_unread(tmp_path: Path, kind: str) -> None:
    box = Box(tmp_path)
    secret = tmp_path / "secret.md"
    reasons = {
        "link": "a link",
        "folder": "not a plain file",
        "pipe": "not a plain file",
        "large": f"{MAX_ANSWER_BYTES + 1} bytes; at most {MAX_ANSWER_BYTES} are read",
    }

    async def person(prompt_id: str) -> None:
        path = box.path / "answers" / f"{prompt_id}.md"
        secret.write_text(answer_text(prompt_id, 7))
        if kind == "link":
            path.symlink_to(secret)
        elif kind == "folder":
            path.mkdir()
            (path / "inside.md").write_text("x")
        elif kind == "pipe":
            os.mkfifo(path)
        else:
            with path.open("wb") as file:
                file.truncate(MAX_ANSWER_BYTES + 1)
        await until(box.refused)
        assert reasons[kind] in box.refused()[0]
        box.put(prompt_id, answer_text(prompt_id, 3))

    answer = exchange(box, person)
    assert strategies(answer) == ["idea 3"]
    assert answer.completions[0].text == ""
    assert secret.exists()


def test_a_half_written_answer_is_left_until_it_is_whole(tmp_path: Path) -> None:
    box = Box(tmp_path, settle_s=NEVER_S)

    async def person(prompt_id: str) -> None:
        path = box.path / "answers" / f"{prompt_id}.md"
        text = answer_text(prompt_id, 3, 4)
        # Cut within the header, a fence, the first module, between the two, and within the last
        # where what there is of it parses already.
        for cut in (4, 50, 120, text.index("idea 4") + 3, text.rindex("    def forward"), -4):
            path.write_text(text[:cut])
            await a_few_rounds()
            assert path.exists(), text[:cut]
        assert box.refused() == []
        path.write_text(text)

    assert strategies(exchange(box, person, wanted=2)) == ["idea 3", "idea 4"]
    assert box.heard("refused") == []


def test_fewer_candidates_than_wanted_are_taken_once_the_file_has_settled(tmp_path: Path) -> None:
    box = Box(tmp_path, settle_s=5 * POLL_S)

    async def person(prompt_id: str) -> None:
        box.put(prompt_id, answer_text(prompt_id, 3))

    answer = exchange(box, person, wanted=3)
    assert strategies(answer) == ["idea 3"]
    assert answer.note == "1 of 3 answered"
    assert not answer.exhausted


def test_equal_candidates_of_one_answer_count_once(tmp_path: Path) -> None:
    box = Box(tmp_path)

    async def person(prompt_id: str) -> None:
        box.put(prompt_id, answer_text(prompt_id, 3, 3, 4))

    assert strategies(exchange(box, person, wanted=3)) == ["idea 3", "idea 4"]


def test_a_second_answer_is_put_aside_and_nothing_is_done_twice(tmp_path: Path) -> None:
    box = Box(tmp_path)

    async def both() -> list[Answer]:
        first = asyncio.create_task(box.programmer.write(request(0)))
        await until(box.open)
        (prompt_id,) = box.open()
        box.put(prompt_id, answer_text(prompt_id, 3))
        answers = [await first]
        waiting = asyncio.create_task(box.programmer.write(request(1)))
        await until(box.open)
        box.put(prompt_id, answer_text(prompt_id, 3))
        await until(lambda: not list((box.path / "answers").glob("*.md")))
        assert box.heard("late") == [], "the same again is no news"
        box.put(prompt_id, answer_text(prompt_id, 4))
        await until(lambda: box.heard("late"))
        (other,) = box.open()
        box.put(other, answer_text(other, 5))
        answers.append(await waiting)
        await box.programmer.close()
        assert box.refused() == [f"{prompt_id}.refused-1.md: the prompt was answered before"]
        return answers

    assert [strategies(answer) for answer in asyncio.run(both())] == [["idea 3"], ["idea 5"]]


@pytest.mark.parametrize(
    ("text", "note", "exhausted"),
    [
        ("prompt: {id}\ndecline: it is at its limit\n", "declined: it is at its limit", False),
        ("decline: no time", "declined: no time", False),
        ("prompt: {id}\n\n**decline node:** memory bound\n", "declined: memory bound", True),
        ("decline node:\n", "declined: no reason given", True),
    ],
)
def test_a_person_may_decline(tmp_path: Path, text: str, note: str, *, exhausted: bool) -> None:
    box = Box(tmp_path)

    async def person(prompt_id: str) -> None:
        box.put(prompt_id, text.replace("{id}", prompt_id))

    answer = exchange(box, person)
    assert answer.candidates == ()
    assert answer.exhausted is exhausted
    assert answer.note == note
    assert [completion.fault for completion in answer.completions] == [note]


def test_a_resumed_run_finds_its_prompts_and_what_came_meanwhile(tmp_path: Path) -> None:
    killed = Box(tmp_path)

    async def die() -> list[str]:
        asked = [asyncio.create_task(killed.programmer.write(request(n))) for n in range(2)]
        await until(lambda: len(killed.open()) == 2)
        for task in asked:
            task.cancel()
        await asyncio.gather(*asked, return_exceptions=True)
        await killed.programmer.close()
        return killed.open()

    first, second = asyncio.run(die())
    killed.put(first, answer_text(first, 3))
    inode = (killed.path / "prompts" / f"{second}.md").stat().st_ino
    resumed = Box(tmp_path)

    async def go_on() -> list[Answer]:
        asked = [asyncio.create_task(resumed.programmer.write(request(n))) for n in (1, 0)]
        await until(asked[1].done)
        assert (resumed.path / "prompts" / f"{second}.md").stat().st_ino == inode, "not rewritten"
        resumed.put(second, answer_text(second, 4))
        answers = await asyncio.gather(*asked)
        await resumed.programmer.close()
        return answers

    assert [strategies(answer) for answer in asyncio.run(go_on())] == [["idea 4"], ["idea 3"]]
    assert resumed.heard("is open") == []
    assert len(resumed.heard("is still open")) == 2


def test_an_answer_that_comes_before_its_search_does_is_left_for_it(tmp_path: Path) -> None:
    killed = Box(tmp_path)

    async def die() -> str:
        asked = asyncio.create_task(killed.programmer.write(request(0)))
        await until(killed.open)
        asked.cancel()
        await asyncio.gather(asked, return_exceptions=True)
        await killed.programmer.close()
        return killed.open()[0]

    early = asyncio.run(die())
    killed.put(early, answer_text(early, 3))
    resumed = Box(tmp_path)

    async def go_on() -> Answer:
        other = asyncio.create_task(resumed.programmer.write(request(1)))
        await until(lambda: len(resumed.open()) == 2)
        await a_few_rounds()
        answer = await resumed.programmer.write(request(0))
        other.cancel()
        await asyncio.gather(other, return_exceptions=True)
        await resumed.programmer.close()
        return answer

    assert strategies(asyncio.run(go_on())) == ["idea 3"]
    assert resumed.refused() == []


def test_an_answer_taken_before_the_driver_died_is_not_asked_for_again(tmp_path: Path) -> None:
    async def person(prompt_id: str) -> None:
        box.put(prompt_id, answer_text(prompt_id, 3))

    async def nobody(prompt_id: str) -> None:
        raise AssertionError(prompt_id)

    box = Box(tmp_path)
    first = exchange(box, person)
    assert exchange(Box(tmp_path), nobody) == first


def test_two_runs_share_a_folder_and_keep_their_answers_apart(tmp_path: Path) -> None:
    shared = tmp_path / "shared"
    boxes = [Box(tmp_path / name, folder=shared) for name in ("a", "b")]

    async def both() -> list[Answer]:
        asked = [asyncio.create_task(box.programmer.write(request())) for box in boxes]
        await until(lambda: len(boxes[0].open()) == 2)
        for prompt_id in boxes[0].open():
            boxes[0].put(prompt_id, answer_text(prompt_id, 3))
        answers = await asyncio.gather(*asked)
        for box in boxes:
            await box.programmer.close()
        return answers

    assert [strategies(answer) for answer in asyncio.run(both())] == [["idea 3"], ["idea 3"]]
    assert boxes[0].refused() == []


def test_a_prompt_that_nobody_answers_is_given_up_at_its_deadline(tmp_path: Path) -> None:
    box = Box(tmp_path, deadline_s=5 * POLL_S)

    async def nobody(prompt_id: str) -> None:
        pass

    with pytest.raises(ProgrammerUnavailable, match=r"had no usable answer within 0\.05 s"):
        exchange(box, nobody)
    assert box.open() == []
    (expired,) = (box.path / "expired").glob("*.md")
    late = Box(tmp_path, deadline_s=NEVER_S)

    async def person(prompt_id: str) -> None:
        late.put(expired.stem, answer_text(expired.stem, 4))
        await until(late.refused)
        late.put(prompt_id, answer_text(prompt_id, 3))

    assert strategies(exchange(late, person, ordinal=1)) == ["idea 3"]
    assert late.refused() == [f"{expired.stem}.refused-1.md: the prompt was given up"]


def test_files_of_no_prompts_name_are_left_alone_and_said_once(tmp_path: Path) -> None:
    box = Box(tmp_path)

    async def person(prompt_id: str) -> None:
        answers = box.path / "answers"
        for name in (f"{prompt_id}.txt", "elsewhere.md", ".hidden.md", "draft.md~", "x.md.part"):
            (answers / name).write_text(answer_text(prompt_id, 3))
        await until(lambda: len(box.heard("left alone")) == 2)
        await a_few_rounds()
        assert len(box.heard("left alone")) == 2
        assert len(list(answers.iterdir())) == 5
        box.put(prompt_id, answer_text(prompt_id, 3))

    assert strategies(exchange(box, person)) == ["idea 3"]


def test_a_folder_that_goes_away_for_a_while_is_waited_for(tmp_path: Path) -> None:
    box = Box(tmp_path)

    async def person(prompt_id: str) -> None:
        (box.path / "answers").rename(box.path / "gone")
        await until(lambda: box.heard("No such file"))
        await a_few_rounds()
        assert len(box.heard("No such file")) == 1
        (box.path / "gone").rename(box.path / "answers")
        box.put(prompt_id, answer_text(prompt_id, 3))

    assert strategies(exchange(box, person)) == ["idea 3"]


def test_a_folder_that_cannot_be_made_or_written_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match=r"programmer\.folder: .*Not a directory"):
        Box(tmp_path, folder=tmp_path / "file" / "box")
    box = Box(tmp_path)
    (box.path / "prompts").rmdir()
    (box.path / "prompts").write_text("")
    with pytest.raises(ProgrammerUnavailable, match="Not a directory"):
        asyncio.run(box.programmer.write(request()))


def test_a_search_is_answered_through_files_and_its_refusals_are_counted(tmp_path: Path) -> None:
    box = Box(tmp_path)
    numbers = iter(range(10, 100))

    class Person:
        """Answers every prompt; the first one wrongly at first."""

        async def __call__(self) -> None:
            seen: set[str] = set()
            while True:
                for prompt_id in set(box.open()) - seen:
                    if not seen:
                        box.put(prompt_id, "prompt: another")
                        await until(box.refused)
                    seen.add(prompt_id)
                    box.put(prompt_id, answer_text(prompt_id, next(numbers), next(numbers)))
                await asyncio.sleep(POLL_S)

    class WithPerson:
        name = "mailbox"
        person: asyncio.Task[None] | None = None

        async def write(self, asked: WriteRequest) -> Answer:
            if self.person is None:
                self.person = asyncio.create_task(Person()())
            return await box.programmer.write(asked)

        async def close(self) -> None:
            assert self.person is not None
            self.person.cancel()
            await box.programmer.close()

    state = run_in_folder(
        tmp_path,
        small_tasks(BestOfNConfig(iterations=4, candidates=2)),
        programmer=WithPerson(),
        evaluator=InstantEvaluator(),
    )
    (row,) = result_rows(state)
    assert (row["candidates"], row["answers"], row["answers_faulty"]) == (8, 5, 1)
    (search,) = state.searches.values()
    assert search.ended is not None
    assert search.ended.reason == "budget"


def test_a_part_of_a_role_is_answered_by_a_file_of_words(tmp_path: Path) -> None:
    async def scenario() -> None:
        box = Box(tmp_path)
        call = AgentCall(
            place=CallPlace(4, "planner", 1, 2),
            problem=request().problem,
            search="set/Plus One/arm/0",
            seed=0,
            draw=1,
            messages=(Message("system", "You plan."), Message("user", "Plan now.")),
        )
        asked = asyncio.create_task(box.programmer.say(call))
        await until(box.open)
        (prompt_id,) = box.open()
        assert prompt_id.startswith("plus_one-0004-planner-")
        letter = (box.path / "prompts" / f"{prompt_id}.md").read_text()
        assert "part: planner, idea 1, turn 2" in letter
        assert "Plan now." in letter
        box.put(prompt_id, f"prompt: {prompt_id}\n")
        await until(box.refused)
        assert "it says nothing after its first line" in box.refused()[0]
        box.put(prompt_id, f'prompt: {prompt_id}\n\n{{"plan": {{"direction": "fuse"}}}}\n')
        reply = await asked
        assert reply.completion.text == '{"plan": {"direction": "fuse"}}'
        assert reply.sampling == {"prompt": prompt_id}
        again = await box.programmer.say(call)
        assert again.completion.text == reply.completion.text, "what was taken is told again"
        await box.programmer.close()

    asyncio.run(scenario())


def test_a_role_may_be_declined(tmp_path: Path) -> None:
    reply = read_words(b"prompt: p\ndecline: not today\n", prompt_id="p")
    assert (reply.declined, reply.fault) == ("not today", "")
    assert read_words(b"prompt: q\nwords\n", prompt_id="p").fault.startswith("it answers prompt q")


def test_a_reference_that_is_cut_is_said_once_of_its_problem(tmp_path: Path) -> None:
    box = Box(tmp_path, wait_s=0.0)
    long = replace(request().problem, source=REFERENCE + "# one line more of it\n" * 20_000)

    async def ask() -> None:
        for made in (
            request(0),
            replace(request(1), problem=long),
            replace(request(2), problem=long),
        ):
            with pytest.raises(AnswerAwaited):
                await box.programmer.write(made)
        await box.programmer.close()

    asyncio.run(ask())
    assert box.heard("leave out") == [
        "mailbox: prompts of set/Plus One leave out a part of its reference"
    ]
