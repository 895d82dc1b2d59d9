"""Attention of one new token of each sequence, over keys and values kept in scattered pages.

Of KernelPro's App. C.3, as a server decodes: `pages` says where each sequence's pages lie,
`lengths` how many tokens it has so far, and several query heads share one head of keys.
"""

import torch
import torch.nn as nn
import triton
import triton.language as tl

FAMILY = "attention"

SEQUENCES = 64
HEADS = 32
KV_HEADS = 8
WIDTH = 128
PAGE = 16
PAGES_EACH = 256
SMALL = {
    "SEQUENCES": 3,
    "HEADS": 4,
    "KV_HEADS": 2,
    "WIDTH": 32,
    "PAGE": 16,
    "PAGES_EACH": 4,
}


class Model(nn.Module):
    def forward(self, query, keys, values, pages, lengths):
        count, heads, width = query.shape
        kv_heads, page = keys.shape[1], keys.shape[2]
        # [pages of all, kv_heads, page, width] to [sequences, kv_heads, tokens, width]
        tokens = pages.shape[1] * page
        k = keys[pages].transpose(1, 2).reshape(count, kv_heads, tokens, width)
        v = values[pages].transpose(1, 2).reshape(count, kv_heads, tokens, width)
        q = query.reshape(count, kv_heads, heads // kv_heads, width)
        scores = torch.matmul(q, k.transpose(-1, -2)) * width**-0.5
        beyond = torch.arange(tokens, device=query.device)[None, :] >= lengths[:, None]
        scores = scores.masked_fill(beyond[:, None, None, :], float("-inf"))
        shares = torch.softmax(scores, dim=-1, dtype=torch.promote_types(q.dtype, torch.float32))
        return torch.matmul(shares.to(v.dtype), v).reshape(count, heads, width)


def inputs(sequences, pages_each):
    total = sequences * pages_each
    query = torch.randn(sequences, HEADS, WIDTH, dtype=torch.bfloat16)
    keys = torch.randn(total, KV_HEADS, PAGE, WIDTH, dtype=torch.bfloat16)
    values = torch.randn(total, KV_HEADS, PAGE, WIDTH, dtype=torch.bfloat16)
    pages = torch.randperm(total).reshape(sequences, pages_each)
    lengths = torch.randint(1, pages_each * PAGE + 1, (sequences,))
    return [query, keys, values, pages, lengths]


def get_inputs():
    return inputs(SEQUENCES, PAGES_EACH)


def get_input_cases():
    return [inputs(1, 3), inputs(5, PAGES_EACH)]


def get_init_inputs():
    return []


@triton.jit
def attention_kernel(
    query_ptr,
    keys_ptr,
    values_ptr,
    pages_ptr,
    lengths_ptr,
    out_ptr,
    pages_each,
    scale,
    HEADS: tl.constexpr,
    KV_HEADS: tl.constexpr,
    WIDTH: tl.constexpr,
    PAGE: tl.constexpr,
    GROUP: tl.constexpr,
):
    sequence = tl.program_id(0).to(tl.int64)
    kv_head = tl.program_id(1)
    shared: tl.constexpr = HEADS // KV_HEADS
    column = tl.arange(0, WIDTH)
    head = tl.arange(0, GROUP)  # those that share the keys, filled up to what a product takes
    mine = head < shared
    place = sequence * HEADS * WIDTH + (kv_head * shared + head)[:, None] * WIDTH + column[None, :]
    query = tl.load(query_ptr + place, mask=mine[:, None], other=0.0)
    length = tl.load(lengths_ptr + sequence)
    most = tl.full((GROUP,), float("-inf"), tl.float32)
    total = tl.zeros((GROUP,), tl.float32)
    out = tl.zeros((GROUP, WIDTH), tl.float32)
    for number in range(0, tl.cdiv(length, PAGE)):
        page = tl.load(pages_ptr + sequence * pages_each + number).to(tl.int64)
        token = tl.arange(0, PAGE)
        inside = number * PAGE + token < length
        first = (page * KV_HEADS + kv_head) * PAGE * WIDTH
        at = first + token[:, None] * WIDTH + column[None, :]
        k = tl.load(keys_ptr + at, mask=inside[:, None], other=0.0)
        v = tl.load(values_ptr + at, mask=inside[:, None], other=0.0)
        scores = tl.dot(query, tl.trans(k)) * scale
        scores = tl.where(inside[None, :], scores, float("-inf"))
        higher = tl.maximum(most, tl.max(scores, axis=1))
        shrink = tl.exp(most - higher)
        weights = tl.exp(scores - higher[:, None])
        total = total * shrink + tl.sum(weights, axis=1)
        out = out * shrink[:, None] + tl.dot(weights.to(v.dtype), v)
        most = higher
    out = out / total[:, None]
    tl.store(out_ptr + place, out.to(out_ptr.dtype.element_ty), mask=mine[:, None])


class ModelNew(nn.Module):
    def forward(self, query, keys, values, pages, lengths):
        count, heads, width = query.shape
        kv_heads, page = keys.shape[1], keys.shape[2]
        out = torch.empty_like(query)
        attention_kernel[(count, kv_heads)](
            query,
            keys,
            values,
            pages,
            lengths,
            out,
            pages.shape[1],
            width**-0.5,
            HEADS=heads,
            KV_HEADS=kv_heads,
            WIDTH=width,
            PAGE=page,
            GROUP=max(16, triton.next_power_of_2(heads // kv_heads)),
            num_warps=4,
        )
        return out
