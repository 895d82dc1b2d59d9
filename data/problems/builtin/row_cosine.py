"""Cosine similarity of paired rows, scaled by a learnt temperature.

Family: row reduction. Three sums over the same loads.
"""

import torch
import torch.nn as nn
import torch.nn.functional as F

FAMILY = "reduction"

ROWS = 8192
WIDTH = 512


class Model(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.dim = dim
        self.temperature = nn.Parameter(10.0 + torch.rand(1))

    def forward(self, queries, keys):
        unit_queries = F.normalize(queries, dim=self.dim)
        unit_keys = F.normalize(keys, dim=self.dim)
        return self.temperature * (unit_queries * unit_keys).sum(dim=self.dim)


def get_inputs():
    queries = 2.0 * torch.randn(ROWS, WIDTH)
    return [queries, 0.5 * queries + torch.randn(ROWS, WIDTH)]


def get_init_inputs():
    return [-1]
