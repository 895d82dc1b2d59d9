"""What the README of a mailbox says: all that whoever answers needs to know."""

from __future__ import annotations

EXAMPLE_ID = "softmax-0003-1f9c2a7b"

_EXAMPLE = f"""\
prompt: {EXAMPLE_ID}
strategy: one fused library call in place of four element-wise passes over memory
language: torch

```python
import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, x):
        return torch.softmax(x, dim=1)
```

strategy: exponentials in base 2, with the scale folded into one constant
language: torch

```python
import torch
from torch import nn

LOG2_E = 1.4426950408889634


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, x):
        powers = torch.exp2((x - x.amax(dim=1, keepdim=True)) * LOG2_E)
        return powers / powers.sum(dim=1, keepdim=True)
```
"""

_GUIDE = """\
# Mailbox

kopt asks here for faster programs. Whoever answers, a person or an agent, needs these files only.

1. Each file in `prompts/` is an open question: what is wanted, how it is judged, where to answer.
2. Answer it in `answers/<id>.md`; `<id>` is the name of the prompt's file. Any order will do.
3. The first line is `prompt: <id>`. An answer that names another prompt is refused.
4. For each candidate follow a line `strategy: …`, a line `language: …` and one fenced block with a
   whole Python module, which defines `ModelNew`. Give as many as the prompt wants, or fewer, each a
   different idea.
5. Write it under another name (`answers/<id>.md.tmp`) first and rename it when it is whole. For one
   that is not whole, kopt waits until it has not changed for {settle_s:g} s.
6. What was used moves to `taken/`, with its prompt. A second answer to it is put aside.
7. What cannot be used moves to `answers/<id>.refused-1.md`; `refused.log` says why in a line. Its
   prompt stays open: write `answers/<id>.md` anew.
8. To pass, write `decline: why` after the first line; passing again and again ends the search.
   `decline node: why` says that the program which the prompt starts from has no more to give.
9. kopt need not be running: `kopt resume` takes what came meanwhile. With `programmer.wait_s=0` it
   ends (exit 75) once nothing but answers is missing, and each resume plays one more round.
10. An open prompt stands as it was laid out. Leave all other files alone.

## Example

A prompt `prompts/{example_id}.md` that wants two candidates is answered by a file
`answers/{example_id}.md` with this text:

````markdown
{example}````
"""


def guide_text(*, settle_s: float) -> str:
    """Return the README of a mailbox."""
    return _GUIDE.format(settle_s=settle_s, example_id=EXAMPLE_ID, example=_EXAMPLE)


def example_answer() -> str:
    """Return the answer that the README shows."""
    return _EXAMPLE
