"""A problem: a reference program, with its way to make inputs.

The contract is KernelBench's: the source defines `Model` (an nn.Module), `get_inputs()` (the
arguments of `forward`) and `get_init_inputs()` (the arguments of the constructor; left out, there
are none).

Beyond it, a source may define `get_input_cases()`: a list of further argument lists for `forward`,
such as other shapes, odd sizes or another batch. A candidate must be right on what `get_inputs()`
gives and on each of them; what `get_inputs()` gives is what is timed. A source without it has that
one case. Like `get_inputs()` it takes no argument, may draw random numbers, and is asked anew for
each seed: the number of cases and each case's shapes must not depend on what is drawn.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from kopt.identity import content_id

Dtype = Literal["float32", "float16", "bfloat16", "float64"]
DTYPES: tuple[Dtype, ...] = get_args(Dtype)

REFERENCE_CLASS = "Model"
CANDIDATE_CLASS = "ModelNew"
INPUTS_FUNCTION = "get_inputs"
INIT_INPUTS_FUNCTION = "get_init_inputs"
INPUT_CASES_FUNCTION = "get_input_cases"


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """One reference program. Only `source`, `given` and `dtype` take part in its identity."""

    name: str
    """How users call it: `builtin/softmax`, `kernelbench/level2/18`, `folder/file`, or a file's
    stem. A label."""
    source: str
    """Python text in the contract above."""
    given: str = ""
    """Text of a kernel that the problem comes with, such as the one in production: a module that
    defines ModelNew. Every search begins with it, and it is measured as a baseline."""
    dtype: Dtype | None = None
    """Floating tensors (inputs, parameters, buffers) are cast to it; None keeps them as made."""
    family: str = ""
    """Kind of computation ("norm", "linear"); corpora are split by it. A label."""
    revision: str = ""
    """Of the problem set: the name asked for and a git commit (`v0.1 129232ea…`), a data set's
    (`hub:…`), a digest of a folder (`sha256:…`), or kopt's version. A label."""
    licence: str = ""
    """SPDX identifier of the source, or empty. A label."""
    degenerate: str = ""
    """Why a speed-up on it means little (a lint's words), or empty. A label."""

    @property
    def problem_id(self) -> str:
        """Content id: equal for equal source, given kernel and dtype, whatever the labels say."""
        content = {"source": self.source, "dtype": self.dtype}
        if self.given:
            content["given"] = self.given
        return content_id("problem", 1, content)

    @property
    def file_name(self) -> str:
        """The name, fit for a folder: `builtin/softmax` gives `builtin-softmax`."""
        return "".join(c if c.isalnum() or c in "._" else "-" for c in self.name).strip("-")
