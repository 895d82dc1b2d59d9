"""Prompts: what they say, in which order, how long they get, and that they are held still."""

from __future__ import annotations

import dataclasses
import runpy
from pathlib import Path
from typing import Any

import pytest

from kopt.candidate import LANGUAGES
from kopt.evaluation import Check
from kopt.expansion import MODES
from kopt.finding import Finding
from kopt.ladder import LADDER_NAMES, LADDERS, Distances, failure
from kopt.memory.history import History
from kopt.memory.tried import Tried
from kopt.ports import Target, Terms, WriteRequest
from kopt.prompts import build
from kopt.prompts.budget import Budget
from kopt.prompts.builder import reference_is_cut, stable_part
from kopt.prompts.policy_text import policy_text
from kopt.prompts.templates import filled
from kopt.verdict import Cheated, CompileFailed, Correct, Crashed, Incorrect, TimedOut, Verdict

GOLDEN = Path(__file__).resolve().parents[2] / "golden" / "prompts"
CASES: dict[str, Any] = runpy.run_path(str(GOLDEN / "regen_prompts.py"))
NAMES = sorted(path.stem for path in GOLDEN.glob("*.md"))
CORRECT: Correct = CASES["VERDICTS"]["optimize"]


def request(case: str = "optimize", device: str = "cuda", **parent: Any) -> WriteRequest:
    """A golden request, with fields of its parent's evaluation replaced."""
    made: WriteRequest = CASES["request"](case, device)
    if not parent:
        return made
    assert made.parent is not None
    evaluation = dataclasses.replace(made.parent.evaluation, **parent)
    return dataclasses.replace(made, parent=dataclasses.replace(made.parent, evaluation=evaluation))


def user_text(made: WriteRequest, **budget: Any) -> str:
    return build(made, budget=Budget(**budget))[-1].text


@pytest.mark.parametrize("name", NAMES)
def test_prompts_are_as_they_were_reviewed(name: str) -> None:
    """After a wanted change: python scripts/regen_golden.py prompts, and explain the diff."""
    assert CASES["golden_prompts"]()[name] == (GOLDEN / f"{name}.md").read_text(encoding="utf-8")


def test_every_golden_prompt_has_its_file() -> None:
    assert sorted(CASES["golden_prompts"]()) == NAMES


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_prompts_of_one_search_share_the_whole_stable_part(device: str) -> None:
    prompts = [build(request(case, device)) for case in ("initial", *CASES["VERDICTS"])]
    system, user = stable_part(request("initial", device))
    assert {prompt[0].text for prompt in prompts} == {system.text}
    assert all(prompt[1].text.startswith(f"{user.text}\n\n## ") for prompt in prompts)
    # About four characters make a token: within 4,000 tokens, the reference apart.
    assert len(system.text) < 16_000


def test_the_system_message_is_the_same_for_every_problem_of_a_target() -> None:
    made = request("initial")
    other = dataclasses.replace(made, problem=dataclasses.replace(made.problem, source="x = 1\n"))
    assert build(made)[0] == build(other)[0]


def test_labels_of_a_problem_and_of_a_search_change_no_prompt() -> None:
    made = request("initial")
    problem = dataclasses.replace(made.problem, name="other", family="norm", revision="1")
    assert build(made) == build(dataclasses.replace(made, problem=problem, search="b", seed=9))


def test_on_a_cpu_nothing_is_said_of_gpus() -> None:
    for case in ("initial", *CASES["VERDICTS"]):
        text = "\n".join(message.text for message in build(request(case, "cpu")))
        for words in ("TF32", "CUDA", "cuda", "stream", "triton", "GPU", "launches"):
            assert words not in text, (case, words)
    system = build(request("initial", "cuda"))[0].text
    for words in ("one product in TF32", "in the current stream", "streams and CUDA graphs"):
        assert words in system


@pytest.mark.parametrize("mode", MODES)
def test_each_mode_has_its_task(mode: str) -> None:
    case = {"initial": "initial", "debug": "debug_crashed", "optimize": "optimize"}[mode]
    assert filled(mode, again="") in user_text(request(case)).replace(
        "\n\n2 versions were asked for from here before; take another way than the nearest one.", ""
    )


