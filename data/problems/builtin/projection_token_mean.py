"""Every token projected, then averaged over the tokens, as a sentence encoder ends.

Family: linear followed by a reduction over the batch-like dimension: the mean can come first.
"""

import torch
import torch.nn as nn

FAMILY = "linear"

BATCH = 16
TOKENS = 64
WIDTH = 512
OUT_FEATURES = 768


class Model(nn.Module):
    def __init__(self, width, out_features):
        super().__init__()
        self.project = nn.Linear(width, out_features)

    def forward(self, tokens):
        return self.project(tokens).mean(dim=1)


def get_inputs():
    centres = 2.0 * torch.randn(BATCH, 1, WIDTH)
    return [centres + torch.randn(BATCH, TOKENS, WIDTH)]


def get_init_inputs():
    return [WIDTH, OUT_FEATURES]
