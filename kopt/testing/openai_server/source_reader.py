"""A scripted model that looks a matrix instruction up in CUTLASS's source before it answers.

It knows no path and no line: it searches, reads the place that the search names, has a layout
checked, and answers with the name that it has read. Its module builds with CuTe, and is no faster.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass

from kopt.testing.openai_server.behaviour import Asked, Behaviour

_PLACE = re.compile(r"^(?P<path>\S+):(?P<line>\d+)$", re.MULTILINE)
_ALIAS = re.compile(r"\busing\s+(SM\d+_\w+)\s*=")
_INCLUDE = re.compile(r'extra_include_paths=\["([^"]+)"\]')
_ANSWER = """strategy: multiply by {atom}, found in {path}

```python
import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

CUDA = r'''
#include <torch/extension.h>
#include <cute/tensor.hpp>
#include <cute/atom/mma_traits_sm90_gmma.hpp>
using namespace cute;
using Atom = MMA_Atom<{atom}<GMMA::Major::K, GMMA::Major::K>>;
int64_t rows() {{ return size<0>(typename Atom::Shape_MNK{{}}); }}
'''
looked_up = load_inline(
    name="looked_up",
    cpp_sources="int64_t rows();",
    cuda_sources=CUDA,
    functions=["rows"],
    extra_include_paths=["{include}"],
    extra_cuda_cflags=["-std=c++17", "-arch=sm_90a"],
)


class ModelNew(nn.Module):
    def forward(self, x):
        return torch.softmax(x, dim=-1)
```
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceReader:
    """A script for conversations: each request is judged by what it holds alone."""

    query: str = "SM90 wgmma 64x128x16 F32F16F16 SS"
    """What is searched for."""
    scope: str | None = "include/cute/atom"
    layout_atom: str = "GMMA::Layout_K_SW128_Atom<half_t>"
    shape: tuple[int, ...] = (128, 64, 3)

    def __call__(self, asked: Asked) -> Behaviour:
        """Choose (the Script): search, read, check, answer."""
        heard = [each["content"] for each in asked.body["messages"] if each["role"] == "tool"]
        if not asked.body.get("tools") or asked.body.get("tool_choice") == "none":
            return self._answer(asked, heard)
        match len(heard):
            case 0:
                return _call("search_cutlass", query=self.query, path=self.scope)
            case 1:
                place = _PLACE.search(heard[0])
                if place is None:
                    return self._answer(asked, heard)
                start = max(1, int(place["line"]) - 6)
                return _call("read_cutlass_file", path=place["path"], start=start, lines=20)
            case 2:
                return _call(
                    "check_smem_layout",
                    layout_atom=self.layout_atom,
                    shape=list(self.shape),
                    element="half_t",
                )
        return self._answer(asked, heard)

    def _answer(self, asked: Asked, heard: list[str]) -> Behaviour:
        place = _PLACE.search(heard[0]) if heard else None
        found = _ALIAS.search(heard[1]) if len(heard) > 1 else None
        include = _INCLUDE.search(asked.prompt)
        if place is None or found is None or include is None:
            return Behaviour(texts=["I found no such atom."])
        text = _ANSWER.format(atom=found[1], path=place["path"], include=include[1])
        return Behaviour(texts=[text])


def _call(name: str, **arguments: object) -> Behaviour:
    return Behaviour(kind="tool_calls", calls=((name, json.dumps(arguments)),))
