"""Operations of Inductor's own in ATen's words: the same values."""

import operator

import pytest
import torch
from torch import fx
from torch._inductor import inductor_prims

from kopt.actors.compiled.aten_form import NoAtenForm, in_aten


def rewritten(of: fx.Graph) -> fx.GraphModule:
    graph, copies = fx.Graph(), {}
    for node in of.nodes:
        if node.op == "output":
            graph.output(tuple(copies[each] for each in node.args[0]))
        elif node.op == "placeholder":
            copies[node] = graph.placeholder(node.name)
            copies[node].meta = dict(node.meta)
        else:
            made = in_aten(node, graph, copies)
            if made not in copies.values():
                made.meta["val"] = node.meta["val"]
            copies[node] = made
    return fx.GraphModule({}, graph)


@pytest.mark.parametrize("wanted", [(0, 1), (1, 0), (1,), (0,)])
def test_an_online_softmax_is_a_maximum_and_a_sum(wanted) -> None:
    x = torch.randn(6, 33, 5) * 20
    x[0, :30] = float("-inf")
    graph = fx.Graph()
    given = graph.placeholder("x")
    both = graph.call_function(inductor_prims.prepare_softmax_online, (given, 1))
    given.meta["val"], both.meta["val"] = x, inductor_prims.eager_prepare_softmax(x, 1)
    results = [graph.call_function(operator.getitem, (both, each)) for each in wanted]
    for node, each in zip(results, wanted, strict=True):
        node.meta["val"] = both.meta["val"][each]
    graph.output(tuple(results))
    module = rewritten(graph)
    assert not [n for n in module.graph.nodes if "prims" in str(n.target)]
    for found, each in zip(module(x), wanted, strict=True):
        torch.testing.assert_close(found, both.meta["val"][each])


@pytest.mark.parametrize(("length", "start", "step"), [(5, 0, 1), (4, 3, -2), (0, 1, 1)])
def test_numbers_a_step_apart_are_a_range(length, start, step) -> None:
    graph = fx.Graph()
    told = {"start": start, "step": step, "dtype": torch.int64, "device": torch.device("cpu")}
    numbers = graph.call_function(
        torch.ops.prims.iota.default, (length,), told | {"requires_grad": False}
    )
    numbers.meta["val"] = torch.tensor([start + step * at for at in range(length)])
    graph.output((numbers,))
    (found,) = rewritten(graph)()
    assert torch.equal(found, numbers.meta["val"])
    assert found.dtype == torch.int64


def test_an_operation_without_words_in_aten_is_named() -> None:
    graph = fx.Graph()
    seed = graph.call_function(inductor_prims.seed, (torch.device("cpu"),))
    with pytest.raises(NoAtenForm, match="inductor_seed"):
        in_aten(seed, fx.Graph(), {})
