"""A fleet without processes whose programmer is several roles, played by a talker of the test's."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path

from kopt.actors.programmers.agents import AgentsProgrammer
from kopt.actors.programmers.agents_config import AgentsConfig
from kopt.agent_call import Talker
from kopt.candidate import Candidate
from kopt.data.fold import RunState, fold
from kopt.data.journal import read_events
from kopt.driver.loop import Pace
from kopt.driver.memories import Remembering
from kopt.driver.task import SearchTask
from kopt.memory.rule import MemoryRule
from kopt.ports import Answer, WriteRequest
from kopt.problem import Problem
from kopt.search.config import SearchConfig
from kopt.testing.fakes import InstantEvaluator, correct
from kopt.testing.small_fleet import drive_in_folder, small_tasks
from kopt.verdict import Crashed, Verdict


class TalkingOnly:
    """A programmer that is there for its words."""

    name = "scripted"

    async def write(self, request: WriteRequest) -> Answer:
        """Refuse: whoever is asked to write has bypassed the roles."""
        raise AssertionError(f"{request.search}: the roles write")

    async def close(self) -> None:
        """Do nothing: nothing is held."""


def some_crash(problem: Problem, candidate: Candidate) -> Verdict:
    """Return a crash for three in eight candidates, by their digests, and a speed-up for others."""
    del problem
    if int(candidate.candidate_id[0], 16) < 6:
        return Crashed(stage="correctness", log=f"RuntimeError: {candidate.candidate_id[:6]}")
    return correct(1.0 + int(candidate.candidate_id[1], 16) / 10)


def run_staffed(
    folder: Path,
    talker: Talker,
    *,
    search: SearchConfig,
    config: AgentsConfig | None = None,
    tasks: Sequence[SearchTask] | None = None,
    learns: bool = False,
    judge: Callable[[Problem, Candidate], Verdict] = some_crash,
) -> RunState:
    """Run searches whose roles one talker plays, and return the journal's fold.

    Args:
        folder: of the run; made where it is not there.
        talker: plays every role.
        search: of the tasks.
        config: of the roles; None for the defaults.
        tasks: None for one of the small problem.
        learns: whether the summarizer draws each iteration's lessons.
        judge: gives the verdicts.

    Raises:
        StoreError: the journal cannot be written.
    """
    folder.mkdir(exist_ok=True)
    said: list[str] = []
    staff = AgentsProgrammer(TalkingOnly(), talker, config or AgentsConfig(), warn=said.append)
    asyncio.run(
        drive_in_folder(
            folder,
            small_tasks(search) if tasks is None else tasks,
            programmer=staff,
            staff=staff,
            evaluator=InstantEvaluator(judge),
            pace=Pace(max_in_flight=4, deterministic=True),
            remembering=Remembering(
                rule=MemoryRule(search=learns), extractor=staff if learns else None
            ),
        )
    )
    return fold(read_events(folder))
