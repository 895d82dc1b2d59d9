"""A product, a ReLU that its own inputs never need, and weights that start as 1 and 0."""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(features))
        self.shift = nn.Parameter(torch.zeros(features))

    def forward(self, x):
        mixing = torch.outer(self.scale, self.scale) / self.scale.numel()
        return torch.relu(x @ mixing) * self.scale + self.shift


def get_inputs():
    return [torch.rand(512, 256)]


def get_init_inputs():
    return [256]
