"""Arguments and outputs as JSON: what goes out comes back, and nothing else is made of it."""

from __future__ import annotations

import enum
import json

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from kopt.actors.child.plain import MAX_DEPTH, NotPlain, decode, encode

scalars = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.text()
    | st.sampled_from([torch.float32, torch.bfloat16, torch.int64])
)
tensors = st.integers(0, 2**31).map(torch.tensor)
trees = st.recursive(
    scalars | tensors,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.lists(inner, max_size=3).map(tuple)
        | st.dictionaries(st.text(max_size=3) | st.integers(), inner, max_size=3)
    ),
    max_leaves=12,
)


def through_json(tree, *, by_key=False):
    kept: list[torch.Tensor] = []

    def put(tensor: torch.Tensor) -> int:
        kept.append(tensor)
        return len(kept) - 1

    form = json.loads(json.dumps(encode(tree, put, by_key=by_key)))
    return decode(form, lambda number: kept[number]), kept


def depth_of(tree) -> int:
    if isinstance(tree, dict):
        tree = [*tree, *tree.values()]
    if isinstance(tree, list | tuple):
        return 1 + max(map(depth_of, tree), default=0)
    return 0


@given(trees)
def test_a_tree_comes_back_with_the_very_tensors(tree) -> None:
    if depth_of(tree) > MAX_DEPTH:
        with pytest.raises(NotPlain, match="nested deeper"):
            through_json(tree)
        return
    back, _ = through_json(tree)
    assert type(back) is type(tree)
    assert back == tree


def test_a_scalar_of_a_subclass_comes_back_as_its_base() -> None:
    class Way(enum.IntEnum):
        UP = 3

    back, _ = through_json([np.float64(1.5), Way.UP])
    assert back == [1.5, 3]
    assert [type(each) for each in back] == [float, int]


def test_true_stays_a_bool_and_one_stays_a_number() -> None:
    back, _ = through_json([True, 1, 1.0])
    assert [type(each) for each in back] == [bool, int, float]


def test_by_key_two_dicts_number_their_tensors_equally() -> None:
    first, second = torch.zeros(1), torch.ones(1)
    _, one = through_json({"b": first, "a": [second]}, by_key=True)
    _, other = through_json({"a": [second], "b": first}, by_key=True)
    assert [each is second for each in one] == [True, False]
    assert [each is second for each in other] == [True, False]
    back, _ = through_json({"b": first, "a": second})
    assert list(back) == ["b", "a"]


@pytest.mark.parametrize("value", [object(), {1, 2}, b"bytes", 1j, lambda: 0, range(3)])
def test_what_is_no_plain_value_is_refused_with_its_type(value) -> None:
    with pytest.raises(NotPlain, match=type(value).__name__):
        encode([value], lambda tensor: 0)


def test_a_list_in_itself_is_refused() -> None:
    endless: list[object] = []
    endless.append(endless)
    with pytest.raises(NotPlain, match=f"nested deeper than {MAX_DEPTH}"):
        encode(endless, lambda tensor: 0)


@pytest.mark.parametrize(
    "form",
    [
        None,
        5,
        "tensor",
        [],
        {},
        {"tensor": "0"},
        {"tensor": 0.5},
        {"value": []},
        {"value": {"tensor": 0}},
        {"list": {"tensor": 0}},
        {"dict": [[{"value": 1}]]},
        {"dict": [5]},
        {"dict": [[{"list": []}, {"value": 1}]]},
        {"dtype": "os"},
        {"dtype": "load"},
        {"class": "os.system"},
    ],
)
def test_a_form_that_is_none_is_refused(form) -> None:
    with pytest.raises(NotPlain):
        decode(form, lambda number: None)


def test_a_form_that_is_very_deep_is_refused() -> None:
    form: object = {"value": 1}
    for _ in range(50_000):
        form = {"list": [form]}
    with pytest.raises(NotPlain):
        decode(form, lambda number: None)
