"""A view of its input: the reference itself returns memory that it was given."""

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x):
        return x.flatten(1), x.sum(dim=(1, 2))


def get_inputs():
    return [torch.randn(64, 32, 32)]
