"""Hydra's launcher of kopt, made known to Hydra in this process."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path

LAUNCHER = "kopt"
LAUNCHER_GROUP = "hydra/launcher"


def make_launcher_known() -> None:
    """Let Hydra find the launcher `kopt`; nothing happens where it knows it already."""
    import kopt.cli.plugins

    folder = str(Path(kopt.cli.plugins.__file__).parent)
    if folder not in sys.path:
        sys.path.append(folder)
    from hydra.core.plugins import Plugins
    from hydra.plugins.launcher import Launcher

    # A Hydra that was used before in this process has looked for plug-ins already.
    plugins = Plugins.instance()
    ours = import_module("hydra_plugins.kopt_launcher").KoptLauncher
    if ours not in plugins.discover(Launcher):
        plugins.register(ours)
