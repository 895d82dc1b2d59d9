"""Causal attention by blocks with an online softmax, in Triton: no matrix of scores is stored."""

import torch
import torch.nn as nn
import triton
import triton.language as tl

FAMILY = "attention"

BATCH = 4
HEADS = 32
TOKENS = 4096
WIDTH = 64
SMALL = {"BATCH": 1, "HEADS": 2, "TOKENS": 150, "WIDTH": 32}


class Model(nn.Module):
    def forward(self, query, key, value):
        return torch.nn.functional.scaled_dot_product_attention(query, key, value, is_causal=True)


def inputs(batch, heads, tokens, width):
    return [torch.randn(batch, heads, tokens, width, dtype=torch.float16) for _ in range(3)]


def get_inputs():
    return inputs(BATCH, HEADS, TOKENS, WIDTH)


def get_input_cases():
    return [inputs(1, 3, 77, WIDTH)]


def get_init_inputs():
    return []


@triton.jit
def attention_kernel(
    query_ptr,
    key_ptr,
    value_ptr,
    out_ptr,
    tokens,
    scale,
    WIDTH: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
):
    begin = tl.program_id(0) * BLOCK_M
    first = tl.program_id(1).to(tl.int64) * tokens * WIDTH
    row = begin + tl.arange(0, BLOCK_M)
    column = tl.arange(0, WIDTH)
    place = first + row[:, None] * WIDTH + column[None, :]
    query = tl.load(query_ptr + place, mask=row[:, None] < tokens, other=0.0)
    most = tl.full((BLOCK_M,), float("-inf"), tl.float32)
    total = tl.zeros((BLOCK_M,), tl.float32)
    out = tl.zeros((BLOCK_M, WIDTH), tl.float32)
    for start in range(0, tl.minimum(begin + BLOCK_M, tokens), BLOCK_N):
        token = start + tl.arange(0, BLOCK_N)
        at = first + token[:, None] * WIDTH + column[None, :]
        key = tl.load(key_ptr + at, mask=token[:, None] < tokens, other=0.0)
        value = tl.load(value_ptr + at, mask=token[:, None] < tokens, other=0.0)
        scores = tl.dot(query, tl.trans(key)) * scale
        seen = (token[None, :] <= row[:, None]) & (token[None, :] < tokens)
        scores = tl.where(seen, scores, float("-inf"))
        higher = tl.maximum(most, tl.max(scores, axis=1))
        shrink = tl.exp2(most - higher)
        weights = tl.exp2(scores - higher[:, None])
        total = total * shrink + tl.sum(weights, axis=1)
        out = tl.dot(weights.to(value.dtype), value, out * shrink[:, None])
        most = higher
    out = out / total[:, None]
    tl.store(out_ptr + place, out.to(out_ptr.dtype.element_ty), mask=row[:, None] < tokens)


LOG2_E = 1.4426950408889634


class ModelNew(nn.Module):
    def forward(self, query, key, value):
        batch, heads, tokens, width = query.shape
        out = torch.empty_like(query)
        block_m = 128
        attention_kernel[(triton.cdiv(tokens, block_m), batch * heads)](
            query,
            key,
            value,
            out,
            tokens,
            width**-0.5 * LOG2_E,
            WIDTH=width,
            BLOCK_M=block_m,
            BLOCK_N=64,
            num_warps=8,
            num_stages=3,
        )
        return out
