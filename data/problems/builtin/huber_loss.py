"""Huber loss over all elements, to one number.

Family: loss. Every row has an offset and a scale of its own over three decades, in predictions and
targets alike, so that neither a part of the rows nor their statistics give the mean.
"""

import torch
import torch.nn as nn
import torch.nn.functional as F

FAMILY = "loss"

ROWS = 1024
WIDTH = 4096
DELTA = 1.5


class Model(nn.Module):
    def __init__(self, delta):
        super().__init__()
        self.delta = delta

    def forward(self, predictions, targets):
        return F.huber_loss(predictions, targets, delta=self.delta)


def get_inputs():
    return [_uneven_rows(), _uneven_rows()]


def _uneven_rows():
    scales = torch.exp(1.5 * torch.randn(ROWS, 1))
    return scales * (torch.randn(ROWS, 1) + torch.randn(ROWS, WIDTH))


def get_init_inputs():
    return [DELTA]
