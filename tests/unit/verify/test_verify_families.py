"""Input families: what is redrawn, what is kept, and that a secret seed decides."""

from __future__ import annotations

import pytest
import torch

from kopt.actors.verify.families import finite, input_families, make_family, plan_families

SIGNED = (
    "own",
    "signed_normal",
    "shifted_scaled",
    "far_offset",
    "small_signed",
    "heavy_tail",
    "ties",
)
ONE_SIDED = (*SIGNED, "unit_interval")


@pytest.fixture
def draw() -> torch.Generator:
    return torch.Generator().manual_seed(7)


def by_name(base, *, seed=1):
    return {made.name: made.values for made in input_families(base, seed=seed)}


def test_a_one_sided_input_gets_one_family_more_than_a_signed_one(draw) -> None:
    assert plan_families([torch.randn(64, 64, generator=draw)]).names == SIGNED
    assert plan_families([torch.rand(64, 64, generator=draw)]).names == ONE_SIDED


def test_the_families_differ_as_their_names_say(draw) -> None:
    sets = {
        name: values[0] for name, values in by_name([torch.rand(200, 500, generator=draw)]).items()
    }
    normal = sets["signed_normal"]
    assert abs(float(normal.mean())) < 0.02
    assert abs(float(normal.std()) - 1.0) < 0.02
    shifted = sets["shifted_scaled"]
    assert float(shifted.std()) >= 1.9
    assert abs(float(shifted.mean())) > 0.2 * float(shifted.std())
    offset = sets["far_offset"]
    assert abs(float(offset.mean())) > 49.0
    assert abs(float(offset.std()) - 1.0) < 0.02
    small = sets["small_signed"]
    assert 0.4 < float(small.abs().max()) <= 1.0
    assert abs(float(small.mean())) < 0.02
    tail = sets["heavy_tail"]
    assert float(tail.abs().max()) > 30.0
    assert float(tail.median()) < 1.0
    assert int((tail > 20.0).sum()) <= 16
    assert 2 <= len(torch.unique(sets["ties"])) <= 5
    unit = sets["unit_interval"]
    assert float(unit.min()) >= 0.0
    assert float(unit.max()) <= 1.0
    assert abs(float(unit.mean()) - 0.5) > 0.1


def test_some_families_keep_the_sign_that_was_seen_and_some_do_not(draw) -> None:
    for base in (
        torch.rand(64, 64, generator=draw) + 0.25,
        -torch.rand(64, 64, generator=draw) - 0.25,
    ):
        sets = by_name([base])
        for name in ("heavy_tail", "ties", "unit_interval"):
            assert bool((sets[name][0].sign() == base.sign()).all()), name
            assert float(sets[name][0].abs().min()) >= 0.25 - 1e-6, name
        for name in ("signed_normal", "small_signed"):
            assert bool((sets[name][0] > 0).any())
            assert bool((sets[name][0] < 0).any())


def test_equal_seeds_give_equal_values_and_others_do_not(draw) -> None:
    base = [torch.randn(32, 8, generator=draw), torch.randint(0, 9, (32,), generator=draw)]
    first, again, other = by_name(base, seed=3), by_name(base, seed=3), by_name(base, seed=4)
    for name in SIGNED:
        assert all(map(torch.equal, first[name], again[name])), name
        assert name == "own" or not torch.equal(first[name][0], other[name][0])
    assert torch.equal(first["own"][0], base[0])


def test_two_inputs_of_one_shape_do_not_get_the_same_values(draw) -> None:
    base = [torch.randn(8, 8, generator=draw), torch.randn(8, 8, generator=draw)]
    left, right = by_name(base)["signed_normal"]
    assert not torch.equal(left, right)


def test_the_base_is_not_changed_and_plain_values_stay(draw) -> None:
    base = [torch.rand(8, 8, generator=draw), 3, None, "mean", {"x": torch.rand(4, 4)}]
    before = [base[0].clone(), base[4]["x"].clone()]
    for name, values in by_name(base).items():
        assert values[1:4] == (3, None, "mean"), name
        assert name == "own" or not torch.equal(values[4]["x"], before[1])
    assert torch.equal(base[0], before[0])
    assert torch.equal(base[4]["x"], before[1])


def test_integers_and_value_sets_keep_their_values_and_move_together(draw) -> None:
    labels = torch.randint(0, 10, (100,), generator=draw)
    targets = torch.randint(0, 2, (100,), generator=draw).float() * 2 - 1
    base = [torch.rand(100, 4, generator=draw), labels, targets]
    made = by_name(base)["signed_normal"]
    assert torch.equal(made[1].sort().values, labels.sort().values)
    assert not torch.equal(made[1], labels)
    pairs = torch.stack([labels.float(), targets])
    moved = torch.stack([made[1].float(), made[2]])
    assert torch.equal(torch.unique(pairs, dim=1), torch.unique(moved, dim=1))


def test_rows_that_sum_to_one_still_do(draw) -> None:
    base = [
        torch.randn(16, 32, generator=draw).softmax(-1),
        torch.randn(16, 32, generator=draw).log_softmax(-1),
        torch.randn(4, 8, 6, generator=draw).softmax(1),
    ]
    plan = plan_families(base)
    assert [trait.kind for trait in plan.traits] == [
        "probabilities",
        "log_probabilities",
        "probabilities",
    ]
    for name, (rows, logs, columns) in by_name(base).items():
        for sums in (rows.sum(-1), logs.exp().sum(-1), columns.sum(1)):
            torch.testing.assert_close(sums, torch.ones_like(sums), rtol=0, atol=1e-5, msg=name)
        assert float(rows.min()) >= 0.0
        assert finite([logs])


