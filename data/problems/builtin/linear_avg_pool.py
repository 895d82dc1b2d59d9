"""A linear layer, averaged over neighbouring output features, then GELU.

Family: linear followed by a pool. Averaging the weights first leaves an eighth of the work.
"""

import torch
import torch.nn as nn
import torch.nn.functional as F

FAMILY = "linear"

ROWS = 512
IN_FEATURES = 512
OUT_FEATURES = 1024
POOL = 8


class Model(nn.Module):
    def __init__(self, in_features, out_features, pool):
        super().__init__()
        self.linear = nn.Linear(in_features, out_features)
        self.pool = nn.AvgPool1d(pool)

    def forward(self, x):
        features = self.linear(x).unsqueeze(1)
        return F.gelu(4.0 * self.pool(features).squeeze(1))


def get_inputs():
    return [3.0 * torch.randn(ROWS, IN_FEATURES)]


def get_init_inputs():
    return [IN_FEATURES, OUT_FEATURES, POOL]
