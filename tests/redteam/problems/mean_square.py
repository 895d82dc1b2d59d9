"""A mean over many independent draws, which a small sample estimates well."""

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, predictions, targets):
        return torch.mean((predictions - targets) ** 2)


def get_inputs():
    return [torch.rand(512, 512), torch.rand(512, 512)]
