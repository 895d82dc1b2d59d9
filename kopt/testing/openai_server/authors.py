"""Who writes the scripted server's answers: texts with a real candidate, from the prompt alone."""

from __future__ import annotations

import json
import re
from collections.abc import Callable

from kopt.memory.entry import HEADINGS
from kopt.testing.openai_server.behaviour import Asked

Author = Callable[[Asked, int], str]
"""Called with the request and the number of the choice; returns its text."""

_FENCED = re.compile(r"^(```+|~~~+)[^\n]*\n(.*?)^\1[ \t]*$", re.MULTILINE | re.DOTALL)
_REFERENCE = re.compile(r"^class Model\b", re.MULTILINE)


def reference_author(asked: Asked, choice: int) -> str:
    """Return the prompt's own reference as a candidate: right, and as fast as itself.

    Each request and choice gives another program, so that searches find something new to judge: a
    comment would not do, as what differs from its parent by comments alone repeats it.
    """
    if asks_for_notes(asked):
        return notes(asked)
    blocks = [match[2] for match in _FENCED.finditer(asked.prompt)]
    references = [block for block in blocks if _REFERENCE.search(block)]
    if not references:
        return "There is no reference in this prompt."
    source = re.sub(r"\bModel\b", "ModelNew", references[0])
    idea = asked.rng.randrange(10**6)
    return (
        f"strategy: keep the reference as it is (idea {idea}, choice {choice})\n\n"
        f"```python\n{source.strip()}\n\n\nIDEA = ({idea}, {choice})\n```\n"
    )


def stock_author(asked: Asked, choice: int) -> str:
    """Return a short module that no evaluator is meant to see; costs nothing to write."""
    if asks_for_notes(asked):
        return notes(asked)
    idea = asked.rng.randrange(10**9)
    return (
        f"strategy: scale by {idea}\n\n```python\nimport torch\nfrom torch import nn\n\n\n"
        "class ModelNew(nn.Module):\n    def forward(self, x):\n"
        f"        return torch.relu(x) * {idea} + {choice}\n```\n"
    )


def long_author(asked: Asked, choice: int) -> str:
    """Return a module of about 8 kB, as long as a model's kernels are; costs little to write."""
    if asks_for_notes(asked):
        return notes(asked)
    idea = asked.rng.randrange(10**9)
    return f"strategy: unroll by {idea}\n\n```python\n# idea {idea}.{choice}\n{_LONG}```\n"


def asks_for_notes(asked: Asked) -> bool:
    """Return whether a prompt asks for lessons of an iteration, not for code."""
    return all(f'"{heading}"' in asked.prompt for heading in HEADINGS)


def notes(asked: Asked) -> str:
    """Return an entry of a search memory in the form that is asked for."""
    lesson = f"note {asked.rng.randrange(10**6)}"
    return json.dumps({heading: [lesson] if heading == "learnings" else [] for heading in HEADINGS})


_LONG = (
    "import torch\nfrom torch import nn\n\n\nclass ModelNew(nn.Module):\n"
    "    def forward(self, x):\n"
    + "".join(
        f"        x = torch.relu(x + {row}) * {row + 1}  # a step of the kernel\n"
        for row in range(120)
    )
    + "        return x\n"
)
