"""RMS norm in half precision, added up in float32, in Helion."""

import helion
import helion.language as hl
import torch
import torch.nn as nn

FAMILY = "norm"

ROWS = 16384
WIDTH = 4096
EPS = 1e-6
SMALL = {"ROWS": 6, "WIDTH": 40}


class Model(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.weight = nn.Parameter(1.0 + 0.3 * torch.randn(width, dtype=torch.bfloat16))

    def forward(self, x):
        wide = x.to(torch.promote_types(x.dtype, torch.float32))
        scale = torch.rsqrt(wide.square().mean(dim=-1, keepdim=True) + EPS)
        return (wide * scale * self.weight).to(x.dtype)


def get_inputs():
    return [torch.randn(ROWS, WIDTH, dtype=torch.bfloat16)]


def get_init_inputs():
    return [WIDTH]


@helion.kernel(config=helion.Config(block_sizes=[1], num_warps=8))
def rms_norm(x, weight, eps: float):
    out = torch.empty_like(x)
    width = x.size(1)
    for rows in hl.tile(x.size(0)):
        values = x[rows, :].to(torch.float32)
        scale = torch.rsqrt(torch.sum(values * values, dim=1, keepdim=True) / width + eps)
        out[rows, :] = (values * scale * weight[None, :].to(torch.float32)).to(out.dtype)
    return out


class ModelNew(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(width, dtype=torch.bfloat16))

    def forward(self, x):
        return rms_norm(x, self.weight, EPS)
