"""A layer of experts: each token through those it is sent to, gated, weighted and added up.

Of KernelPro's App. C.3, as a server runs it: tokens are sorted by expert, and two grouped products
gather their rows through that order. Sizes are of a model with 60 small experts, four a token.
"""

import torch
import torch.nn as nn
import torch.nn.functional as F
import triton
import triton.language as tl

FAMILY = "matmul"

TOKENS = 512
HIDDEN = 2048
INNER = 1408
EXPERTS = 60
CHOSEN = 4
SMALL = {"TOKENS": 11, "HIDDEN": 40, "INNER": 24, "EXPERTS": 5, "CHOSEN": 2}


class Model(nn.Module):
    def __init__(self, experts, hidden, inner):
        super().__init__()
        up = torch.randn(experts, 2 * inner, hidden, dtype=torch.bfloat16)
        down = torch.randn(experts, hidden, inner, dtype=torch.bfloat16)
        self.up = nn.Parameter(up * hidden**-0.5)
        self.down = nn.Parameter(down * inner**-0.5)

    def forward(self, x, weights, experts):
        out = torch.zeros_like(x, dtype=torch.promote_types(x.dtype, torch.float32))
        for expert in range(self.up.shape[0]):
            token, slot = torch.nonzero(experts == expert, as_tuple=True)
            if token.numel() == 0:
                continue
            gate, linear = F.linear(x[token], self.up[expert]).chunk(2, dim=-1)
            y = F.linear(F.silu(gate) * linear, self.down[expert])
            out.index_add_(0, token, y.to(out.dtype) * weights[token, slot, None].to(out.dtype))
        return out.to(x.dtype)


def inputs(tokens, hidden, experts, chosen):
    x = torch.randn(tokens, hidden, dtype=torch.bfloat16)
    weights, picked = torch.softmax(torch.randn(tokens, experts), -1).topk(chosen)
    return [x, weights / weights.sum(-1, keepdim=True), picked]


def get_inputs():
    return inputs(TOKENS, HIDDEN, EXPERTS, CHOSEN)


def get_input_cases():
    return [inputs(1, HIDDEN, EXPERTS, CHOSEN), inputs(37, HIDDEN, EXPERTS, CHOSEN)]


def get_init_inputs():
    return [EXPERTS, HIDDEN, INNER]


@triton.jit
def grouped_linear_kernel(
    x_ptr,
    weight_ptr,
    out_ptr,
    order_ptr,
    begins_ptr,
    tile_expert_ptr,
    tile_first_ptr,
    scale_ptr,
    N,
    K,
    DIVIDE: tl.constexpr,
    SCALED: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
):
    expert = tl.load(tile_expert_ptr + tl.program_id(0))
    if expert >= 0:
        end = tl.load(begins_ptr + expert + 1)
        place = tl.load(tile_first_ptr + tl.program_id(0)) + tl.arange(0, BLOCK_M)
        inside = place < end
        slot = tl.load(order_ptr + place, mask=inside, other=0)
        row = slot // DIVIDE
        n = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
        total = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
        for first in range(0, K, BLOCK_K):
            k = first + tl.arange(0, BLOCK_K)
            x = tl.load(
                x_ptr + row[:, None] * K + k[None, :],
                mask=inside[:, None] & (k[None, :] < K),
                other=0.0,
            )
            weight = tl.load(
                weight_ptr + expert.to(tl.int64) * N * K + n[None, :].to(tl.int64) * K + k[:, None],
                mask=(n[None, :] < N) & (k[:, None] < K),
                other=0.0,
            )
            total = tl.dot(x, weight, total)
        if SCALED:
            scale = tl.load(scale_ptr + slot, mask=inside, other=0.0).to(tl.float32)
            total = total * scale[:, None]
        tl.store(
            out_ptr + slot[:, None] * N + n[None, :],
            total.to(out_ptr.dtype.element_ty),
            mask=inside[:, None] & (n[None, :] < N),
        )


@triton.jit
def gate_kernel(both_ptr, out_ptr, inner, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    column = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside = column < inner
    gate = tl.load(both_ptr + row * 2 * inner + column, mask=inside, other=0.0).to(tl.float32)
    linear = tl.load(both_ptr + row * 2 * inner + inner + column, mask=inside, other=0.0)
    y = gate / (1.0 + tl.exp(-gate)) * linear.to(tl.float32)
    tl.store(out_ptr + row * inner + column, y.to(out_ptr.dtype.element_ty), mask=inside)


@triton.jit
def add_kernel(parts_ptr, out_ptr, hidden, CHOSEN: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    column = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside = column < hidden
    total = tl.zeros((BLOCK,), tl.float32)
    for each in tl.static_range(CHOSEN):
        part = parts_ptr + (row * CHOSEN + each) * hidden + column
        total += tl.load(part, mask=inside, other=0.0).to(tl.float32)
    tl.store(out_ptr + row * hidden + column, total.to(out_ptr.dtype.element_ty), mask=inside)


class ModelNew(nn.Module):
    def __init__(self, experts, hidden, inner):
        super().__init__()
        self.up = nn.Parameter(torch.empty(experts, 2 * inner, hidden, dtype=torch.bfloat16))
        self.down = nn.Parameter(torch.empty(experts, hidden, inner, dtype=torch.bfloat16))

    def forward(self, x, weights, experts):
        tokens, hidden = x.shape
        num_experts, inner = self.up.shape[0], self.down.shape[2]
        chosen = experts.shape[1]
        block_m = 32
        # Slots (token, choice) in order of expert; each expert's run is cut into tiles of rows.
        flat = experts.reshape(-1)
        order = torch.argsort(flat, stable=True)
        counts = torch.zeros(num_experts, dtype=torch.int64, device=x.device)
        counts = counts.scatter_add(0, flat, torch.ones_like(flat))
        begins = torch.nn.functional.pad(counts.cumsum(0), (1, 0))
        tiles = (counts + block_m - 1) // block_m
        ends = tiles.cumsum(0)
        most = triton.cdiv(flat.numel(), block_m) + num_experts
        number = torch.arange(most, device=x.device)
        owner = torch.searchsorted(ends, number, right=True)
        known = owner.clamp(max=num_experts - 1)
        first = begins[known] + (number - ends[known] + tiles[known]) * block_m
        owner = torch.where(owner < num_experts, owner, -1)

        def grouped(rows, weight, divide, scale):
            n, k = weight.shape[1:]
            out = torch.empty((flat.numel(), n), dtype=x.dtype, device=x.device)
            block_n, block_k = 128, 64
            grouped_linear_kernel[(most, triton.cdiv(n, block_n))](
                rows,
                weight,
                out,
                order,
                begins,
                owner,
                first,
                weights if scale else rows,
                n,
                k,
                DIVIDE=divide,
                SCALED=scale,
                BLOCK_M=block_m,
                BLOCK_N=block_n,
                BLOCK_K=block_k,
                num_warps=4,
                num_stages=4,
            )
            return out

        both = grouped(x, self.up, chosen, False)
        gated = torch.empty((flat.numel(), inner), dtype=x.dtype, device=x.device)
        block = 512
        gate_kernel[(flat.numel(), triton.cdiv(inner, block))](both, gated, inner, BLOCK=block)
        parts = grouped(gated, self.down, 1, True)
        out = torch.empty_like(x)
        add_kernel[(tokens, triton.cdiv(hidden, block))](
            parts, out, hidden, CHOSEN=chosen, BLOCK=block
        )
        return out
