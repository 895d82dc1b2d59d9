"""Huber loss over all elements, to one number.

Family: loss. Every row has its own scale over three decades, so that a part of the rows does not
give the mean.
"""

import torch
import torch.nn as nn
import torch.nn.functional as F

FAMILY = "loss"

ROWS = 8192
WIDTH = 512
DELTA = 1.5


class Model(nn.Module):
    def __init__(self, delta):
        super().__init__()
        self.delta = delta

    def forward(self, predictions, targets):
        return F.huber_loss(predictions, targets, delta=self.delta)


def get_inputs():
    scales = torch.exp(1.5 * torch.randn(ROWS, 1))
    return [scales * torch.randn(ROWS, WIDTH), torch.randn(ROWS, WIDTH)]


def get_init_inputs():
    return [DELTA]
