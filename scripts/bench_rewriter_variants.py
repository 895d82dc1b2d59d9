"""Problems for bench_rewriter.py that no set contains: structures, sizes and orders are drawn.

A structure (a product, a convolution, a norm, a scan, a loss, …) is drawn, then its sizes, then
what comes before and after it: activations, scales, terms, reductions, further consumers. The same
seed gives the same problems.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from itertools import pairwise

from bench_rewriter_draft import ACTIVATIONS, CHEAP, Draft

from kopt.problem import Problem


def variants(count: int, *, seed: int) -> list[Problem]:
    """Return so many problems, the structures in turn."""
    kinds = list(STRUCTURES)
    made = []
    for number in range(count):
        kind = kinds[number % len(kinds)]
        draft = Draft(random.Random(f"{seed}/{number}"))
        STRUCTURES[kind](draft)
        made.append(draft.problem(kind, name=f"variant/{kind}_{seed}_{number}", seed=seed))
    return made


def _linear_reduced(d: Draft) -> None:
    rng = d.rng
    rows, inner, outer = (
        rng.choice((128, 384, 1000)),
        rng.choice((256, 500)),
        rng.choice((640, 999)),
    )
    d.init.append(f"self.linear = nn.Linear({inner}, {outer}, bias={rng.random() < 0.7})")
    d.line(f"h = self.linear({d.add_input(rows, inner)})")
    for _ in range(rng.randint(0, 2)):
        d.line(f"h = {rng.choice(CHEAP).format('h')}")
    d.line(f"h = h.{rng.choice(('sum', 'mean'))}(dim={rng.choice((0, 1, -1))}, keepdim=True)")
    d.spiced()
    d.line("return h")


def _linear_epilogue(d: Draft) -> None:
    rng = d.rng
    rows, inner, outer = rng.choice((256, 700)), rng.choice((192, 512)), rng.choice((1024, 1500))
    d.init.append(f"self.linear = nn.Linear({inner}, {outer})")
    d.line(f"h = self.linear({d.add_input(rows, inner)})")
    d.spiced()
    d.line(f"h = h * {d.parameter(outer)}")
    d.spiced()
    d.line(rng.choice(("return h", "return h.softmax(-1)", "return torch.logsumexp(h, 1)")))


def _linear_chain(d: Draft) -> None:
    rng = d.rng
    sizes = [rng.choice((384, 512)), rng.choice((768, 1024)), rng.choice((8, 40))]
    for place, (a, b) in enumerate(pairwise(sizes)):
        d.init.append(f"self.l{place} = nn.Linear({a}, {b}, bias={rng.random() < 0.5})")
    d.line(f"h = self.l0({d.add_input(rng.choice((4, 6)), rng.choice((100, 150)), sizes[0])})")
    if rng.random() < 0.5:
        d.line("h = h * 0.5")
    d.line("h = self.l1(h)")
    d.spiced(most=1)
    d.line("return h")


def _linear_pooled(d: Draft) -> None:
    rng = d.rng
    rows, inner, pool = rng.choice((200, 512)), rng.choice((300, 512)), rng.choice((4, 16))
    d.init.append(f"self.linear = nn.Linear({inner}, {pool * rng.choice((48, 96))})")
    d.line(f"h = self.linear({d.add_input(rows, inner)}).unsqueeze(1)")
    d.line(f"h = F.avg_pool1d(h, {pool}).squeeze(1)")
    d.spiced()
    d.line(rng.choice(("return h", "return h.amax(dim=1)")))


def _conv_pooled(d: Draft) -> None:
    rng = d.rng
    rank = rng.choice((1, 2, 2, 3))
    side = {1: 2048, 2: rng.choice((48, 61)), 3: 18}[rank]
    kernel, pool = rng.choice((1, 3)), rng.choice((2, 3))
    channels, wider = rng.choice((8, 16)), rng.choice((24, 32))
    d.init.append(
        f"self.conv = nn.Conv{rank}d({channels}, {wider}, {kernel}, padding={kernel // 2})"
    )
    d.line(f"h = self.conv({d.add_input(8, channels, *[side] * rank)})")
    d.line(f"h = {rng.choice(CHEAP).format('h')}")
    d.line(f"h = F.avg_pool{rank}d(h, {pool})")
    d.spiced()
    d.line("return h")


def _conv_averaged(d: Draft) -> None:
    rng = d.rng
    transposed = rng.random() < 0.6
    rank = rng.choice((1, 2, 3))
    side = {1: 1024, 2: 28, 3: 10}[rank]
    stride = rng.choice((1, 2))
    kind = f"ConvTranspose{rank}d" if transposed else f"Conv{rank}d"
    d.init.append(f"self.conv = nn.{kind}(16, 24, 3, stride={stride}, padding=1)")
    d.line(f"h = self.conv({d.add_input(12, 16, *[side] * rank)})")
    d.line(f"h = h * {d.parameter(24, *[1] * rank)}" if rng.random() < 0.5 else "h = h * 0.5")
    dims = ", ".join(str(2 + k) for k in range(rank))
    d.line(f"h = h.mean(dim=({dims},), keepdim=True)")
    d.spiced()
    d.line("return h")


def _conv_epilogue(d: Draft) -> None:
    rng = d.rng
    side = rng.choice((40, 56))
    d.init.append("self.conv = nn.Conv2d(16, 32, 3, padding=1)")
    d.line(f"h = self.conv({d.add_input(8, 16, side, side)})")
    d.spiced()
    d.line(f"h = h + {d.parameter(32, 1, 1)}")
    d.spiced(most=2)
    d.line(rng.choice(("return h", "return h + h.mean(dim=1, keepdim=True)", "return h.amax(1)")))


def _conv_norm(d: Draft) -> None:
    rng = d.rng
    side = rng.choice((32, 48))
    norm = rng.choice(("nn.BatchNorm2d(32)", "nn.GroupNorm(4, 32)", "nn.InstanceNorm2d(32)"))
    d.init += ["self.conv = nn.Conv2d(16, 32, 3, padding=1)", f"self.norm = {norm}"]
    d.line(f"h = self.norm(self.conv({d.add_input(8, 16, side, side)}))")
    d.spiced(most=2)
    d.line("return h")


def _products(d: Draft) -> None:
    rng = d.rng
    a, b = d.add_input(600, 400), d.add_input(400, 700, spread=0.1)
    c = d.add_input(700, rng.choice((1, 8)), spread=0.1)
    if rng.random() < 0.5:
        d.line(f"h = ({a} @ {b}) @ {c}")
    else:
        d.line(f"h = torch.matmul({a} * 0.7, {b}).sum(dim={rng.choice((0, 1))}) + {c}.sum()")
    d.spiced(most=2)
    d.line("return h")


def _element_wise(d: Draft) -> None:
    rng = d.rng
    sizes = rng.choice(((3000, 700), (16, 64, 48, 40), (40, 129, 301), (2_000_000,)))
    x, y = d.add_input(*sizes), d.add_input(*sizes)
    d.line(f"h = {x} * {rng.choice(ACTIVATIONS).format(y)}")
    d.spiced()
    d.line(f"h = h + {y}")
    d.line(rng.choice(("return h", f"return h, h * {x}")))


def _norm(d: Draft) -> None:
    rng = d.rng
    width = rng.choice((384, 1000, 2048))
    x = d.add_input(rng.choice((1500, 3000)), width)
    d.line(f"h = {x} + {d.add_input(1, width)}" if rng.random() < 0.5 else f"h = {x}")
    if rng.random() < 0.5:
        d.init.append(f"self.norm = nn.LayerNorm({width})")
        d.line("h = self.norm(h)")
    else:
        d.line("h = h / (h.square().mean(-1, keepdim=True) + 1e-5).sqrt()")
        d.line(f"h = h * {d.parameter(width)}")
    d.spiced()
    d.line("return h")


def _image_norm(d: Draft) -> None:
    rng = d.rng
    side = rng.choice((33, 64))
    norm = rng.choice(
        ("nn.BatchNorm2d(48)", "nn.GroupNorm(6, 48)", "nn.InstanceNorm2d(48, affine=True)")
    )
    d.init.append(f"self.norm = {norm}")
    d.line(f"h = self.norm({d.add_input(16, 48, side, side)})")
    d.spiced()
    d.line("return h")


def _softmax(d: Draft) -> None:
    rng = d.rng
    sizes, dims = rng.choice(
        (((12, 50, 40, 60), (1, 2, 3)), ((2000, 1001), (0, 1)), ((64, 40, 512), (2,)))
    )
    d.line(f"h = {d.add_input(*sizes)}")
    d.spiced(most=2)
    kind = rng.choice(("softmax", "log_softmax", "logsumexp"))
    d.line(f"return torch.{kind}(h, dim={rng.choice(dims)})")


def _reduction(d: Draft) -> None:
    rng = d.rng
    sizes = rng.choice(((24, 100, 700), (3000, 640), (8, 64, 50, 70)))
    d.line(f"h = {d.add_input(*sizes)}")
    d.spiced(most=2)
    kind = rng.choice(("sum", "mean", "amax", "amin", "var", "norm"))
    dim = rng.randrange(len(sizes))
    d.line(
        f"return {'torch.linalg.vector_norm' if kind == 'norm' else f'torch.{kind}'}(h, dim={dim})"
    )


def _scan(d: Draft) -> None:
    rng = d.rng
    sizes, dim = rng.choice((((1500, 900), 1), ((700, 1500), 0), ((16, 300, 200), 1)))
    x = d.add_input(*sizes, spread=0.5)
    d.line(f"h = {x} * {d.parameter(sizes[-1])}")
    form = rng.choice(
        (
            f"torch.cumsum(h, dim={dim})",
            f"h.flip({dim}).cumsum({dim}).flip({dim})",
            f"torch.cumsum(h, dim={dim}) - h",
            f"torch.cumprod(1.0 + 0.01 * h, dim={dim})",
        )
    )
    d.line(f"h = {form}")
    d.spiced(most=1)
    d.line("return h")


def _loss(d: Draft) -> None:
    rng = d.rng
    sizes = rng.choice(((2000, 900), (64, 50, 300)))
    x, y = d.add_input(*sizes), d.add_input(*sizes)
    d.line(
        rng.choice(
            (
                f"return F.mse_loss({x}, {y}, reduction='none').mean(-1)",
                f"return F.smooth_l1_loss({x}, {y})",
                f"return F.kl_div({x}.log_softmax(-1), {y}.softmax(-1), reduction='none').sum(-1)",
                f"return F.binary_cross_entropy_with_logits({x}, {y}.sigmoid())",
                f"return 1.0 - F.cosine_similarity({x}, {y}, dim=-1)",
                f"return F.cross_entropy({x}.reshape(-1, {sizes[-1]}), "
                f"{y}.reshape(-1, {sizes[-1]}).argmax(-1), reduction='none')",
            )
        )
    )


def _attention(d: Draft) -> None:
    rng = d.rng
    heads, tokens, width = rng.choice((4, 6)), rng.choice((96, 160)), rng.choice((32, 64))
    q, k, v = (d.add_input(4, heads, tokens, width, spread=1.0) for _ in range(3))
    d.line(f"h = {q} @ {k}.transpose(-2, -1) / {width**0.5}")
    if rng.random() < 0.5:
        d.line("h = torch.clamp(h, -4.0, 4.0)")
    d.line(f"return h.softmax(dim=-1) @ {v}")


STRUCTURES: dict[str, Callable[[Draft], None]] = {
    "linear_reduced": _linear_reduced,
    "norm": _norm,
    "conv_averaged": _conv_averaged,
    "element_wise": _element_wise,
    "linear_epilogue": _linear_epilogue,
    "softmax": _softmax,
    "conv_pooled": _conv_pooled,
    "scan": _scan,
    "linear_chain": _linear_chain,
    "loss": _loss,
    "conv_epilogue": _conv_epilogue,
    "reduction": _reduction,
    "products": _products,
    "image_norm": _image_norm,
    "linear_pooled": _linear_pooled,
    "conv_norm": _conv_norm,
    "attention": _attention,
}
