"""Weights: the second state hides nothing, and tensors find their values."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from kopt.actors.verify.weights import StateEntry, match_state, randomise_parameters


def entries(*pairs) -> list[StateEntry]:
    return [StateEntry(name=name, shape=shape, dtype="float32") for name, shape in pairs]


def module_state(module: nn.Module) -> tuple[dict[str, torch.Tensor], set[str]]:
    return dict(module.state_dict()), {name for name, _ in module.named_parameters()}


def test_no_parameter_of_a_norm_keeps_its_default() -> None:
    state, parameters = module_state(nn.BatchNorm2d(64))
    second = randomise_parameters(state, seed=1, parameters=parameters)
    weight = second["weight"]
    assert bool((weight.abs() >= 0.5).all())
    assert bool((weight.abs() <= 1.5).all())
    assert bool((weight < 0).any())
    assert bool((weight > 0).any())
    assert float(second["bias"].abs().max()) > 0.05
    assert 0.5 <= float(second["running_var"].min()) < float(second["running_var"].max()) <= 1.5
    assert float(second["running_mean"].std()) > 0.1
    assert torch.equal(second["num_batches_tracked"], state["num_batches_tracked"])


def test_a_matrix_is_redrawn_at_its_scale_and_its_bias_is_seen() -> None:
    torch.manual_seed(0)
    state, parameters = module_state(nn.Linear(400, 300))
    second = randomise_parameters(state, seed=2, parameters=parameters)
    assert float(second["weight"].std()) == pytest.approx(float(state["weight"].std()), rel=0.02)
    correlation = torch.corrcoef(
        torch.stack([state["weight"].flatten(), second["weight"].flatten()])
    )
    assert abs(float(correlation[0, 1])) < 0.02
    assert float(second["bias"].std()) > 0.08


def test_form_is_kept_and_the_seed_decides() -> None:
    torch.manual_seed(0)
    state, parameters = module_state(nn.GRU(8, 6, num_layers=2))
    first = randomise_parameters(state, seed=1, parameters=parameters)
    again = randomise_parameters(state, seed=1, parameters=parameters)
    other = randomise_parameters(state, seed=2, parameters=parameters)
    assert list(first) == list(state)
    for name, tensor in first.items():
        assert (tensor.shape, tensor.dtype) == (state[name].shape, state[name].dtype)
        assert torch.equal(tensor, again[name])
        assert not torch.equal(tensor, other[name])
        assert tensor.data_ptr() != state[name].data_ptr()


def test_what_no_redraw_may_touch_is_kept() -> None:
    state = {
        "index": torch.arange(9),
        "flag": torch.tensor([True]),
        "mask": torch.ones(8, 8).tril(),
        "penalty": torch.full((4, 4), float("-inf")).triu(1),
        "positions": torch.linspace(0.0, 1.0, 32),
        "empty": torch.zeros(0),
        "twiddle": torch.polar(torch.ones(4), torch.ones(4)),
    }
    for parameters in (None, set()):
        second = randomise_parameters(state, seed=1, parameters=parameters)
        for name, tensor in state.items():
            assert torch.equal(second[name], tensor), name


def test_a_buffer_that_is_no_running_statistic_is_kept_where_parameters_are_named() -> None:
    state = {"table": torch.randn(16, 16), "bn.running_mean": torch.zeros(4)}
    second = randomise_parameters(state, seed=1, parameters=set())
    assert torch.equal(second["table"], state["table"])
    assert bool(second["bn.running_mean"].all())


def test_signs_and_zeros_that_have_a_meaning_are_kept() -> None:
    torch.manual_seed(0)
    state = {
        "scale": torch.rand(64) + 0.1,
        "decay": -torch.rand(64) - 0.1,
        "temperature": torch.ones(1),
        "slope": torch.full((1,), 0.25),
        "embedding.weight": torch.cat([torch.zeros(1, 8), torch.randn(9, 8)]),
    }
    second = randomise_parameters(state, seed=3, parameters=set(state))
    assert bool((second["scale"] >= 0).all())
    assert bool((second["decay"] <= 0).all())
    assert 0.5 <= float(second["temperature"]) <= 1.5
    assert 0.125 <= float(second["slope"]) <= 0.375
    assert not bool(second["embedding.weight"][0].any())
    assert bool(second["embedding.weight"][1:].all())
    assert not any(torch.equal(second[name], state[name]) for name in state)


def test_tied_weights_stay_tied_and_equal_defaults_do_not_become_so() -> None:
    weight = torch.randn(16, 4)
    state = {
        "embedding.weight": weight,
        "a.weight": torch.ones(16),
        "head.weight": weight.clone(),
        "b.weight": torch.ones(16),
    }
    parameters = {"embedding.weight", "a.weight", "b.weight"}  # torch names a tied one once
    second = randomise_parameters(state, seed=4, parameters=parameters)
    assert torch.equal(second["embedding.weight"], second["head.weight"])
    assert not torch.equal(second["embedding.weight"], weight)
    assert not torch.equal(second["a.weight"], second["b.weight"])


def test_half_precision_weights_are_redrawn_in_their_type() -> None:
    for dtype in (torch.float16, torch.bfloat16):
        state = {"w": torch.randn(64, 64).to(dtype), "b": torch.zeros(64, dtype=dtype)}
        second = randomise_parameters(state, seed=1)
        assert second["w"].dtype is dtype
        assert bool(torch.isfinite(second["w"]).all())
        assert float(second["w"].float().std()) == pytest.approx(1.0, rel=0.05)


def test_memory_that_was_never_written_is_kept_rather_than_spread() -> None:
    state = {"garbage": torch.tensor([1e38, -3e38, 1.0, 2e38])}
    assert torch.equal(randomise_parameters(state, seed=1)["garbage"], state["garbage"])


def test_equal_names_are_matched_whatever_their_order() -> None:
    match = match_state(
        entries(("a.weight", (4, 4)), ("a.bias", (4,))),
        candidate=entries(("a.bias", (4,)), ("a.weight", (4, 4))),
    )
    assert match.sources == {"a.bias": "a.bias", "a.weight": "a.weight"}
    assert match.reason == "2 of 2 tensors by name"


def test_other_names_are_matched_by_order_where_the_shapes_agree() -> None:
    match = match_state(
        entries(("conv.weight", (8, 4)), ("conv.bias", (8,)), ("norm.weight", (8,))),
        candidate=entries(("w", (8, 4)), ("b", (8,)), ("g", (8,))),
    )
    assert match.sources == {"w": "conv.weight", "b": "conv.bias", "g": "norm.weight"}
    assert "by order" in match.reason


def test_other_names_in_another_order_are_matched_by_unique_shape() -> None:
    match = match_state(
        entries(("fc.weight", (8, 4)), ("fc.bias", (8,)), ("dead.weight", (2, 2))),
        candidate=entries(("b", (8,)), ("w", (8, 4))),
    )
    assert match.sources == {"b": "fc.bias", "w": "fc.weight"}
    assert match.reason == ("2 of 3 tensors by shape; not used: dead.weight (float32 (2, 2))")


def test_two_that_could_be_swapped_are_no_match() -> None:
    match = match_state(
        entries(("q", (4, 4)), ("k", (4, 4)), ("dead", (4, 4))),
        candidate=entries(("wq", (4, 4)), ("wk", (4, 4))),
    )
    assert match.sources is None
    assert "no weights for wq (float32 (4, 4)), wk (float32 (4, 4))" in match.reason
    assert "dead (float32 (4, 4))" in match.reason


@pytest.mark.parametrize(
    "other",
    [
        StateEntry(name="w", shape=(3, 2), dtype="float32"),
        StateEntry(name="w", shape=(2, 3), dtype="float16"),
    ],
)
def test_one_name_with_another_shape_or_dtype_is_no_match(other) -> None:
    match = match_state(entries(("w", (2, 3))), candidate=[other])
    assert match.sources is None
    assert match.reason.endswith("differs from the reference's w (float32 (2, 3))")


def test_a_candidate_may_lack_tensors_or_bring_its_own() -> None:
    reference = entries(("w", (2, 2)), ("dead.weight", (5,)))
    assert match_state(reference, candidate=[]).sources == {}
    lacking = match_state(reference, candidate=entries(("w", (2, 2))))
    assert lacking.sources == {"w": "w"}
    assert "not used: dead.weight" in lacking.reason
    own = match_state(entries(("w", (2, 2))), candidate=entries(("w", (2, 2)), ("work", (9,))))
    assert own.sources == {"w": "w"}
    assert "the candidate's own: work" in own.reason
    assert match_state([], candidate=entries(("work", (9,)))).sources == {}


def test_counters_take_no_part_in_matching_by_order() -> None:
    counter = StateEntry(name="bn.num_batches_tracked", shape=(), dtype="int64")
    match = match_state([*entries(("bn.weight", (4,))), counter], candidate=entries(("g", (4,))))
    assert match.sources == {"g": "bn.weight"}


def test_a_long_list_of_leftovers_is_cut_short() -> None:
    reference = entries(*((f"layer{i}.weight", (i + 1,)) for i in range(9)))
    match = match_state(reference, candidate=entries(("all", (45,))))
    assert match.sources is None
    assert match.reason.endswith("and 5 more")
