from kopt.compiled.export import literal
from kopt.compiled.groups import Group
from kopt.compiled.recipe import spell
from kopt.compiled.record import Apart, KernelNote, LibraryCall, SubKernel
from kopt.compiled.stitching import (
    Found,
    attempts_of,
    nothing_gained,
    outcome_of,
    placed_in,
)


def sub(name: str, *, share: float, problem: str = "") -> SubKernel:
    group = Group(places=(len(name),), kernels=(name,), reads=(), results=(), why="")
    return SubKernel(name=name, group=group, problem=problem or name, share=share)


def found(speedup: float, low: float) -> Found:
    return Found(source="", speedup=speedup, speedup_low=low, path="")


def test_only_what_is_faster_beyond_doubt_is_put_in_and_the_greatest_gain_first() -> None:
    apart = Apart(
        model="m",
        subkernels=(sub("a", share=0.1), sub("bb", share=0.4), sub("ccc", share=0.5)),
    )
    placed = placed_in(
        apart, {"a": found(2.0, 1.5), "bb": found(1.25, 1.1), "ccc": found(1.2, 0.99)}
    )
    # 0.4 * (1 - 1/1.25) = 0.08 and 0.1 * (1 - 1/2) = 0.05.
    assert [round(each.gain, 6) for each, _ in placed] == [0.08, 0.05]
    assert [each.subkernel for each, _ in placed] == ["bb", "a"]


def test_one_program_is_put_in_wherever_its_problem_stands() -> None:
    apart = Apart(
        model="m",
        subkernels=(sub("a", share=0.1, problem="p"), sub("bb", share=0.1, problem="p")),
    )
    assert len(placed_in(apart, {"p": found(2.0, 1.5)})) == 2


def test_after_a_refusal_half_of_the_winners_are_tried_and_at_most_twice() -> None:
    apart = Apart(model="m", subkernels=tuple(sub("x" * n, share=0.1) for n in range(1, 7)))
    placed = placed_in(apart, {"x" * n: found(1.0 + n, 1.5) for n in range(1, 7)})
    assert [len(tried) for tried in attempts_of(placed, retries=2)] == [6, 3, 1]
    assert [len(tried) for tried in attempts_of(placed, retries=0)] == [6]
    assert [len(tried) for tried in attempts_of(placed[:1], retries=2)] == [1]
    assert attempts_of([], retries=2) == []


def test_outcomes_follow_the_speedup_and_its_interval() -> None:
    assert outcome_of(1.2, 1.05) == ("optimized", "")
    assert outcome_of(1.2, 0.98) == ("matched", "no_improvement")
    assert outcome_of(1.005, 1.001) == ("matched", "no_improvement")
    assert outcome_of(0.98, 0.9) == ("matched", "no_improvement")
    assert outcome_of(0.96, 0.9) is None  # below 1/1.03 = 0.971


def test_without_the_performance_gate_a_slower_model_takes_the_baselines_place() -> None:
    assert outcome_of(0.5, 0.4, has_gate=False) == ("matched", "performance")
    assert outcome_of(1.2, 1.05, has_gate=False) == ("optimized", "")


def test_a_model_that_gains_nothing_says_who_has_its_time() -> None:
    kernel = KernelNote(name="k", language="cpp", kind="loops", launches=1, share=0.2)
    products = tuple(LibraryCall(name="extern_kernels.addmm", text="") for _ in range(2))
    convolution = LibraryCall(name="extern_kernels.convolution", text="")
    apart = Apart(model="m", kernels=(kernel,), library_calls=products)
    assert nothing_gained(apart)[0] == "gemm_dominant"
    assert nothing_gained(apart)[1].endswith("libraries take 80% of its time, mostly products")
    apart = Apart(model="m", kernels=(kernel,), library_calls=(convolution,))
    assert nothing_gained(apart)[0] == "conv_dominant"
    apart = Apart(model="m", kernels=(kernel,))
    assert nothing_gained(apart)[0] == "no_improvement"


def test_a_text_becomes_a_literal_that_gives_the_text_back() -> None:
    texts = [
        "plain\n",
        'with """ in it\n',
        "with ''' and \"\"\" in it\n",
        "ends in a backslash\\",
        'ends in a quote"',
        'C++: printf("\\n");\n',
        "carriage\r\nreturn\n",
        "",
    ]
    for text in texts:
        names: dict[str, str] = {}
        exec(f"text = {literal(text)}", names)
        assert names["text"] == text


def test_forward_s_result_is_spelt_from_the_graph_s_results() -> None:
    tree = {
        "dict": [
            ["a", {"tuple": [{"result": 1}]}],
            ["b", {"list": [{"input": [0, "x"]}, {"value": None}]}],
        ]
    }
    text = spell(tree, results="made", inputs="args")
    made, args = (10, 20), ({"x": 5},)
    assert eval(text, {"made": made, "args": args}) == {"a": (20,), "b": [5, None]}
