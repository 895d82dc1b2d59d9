"""The kinds of problems that a compiled model is cut into, as labels of problems.

What several generated kernels compute together is a kind of its own: whoever writes for it has
memory between kernels to save (KernelOPT's fusion agent, App. A.6).
"""

from __future__ import annotations

ONE_KERNEL = "subkernel"
SEVERAL_KERNELS = "subkernel_group"


def family_of_group(num_launches: int) -> str:
    """Return the family of the problem that a group of so many launches became."""
    return SEVERAL_KERNELS if num_launches > 1 else ONE_KERNEL
