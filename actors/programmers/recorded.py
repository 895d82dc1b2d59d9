"""The recorded programmer: the answers of an earlier run again, asked for in the same places.

An answer is found by problem id, arm, seed and the expansion's ordinal, and given whole: text,
faults and what it cost then, so that limits end the search where they ended the recording. Where
the recording's programmer failed, it fails again in the same words. A search that asks for
something else than the recording's did at that place has gone another way, and ends.
"""

from __future__ import annotations

from kopt.actors.programmers.config import RecordedConfig
from kopt.actors.programmers.registry import PROGRAMMERS, Workplace
from kopt.agent_call import AgentCall, AgentReply
from kopt.data.fleet_file import run_of_arm
from kopt.data.lock import lock_owner
from kopt.data.recording import NotRecorded, Recording
from kopt.errors import ProgrammerRefused, StoreError
from kopt.events import ExpansionAsked
from kopt.expansion import Expansion
from kopt.ports import Answer, WriteRequest

SHORT_ID = 12
"""Digits of a candidate id in an error text."""


@PROGRAMMERS.register("recorded")
class RecordedProgrammer:
    """Answers from a recording; nobody is asked and nothing is paid."""

    name = "recorded"

    def __init__(self, config: RecordedConfig, workplace: Workplace) -> None:
        """Read the recording's index.

        Raises:
            ConfigError: the folder is no run, or the arm to play is not clear.
            StoreError: the recording's journal is damaged.
        """
        run = run_of_arm(config.run, config.arm or workplace.arm)
        self.recording = Recording.open(str(run), verdicts=config.verdicts)
        """What is played."""
        self.arm = self.recording.arm(config.arm, own=workplace.arm)
        """Which of its arms."""
        owner = lock_owner(self.recording.run.path)
        if owner is not None:
            workplace.warn(
                f"{self.recording.run.path} is still being written ({owner}): "
                "it is played as far as it has come by now"
            )

    async def write(self, request: WriteRequest) -> Answer:
        """Give the recorded answer (the Programmer port)."""
        expansion = request.expansion
        try:
            search = self.recording.search(request.problem, arm=self.arm, seed=request.seed)
            recorded = self.recording.expansion(search, expansion.ordinal)
            if _asked(recorded.asked) != _asked(expansion):
                raise NotRecorded(
                    f"{request.search} went another way than its recording in "
                    f"{self.recording.run.path}: expansion {expansion.ordinal} was "
                    f"`{_asked(recorded.asked)}` there and is `{_asked(expansion)}` here"
                )
            return self.recording.answer(search, recorded)
        except (NotRecorded, StoreError) as error:
            raise ProgrammerRefused(self.name, str(error)) from error

    async def say(self, call: AgentCall) -> AgentReply:
        """Give what was said at the same place (the Talker port)."""
        try:
            if not call.search:
                return self.recording.model_call(call)
            search = self.recording.search(call.problem, arm=self.arm, seed=call.seed)
            return self.recording.call(search, call)
        except (NotRecorded, StoreError) as error:
            raise ProgrammerRefused(self.name, str(error)) from error

    async def close(self) -> None:
        """Do nothing: no file is held open."""


def _asked(expansion: Expansion | ExpansionAsked) -> str:
    """Return what an expansion asks for, in words that are equal where the request is."""
    num = expansion.n if isinstance(expansion, ExpansionAsked) else expansion.num_candidates
    parent = "ROOT" if expansion.parent is None else expansion.parent[:SHORT_ID]
    return f"{expansion.mode} from {parent} x{num}"
