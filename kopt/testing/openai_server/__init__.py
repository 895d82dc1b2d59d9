"""An OpenAI-compatible server that does what a script says: for tests, load, and a first try.

`python -m kopt.testing.openai_server` starts one in a process of its own; `ScriptedServer` runs
in a test's loop. Whatever it does is a function of (seed, request, how often it was asked).
"""

from kopt.testing.openai_server.behaviour import Asked, Behaviour, Script, in_turn, refusing
from kopt.testing.openai_server.mixture import Mixture
from kopt.testing.openai_server.server import ScriptedServer

__all__ = ["Asked", "Behaviour", "Mixture", "Script", "ScriptedServer", "in_turn", "refusing"]
