"""Attention with an online softmax, in Helion: no matrix of scores is stored."""

import helion
import helion.language as hl
import torch
import torch.nn as nn

FAMILY = "attention"

BATCH = 4
HEADS = 32
TOKENS = 2048
WIDTH = 64
SMALL = {"BATCH": 1, "HEADS": 2, "TOKENS": 90, "WIDTH": 32}


class Model(nn.Module):
    def forward(self, query, key, value):
        return torch.nn.functional.scaled_dot_product_attention(query, key, value)


def get_inputs():
    size = (BATCH, HEADS, TOKENS, WIDTH)
    return [torch.randn(size, dtype=torch.float16) for _ in range(3)]


def get_init_inputs():
    return []


@helion.kernel(config=helion.Config(block_sizes=[1, 128, 64], num_warps=8, num_stages=3))
def attention(query, key, value):
    tokens = query.size(-2)
    width = hl.specialize(query.size(-1))
    q = query.reshape([-1, tokens, width])
    v = value.reshape([-1, tokens, width])
    k = key.reshape([-1, tokens, width]).transpose(1, 2)
    out = torch.empty_like(q)
    scale = width**-0.5 * 1.4426950408889634
    for heads, rows in hl.tile([q.size(0), tokens]):
        most = hl.full([heads, rows], float("-inf"), dtype=torch.float32)
        total = torch.zeros_like(most)
        mixed = hl.zeros([heads, rows, width], dtype=torch.float32)
        asked = q[heads, rows, :]
        for others in hl.tile(tokens):
            scores = torch.bmm(asked, k[heads, :, others]).to(torch.float32) * scale
            higher = torch.maximum(most, torch.amax(scores, -1))
            weights = torch.exp2(scores - higher[:, :, None])
            shrink = torch.exp2(most - higher)
            total = total * shrink + torch.sum(weights, -1)
            mixed = torch.baddbmm(
                mixed * shrink[:, :, None], weights.to(v.dtype), v[heads, others, :]
            )
            most = higher
        out[heads, rows, :] = (mixed / total[:, :, None]).to(out.dtype)
    return out.view(query.size())


class ModelNew(nn.Module):
    def forward(self, query, key, value):
        return attention(query, key, value)
