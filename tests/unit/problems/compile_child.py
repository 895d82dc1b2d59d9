"""Compiles given Triton kernels for sm_90 at their full sizes, where there is no GPU.

Reads `[[name, source, given], …]` as JSON; writes `{name: [[kernel, shared bytes, wgmma], …]}`, or
why a kernel does not compile. Tensors are on the device `meta`: only shapes and types are there.
"""

import inspect
import json
import sys
import tempfile
from pathlib import Path

import torch
import triton
from interpreter_child import load
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource
from triton.runtime.jit import JITFunction

TYPES = {
    torch.bfloat16: "bf16",
    torch.float16: "fp16",
    torch.float32: "fp32",
    torch.int64: "i64",
    torch.int32: "i32",
    torch.int8: "i8",
}
OPTIONS = ("num_warps", "num_stages")
made = []


def compiled(function, *args, grid=None, warmup=False, **given):
    """Stand in for a launch."""
    options = {name: given.pop(name) for name in OPTIONS if name in given}
    bound = inspect.signature(function.fn).bind(*args, **given)
    signature, constants, divisible = {}, {}, {}
    for at, (name, value) in enumerate(bound.arguments.items()):
        parameter = next(each for each in function.params if each.name == name)
        if parameter.is_constexpr:
            signature[name], constants[name] = "constexpr", value
            continue
        if isinstance(value, torch.Tensor):
            signature[name] = f"*{TYPES[value.dtype]}"
        elif isinstance(value, float):
            signature[name] = "fp32"
        else:
            signature[name] = "i32" if value < 2**31 else "i64"
        if isinstance(value, torch.Tensor) or (isinstance(value, int) and value % 16 == 0):
            divisible[(at,)] = [["tt.divisibility", 16]]
    text = ASTSource(function, signature=signature, constexprs=constants, attrs=divisible)
    kernel = triton.compile(text, target=GPUTarget("cuda", 90, 32), options=options)
    made.append([function.fn.__name__, kernel.metadata.shared, "wgmma" in kernel.asm["ptx"]])


def on_meta(value):
    return value.to("meta") if isinstance(value, torch.Tensor) else value


def compile_all(source, given, *, name, folder):
    made.clear()
    problem = load(source, name=f"{name}_reference", folder=folder)
    with torch.device("meta"):
        arguments = getattr(problem, "get_init_inputs", list)()
        inputs = [on_meta(each) for each in problem.get_inputs()]
        load(given, name=f"{name}_kernel", folder=folder).ModelNew(*arguments)(*inputs)
    return list(made)


def main():
    JITFunction.run = compiled
    outcomes = {}
    with tempfile.TemporaryDirectory() as folder, torch.no_grad():
        for name, source, given in json.load(sys.stdin):
            try:
                outcomes[name] = compile_all(
                    source, given, name=name.replace("/", "_"), folder=Path(folder)
                )
            except Exception as error:  # noqa: BLE001 - one kernel's fault is that kernel's outcome
                outcomes[name] = f"{type(error).__name__}: {error}"
    json.dump(outcomes, sys.stdout)


if __name__ == "__main__":
    main()
