"""The command: `kopt run`, `eval`, `problems`, `resume`, `replay`, `prompt`, `doctor`.

Only this package knows Hydra. Importing it loads neither torch nor ray nor Hydra: each command's
module is loaded when it is called, and loads what it needs in turn.
"""

from kopt.cli.dispatch import main

__all__ = ["main"]
