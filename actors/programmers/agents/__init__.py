"""KernelOPT's roles behind the Programmer port (`pipeline=agents`)."""

from kopt.actors.programmers.agents.programmer import AgentsProgrammer

__all__ = ["AgentsProgrammer"]