def test_a_root_that_was_asked_before_asks_for_another_way() -> None:
    made = request("initial")
    again = dataclasses.replace(made, expansion=dataclasses.replace(made.expansion, first_child=1))
    text = user_text(again)
    assert "One version was asked for from here before; nothing is known of it here. Take" in text
    assert "another idea than the first that" in text
    tried = Tried(
        candidate="c",
        parent=None,
        expansion=0,
        strategy="tiles",
        language="triton",
        kind="incorrect",
        reason="wrong",
    )
    known = History(siblings=(tried,))
    text = user_text(dataclasses.replace(again, history=known))
    assert "One version was tried from here before; what is known of it stands below." in text
    assert "Take another idea than that one's, and than the first that comes to mind." in text
    several = dataclasses.replace(
        again, expansion=dataclasses.replace(again.expansion, first_child=3)
    )
    text = user_text(several)
    assert "3 versions were asked for from here before; nothing is known of them here. Take" in text
    assert "from here before" not in user_text(made)


STANDS = "tried from here before; what is known of"


@pytest.mark.parametrize(
    ("asked", "siblings", "earlier", "words"),
    [
        (4, 4, 0, f"4 versions were {STANDS} them stands below. Take another idea than theirs"),
        (4, 1, 2, f"3 versions were {STANDS} them stands below. 1 more was asked for; nothing is"),
        (4, 1, 2, "is known of it yet. Take another idea than theirs, and than the first"),
        (4, 1, 0, f"One version was {STANDS} it stands below. 3 more were asked for; nothing is"),
        (4, 1, 0, "is known of them yet. Take another idea than that one's, and than the first"),
        (0, 2, 0, f"2 versions were {STANDS} them stands below. Take another idea than theirs"),
    ],
)
def test_versions_that_are_not_told_of_are_counted_apart(asked, siblings, earlier, words) -> None:
    made = request("initial")
    tried = Tried(
        candidate="c",
        parent=None,
        expansion=0,
        strategy="tiles",
        language="triton",
        kind="incorrect",
        reason="wrong",
    )
    expansion = dataclasses.replace(made.expansion, first_child=asked)
    history = History(siblings=(tried,) * siblings, earlier=earlier)
    assert words in user_text(dataclasses.replace(made, expansion=expansion, history=history))


VERDICTS: list[tuple[Verdict, list[str]]] = [
    (
        CompileFailed(stage="static", log="line 3: invalid syntax"),
        ["does not compile (stage `static`)", "nothing of it was run", "line 3: invalid syntax"],
    ),
    (
        CompileFailed(stage="elsewhere", log=""),
        ["does not compile (stage `elsewhere`)."],
    ),
    (Crashed(stage="timing", log="signal 11"), ["crashed (stage `timing`)", "signal 11"]),
    (TimedOut(stage="import", limit_s=60.0), ["stage `import` within 60 s"]),
    (
        Incorrect(check="weights", detail="no weights for scale"),
        ["check `weights` failed (parameters and buffers have to match", "no weights for scale"],
    ),
    (
        Incorrect(check="a_new_check", detail="expected 1, found 2"),
        ["check `a_new_check` failed.", "expected 1, found 2"],
    ),
    (
        Cheated(check="static:frames", detail="line 4: uses sys._getframe"),
        ["attempt to cheat: check `static:frames`", "line 4: uses sys._getframe"],
    ),
    (CORRECT, ["Speed-up 1.21 [1.19, 1.23] over the baseline `compile`", "| eager PyTorch | 61 |"]),
]


@pytest.mark.parametrize(("verdict", "words"), VERDICTS)
def test_every_verdict_is_told_with_its_fields(verdict: Verdict, words: list[str]) -> None:
    text = user_text(request(verdict=verdict))
    for each in words:
        assert each in text


def test_a_failure_is_headed_by_what_went_wrong() -> None:
    build = CASES["VERDICTS"]["debug_compile"]
    text = user_text(request(verdict=build))
    head = (
        "It does not compile (stage `build`): kernel.cpp:7:20: error: expected ';' before '}' token"
    )
    assert f"## What became of it\n\n{head}\n\n" in text
    assert "    7 |   out[r] = total }" in text
    # One line that says it all is not told twice.
    text = user_text(request(verdict=CompileFailed(stage="static", log="line 3: invalid syntax")))
    assert text.count("line 3: invalid syntax") == 1


def test_the_time_beside_a_speed_up_is_of_its_race() -> None:
    timing = dataclasses.replace(CORRECT.timing, compile_us=24.1)  # in another race
    text = user_text(request(verdict=dataclasses.replace(CORRECT, timing=timing)))
    assert "| torch.compile | 25.9 | the baseline, in the same race |" in text
    assert "| eager PyTorch | 61 | timed apart |" in text
    assert "24.1" not in text
    # 25.9 ÷ 21.4 = 1.21 follows from the table; 1.25, of pairs, does not.
    assert "over the baseline `compile`. It" in text
    timing = dataclasses.replace(CORRECT.timing, speedup=1.25, speedup_ci=(1.2, 1.3))
    text = user_text(request(verdict=dataclasses.replace(CORRECT, timing=timing)))
    assert "`compile` (of 12 pairs of calls; the ratio of the two times below is 1.21). It" in text


