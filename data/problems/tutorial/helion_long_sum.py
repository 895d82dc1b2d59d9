"""Sums of rows too long for one tile, in Helion: each is walked through in steps."""

import helion
import helion.language as hl
import torch
import torch.nn as nn

FAMILY = "reduction"

ROWS = 64
WIDTH = 2**21
SMALL = {"ROWS": 3, "WIDTH": 700}


class Model(nn.Module):
    def forward(self, x):
        return torch.sum(x, dim=-1)


def get_inputs():
    return [torch.randn(ROWS, WIDTH)]


def get_init_inputs():
    return []


@helion.kernel(config=helion.Config(block_sizes=[1, 16384], num_warps=16))
def long_sum(x):
    rows_of_all, width = x.size()
    out = torch.empty([rows_of_all], dtype=x.dtype, device=x.device)
    for rows in hl.tile(rows_of_all):
        total = hl.zeros([rows], dtype=torch.float32)
        for columns in hl.tile(width):
            total = total + torch.sum(x[rows, columns], dim=1)
        out[rows] = total.to(out.dtype)
    return out


class ModelNew(nn.Module):
    def forward(self, x):
        return long_sum(x)
