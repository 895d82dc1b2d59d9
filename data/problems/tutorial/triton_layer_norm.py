"""Layer norm of the sum of two tensors, in Triton, over rows longer than a block.

The row is read twice: for its mean and variance, which are added up in float32, and for the output.
"""

import torch
import torch.nn as nn
import triton
import triton.language as tl

FAMILY = "norm"

ROWS = 4096
WIDTH = 12288
EPS = 1e-5
SMALL = {"ROWS": 5, "WIDTH": 70}


class Model(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width, eps=EPS)
        nn.init.normal_(self.norm.weight, mean=1.0, std=0.3)
        nn.init.normal_(self.norm.bias, std=0.3)

    def forward(self, x, residual):
        return self.norm(x + residual)


def get_inputs():
    return [torch.randn(ROWS, WIDTH), torch.randn(ROWS, WIDTH)]


def get_init_inputs():
    return [WIDTH]


@triton.jit
def norm_kernel(
    x_ptr, residual_ptr, weight_ptr, bias_ptr, out_ptr, width, eps, BLOCK: tl.constexpr
):
    first = tl.program_id(0).to(tl.int64) * width
    count = 0.0
    mean = 0.0
    spread = 0.0
    for begin in range(0, width, BLOCK):
        column = begin + tl.arange(0, BLOCK)
        inside = column < width
        x = tl.load(x_ptr + first + column, mask=inside, other=0.0)
        x += tl.load(residual_ptr + first + column, mask=inside, other=0.0)
        # Blocks are joined by their means, which loses nothing where the mean is large.
        number = tl.minimum(width - begin, BLOCK).to(tl.float32)
        here = tl.sum(x, axis=0) / number
        away = tl.where(inside, x - here, 0.0)
        step = here - mean
        spread += tl.sum(away * away, axis=0) + step * step * count * number / (count + number)
        count += number
        mean += step * number / count
    scale = 1.0 / tl.sqrt(spread / width + eps)
    for begin in range(0, width, BLOCK):
        column = begin + tl.arange(0, BLOCK)
        inside = column < width
        x = tl.load(x_ptr + first + column, mask=inside, other=0.0)
        x += tl.load(residual_ptr + first + column, mask=inside, other=0.0)
        weight = tl.load(weight_ptr + column, mask=inside, other=0.0)
        bias = tl.load(bias_ptr + column, mask=inside, other=0.0)
        tl.store(out_ptr + first + column, (x - mean) * scale * weight + bias, mask=inside)


class ModelNew(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width, eps=EPS)

    def forward(self, x, residual):
        width = x.shape[-1]
        out = torch.empty_like(x)
        norm_kernel[(x.numel() // width,)](
            x,
            residual,
            self.norm.weight,
            self.norm.bias,
            out,
            width,
            EPS,
            BLOCK=min(4096, triton.next_power_of_2(width)),
            num_warps=8,
        )
        return out
