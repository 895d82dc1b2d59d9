"""Compiling a Triton candidate ahead of its device: import, construct and call it on fake tensors.

Run in a build child, which ends afterwards. The candidate runs as it will on the device, on the
problem's own inputs without their values; each kernel that it launches is compiled for the target
into the candidate's own cache of Triton (TRITON_CACHE_DIR). What cannot be followed without values
or without a device (`.item()`, CUDA graphs, extensions) ends the run, and what was compiled until
then stays.

Nothing that happens here is a verdict. A compile error ahead may be of a specialisation that the
device never asks for (a stride that only an algorithm of cuDNN's decides, a number of SMs), the
candidate may catch it and do without, and its weights are judged before its kernels: so the device
lane, which then fails within the same time as ever, says what is wrong, in its own words.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils._pytree import tree_map

from kopt.actors.build.gpu_facts import GpuFacts
from kopt.actors.build.triton_ahead_device import OnDevice, stand_in_gpu
from kopt.actors.build.triton_ahead_driver import Compiler
from kopt.actors.build.triton_order import REPORT
from kopt.actors.child.memory import DTYPES
from kopt.actors.child.module import argument_lists, construct, import_source, init_arguments
from kopt.problem import CANDIDATE_CLASS

_LOG_CHARACTERS = 2_000


def compile_ahead(order: str) -> None:
    """Compile a candidate's kernels and leave a report.

    Args:
        order: what `triton_order.order_to_compile` wrote.
    """
    tempfile.tempdir = None  # the zygote looked it up before this child had its own
    fields = json.loads(order)
    gpu = GpuFacts(**fields["gpu"])
    stand_in_gpu(gpu)
    compiler = Compiler(gpu, num_workers=fields["num_workers"])
    stopped = ""
    with compiler:
        try:
            _run(fields)
        except BaseException as error:  # noqa: BLE001 - the process boundary: all is reported
            stopped = f"{type(error).__name__}: {error}"[:_LOG_CHARACTERS]
    report = {
        "compiled": sorted(set(compiler.compiled)),
        "failed": [words[:_LOG_CHARACTERS] for words in compiler.failed],
        "stopped": stopped,
    }
    Path(os.environ["KOPT_BUILD_DIR"], REPORT).write_text(json.dumps(report), encoding="utf-8")


def _run(fields: Mapping[str, Any]) -> None:
    """Do what the device lane does up to the first call."""
    dtype = None if fields["dtype"] is None else DTYPES[fields["dtype"]]
    here = Path.cwd()

    def placed(value: object) -> object:
        if not isinstance(value, torch.Tensor):
            return value
        value = value.to("cuda:0")
        return value.to(dtype) if dtype is not None and value.is_floating_point() else value

    with OnDevice(), FakeTensorMode(allow_non_fake_inputs=True), torch.no_grad():
        problem = import_source(fields["problem"], name="reference", folder=here)
        arguments = init_arguments(problem)
        inputs = [values for _, values in argument_lists(problem)]
        module = import_source(fields["candidate"], name="candidate", folder=here)
        how = {"seed": 0, "mode": fields["mode"]}
        model = construct(module, CANDIDATE_CLASS, arguments, **how).to("cuda:0")
        model = model if dtype is None else model.to(dtype)
        for values in inputs:
            model(*tree_map(placed, values))
