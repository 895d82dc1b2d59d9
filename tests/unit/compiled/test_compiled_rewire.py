import pytest

from kopt.compiled.groups import Group, make_groups
from kopt.compiled.output_code import read_output_code
from kopt.compiled.rewire import Layout, Replacement, rewire

SOURCE = '''
cpp_fused_a_0 = async_compile.cpp_pybinding(['const float*', 'float*', 'float*'], r"""
extern "C" void kernel(const float* in_ptr0, float* out_ptr0, float* out_ptr1)
{
}
""")
cpp_fused_b_1 = async_compile.cpp_pybinding(['float*', 'const float*'], r"""
extern "C" void kernel(float* in_out_ptr0, const float* in_ptr0)
{
    auto tmp0 = at::vec::Vectorized<float>::loadu(in_out_ptr0);
}
""")

def call(args):
    arg0_1, arg1_1 = args
    args.clear()
    buf0 = empty_strided_cpu((4, 8), (8, 1), torch.float32)
    buf1 = empty_strided_cpu((4, 1), (1, 4), torch.float32)
    cpp_fused_a_0(arg0_1, buf0, buf1)
    del arg0_1
    buf2 = buf0; del buf0  # reuse
    cpp_fused_b_1(buf2, buf1)
    del buf1
    buf3 = empty_strided_cpu((4, 4), (4, 1), torch.float32)
    extern_kernels.mm(buf2, arg1_1, out=buf3)
    del buf2
    return (buf3, )

call_again = call
'''
LAYOUTS = {
    "arg0_1": Layout(size=(4, 8), stride=(8, 1)),
    "buf0": Layout(size=(4, 8), stride=(8, 1)),
    "buf1": Layout(size=(4, 1), stride=(1, 4)),
    "buf2": Layout(size=(4, 8), stride=(8, 1)),
}
BYTES = {"arg0_1": 128, "buf0": 128, "buf1": 16, "buf2": 128}
NAMED = {"arg0_1", "arg1_1", "buf0", "buf1", "buf2", "buf3"}


def groups(**changes: object) -> list[Group]:
    arguments = {"num_bytes": BYTES, "named": NAMED, "merge": True} | changes
    return make_groups(read_output_code(SOURCE), **arguments)  # type: ignore[arg-type]


def test_launches_are_merged_where_much_of_their_traffic_is_saved() -> None:
    (group,) = groups()
    assert group.reads == ("arg0_1",)
    assert group.results == ("buf2",)
    # Both move 128 + 128 + 16 and 128 + 16 + 128 = 544 bytes; buf0 and buf1 are neither written
    # nor read again: 2 * 144 = 288, which is 53 %.
    assert group.why == "fused: 53% of their traffic is saved"
    assert group.name == "cpp_fused_a_0_and_1_more"


def test_launches_stay_apart_where_little_is_saved_or_merging_is_off() -> None:
    assert [g.kernels for g in groups(merge=False)] == [("cpp_fused_a_0",), ("cpp_fused_b_1",)]
    much = BYTES | {"arg0_1": 10_000}
    assert len(groups(num_bytes=much)) == 2


def test_launches_that_pass_a_nameless_value_are_merged_whatever_is_asked() -> None:
    (group,) = groups(named=NAMED - {"buf1"}, merge=False)
    assert group.why == "fused: buf1 between them is no operation of the model"


def test_a_group_is_replaced_by_one_call_and_the_rest_stays() -> None:
    (group,) = groups()
    text = rewire(
        SOURCE,
        [Replacement(group=group, function="_sub", inputs=("arg0_1",))],
        layouts=LAYOUTS,
    )
    body = text[text.index("def call") : text.index("call_again")]
    assert "cpp_fused" not in body
    assert "_kopt_made_0 = _sub(arg0_1)" in body
    assert "buf2 = _kopt_fit(_kopt_made_0, (4, 8), (8, 1))" in body
    assert "extern_kernels.mm(buf2, arg1_1, out=buf3)" in body
    assert text.startswith(SOURCE[: SOURCE.index("def call")])
    assert text.endswith("call_again = call\n")


def test_a_stitched_call_computes_with_the_functions() -> None:
    (group,) = groups()
    text = rewire(
        SOURCE, [Replacement(group=group, function="_sub", inputs=("arg0_1",))], layouts=LAYOUTS
    )

    class Kernels:
        def mm(self, left: list[str], right: list[str], *, out: list[str]) -> None:
            out += ["mm", *left, *right]

    names: dict[str, object] = {
        "extern_kernels": Kernels(),
        "empty_strided_cpu": lambda *_: [],
        "torch": type("torch", (), {"float32": None}),
        "_sub": lambda given: ["sub", *given],
        "_kopt_fit": lambda made, size, stride: made,
    }
    exec(text[text.index("def call") :], names)
    given = [["x"], ["w"]]
    assert names["call"](given) == (["mm", "sub", "x", "w"],)  # type: ignore[operator]


def test_each_of_two_launches_may_have_a_function_of_its_own() -> None:
    first, second = groups(merge=False)
    text = rewire(
        SOURCE,
        [
            Replacement(group=first, function="_one", inputs=("arg0_1",)),
            Replacement(group=second, function="_two", inputs=("buf0", "buf1")),
        ],
        layouts=LAYOUTS,
    )
    assert "buf0 = _kopt_fit(_kopt_made_0[0], (4, 8), (8, 1))" in text
    # buf0's memory goes by the name buf2 when the second is called.
    assert "_kopt_made_1 = _two(reinterpret_tensor(buf2, (4, 8), (8, 1), 0), buf1)" in text


def test_without_replacements_the_text_is_the_same_to_the_byte() -> None:
    assert rewire(SOURCE, [], layouts={}) == SOURCE


def test_memory_is_not_made_for_what_a_function_gives() -> None:
    first, _ = groups(merge=False)
    replacement = Replacement(group=first, function="_one", inputs=("arg0_1",))
    text = rewire(SOURCE, [replacement], layouts=LAYOUTS)
    assert "buf0 = empty_strided_cpu" not in text
    assert "buf3 = empty_strided_cpu" in text


def test_two_replacements_of_one_launch_are_refused() -> None:
    first, _ = groups(merge=False)
    replacement = Replacement(group=first, function="_one", inputs=("arg0_1",))
    with pytest.raises(ValueError, match="two replacements of cpp_fused_a_0"):
        rewire(SOURCE, [replacement, replacement], layouts=LAYOUTS)


def test_a_value_that_nothing_holds_there_is_refused() -> None:
    first, _ = groups(merge=False)
    replacement = Replacement(group=first, function="_one", inputs=("buf9",))
    with pytest.raises(ValueError, match="buf9 is held by no variable"):
        rewire(SOURCE, [replacement], layouts=LAYOUTS)
