"""Which launches may be fused or kept apart, and what a model's wishes make of the groups."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import pytest

from kopt.compiled.choices import Choice, Value, choices_of
from kopt.compiled.groups import MAX_LAUNCHES, Group, ruled_parts
from kopt.compiled.output_code import OutputCode, Step
from kopt.compiled.variables import Write
from kopt.compiled.wishes import Wish, decided, decision_lines, regrouped

SMALL, LARGE = 10, 1_000


def launch(place: int, reads: Sequence[str], writes: str, *, alive: Collection[str]) -> Step:
    return Step(
        place=place,
        kind="launch",
        name=f"k{place}",
        reads=tuple(reads),
        writes=(Write(variable=writes, own=True),),
        holders={name: name for name in alive},
    )


def chain(count: int, *, library_before: int | None = None) -> OutputCode:
    """Each launch reads the value of the one before it, and a large argument of its own."""
    steps: list[Step] = []
    for number in range(count):
        alive = [f"arg{n}" for n in range(count)] + [f"v{n}" for n in range(number)]
        if number == library_before:
            library = Step(place=99, kind="library", name="mm", reads=(f"v{number - 1}",))
            steps.append(library)
        reads = [f"arg{number}"] + ([f"v{number - 1}"] if number else [])
        steps.append(launch(number, reads, f"v{number}", alive=alive))
    steps.append(Step(place=100, kind="end", reads=(f"v{count - 1}",)))
    return OutputCode(kernels={}, arguments=(), steps=tuple(steps))


class Case:
    """A model, its rule's groups and its choices."""

    def __init__(
        self,
        code: OutputCode,
        *,
        sizes: dict[str, int] | None = None,
        nameless: Collection[str] = (),
        without: Collection[tuple[int, ...]] = (),
    ) -> None:
        names = {v for s in code.steps for v in s.reads} | {
            w.variable for s in code.steps for w in s.writes
        }
        num_bytes = dict.fromkeys(names, SMALL) | (sizes or {})
        named = names - set(nameless)
        self.code = code
        self.parts = ruled_parts(code, num_bytes=num_bytes, named=named)
        values = {
            name: Value(name=name, dtype="float32", size=(count // 4,), num_bytes=count)
            for name, count in num_bytes.items()
        }

        def operations_of(group: Group) -> tuple[str, ...] | None:
            if group.places in without or any(value not in named for value in group.results):
                return None
            return tuple(f"op{place}" for place in group.places)

        self.choices = choices_of(
            code, self.parts, values=values, named=named, operations_of=operations_of
        )

    @property
    def ruled(self) -> list[tuple[int, ...]]:
        return [tuple(step.place for step in part.steps) for part in self.parts]

    def groups(self, **wishes: bool) -> tuple[list[tuple[int, ...]], list[Choice]]:
        """The groups with a wish for each place, such as `at2=True`."""
        said = [
            Wish(place=int(at[2:]), kernel=f"k{at[2:]}", fuse=fuse, reason="because")
            for at, fuse in wishes.items()
        ]
        choices, faults = decided(self.choices, said)
        assert not faults
        groups, held = regrouped(self.code, self.parts, choices)
        assert sorted(p for group in groups for p in group.places) == sorted(
            step.place for step in self.code.launches
        ), "each launch is in one group"
        return [group.places for group in groups], held


ARGUMENTS = {f"arg{n}": LARGE for n in range(20)}
"""So large that the rule keeps all apart."""


def test_a_choice_is_told_with_its_figures_and_the_rule_s_decision() -> None:
    (choice,) = Case(chain(2)).choices
    assert choice.place == 1
    assert (choice.before.kernels, choice.behind.kernels) == (("k0",), ("k1",))
    assert (choice.before.operations, choice.behind.operations) == (("op0",), ("op1",))
    assert [value.name for value in choice.passed] == ["v0"]
    # k0 moves arg0 and v0, k1 moves arg1, v0 and v1: 50 bytes, of which v0 is not moved twice.
    assert choice.saved == pytest.approx(0.4)
    assert choice.rule_fuses
    assert choice.why == "fused: 40% of their traffic is saved"
    (apart,) = Case(chain(2), sizes=ARGUMENTS).choices
    assert not apart.rule_fuses
    assert apart.why.startswith("kept apart")


def test_without_a_wish_the_groups_are_the_rule_s() -> None:
    for case in (Case(chain(5)), Case(chain(12)), Case(chain(5), sizes=ARGUMENTS)):
        groups, held = case.groups()
        assert groups == case.ruled
        assert held == case.choices


def test_a_wish_fuses_what_the_rule_keeps_apart_and_keeps_apart_what_it_fuses() -> None:
    assert Case(chain(4)).groups(at2=False)[0] == [(0, 1), (2, 3)]
    apart = Case(chain(4), sizes=ARGUMENTS)
    assert apart.ruled == [(0,), (1,), (2,), (3,)]
    groups, held = apart.groups(at1=True, at2=True)
    assert groups == [(0, 1, 2), (3,)]
    assert [choice.decided_by for choice in held] == ["model", "model", "rule"]


def test_a_model_s_decisions_are_said_in_its_groups_and_in_lines() -> None:
    case = Case(chain(4), sizes=ARGUMENTS)
    choices, _ = decided(case.choices, [Wish(place=1, kernel="k1", fuse=True, reason="small")])
    groups, held = regrouped(case.code, case.parts, choices)
    assert groups[0].why == "fused by the model: small"
    assert groups[1].why == "optimised on its own"
    (line,) = decision_lines(held)
    assert line.startswith("k0 | k1: fused by the model: small (the rule: kept apart")


def test_nothing_is_a_choice_across_a_library_call_or_where_nothing_passes() -> None:
    assert [c.place for c in Case(chain(4, library_before=2)).choices] == [1, 3]
    alive = ["arg0", "arg1"]
    alone = [launch(n, [f"arg{n}"], f"v{n}", alive=alive) for n in range(2)]
    end = Step(place=9, kind="end", reads=("v0", "v1"))
    assert Case(OutputCode(kernels={}, arguments=(), steps=(*alone, end))).choices == []


@pytest.mark.parametrize("without", [(0,), (1,), (0, 1)])
def test_nothing_is_a_choice_where_a_side_or_both_have_no_reference(
    without: tuple[int, ...],
) -> None:
    assert Case(chain(2), without=[without]).choices == []


def test_what_is_not_there_yet_where_one_function_would_be_called_is_no_choice() -> None:
    first, second, end = chain(2).steps
    late = launch(1, ["v0", "later"], "v1", alive=["v0", "later"])
    assert second.place == late.place
    assert Case(OutputCode(kernels={}, arguments=(), steps=(first, late, end))).choices == []


def test_a_forced_merge_is_no_choice_and_outlives_every_wish() -> None:
    """v1, which passes from k1 to k2, is no operation of the model."""
    case = Case(chain(4), sizes=ARGUMENTS, nameless=["v1"])
    assert case.ruled == [(0,), (1, 2), (3,)]
    assert [choice.place for choice in case.choices] == [1, 3]
    for at1 in (True, False):
        for at3 in (True, False):
            groups, _ = case.groups(at1=at1, at3=at3)
            assert any({1, 2} <= set(group) for group in groups)


def test_a_forced_merge_over_several_launches_is_not_cut_within() -> None:
    """k2 reads what k0 made and no operation of the model is; k1 was fused between them."""
    alive = ["arg0", "arg1", "v0", "w"]
    steps = (
        Step(
            place=0,
            kind="launch",
            name="k0",
            reads=("arg0",),
            writes=(Write(variable="v0", own=True), Write(variable="w", own=True)),
            holders={name: name for name in alive},
        ),
        launch(1, ["v0"], "v1", alive=alive),
        launch(2, ["v1", "w"], "v2", alive=[*alive, "v1"]),
        Step(place=9, kind="end", reads=("v2",)),
    )
    case = Case(OutputCode(kernels={}, arguments=(), steps=steps), nameless=["w"])
    assert case.ruled == [(0, 1, 2)]
    assert case.choices == []


def test_no_group_grows_beyond_the_bound_and_the_refusal_is_said() -> None:
    case = Case(chain(12), sizes=ARGUMENTS)
    groups, held = case.groups(**{f"at{n}": True for n in range(1, 12)})
    assert max(map(len, groups)) == MAX_LAUNCHES
    assert groups == [tuple(range(8)), (8, 9, 10, 11)]
    (refused,) = [choice for choice in held if not choice.fused]
    assert refused.decided_by == "rule"
    assert refused.reason == (
        "the model's wish to fuse is refused: the group would be more than 8 launches"
    )


def test_a_wish_never_breaks_up_what_the_rule_fused_behind_it() -> None:
    sizes = {f"arg{n}": LARGE for n in range(5)} | {f"v{n}": 100 for n in range(5, 10)}
    case = Case(chain(10), sizes=sizes)
    assert case.ruled == [(0,), (1,), (2,), (3,), (4,), (5, 6, 7, 8, 9)]
    groups, held = case.groups(at1=True, at2=True, at3=True, at4=True, at5=True)
    assert groups == [(0, 1, 2, 3, 4), (5, 6, 7, 8, 9)]
    assert [choice.place for choice in held if choice.reason.startswith("the model's wish")] == [5]


def test_a_wish_for_what_is_no_choice_is_said() -> None:
    case = Case(chain(3))
    wishes = [
        Wish(place=7, kernel="k7", fuse=True, reason=""),
        Wish(place=1, kernel="another", fuse=False, reason=""),
    ]
    choices, faults = decided(case.choices, wishes)
    assert choices == case.choices
    assert faults == [
        "there is no choice before k7 at 7",
        "there is no choice before another at 1",
    ]
