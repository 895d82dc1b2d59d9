"""Sum of everything to come along each row (returns to go): flip, running sum, flip.

Family: scan. Read backwards, one pass does it.
"""

import torch
import torch.nn as nn

FAMILY = "scan"

ROWS = 2048
WIDTH = 1024


class Model(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.dim = dim

    def forward(self, rewards):
        return torch.cumsum(rewards.flip(self.dim), dim=self.dim).flip(self.dim)


def get_inputs():
    return [0.1 + torch.randn(ROWS, WIDTH)]


def get_init_inputs():
    return [1]
