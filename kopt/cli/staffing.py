"""Who stands between a fleet and its programmer: nobody, or the roles of `pipeline=agents`."""

from __future__ import annotations

from collections.abc import Callable

from kopt.actors.programmers.agents import AgentsProgrammer
from kopt.agent_call import Talker
from kopt.config import RunConfig
from kopt.errors import ConfigError
from kopt.ports import Programmer


def make_staff(
    config: RunConfig, programmer: Programmer, *, warn: Callable[[str], None]
) -> AgentsProgrammer | None:
    """Return the roles that a config puts before a programmer; None for one author.

    Args:
        config: of the run.
        programmer: that plays them.
        warn: shows one line to the user.

    Raises:
        ConfigError: the programmer does not answer single calls.
    """
    if config.pipeline.kind != "agents":
        return None
    if not isinstance(programmer, Talker):
        raise ConfigError(
            f"pipeline=agents: programmer={config.programmer.kind} answers no calls of roles (it "
            "has no `say`, see kopt/agent_call.py); take pipeline=single"
        )
    return AgentsProgrammer(programmer, programmer, config.pipeline, warn=warn)
