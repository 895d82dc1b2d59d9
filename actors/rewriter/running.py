"""How a candidate runs its calls: one by one, by torch.compile, or as a CUDA graph.

The calls stand in a method of their own, and forward checks its arguments and runs that method.
A graph reads its inputs from tensors of its own and gives a copy of its results, so that neither
earlier results nor the arguments' addresses matter; it is captured again where a parameter or a
buffer has moved. What the calls change in the module before the capture is undone.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

COMPUTE_METHOD = "compute"
REPLAY_METHOD = "replay"
CAPTURE_METHOD = "capture"

Results = Literal["tensor", "tree"]
"""What `compute` gives: one tensor, or tensors in tuples, lists and dictionaries."""


def compute_method(signature: str, body: Sequence[str]) -> list[str]:
    """Return the method that holds the calls.

    Args:
        signature: of forward, `def forward(self, …):`.
        body: statements, not indented.
    """
    return [
        signature.replace("def forward(", f"def {COMPUTE_METHOD}(", 1),
        '    """Return the result, for arguments that were checked."""',
        *(f"    {line}" for line in body),
    ]


def run_lines(owner: str, given: Sequence[str], *, compiled: bool, graphed: bool) -> list[str]:
    """Return the statements of forward that run `compute`.

    Args:
        owner: what forward calls the module.
        given: expressions of the tensors that forward is given, in order.
        compiled: whether torch.compile takes the method.
        graphed: whether it is replayed as a CUDA graph.
    """
    listed = ", ".join(given)
    lines = []
    if graphed:
        lines = [f"if {given[0]}.is_cuda:", f"    return {owner}.{REPLAY_METHOD}({listed})"]
    method = "compiled()" if compiled else COMPUTE_METHOD
    return [*lines, f"return {owner}.{method}({listed})"]


def run_methods(
    owner: str,
    signature: str,
    given: Sequence[str],
    *,
    compiled: bool,
    graphed: bool,
    results: Results,
) -> list[list[str]]:
    """Return the methods that `run_lines` calls, besides the one of `compute_method`."""
    methods = []
    if compiled:
        methods.append(_compiled(owner))
    if graphed:
        methods.append(_replay(owner, signature, given, results=results))
        methods.append(_capture(owner, signature, given, compiled=compiled))
    return methods


def _compiled(owner: str) -> list[str]:
    return [
        f"def compiled({owner}):",
        f'    """Return `{COMPUTE_METHOD}` as torch.compile makes it at its first call."""',
        f'    if "_compiled" not in {owner}.__dict__:',
        f'        {owner}.__dict__["_compiled"] = '
        f"torch.compile({owner}.{COMPUTE_METHOD}, dynamic=False)",
        f'    return {owner}.__dict__["_compiled"]',
    ]


def _replay(owner: str, signature: str, given: Sequence[str], *, results: Results) -> list[str]:
    listed = ", ".join(given)
    comma = "," if len(given) == 1 else ""
    copied = "results.clone()"
    if results == "tree":
        copied = "torch.utils._pytree.tree_map_only(torch.Tensor, torch.clone, results)"
    return [
        signature.replace("def forward(", f"def {REPLAY_METHOD}(", 1),
        f'    """Return the result by a CUDA graph of `{COMPUTE_METHOD}`."""',
        f'    kept = {owner}.__dict__.get("_graph")',
        "    if kept is None or kept[1] != [held[name].data_ptr() for held, name in kept[0]]:",
        f'        kept = {owner}.__dict__["_graph"] = {owner}.{CAPTURE_METHOD}({listed})',
        "    _, _, graph, own, results = kept",
        f"    for mine, given in zip(own, ({listed}{comma})):",
        "        mine.copy_(given)",
        "    graph.replay()",
        f"    return {copied}",
    ]


def _capture(owner: str, signature: str, given: Sequence[str], *, compiled: bool) -> list[str]:
    listed = ", ".join(given)
    comma = "," if len(given) == 1 else ""
    method = "compiled()" if compiled else COMPUTE_METHOD
    call = f"{owner}.{method}(*own)"
    return [
        signature.replace("def forward(", f"def {CAPTURE_METHOD}(", 1),
        '    """Return where the module\'s tensors are, the graph, its inputs and its results."""',
        f"    modules = list({owner}.modules())",
        "    tables = [t for each in modules for t in (each._parameters, each._buffers)]",
        "    places = [(t, name) for t in tables for name in t if t[name] is not None]",
        "    addresses = [held[name].data_ptr() for held, name in places]",
        f"    before = [(each, each.clone()) for each in {owner}.buffers()]",
        "    side = torch.cuda.Stream()",
        "    with torch.no_grad():",
        f"        own = [each.clone() for each in ({listed}{comma})]",
        "        side.wait_stream(torch.cuda.current_stream())",
        "        with torch.cuda.stream(side):",
        "            for _ in range(3):  # kernels are compiled, and libraries choose theirs",
        f"                {call}",
        "        torch.cuda.current_stream().wait_stream(side)",
        "        for each, held in before:",
        "            each.copy_(held)",
        "        graph = torch.cuda.CUDAGraph()",
        '        with torch.cuda.graph(graph, capture_error_mode="thread_local"):',
        f"            results = {call}",
        "    return places, addresses, graph, own, results",
    ]


def words(*, compiled: bool, graphed: bool) -> list[str]:
    """Return how it runs, for the file's header and the strategy."""
    found = []
    if compiled:
        found.append("kernels by torch.compile")
    if graphed:
        found.append("replayed as a CUDA graph")
    return found