def test_a_version_slower_than_the_baseline_is_said_to_be() -> None:
    timing = dataclasses.replace(CORRECT.timing, speedup=0.5, speedup_ci=(0.49, 0.51))
    verdict = dataclasses.replace(CORRECT, timing=timing)
    assert "slower than the baseline" in user_text(request(verdict=verdict))


def test_times_have_no_exponent_however_long_they_are() -> None:
    timing = dataclasses.replace(CORRECT.timing, time_us=16_287.94, time_ci_us=(9_999.6, 1.2e6))
    text = user_text(request(verdict=dataclasses.replace(CORRECT, timing=timing)))
    assert "| this version | 16288 | 95 % of the median: 10000 to 1200000 |" in text


def test_a_check_that_leaves_a_version_right_is_a_remark() -> None:
    checks = (Check(name="fallback", passed=False, detail="95% of its time"),)
    text = user_text(request(checks=checks))
    assert "Remarks (it counts as right all the same):\n- `fallback`" in text
    assert "Checks that failed" not in text
    wrong = Incorrect(check="values:own#0", detail="expected 1, found 2")
    assert "Checks that failed:\n- `fallback`" in user_text(request(verdict=wrong, checks=checks))


def test_a_track_that_counts_own_kernels_alone_is_said() -> None:
    kernels = dataclasses.replace(request(), terms=Terms(track="kernels"))
    assert "not be left to library calls" in build(kernels)[0].text
    assert "not be left to library calls" not in build(request())[0].text
    assert "25% of the device's time" in user_text(request(library_share=0.25))


@pytest.mark.parametrize("ladder", LADDER_NAMES)
def test_the_policy_in_words_is_the_policy_in_force(ladder) -> None:
    text = build(dataclasses.replace(request(), terms=Terms(ladder=ladder)))[0].text
    assert policy_text(ladder, device="NVIDIA H200") in text
    policy = LADDERS[ladder]
    assert ("TF32 is on for matrix products" in text) == policy.matmul_tf32
    assert ("at most 10 times the reference's own" in text) == policy.rho_required
    # max |reference| = 100: an error of max(0.005, 0.001 * 100) = 0.1 passes where it is said.
    at_bound = Distances(candidate=0.1, reference=1e-7, scale=100.0, excess=1.0)
    assert (failure(at_bound, policy) is None) == ("max(0.005, 0.001·max |reference|)" in text)
    beyond = dataclasses.replace(at_bound, candidate=0.1001)
    assert failure(beyond, policy) is not None


def test_tf32_is_not_spoken_of_on_a_cpu() -> None:
    assert "TF32 is" not in build(request("optimize", "cpu"))[0].text


def test_a_cast_of_the_problem_is_said() -> None:
    made = request("initial")
    problem = dataclasses.replace(made.problem, dtype="bfloat16")
    assert "cast to bfloat16" in user_text(dataclasses.replace(made, problem=problem))
    assert "cast to" not in user_text(made)


def test_a_kernel_that_a_problem_comes_with_is_shown_to_who_begins_and_not_beside_a_version() -> (
    None
):
    for case, times in (("initial", 1), ("optimize", 0)):
        made = request(case)
        problem = dataclasses.replace(made.problem, given="class ModelNew(Old): ...")
        text = user_text(dataclasses.replace(made, problem=problem))
        assert text.count("class ModelNew(Old): ...") == times
        assert ("## The version that is there" in text) == bool(times)
    assert "## The version that is there" not in user_text(request("initial"))


def test_a_long_log_keeps_its_last_lines_and_the_first_errors() -> None:
    log = "\n".join(["a.h:1: error: first", *(f"note {n}" for n in range(1_000)), "last"])
    text = user_text(request(verdict=CompileFailed(stage="build", log=log)), log=100)
    # "last" and notes of 8 characters and a line break each: 5 + 9 * 10 <= 100 < 5 + 9 * 11.
    assert "a.h:1: error: first\n… 990 lines left out …\nnote 990\n" in text
    assert "\nnote 999\nlast\n" in text


