"""A product of bf16 matrices by the tensor instructions of an older generation."""

import torch
import triton
import triton.language as tl
from torch import nn

SIDE = 4096


class Model(nn.Module):
    def forward(self, a, b):
        return a @ b


def get_inputs():
    return [torch.randn(SIDE, SIDE).bfloat16(), torch.randn(SIDE, SIDE).bfloat16()]


@triton.jit
def product_kernel(a_ptr, b_ptr, out_ptr, SIDE: tl.constexpr, M: tl.constexpr, K: tl.constexpr):
    rows = tl.program_id(0) * M + tl.arange(0, M)
    columns = tl.program_id(1) * M + tl.arange(0, M)
    total = tl.zeros((M, M), dtype=tl.float32)
    for start in range(0, SIDE, K):
        inner = start + tl.arange(0, K)
        a = tl.load(a_ptr + rows[:, None] * SIDE + inner[None, :])
        b = tl.load(b_ptr + inner[:, None] * SIDE + columns[None, :])
        total = tl.dot(a, b, total)
    tl.store(out_ptr + rows[:, None] * SIDE + columns[None, :], total.to(tl.bfloat16))


class ModelNew(nn.Module):
    def forward(self, a, b):
        out = torch.empty_like(a)
        grid = (SIDE // 64, SIDE // 64)
        product_kernel[grid](a, b, out, SIDE=SIDE, M=64, K=32, num_warps=2)
        return out
