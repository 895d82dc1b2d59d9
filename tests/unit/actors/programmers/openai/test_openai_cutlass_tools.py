"""CUTLASS's source as tools of a model, against a scripted server: calls, budgets, bad input."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from kopt.actors.cutlass.find import PACKAGE, packaged_checkout
from kopt.actors.programmers.openai import OpenAIProgrammer
from kopt.actors.programmers.openai_config import OpenAIConfig
from kopt.actors.programmers.tools_config import ToolsConfig
from kopt.errors import ConfigError
from kopt.ports import Attempt, Target, Telling
from kopt.testing.fake_profiler import uncoalesced
from kopt.testing.fakes import correct, evaluation_of, source_candidate
from kopt.testing.openai_server import Behaviour, ScriptedServer, in_turn
from kopt.testing.openai_server.source_reader import SourceReader
from kopt.testing.small_workplace import small_workplace
from kopt.testing.toy_cutlass import write_toy

HOPPER = Target(device="cuda", name="NVIDIA H200", arch="sm_90", languages=("cuda", "torch"))
NAMES = ["search_cutlass", "read_cutlass_file", "list_cutlass_directory", "check_smem_layout"]
ANSWER = Behaviour()


@pytest.fixture
def toy(tmp_path: Path, monkeypatch) -> str:
    monkeypatch.setenv("KOPT_CACHE_DIR", str(tmp_path / "cache"))
    return str(write_toy(tmp_path / "toy"))


@pytest.fixture
def converse(run, request_of):
    """Returns a function: what one expansion gives, the requests, and what was said."""

    def make(script, *, tools, num_candidates=1, target=HOPPER, change=None, **config):
        said: list[str] = []

        async def scenario():
            chosen = in_turn(*script) if isinstance(script, tuple) else script
            async with ScriptedServer(chosen) as server:
                settings = {"base_url": server.url, "tools": tools, "deadline_s": 60.0, **config}
                programmer = OpenAIProgrammer(
                    OpenAIConfig.model_validate(settings),
                    small_workplace(Path(), warn=said.append, device=target.device),
                )
                try:
                    request = replace(request_of(num_candidates), target=target)
                    request = request if change is None else change(request)
                    return await programmer.write(request), server.bodies
                finally:
                    await programmer.close()

        answer, bodies = run(scenario())
        return answer, bodies, said

    return make


def calling(*calls: tuple[str, object]) -> Behaviour:
    written = tuple(
        (name, given if isinstance(given, str) else json.dumps(given)) for name, given in calls
    )
    return Behaviour(kind="tool_calls", calls=written)


def results(answer) -> list[str]:
    return [call["result"] for call in answer.completions[0].tool_calls]


@pytest.mark.parametrize("stream", [False, True])
def test_a_model_searches_reads_and_answers(converse, toy, stream) -> None:
    script = (
        calling(("search_cutlass", {"query": "warp_wait", "path": None})),
        calling(("read_cutlass_file", {"path": "cute/layout.hpp", "start": 1, "lines": 2})),
        ANSWER,
    )
    answer, bodies, said = converse(script, tools={"cutlass": toy}, stream=stream)
    assert len(answer.candidates) == 1
    found, read = results(answer)
    assert found.startswith("include/cute/arch/mma_sm90_toy.hpp:6\n")
    assert found.endswith("\n\n(11 searches are left.)")
    assert read.startswith("include/cute/layout.hpp, lines 1 to 2 of ")
    assert [each["function"]["name"] for each in bodies[0]["tools"]] == NAMES
    assert all(each["function"]["strict"] for each in bodies[0]["tools"])
    assert bodies[2]["messages"][-1]["content"] == read
    assert answer.sampling["tools"] == NAMES
    assert (answer.sampling["searches"], answer.sampling["turns"]) == (12, 24)
    assert said == []


def test_what_the_source_demands_stands_in_the_prompt(converse, toy) -> None:
    answer, _, _ = converse((ANSWER,), tools={"cutlass": toy})
    system = answer.messages[0].text
    assert f'extra_include_paths=["{toy}/include"]' in system
    assert "`warp_wait<N>`: `N >= 0 && N <= 7`" in system


def test_searches_of_an_iteration_are_dealt_out_and_reading_costs_none(converse, toy) -> None:
    search = ("search_cutlass", {"query": "tile_to_shape", "path": None})
    read = ("read_cutlass_file", {"path": "cute/layout.hpp", "start": 1, "lines": 1})

    def script(asked):
        heard = [each for each in asked.body["messages"] if each["role"] == "tool"]
        return ANSWER if heard else calling(search, search, read)

    answer, _, said = converse(script, tools={"cutlass": toy, "searches": 3}, num_candidates=2)
    first, second = ([call["result"] for call in each.tool_calls] for each in answer.completions)
    # Three searches for two completions: two for the first, one for the second.
    assert first[0].endswith("(1 search is left.)")
    assert first[1].endswith("(no searches are left.)")
    assert second[0].endswith("(no searches are left.)")
    assert second[1] == (
        "No search is left in this iteration: read and list files, or write the answer."
    )
    assert first[2] == second[2]
    assert first[2].startswith("include/cute/layout.hpp, lines 1 to 1")
    assert said[0] == "programmer openai: 1 of 6 tool calls were not carried out (budget spent: 1)"


def test_bad_calls_are_a_line_each_and_counted_and_the_search_goes_on(converse, toy) -> None:
    script = (
        calling(
            ("rm_rf", {}),
            ("search_cutlass", "not json"),
            ("read_cutlass_file", {"path": "../../etc/passwd", "start": 1, "lines": 1}),
            ("read_cutlass_file", {"path": "/etc/passwd", "start": 1, "lines": 1}),
            ("read_cutlass_file", {"path": "cute/layout.hpp", "start": 1, "lines": 10**9}),
            ("check_smem_layout", {"layout_atom": "system(1)", "shape": [8], "element": None}),
        ),
        ANSWER,
    )
    answer, _, said = converse(script, tools={"cutlass": toy})
    assert len(answer.candidates) == 1
    unknown, no_json, outside, absolute, huge, code = results(answer)
    assert unknown == f"There is no tool 'rm_rf'; there are: {', '.join(NAMES)}."
    assert "are no JSON" in no_json
    assert "is outside" in outside
    assert "is outside" in absolute
    assert huge.startswith("include/cute/layout.hpp, lines 1 to ")
    assert "must be the name of a layout's type" in code
    assert all("\n" not in each for each in (unknown, no_json, outside, absolute, code))
    assert said[0].endswith(
        "5 of 6 tool calls were not carried out (arguments: 2, path: 2, unknown tool: 1)"
    )


def test_turns_end_and_then_the_model_must_answer(converse, toy) -> None:
    listing = calling(("list_cutlass_directory", {"path": "."}))
    answer, bodies, _ = converse((listing,), tools={"cutlass": toy, "turns": 3})
    assert [body["tool_choice"] for body in bodies] == ["auto", "auto", "auto", "none"]
    assert answer.candidates == ()
    assert len(answer.completions[0].tool_calls) == 3


def test_results_end_at_their_size(converse, toy) -> None:
    read = ("read_cutlass_file", {"path": "cute/layout.hpp", "start": 1, "lines": 400})
    script = (calling(*[read] * 5), ANSWER)
    answer, bodies, said = converse(script, tools={"cutlass": toy, "characters": 1_000})
    assert len(answer.completions[0].tool_calls) == 2  # 0.7 kB each
    assert bodies[1]["tool_choice"] == "none"
    assert bodies[1]["messages"][-1]["content"].startswith("No call is left.")
    assert said[0].endswith("3 of 5 tool calls were not carried out (budget spent: 3)")


def test_profiling_tools_are_offered_beside_it_with_their_own_budget(converse, toy) -> None:
    def reactive(request):
        candidate = source_candidate("class ModelNew: ...\n")
        evaluation = evaluation_of(correct(1.5), problem=request.problem, candidate=candidate)
        evidence = uncoalesced(request.problem, candidate)
        expansion = replace(
            request.expansion, mode="optimize", parent=candidate.candidate_id, parent_node=1
        )
        return replace(
            request,
            expansion=expansion,
            parent=Attempt(candidate=candidate, evaluation=evaluation, evidence=evidence),
            telling=Telling(orchestration="reactive"),
        )

    script = (
        calling(("memory_coalescing", {}), ("memory_coalescing", {}), ("occupancy_limiter", {})),
        calling(("list_cutlass_directory", {"path": "examples"})),
        ANSWER,
    )
    answer, bodies, _ = converse(script, tools={"cutlass": toy}, change=reactive, max_tool_calls=2)
    names = [each["function"]["name"] for each in bodies[0]["tools"]]
    assert names[-4:] == NAMES
    assert "memory_coalescing" in names
    first, second, third, listed = results(answer)
    assert "sectors" in first
    assert first == second
    assert third == "No call of a profiling tool is left."
    assert listed == "examples/ holds:\ntoy/"


def test_nothing_is_offered_for_a_cpu_or_where_it_is_off(converse, toy) -> None:
    cpu = Target(device="cpu", name="test", arch="x86_64", languages=("cpp", "torch"))
    for named in ({"tools": {"cutlass": toy}, "target": cpu}, {"tools": {"cutlass": False}}):
        answer, bodies, said = converse((ANSWER,), **named)
        assert "tools" not in bodies[0]
        assert "### CUTLASS" not in answer.messages[0].text
        assert said == []


def test_without_cutlass_that_is_said_once(converse, monkeypatch) -> None:
    monkeypatch.setattr("kopt.actors.programmers.cutlass_manual.packaged_checkout", lambda: None)
    _, bodies, said = converse((ANSWER,), tools={}, num_candidates=2)
    assert "tools" not in bodies[0]
    assert [line for line in said if "CUTLASS" in line] == [
        "programmer openai: no CUTLASS here: its source is not offered to the model; install the "
        f"package {PACKAGE}, or name a checkout by programmer.tools.cutlass (off: not wanted)"
    ]


def test_a_path_that_is_no_checkout_ends_the_run_with_one_line(converse, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"has no include/cute/tensor\.hpp"):
        converse((ANSWER,), tools={"cutlass": str(tmp_path)})


@pytest.mark.parametrize(
    "wrong", [{"searches": -1}, {"turns": 0}, {"characters": 10}, {"cutlas": "x"}]
)
def test_the_section_is_closed_and_bounded(wrong) -> None:
    with pytest.raises(ValueError, match="validation error"):
        ToolsConfig.model_validate(wrong)


@pytest.mark.slow
def test_a_scripted_model_finds_a_wgmma_atom_in_the_real_headers(
    converse, tmp_path: Path, monkeypatch
) -> None:
    if packaged_checkout() is None:
        pytest.skip(f"the package {PACKAGE} is not installed")
    monkeypatch.setenv("KOPT_CACHE_DIR", str(tmp_path))
    answer, _, _ = converse(SourceReader(), tools={})
    searched, read, _ = answer.completions[0].tool_calls
    assert "include/cute/atom/mma_traits_sm90_gmma.hpp:" in searched["result"]
    assert "using SM90_64x128x16_F32F16F16_SS =" in read["result"]
    (candidate,) = answer.candidates
    assert "MMA_Atom<SM90_64x128x16_F32F16F16_SS<" in candidate.source
    assert candidate.language == "cuda"
