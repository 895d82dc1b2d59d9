"""Two vectors added, in Triton: a block of elements a program, the last one masked."""

import torch
import torch.nn as nn
import triton
import triton.language as tl

FAMILY = "elementwise"

LENGTH = 2**26 + 1
SMALL = {"LENGTH": 4000}


class Model(nn.Module):
    def forward(self, a, b):
        return a + b


def get_inputs():
    return [torch.randn(LENGTH), torch.randn(LENGTH)]


def get_init_inputs():
    return []


@triton.jit
def add_kernel(a_ptr, b_ptr, out_ptr, length, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = at < length
    total = tl.load(a_ptr + at, mask=inside) + tl.load(b_ptr + at, mask=inside)
    tl.store(out_ptr + at, total, mask=inside)


class ModelNew(nn.Module):
    def forward(self, a, b):
        out = torch.empty_like(a)
        block = 1024
        add_kernel[(triton.cdiv(a.numel(), block),)](a, b, out, a.numel(), BLOCK=block, num_warps=4)
        return out
