"""The zygote as its supervisor sees it: one that hangs keeps nobody waiting; lean ones follow."""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path

import pytest

from kopt.actors.child.channel import Channel
from kopt.actors.child.preload import Preload
from kopt.actors.child.sandbox.confine import Confinement
from kopt.actors.supervisor.environment import child_environment
from kopt.actors.supervisor.zygote import Zygote

pytestmark = pytest.mark.slow

SOON_S = 60.0


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    return child_environment(scratch=tmp_path, num_threads=1, cache_dir=tmp_path)


def fork(zygote: Zygote, environment: dict[str, str]):
    settings = {"device": "cpu", "num_threads": 1}
    plain = Confinement(
        scratch=environment["HOME"],
        writable=(),
        discarded=(),
        emptied=(),
        hidden=(),
        memory_bytes=1 << 34,
        by_data=True,
        cpu_s=None,
    )
    return zygote.fork(environment=environment, confinement=plain, settings=settings)


def let_go(forked) -> None:
    forked.talk.close()
    os.close(forked.output)


def test_others_are_forked_while_a_child_takes_long_to_go(environment, monkeypatch) -> None:
    zygote = Zygote(environment)
    try:
        slow = fork(zygote, environment)
        told = zygote._ask
        is_asked, may_go = threading.Event(), threading.Event()

        def ask(order, fds=()):
            # A kernel that hangs cannot be had here: the zygote's answer stands in for it.
            if order == {"op": "end", "pid": slow.pid} and not may_go.is_set():
                is_asked.set()
                return {"going": True}
            return told(order, fds)

        monkeypatch.setattr(zygote, "_ask", ask)
        statuses = []
        ending = threading.Thread(target=lambda: statuses.append(zygote.end(slow)))
        ending.start()
        assert is_asked.wait(SOON_S)
        other = fork(zygote, environment)
        zygote.end(other)
        assert statuses == []
        may_go.set()
        ending.join(SOON_S)
        assert len(statuses) == 1
        for each in (slow, other):
            let_go(each)
    finally:
        zygote.close()


def test_a_child_that_ended_by_itself_keeps_its_status(environment) -> None:
    zygote = Zygote(environment)
    try:
        forked = fork(zygote, environment)
        forked.talk.close()  # it ends when its supervisor is gone
        waiting = os.fdopen(forked.output, "rb")
        waiting.read()  # until nobody can write any more: it is gone
        waiting.close()
        assert zygote.end(forked) == 0
        assert zygote.end(forked) == 0  # a second time does nothing
    finally:
        zygote.close()


def test_a_zygote_that_spoilt_its_forks_makes_room_for_a_lean_one(environment, tmp_path) -> None:
    # A torch whose compiler cannot be loaded: the module has another name.
    hidden = tmp_path / "hidden"
    hidden.mkdir()
    (hidden / "sitecustomize.py").write_text(
        "import sys\nsys.modules['torch._inductor.compile_fx'] = None\n"
    )
    environment["PYTHONPATH"] = os.pathsep.join([str(hidden), environment["PYTHONPATH"]])
    zygote = Zygote(environment, preload=Preload(compiles=True))
    try:
        began_s = time.monotonic()
        forked = fork(zygote, environment)
        zygote.end(forked)
        let_go(forked)
        assert zygote._preload.is_lean
        assert zygote.generation == 0  # nobody's child died
        assert time.monotonic() - began_s < 2 * SOON_S
    finally:
        zygote.close()


def test_a_childs_temporary_files_go_where_it_may_write(environment, tmp_path) -> None:
    # Imports of the zygote ask where that is, and Python remembers the answer.
    loaded = tmp_path / "loaded"
    loaded.mkdir()
    (loaded / "sitecustomize.py").write_text("import tempfile\ntempfile.gettempdir()\n")
    path = os.pathsep.join([str(loaded), environment["PYTHONPATH"]])
    zygote = Zygote(environment | {"PYTHONPATH": path, "TMPDIR": "/"})
    try:
        forked = fork(zygote, environment)
        channel = Channel(forked.talk)
        source = f"import tempfile\nassert tempfile.gettempdir() == {environment['TMPDIR']!r}\n"
        channel.send({"op": "import", "source": source, "name": "reference"})
        answer, _ = channel.receive(timeout_s=SOON_S)
        assert answer == {}
        zygote.end(forked)
        let_go(forked)
    finally:
        zygote.close()
