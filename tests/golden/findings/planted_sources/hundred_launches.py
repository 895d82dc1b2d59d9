"""A hundred launches of a kernel that has next to nothing to do."""

import torch
import triton
import triton.language as tl
from torch import nn

STEPS = 100


class Model(nn.Module):
    def forward(self, x):
        return x + float(STEPS)


def get_inputs():
    return [torch.randn(4096)]


@triton.jit
def step_kernel(x_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x_ptr + at, tl.load(x_ptr + at, mask=at < n) + 1.0, mask=at < n)


class ModelNew(nn.Module):
    def forward(self, x):
        out = x.clone()
        for _ in range(STEPS):
            step_kernel[(triton.cdiv(x.numel(), 1024),)](out, x.numel(), BLOCK=1024)
        return out
