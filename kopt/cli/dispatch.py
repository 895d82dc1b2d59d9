"""From the command line to a command, and from whatever it raises to an exit code.

User errors are one line each, without a traceback.
"""

from __future__ import annotations

import difflib
import os
import sys
from collections.abc import Sequence
from importlib import import_module

from kopt.cli.exit_codes import BAD_CONFIG, DONE, FAILED, INTERRUPTED
from kopt.errors import ConfigError, KoptError, StoreError
from kopt.version import __version__

COMMANDS: dict[str, str] = {
    "run": "search problems: one fleet, from configuration to files that a person can use",
    "eval": "judge one candidate file: gates, timing, verdict",
    "profile": "why a candidate takes its time: evidence of profilers, and findings",
    "findings": "what the micro-profiling tools find in a recorded profile; no GPU",
    "problems": "list the problems there are; lint them for degenerate tasks",
    "resume": "go on with a run that was interrupted",
    "watch": "what a run does now and has found so far, from any shell; the tree of a search",
    "stats": "what runs reached, how sure that is, and which arm is better; runs compared",
    "report": "what runs reached as one HTML file: figures, charts, search trees with sources",
    "replay": "rebuild a run's trees from its journal and check them",
    "prompt": "print the prompt of a node, as it was sent",
    "verify": "measure a run's claimed wins again; re-score a KernelBench run folder",
    "export": "what runs tried, as a corpus and in the forms that trainers read",
    "serve": "verdicts and rewards for trainers, over HTTP",
    "cache": "what the caches of this node hold; bound them, clear them",
    "doctor": "what is installed, what is off and why, and how to fix it",
}
"""Command to its line in the help, in the order shown."""

MODULES = {"eval": "evaluate", "profile": "profile_file"}
"""Commands whose module has another name."""

HELP = """\
kopt {version}: parallel search for faster GPU kernels that are proven to be right

usage: kopt COMMAND [arguments]

{commands}

Settings are Hydra overrides, key=value; conf/README.md names them all:
  kopt run                                        five built-in problems, MCTS, no model needed
  kopt run problem=builtin/softmax seed=[0,1,2]   one problem, three seeds
  kopt run problem=my/problem.py search=best_of_n search.iterations=10
  kopt run problem=kernelbench/level2/18 device=cuda evaluate=tf32
  kopt eval builtin/softmax candidate.py --json

`kopt COMMAND --help` says more. Exit codes: 0 done, 1 failed, 2 bad configuration, 3 eval: not
correct, 130 interrupted.
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code.

    Args:
        argv: the arguments after `kopt`; None takes the process's own.
    """
    arguments = list(sys.argv[1:] if argv is None else argv)
    try:
        return _dispatch(arguments)
    except StoreError as error:
        _complain(f"cannot use {error}")
        return BAD_CONFIG
    except ConfigError as error:
        _complain(str(error))
        return BAD_CONFIG
    except KoptError as error:
        _complain(str(error))
        return FAILED
    except KeyboardInterrupt:
        _complain("interrupted")
        return INTERRUPTED
    except BrokenPipeError:
        # Whoever read our output has enough (`kopt problems | head`): nothing is left to say, and
        # the interpreter must not try to flush at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return DONE


def _dispatch(arguments: list[str]) -> int:
    if not arguments or arguments[0] in ("-h", "--help", "help"):
        sys.stdout.write(help_text())
        return DONE if arguments else BAD_CONFIG
    if arguments[0] in ("-V", "--version"):
        sys.stdout.write(f"kopt {__version__}\n")
        return DONE
    name, *rest = arguments
    if name not in COMMANDS:
        close = difflib.get_close_matches(name, COMMANDS, n=1)
        hint = f"did you mean {close[0]}?" if close else f"there are: {', '.join(COMMANDS)}"
        raise ConfigError(f"no command {name!r}; {hint}")
    module = import_module(f"kopt.cli.{MODULES.get(name, name)}")
    code: int = module.main(rest)
    return code


def help_text() -> str:
    """Return what `kopt --help` prints."""
    width = max(map(len, COMMANDS))
    commands = "\n".join(f"  {name:<{width}}  {line}" for name, line in COMMANDS.items())
    return HELP.format(version=__version__, commands=commands)


def _complain(text: str) -> None:
    for line in text.splitlines():
        sys.stderr.write(f"kopt: {line}\n")
