"""Forward layer norm with its affine part, fused, over rows as a transformer serves them.

Of KernelPro's App. C.3. Weight and bias are far from 1 and 0.
"""

import torch
import torch.nn as nn
import triton
import triton.language as tl

FAMILY = "norm"

ROWS = 8192
WIDTH = 8192
EPS = 1e-5
SMALL = {"ROWS": 6, "WIDTH": 40}


class Model(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width, eps=EPS, dtype=torch.bfloat16)
        nn.init.normal_(self.norm.weight, mean=1.0, std=0.3)
        nn.init.normal_(self.norm.bias, std=0.3)

    def forward(self, x):
        return self.norm(x)


def get_inputs():
    return [torch.randn(ROWS, WIDTH, dtype=torch.bfloat16) * 2.0 + 0.5]


def get_input_cases():
    return [[torch.randn(3, 5, WIDTH, dtype=torch.bfloat16)]]


def get_init_inputs():
    return [WIDTH]


@triton.jit
def norm_kernel(x_ptr, weight_ptr, bias_ptr, out_ptr, width, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    column = tl.arange(0, BLOCK)
    inside = column < width
    x = tl.load(x_ptr + row * width + column, mask=inside, other=0.0).to(tl.float32)
    mean = tl.sum(x, axis=0) / width
    away = tl.where(inside, x - mean, 0.0)
    scale = 1.0 / tl.sqrt(tl.sum(away * away, axis=0) / width + eps)
    weight = tl.load(weight_ptr + column, mask=inside, other=0.0).to(tl.float32)
    bias = tl.load(bias_ptr + column, mask=inside, other=0.0).to(tl.float32)
    y = away * scale * weight + bias
    tl.store(out_ptr + row * width + column, y.to(out_ptr.dtype.element_ty), mask=inside)


class ModelNew(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width, eps=EPS, dtype=torch.bfloat16)

    def forward(self, x):
        x = x.contiguous()
        width = x.shape[-1]
        out = torch.empty_like(x)
        block = triton.next_power_of_2(width)
        warps = min(max(block // 512, 1), 16)
        norm_kernel[(x.numel() // width,)](
            x, self.norm.weight, self.norm.bias, out, width, EPS, BLOCK=block, num_warps=warps
        )
        return out
