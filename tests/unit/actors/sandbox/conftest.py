"""A process confined as children are, in the kernel at hand."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
import textwrap
from dataclasses import replace
from pathlib import Path

import pytest

from kopt.actors.child.sandbox.confine import Confinement
from kopt.actors.child.sandbox.levels import LEVELS

HARNESS = """
import json, os, sys, traceback
from kopt.actors.child.sandbox.confine import Confinement, confine
from kopt.actors.child.sandbox.namespaces import enter_user_namespace
order = json.loads(sys.argv[1])
if "namespace" in order["levels"] and os.geteuid() != 0:
    enter_user_namespace()
pid = os.fork()
if pid == 0:
    try:
        wanted = Confinement.from_json(order["confinement"])
        confine(wanted, levels=order["levels"], group="test")
        exec(order["body"], {"os": os})
    except BaseException:
        traceback.print_exc(file=sys.stdout)
    finally:
        sys.stdout.flush()
        os._exit(0)
_, status = os.waitpid(pid, 0)
print(json.dumps({"status": os.waitstatus_to_exitcode(status)}))
"""


@pytest.fixture(scope="session")
def available() -> dict[str, str]:
    """Asked in a process of its own: one that is concealed has no user namespace to offer."""
    command = [sys.executable, "-m", "kopt.actors.child.sandbox.probe"]
    return json.loads(subprocess.run(command, capture_output=True, check=True).stdout)


class Confined:
    """Runs a text confined; keeps its folders to look at afterwards."""

    def __init__(self, folder: Path, available: dict[str, str]) -> None:
        self.root, self.kept = folder / "root", folder / "cache" / "kept"
        self.discarded, self.hidden = folder / "cache" / "discarded", folder / "cache"
        self._available = available
        self.status: int | None = None
        for each in (self.root / "own", self.root / "others", self.kept, self.discarded):
            each.mkdir(parents=True)
        for each in (self.root / "others", self.kept, self.discarded, self.hidden):
            (each / "before").write_text("x")
        self.wanted = Confinement(
            scratch=str(self.root / "own"),
            writable=(str(self.kept),),
            discarded=(str(self.discarded),),
            hidden=(str(self.hidden),),
        )

    def __call__(
        self, body: str, *, levels: str = "", within: list[str] | None = None, before="", **fields
    ) -> str:
        names = levels.split("+") if levels else LEVELS
        for name in levels.split("+") if levels else ():
            if self._available[name]:
                pytest.skip(f"no level {name}: {self._available[name]}")
        order = {
            "levels": [name for name in names if not self._available[name]],
            "confinement": replace(self.wanted, **fields).to_json(),
            "body": textwrap.dedent(body),
        }
        command = [sys.executable, "-c", HARNESS, json.dumps(order)]
        if within:
            command = [*within, "sh", "-c", before + shlex.join(command)]
        made = subprocess.run(
            command,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        *words, last = made.stdout.strip().splitlines() or [made.stderr]
        self.status = json.loads(last)["status"]
        return "\n".join(words)


@pytest.fixture
def confined(tmp_path, available) -> Confined:
    return Confined(tmp_path, available)
