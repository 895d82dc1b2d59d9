"""Two linear layers with nothing between them, narrow at the end.

Family: linear. The product of the weights is smaller than the first layer's work.
"""

import torch
import torch.nn as nn

FAMILY = "linear"

ROWS = 1024
IN_FEATURES = 512
HIDDEN = 768
OUT_FEATURES = 32


class Model(nn.Module):
    def __init__(self, in_features, hidden, out_features):
        super().__init__()
        self.first = nn.Linear(in_features, hidden)
        self.second = nn.Linear(hidden, out_features)

    def forward(self, x):
        return self.second(self.first(x))


def get_inputs():
    return [4.0 * torch.randn(ROWS, IN_FEATURES)]


def get_init_inputs():
    return [IN_FEATURES, HIDDEN, OUT_FEATURES]
