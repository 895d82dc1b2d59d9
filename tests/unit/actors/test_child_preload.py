"""What a zygote loads ahead: said in words, and the GPU known without being asked for."""

from __future__ import annotations

import subprocess
import sys

import pytest

from kopt.actors.child.preload import Preload

FULL = Preload(compiles=True, arch="sm_90", uses_device=True, is_lean=True)


@pytest.mark.parametrize(
    ("preload", "words"),
    [
        (Preload(), []),
        (Preload(compiles=True), ["compile"]),
        (Preload(observes=True), ["observe"]),
        (Preload(compiles=True, arch="sm_100"), ["compile", "arch=sm_100"]),
        (FULL, ["compile", "arch=sm_90", "device", "lean"]),
    ],
)
def test_words_say_what_is_loaded(preload: Preload, words: list[str]) -> None:
    assert preload.words() == words
    assert Preload.from_words(words) == preload


ASKING = """
import sys
import torch
import torch._dynamo.device_interface as interface
asked = []
torch.cuda.is_available = lambda: True
torch.cuda.current_device = lambda: asked.append("device") or 0
torch.cuda.get_device_properties = lambda *_: asked.append("properties")
torch.cuda._lazy_init = lambda: asked.append("init")
from kopt.actors.child.preload import Preload
refused = Preload({kind}=True, arch="sm_90").load()
assert not refused, refused
assert "{module}" in sys.modules
assert not asked, asked
assert not interface.caching_worker_current_devices
assert not interface.caching_worker_device_properties
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "module"),
    [("compiles", "torch._inductor.compile_fx"), ("observes", "torch._subclasses.fake_tensor")],
)
def test_loading_asks_no_device_whose_architecture_is_known(kind: str, module: str) -> None:
    code = ASKING.format(kind=kind, module=module)
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=300
    )
    assert done.returncode == 0, done.stderr[-2000:]


@pytest.mark.slow
def test_an_architecture_that_is_none_refuses_rather_than_fails() -> None:
    code = (
        "from kopt.actors.child.preload import Preload\n"
        "assert 'compiler' in Preload(compiles=True, arch='none').load()\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=300
    )
    assert done.returncode == 0, done.stderr[-2000:]
