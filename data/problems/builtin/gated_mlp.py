"""A gated feed-forward block (SwiGLU): two projections, one gates the other, one back.

Family: mlp. Two products share their input; the gate is an epilogue.
"""

import torch
import torch.nn as nn
import torch.nn.functional as F

FAMILY = "mlp"

TOKENS = 512
WIDTH = 256
HIDDEN = 688


class Model(nn.Module):
    def __init__(self, width, hidden):
        super().__init__()
        self.gate = nn.Linear(width, hidden, bias=False)
        self.up = nn.Linear(width, hidden, bias=False)
        self.down = nn.Linear(hidden, width, bias=False)

    def forward(self, x):
        return self.down(F.silu(self.gate(x)) * self.up(x))


def get_inputs():
    return [3.0 * torch.randn(TOKENS, WIDTH)]


def get_init_inputs():
    return [WIDTH, HIDDEN]
