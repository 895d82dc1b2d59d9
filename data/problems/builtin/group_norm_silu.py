"""Group norm of an image, then SiLU, as in a diffusion network's residual block.

Family: norm. The statistics run over channels and space together.
"""

import torch
import torch.nn as nn
import torch.nn.functional as F

FAMILY = "norm"

BATCH = 16
CHANNELS = 64
GROUPS = 8
SIDE = 64


class Model(nn.Module):
    def __init__(self, groups, channels):
        super().__init__()
        self.norm = nn.GroupNorm(groups, channels)
        nn.init.normal_(self.norm.weight, mean=1.0, std=0.3)
        nn.init.normal_(self.norm.bias, std=0.5)

    def forward(self, x):
        return F.silu(self.norm(x))


def get_inputs():
    return [0.5 + 1.5 * torch.randn(BATCH, CHANNELS, SIDE, SIDE)]


def get_init_inputs():
    return [GROUPS, CHANNELS]
