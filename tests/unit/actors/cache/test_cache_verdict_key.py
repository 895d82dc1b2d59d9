"""What names a verdict in the store, and which verdicts are kept beyond their run."""

import json
import subprocess
import sys
from dataclasses import replace

import pytest

from kopt.actors.cache.facts import code_digest, host_facts, keeps_out
from kopt.actors.cache.verdict_key import (
    from_value,
    may_keep,
    protocol_key,
    text_key,
    to_value,
    verdict_key,
)
from kopt.actors.config import EvaluateConfig, TimeoutConfig, TimingConfig
from kopt.candidate import Candidate
from kopt.evaluation import Check
from kopt.ports import Target
from kopt.problem import Problem
from kopt.testing.fakes import correct, evaluation_of
from kopt.verdict import Cheated, CompileFailed, Crashed, Incorrect, TimedOut

PROBLEM = Problem(name="p", source="class Model: ...\n")
CANDIDATE = Candidate(source="class ModelNew: ...\n", language="torch")
TARGET = Target(device="cuda", name="NVIDIA H200", arch="sm_90", languages=("cuda",))
FACTS = [{"driver": "580", "sandbox": "process+user"}]


def test_the_key_of_a_text_depends_on_problem_language_and_text_alone() -> None:
    key = text_key(PROBLEM, CANDIDATE)
    assert text_key(replace(PROBLEM, name="q"), replace(CANDIDATE, strategy="faster")) == key
    others = [
        text_key(replace(PROBLEM, source="class Model: pass\n"), CANDIDATE),
        text_key(replace(PROBLEM, dtype="float16"), CANDIDATE),
        text_key(replace(PROBLEM, degenerate="constant"), CANDIDATE),
        text_key(PROBLEM, replace(CANDIDATE, language="triton")),
        text_key(PROBLEM, replace(CANDIDATE, source="class ModelNew: x = 1\n")),
    ]
    assert len({key, *others}) == 6


@pytest.mark.parametrize(
    "change",
    [
        {"ladder": "tf32"},
        {"track": "kernels"},
        {"module_mode": "eval"},
        {"baseline": "eager"},
        {"compile": False},
        {"max_autotune": True},
        {"trials": 3},
        {"memory_gib": 2.0},
        {"timeouts": TimeoutConfig(load_s=1.0)},
        {"timing": TimingConfig(max_pairs=5)},
    ],
)
def test_every_setting_of_how_is_judged_is_in_the_protocol(change) -> None:
    assert set(EvaluateConfig.model_fields) >= set(change)
    before = protocol_key(EvaluateConfig(), target=TARGET, facts=FACTS)
    after = protocol_key(EvaluateConfig(**change), target=TARGET, facts=FACTS)
    assert before != after


def test_the_secret_and_the_use_of_the_cache_are_no_part_of_the_protocol() -> None:
    keys = {
        protocol_key(config, target=TARGET, facts=FACTS)
        for config in (EvaluateConfig(secret=1), EvaluateConfig(secret=2, cache="read"))
    }
    assert len(keys) == 1


def test_another_device_or_another_fact_is_another_protocol() -> None:
    config = EvaluateConfig()
    keys = {
        protocol_key(config, target=TARGET, facts=FACTS),
        protocol_key(config, target=replace(TARGET, name="NVIDIA H100"), facts=FACTS),
        protocol_key(config, target=replace(TARGET, arch="sm_100"), facts=FACTS),
        protocol_key(config, target=TARGET, facts=[{**FACTS[0], "driver": "581"}]),
        protocol_key(config, target=TARGET, facts=[*FACTS, {"driver": "581"}]),
    }
    assert len(keys) == 5
    assert len({verdict_key("t", protocol=key) for key in keys}) == 5


def test_a_verdict_comes_back_as_it_was_kept() -> None:
    evaluation = evaluation_of(correct(2.0), problem=PROBLEM, candidate=CANDIDATE)
    found = from_value(to_value(evaluation, made_s=1_000.5))
    assert found.evaluation == evaluation
    assert found.made_s == 1_000.5


KEPT = [
    correct(2.0),
    Incorrect(check="values:own", detail="expected 1, found 2"),
    Cheated(check="globals", detail="patches torch"),
    CompileFailed(stage="build", log="error: expected ';'"),
]
NOT_KEPT = [
    Crashed(stage="correctness", log="RuntimeError: out of bounds"),
    TimedOut(stage="correctness", limit_s=60.0),
    CompileFailed(stage="build", log="c++: fatal error: Killed signal terminated program cc1plus"),
    CompileFailed(stage="build", log="No space left on device"),
    CompileFailed(stage="construct", log="torch.OutOfMemoryError: CUDA out of memory."),
]


@pytest.mark.parametrize("verdict", KEPT, ids=lambda verdict: verdict.kind)
def test_what_would_come_out_the_same_is_kept(verdict) -> None:
    assert may_keep(evaluation_of(verdict, problem=PROBLEM, candidate=CANDIDATE))


@pytest.mark.parametrize("verdict", NOT_KEPT, ids=lambda verdict: verdict.reason[:30])
def test_what_may_have_been_the_hosts_doing_is_not_kept(verdict) -> None:
    assert not may_keep(evaluation_of(verdict, problem=PROBLEM, candidate=CANDIDATE))


def test_an_accusation_that_rests_on_clocks_is_not_kept() -> None:
    made = evaluation_of(
        Cheated(check="two_clocks", detail="80 %"), problem=PROBLEM, candidate=CANDIDATE
    )
    gates = (*made.gates, Check(name="performance", passed=False))
    assert not may_keep(replace(made, gates=gates))


def test_a_speed_up_over_fewer_baselines_than_asked_for_is_not_kept() -> None:
    made = evaluation_of(correct(2.0), problem=PROBLEM, candidate=CANDIDATE)
    checks = (Check(name="baseline:compile", passed=False, detail="not measured: timed_out"),)
    assert not may_keep(replace(made, checks=checks))


@pytest.mark.parametrize(("interval", "is_kept"), [((0.98, 1.02), True), ((0.7, 490.0), False)])
def test_a_speed_up_that_a_busy_host_left_open_is_not_kept(interval, is_kept) -> None:
    verdict = correct(2.0)
    settled = replace(verdict, timing=replace(verdict.timing, speedup_ci=interval))
    made = evaluation_of(settled, problem=PROBLEM, candidate=CANDIDATE)
    assert may_keep(made) == is_kept


def test_a_host_says_what_a_verdict_depends_on() -> None:
    facts = host_facts("cpu")
    assert facts["code"] == code_digest()
    assert {"kopt", "python", "compilers", "sandbox", "package torch", "cores"} <= set(facts)
    assert "driver" in host_facts("cuda")


def test_the_sandbox_of_a_host_is_what_its_candidates_will_name(monkeypatch) -> None:
    reasons = json.loads(
        subprocess.run(
            [sys.executable, "-m", "kopt.actors.child.sandbox.probe"],
            capture_output=True,
            check=True,
        ).stdout
    )
    monkeypatch.delenv("KOPT_SANDBOX", raising=False)
    assert host_facts("cpu")["sandbox"] == "+".join(
        level for level, why in reasons.items() if not why
    )
    monkeypatch.setenv("KOPT_SANDBOX", "process")
    assert host_facts("cpu")["sandbox"] == "process"


def test_only_a_sandbox_that_forbids_writing_makes_the_cache_proof() -> None:
    assert keeps_out({"sandbox": "process+landlock"})
    assert keeps_out({"sandbox": "process+user"})
    assert not keeps_out({"sandbox": "process+namespace+seccomp"})
