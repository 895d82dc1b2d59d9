"""On a GPU: candidates are what they were made to be, and KernelBench's evaluator takes them."""

import importlib.util

import pytest
from bench_throughput_candidates import mixed_candidates
from bench_throughput_others import judge_each

from kopt.environment import kernelbench_clone

pytestmark = [pytest.mark.gpu, pytest.mark.slow]


def load(source, folder, name):
    path = folder / f"{name}.py"
    path.write_text(source, encoding="utf-8")
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_candidates_in_triton_and_torch_are_as_right_as_they_were_made(tmp_path):
    import torch

    made = mixed_candidates("cuda", per_problem=12)
    chosen = [
        each
        for each in made
        if each.candidate.language in ("triton", "torch") and each.outcome in ("correct", "wrong")
    ]
    for number, each in enumerate(chosen):
        reference = load(each.problem.source, tmp_path, f"reference_{number}")
        candidate = load(each.candidate.source, tmp_path, f"candidate_{number}")
        models = []
        for kind in (reference.Model, candidate.ModelNew):
            torch.manual_seed(0)
            models.append(kind(*reference.get_init_inputs()).cuda())
        inputs = [value.cuda() for value in reference.get_inputs()]
        with torch.no_grad():
            expected, found = (model(*inputs) for model in models)
        same = expected.shape == found.shape and torch.allclose(
            expected, found, atol=1e-4, rtol=1e-4
        )
        assert same == (each.outcome == "correct"), each.label


@pytest.mark.skipif(kernelbench_clone() is None, reason="KOPT_KERNELBENCH names no clone")
def test_kernelbench_judges_a_right_and_a_wrong_candidate(tmp_path):
    made = mixed_candidates("cuda", per_problem=12)
    for outcome, verdict in (("correct", "correct"), ("wrong", "wrong")):
        mixed = next(
            each for each in made if (each.candidate.language, each.outcome) == ("triton", outcome)
        )
        (found,) = judge_each(
            [mixed], device="cuda", folder=tmp_path, clone=kernelbench_clone(), limit_s=170.0
        )
        assert found.verdict == verdict, found.reason
