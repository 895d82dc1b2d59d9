"""The reference under torch.compile, tuned on a device that is quiet.

Inductor picks the configuration of a generated kernel by timing a few the first time it runs.
Beside another kernel it picks a bad one, and keeps it: a slow baseline, and speed-ups that are
none. Compiling takes seconds and may go on beside others; then it is compiled again, from the
caches on disk, alone. What was picked is never kept on disk.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import nn


def compiled(model: nn.Module, *, mode: str | None, afresh: bool) -> Callable[..., object]:
    """Return the module with torch.compile round it; it compiles and is tuned when it is called.

    Args:
        model: the module.
        mode: torch.compile's.
        afresh: whatever this process tuned before is forgotten.
    """
    from torch._inductor import config
    from torch._inductor.utils import clear_caches

    torch._dynamo.reset()
    config.autotune_local_cache = False
    if afresh:
        clear_caches()
    made: Callable[..., object] = torch.compile(model, mode=mode, dynamic=False)
    return made