def test_a_long_source_is_cut_in_its_middle_and_says_so() -> None:
    made = request("initial")
    source = "\n".join(f"x{n:04} = 1" for n in range(1_000))
    problem = dataclasses.replace(made.problem, source=source)
    text = user_text(dataclasses.replace(made, problem=problem), reference=1_000)
    # Lines of 9 characters and a line break: 75 of them in 750, 25 in 250.
    assert "x0074 = 1\n… 900 lines left out …\nx0975 = 1\n" in text
    # 900 lines of 10 characters, one line break of them kept.
    assert text.startswith(
        "## Reference\n\nIt is too long for this prompt: 8,999 of its 9,999 characters (900 of "
        "1,000 lines) are left out, where the block says so.\n\n```python\nx0000 = 1\n"
    )
    assert reference_is_cut(build(dataclasses.replace(made, problem=problem))) is False
    assert reference_is_cut(
        build(dataclasses.replace(made, problem=problem), budget=Budget(reference=1_000))
    )


def test_a_version_that_is_cut_says_so_above_it() -> None:
    made = request("optimize")
    assert made.parent is not None
    source = "\n".join(f"x{n:04} = 1" for n in range(1_000))
    candidate = dataclasses.replace(made.parent.candidate, source=source)
    parent = dataclasses.replace(made.parent, candidate=candidate)
    text = user_text(dataclasses.replace(made, parent=parent), version=1_000)
    assert "\n\nIt is too long for this prompt: 8,999 of its 9,999 characters (900 of" in text
    assert "It is too long" not in user_text(made)


def test_one_line_of_a_megabyte_is_cut() -> None:
    verdict = Crashed(stage="correctness", log="x" * 1_000_000)
    text = user_text(request(verdict=verdict))
    assert "… 999400 characters left out …" in text
    made = request("initial")
    problem = dataclasses.replace(made.problem, source="x" * 1_000_000)
    assert len(user_text(dataclasses.replace(made, problem=problem))) < 120_000


def test_a_prompt_is_bounded_whatever_its_parent_holds() -> None:
    made = request(verdict=Crashed(stage="correctness", log="error\n" * 200_000))
    assert made.parent is not None
    candidate = dataclasses.replace(made.parent.candidate, source="y = 1\n" * 200_000)
    finding = Finding(
        tool="t",
        severity="low",
        title="long",
        summary="s" * 5_000,
        root_cause="",
        recommendations=("r\n" * 5_000,),
        expected_improvement="",
    )
    parent = dataclasses.replace(made.parent, candidate=candidate, findings=(finding,) * 50)
    text = user_text(dataclasses.replace(made, parent=parent))
    assert len(text) < 70_000
    assert "… 49 less severe left out …" in text


def test_findings_come_in_the_order_of_their_severity() -> None:
    made = request()
    assert made.parent is not None
    (finding,) = made.parent.findings
    findings = tuple(
        dataclasses.replace(finding, title=severity, severity=severity)
        for severity in ("low", "critical", "medium")
    )
    text = user_text(
        dataclasses.replace(made, parent=dataclasses.replace(made.parent, findings=findings))
    )
    places = [text.index(f"### {name}") for name in ("critical", "medium", "low")]
    assert places == sorted(places)


def test_a_source_with_fences_stays_in_its_block() -> None:
    made = request("initial")
    source = '"""\n```python\nx\n```\n````\n"""\n'
    problem = dataclasses.replace(made.problem, source=source)
    assert f"`````python\n{source}`````" in user_text(dataclasses.replace(made, problem=problem))


def test_dollars_in_a_source_are_left_alone() -> None:
    made = request("initial")
    problem = dataclasses.replace(made.problem, source="x = '$source ${cast} $'\n")
    assert "x = '$source ${cast} $'" in user_text(dataclasses.replace(made, problem=problem))


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_language_has_a_guide(language) -> None:
    target = Target(device="cuda", name="a GPU", arch="sm_75", languages=(language,))
    system = build(dataclasses.replace(request("initial"), target=target))[0].text
    assert f"### {language}\n" in system
    assert f"language: {language}\n" in system


def test_an_unknown_architecture_gets_no_invented_figures() -> None:
    target = Target(device="cuda", name="a GPU", arch="gfx942", languages=("cuda", "torch"))
    system = build(dataclasses.replace(request("initial"), target=target))[0].text
    assert "shared memory and 1024 threads" not in system
    assert "-arch=gfx942" not in system


def test_a_template_refuses_values_it_has_no_place_for() -> None:
    with pytest.raises(ValueError, match="no place for strategy"):
        filled("initial", again="", strategy="s")
    with pytest.raises(KeyError):
        filled("initial")
