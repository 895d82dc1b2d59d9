"""Outputs about 1e-3 in size, below many an absolute tolerance."""

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x):
        return torch.softmax(x, dim=-1)


def get_inputs():
    return [torch.rand(128, 1024)]
