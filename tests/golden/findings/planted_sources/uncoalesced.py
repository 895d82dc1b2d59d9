"""Neighbouring threads read elements that lie 16 KiB apart: a transposition without a tile."""

import torch
import triton
import triton.language as tl
from torch import nn

SIDE = 4096


class Model(nn.Module):
    def forward(self, x):
        return x.t().contiguous()


def get_inputs():
    return [torch.randn(SIDE, SIDE)]


@triton.jit
def column_kernel(x_ptr, out_ptr, SIDE: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + (at % SIDE) * SIDE + at // SIDE)
    tl.store(out_ptr + at, x)


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        column_kernel[(x.numel() // 512,)](x, out, SIDE=SIDE, BLOCK=512)
        return out
