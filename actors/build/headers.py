"""The include folder of the light toolchain, and the index of torch's generated functions.

torch writes the declaration and the body of some thousand methods, functions and factories by rule;
they are read here as text, so that each source can be given those that it names.
"""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

NATIVE = Path(__file__).parent / "native"
"""Our C++: the light headers, and the bridge to torch's own."""

OVERLAID: dict[str, tuple[str, ...]] = {
    "kopt_light/values.h": (
        "c10/core/Device.h",
        "c10/core/DeviceType.h",
        "c10/core/Layout.h",
        "c10/core/MemoryFormat.h",
        "c10/core/ScalarType.h",
        "c10/core/Stream.h",
        "c10/core/SymInt.h",
        "c10/util/ArrayRef.h",
        "c10/util/Exception.h",
        "c10/util/SmallVector.h",
        "c10/util/StringUtil.h",
        "c10/util/typeid.h",
        "torch/headeronly/core/ScalarType.h",
        "torch/headeronly/util/Exception.h",
        "torch/headeronly/util/HeaderOnlyArrayRef.h",
    ),
    "kopt_light/tensor.h": (
        "ATen/Context.h",
        "ATen/DeviceGuard.h",
        "ATen/Tensor.h",
        "ATen/TensorOperators.h",
        "ATen/TensorUtils.h",
        "ATen/TracerMode.h",
        "ATen/core/ATen_fwd.h",
        "ATen/core/Generator.h",
        "ATen/core/Tensor.h",
        "ATen/core/TensorBase.h",
        "ATen/core/TensorBody.h",
        "c10/core/Scalar.h",
        "c10/core/Storage.h",
        "c10/core/TensorImpl.h",
        "c10/core/TensorOptions.h",
    ),
    "kopt_light/parallel.h": ("ATen/Parallel.h",),
    "kopt_light/aten.h": ("ATen/ATen.h", "ATen/Functions.h"),
    "kopt_light/torch.h": ("torch/all.h", "torch/types.h"),
    "kopt_light/extension.h": ("torch/extension.h", "torch/torch.h"),
    "kopt_light/bind.h": (
        "pybind11/pybind11.h",
        "pybind11/stl.h",
        "torch/csrc/Exceptions.h",
        "torch/csrc/utils/pybind.h",
        "torch/python.h",
    ),
    "kopt_light/cuda.h": (
        "c10/cuda/CUDAException.h",
        "c10/cuda/CUDAFunctions.h",
        "c10/cuda/CUDAStream.h",
    ),
    "kopt_light/cuda_guard.h": ("c10/cuda/CUDAGuard.h",),
    "kopt_light/cuda_context.h": (
        "ATen/cuda/CUDAContext.h",
        "ATen/cuda/CUDAContextLight.h",
        "ATen/cuda/Exceptions.h",
    ),
}
"""Which of torch's headers each of ours stands in for."""

_DEFINITION = re.compile(
    r"^inline [^\n]*?\bTensor::(\w+)\([^\n]*\) (?:const )?\{\n.*?^\}\n", re.M | re.S
)
_DECLARATION = re.compile(r"^  (?!T )[^\n]*\) const;$", re.M)
_NAMED = re.compile(r"[ &](\w+)\(")
_FACTORY = re.compile(r"^inline at::Tensor (\w+)\([^\n]*\) \{\n.*?^\}\n", re.M | re.S)
_OPERATOR = re.compile(r"\bat::_ops::(\w+)::call\b")
_STRUCT = re.compile(r"^struct TORCH_API (\w+) \{", re.M)


def write_headers(folder: Path) -> None:
    """Write our headers, and those under the names of torch's that lead to them."""
    shutil.copytree(NATIVE / "kopt_light", folder / "kopt_light")
    for ours, names in OVERLAID.items():
        for name in names:
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(f"#pragma once\n#include <{ours}>\n", encoding="ascii")


def write_index(path: Path, *, include: Path) -> None:
    """Write the index of generated code that `light_compiler` reads.

    Args:
        path: of the JSON file.
        include: torch's own include folder.

    Raises:
        OSError: torch's headers are not there.
    """
    operators = include / "ATen" / "ops"
    index = {
        "functions": sorted(header.stem for header in operators.glob("*.h") if _is_plain(header)),
        "methods": _methods(
            (include / "ATen/core/TensorBody.h").read_text(encoding="utf-8"),
            headers=_headers_of_structs(operators),
        ),
        "factories": _factories(
            (include / "torch/csrc/autograd/generated/variable_factories.h").read_text("utf-8")
        ),
    }
    path.write_text(json.dumps(index), encoding="utf-8")


def _is_plain(header: Path) -> bool:
    return not header.stem.endswith(("_ops", "_native", "_dispatch", "_meta"))


def _headers_of_structs(operators: Path) -> dict[str, str]:
    return {
        struct: header.name
        for header in operators.glob("*_ops.h")
        for struct in _STRUCT.findall(header.read_text(encoding="utf-8"))
    }


def _methods(text: str, *, headers: dict[str, str]) -> dict[str, dict[str, Any]]:
    """Return the generated methods by name, with all overloads of each together."""
    methods: dict[str, dict[str, Any]] = {}
    declarations = _declarations(text)
    for match in _DEFINITION.finditer(text):
        name, body = match[1], match[0]
        declared = "\n".join(declarations.get(name, ()))
        needed = [headers[struct] for struct in _OPERATOR.findall(body) if struct in headers]
        if not declared or not needed:
            continue
        method = methods.setdefault(name, {"declared": declared, "defined": "", "headers": []})
        method["defined"] += body
        method["headers"] = sorted({*method["headers"], *needed})
    return methods


def _declarations(text: str) -> dict[str, dict[str, None]]:
    """Return the lines that declare a method, in order, by its name."""
    found: dict[str, dict[str, None]] = {}
    for line in _DECLARATION.findall(text):
        for named in _NAMED.finditer(line):
            if "/" not in line[: named.start()]:
                found.setdefault(named[1], {})[line] = None
    return found


def _factories(text: str) -> dict[str, str]:
    factories: dict[str, str] = {}
    for match in _FACTORY.finditer(text):
        if "autograd::make_variable(at::" in match[0]:
            factories[match[1]] = factories.get(match[1], "") + match[0]
    return factories
