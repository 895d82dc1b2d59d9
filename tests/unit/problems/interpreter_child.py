"""Runs given kernels in Triton's interpreter beside their references, in one process for all.

Reads `[[name, source, given], …]` as JSON; writes `{name: [error, scale], …}`: the greatest
distance from the reference in float64 and the reference's greatest value, over get_inputs() and
each input case, or why there is none. In float32: the interpreter is wrong about bfloat16.
"""

import json
import sys
import tempfile
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import torch


def load(text, *, name, folder):
    path = folder / f"{name}.py"
    path.write_text(text)
    spec = spec_from_file_location(name, path)
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def cast(value, dtype):
    is_float = isinstance(value, torch.Tensor) and value.is_floating_point()
    return value.to(dtype) if is_float else value


def distance(found, wanted):
    pairs = (
        list(zip(found, wanted, strict=True)) if isinstance(wanted, tuple) else [(found, wanted)]
    )
    errors = [float((ours.double() - theirs.double()).abs().max()) for ours, theirs in pairs]
    assert all(ours.shape == theirs.shape for ours, theirs in pairs)
    return max(errors), max(float(theirs.double().abs().max()) for _, theirs in pairs)


def judge(source, given, *, name, folder):
    torch.manual_seed(0)
    problem = load(source, name=f"{name}_reference", folder=folder)
    arguments = getattr(problem, "get_init_inputs", list)()
    model = problem.Model(*arguments)
    candidate = load(given, name=f"{name}_kernel", folder=folder).ModelNew(*arguments)
    model, candidate = model.float(), candidate.float()
    candidate.load_state_dict(model.state_dict())
    cases = [problem.get_inputs(), *getattr(problem, "get_input_cases", list)()]
    worst, scale = 0.0, 0.0
    for case in cases:
        found = candidate(*[cast(each, torch.float32) for each in case])
        wanted = model.double()(*[cast(each, torch.float64) for each in case])
        model.float()
        error, size = distance(found, wanted)
        worst, scale = max(worst, error), max(scale, size)
    return [worst, scale]


def without_libdevice():
    """Helion calls CUDA's library of functions, which the interpreter does not have."""
    import triton.language as tl
    from torch._inductor.runtime.triton_compat import libdevice

    for name in ("exp", "exp2", "log", "rsqrt", "sqrt"):
        setattr(libdevice, name, lambda x, name=name: getattr(tl, name)(x))


def main():
    torch.set_num_threads(1)
    if "--helion" in sys.argv:
        without_libdevice()
    outcomes = {}
    with tempfile.TemporaryDirectory() as folder, torch.no_grad():
        for name, source, given in json.load(sys.stdin):
            try:
                outcomes[name] = judge(
                    source, given, name=name.replace("/", "_"), folder=Path(folder)
                )
            except Exception as error:  # noqa: BLE001 - one kernel's fault is that kernel's outcome
                outcomes[name] = f"{type(error).__name__}: {error}"
    json.dump(outcomes, sys.stdout)


if __name__ == "__main__":
    main()