@pytest.mark.parametrize(
    ("shape", "words"),
    [
        (lambda x: x.tril(), "lower triangular"),
        (lambda x: x.triu(), "upper triangular"),
        (lambda x: x.diag().diag(), "diagonal"),
        (lambda x: x * (torch.arange(32) % 2), "50% zeros"),
    ],
)
def test_a_pattern_of_zeros_is_kept_and_said(draw, shape, words) -> None:
    base = [shape(torch.randn(32, 32, generator=draw))]
    plan = plan_families(base)
    assert words in plan.notes[0]
    assert plan.notes[0].startswith("input 0: ")
    for name, (made,) in by_name(base).items():
        assert not bool(made[base[0] == 0].any()), name
        assert name == "own" or not torch.equal(made, base[0])


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda x: x + x.mT, "symmetric"),
        (lambda x: x.sort(-1).values, "sorted"),
        (lambda x: torch.linspace(0.0, 1.0, 50), "sorted"),
        (lambda x: torch.full((16, 16), float("-inf")).triu(1), "not finite"),
        (lambda x: torch.tensor([0, 3, 9, 20, 31, 40, 52, 60, 64]), "sorted"),
        (lambda x: torch.ones(16, 16, dtype=torch.bool).triu(1), "upper triangular mask"),
        (lambda x: torch.complex(x, x), "complex"),
    ],
)
def test_a_structure_that_a_redraw_would_break_is_kept_and_said(draw, make, words) -> None:
    base = [make(torch.randn(16, 16, generator=draw)), torch.randn(16, 16, generator=draw)]
    plan = plan_families(base)
    assert words in plan.notes[0]
    assert plan.names == SIGNED
    for kept, redrawn in by_name(base).values():
        assert torch.equal(kept, base[0])
        assert redrawn.shape == (16, 16)


def test_whole_numbers_in_floats_are_permuted(draw) -> None:
    base = [torch.randint(0, 1_000, (64, 4), generator=draw).float()]
    plan = plan_families([*base, torch.randn(4, 4, generator=draw)])
    assert plan.traits[0].kind == "permute"


def test_constants_are_moved_off_their_value(draw) -> None:
    base = [torch.ones(64), torch.zeros(64), torch.tensor(2.0), torch.tensor(0.0)]
    for name, (ones, zeros, two, zero) in by_name(base).items():
        if name == "own":
            continue
        assert 0.5 <= float(ones.min()) < float(ones.max()) <= 1.5
        assert bool(zeros.any())
        assert 1.0 <= float(two) <= 3.0
        assert finite([zero])


def test_where_nothing_can_be_redrawn_the_own_draw_is_all(draw) -> None:
    plan = plan_families([torch.randint(0, 9, (8, 8), generator=draw)])
    assert plan.names == ("own",)
    assert "no floating input" in plan.notes[-1]
    assert plan_families([]).names == ("own",)
    assert plan_families([3, None]).names == ("own",)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64])
def test_every_floating_type_is_redrawn_and_stays_finite(draw, dtype) -> None:
    base = [torch.rand(64, 64, generator=draw).to(dtype), torch.zeros(4, 4, dtype=dtype)]
    for name, values in by_name(base).items():
        assert all(value.dtype is dtype for value in values), name
        assert finite(list(values)), name


def test_a_large_scale_is_kept(draw) -> None:
    base = [1e-4 * torch.randn(64, 64, generator=draw)]
    made = by_name(base)["signed_normal"][0]
    assert float(made.std()) == pytest.approx(1e-4, rel=0.1)


def test_a_family_fills_buffers_in_place_with_the_same_values(draw) -> None:
    base = [torch.rand(8, 8, generator=draw), 2, {"x": torch.randn(4, 4, generator=draw)}]
    plan = plan_families(base)
    for name in plan.names:
        into = [torch.empty(8, 8), 2, {"x": torch.empty(4, 4).mT}]
        addresses = [into[0].data_ptr(), into[2]["x"].data_ptr()]
        filled = make_family(base, plan=plan, name=name, seed=9, into=into)
        fresh = make_family(base, plan=plan, name=name, seed=9)
        assert filled.name == name
        assert filled.values[0].data_ptr() == addresses[0]
        assert filled.values[2]["x"].data_ptr() == addresses[1]
        assert torch.equal(filled.values[0], fresh.values[0])


def test_a_plan_or_buffers_that_do_not_fit_are_refused(draw) -> None:
    base = [torch.randn(8, 8, generator=draw)]
    plan = plan_families(base)
    with pytest.raises(ValueError, match="unit_interval is not in the plan"):
        make_family(base, plan=plan, name="unit_interval", seed=0)
    with pytest.raises(ValueError, match="another shape or dtype"):
        make_family(base, plan=plan, name="ties", seed=0, into=[torch.empty(8, 9)])
    with pytest.raises(ValueError, match="the base has 2 tensors"):
        make_family([*base, *base], plan=plan, name="ties", seed=0)


def test_finite_looks_at_floats_alone() -> None:
    assert finite([torch.ones(3), torch.tensor([1, 2]), torch.tensor([True])])
    assert not finite([torch.ones(3), torch.tensor([1.0, float("nan")])])
    assert not finite([torch.tensor([1 + float("inf") * 1j])])
    assert finite([])
