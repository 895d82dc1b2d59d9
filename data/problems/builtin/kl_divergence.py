"""Kullback-Leibler divergence of two distributions given by logits, one number a row.

Family: loss. Two softmaxes and a row reduction that share their loads.
"""

import torch
import torch.nn as nn

FAMILY = "loss"

ROWS = 4096
CLASSES = 512


class Model(nn.Module):
    def __init__(self, temperature):
        super().__init__()
        self.temperature = temperature

    def forward(self, student, teacher):
        log_q = torch.log_softmax(student / self.temperature, dim=-1)
        log_p = torch.log_softmax(teacher / self.temperature, dim=-1)
        return (log_p.exp() * (log_p - log_q)).sum(dim=-1)


def get_inputs():
    return [2.0 * torch.randn(ROWS, CLASSES), 3.0 * torch.randn(ROWS, CLASSES)]


def get_init_inputs():
    return [2.0]
