"""Every built-in problem, run: sound in the contract, and no degenerate task."""

from types import SimpleNamespace

import pytest
import torch

from kopt.data.problems import contract_errors, resolve
from kopt.data.problems.config import ProblemsConfig
from kopt.problem import Problem

PROBLEMS = resolve(["builtin/*"], ProblemsConfig())
MIN_CHANGE = 1e-3
"""What a change of every input, or of a parameter, must move some output by, relative to the
outputs' own scale: ten times what gates let pass."""


def made(problem: Problem, *, seed: int) -> SimpleNamespace:
    module: dict = {}
    exec(compile(problem.source, problem.name, "exec"), module)  # our own files
    torch.manual_seed(seed)
    model = module["Model"](*module["get_init_inputs"]())
    return SimpleNamespace(model=model, inputs=module["get_inputs"]())


def output_of(model: torch.nn.Module, inputs: list) -> torch.Tensor:
    with torch.no_grad():
        return model(*inputs)


def relative_change(after: torch.Tensor, before: torch.Tensor) -> float:
    return ((after - before).abs().max() / before.abs().max()).item()


def test_there_are_enough_of_them_of_many_families():
    assert len(PROBLEMS) >= 14
    assert len({problem.family for problem in PROBLEMS}) >= 8


@pytest.mark.parametrize("problem", PROBLEMS, ids=lambda problem: problem.name)
def test_a_builtin_problem_is_sound(problem: Problem):
    assert contract_errors(problem.source) == []
    assert problem.source.startswith('"""')
    assert 'FAMILY = "' in problem.source
    it = made(problem, seed=0)
    output = output_of(it.model, it.inputs)
    assert isinstance(output, torch.Tensor)
    assert torch.isfinite(output).all()
    assert output.numel() == 1 or output.std() > 1e-3
    assert torch.equal(output, output_of(it.model, it.inputs))


@pytest.mark.parametrize("problem", PROBLEMS, ids=lambda problem: problem.name)
def test_outputs_react_to_every_input_and_every_parameter(problem: Problem):
    it, other = made(problem, seed=0), made(problem, seed=1)
    output = output_of(it.model, it.inputs)
    for index, value in enumerate(other.inputs):
        inputs = [*it.inputs[:index], value, *it.inputs[index + 1 :]]
        assert relative_change(output_of(it.model, inputs), output) > MIN_CHANGE, index
    for name, parameter in it.model.named_parameters():
        kept = parameter.detach().clone()
        with torch.no_grad():
            parameter += 0.1 * (1.0 + parameter.abs())
        assert relative_change(output_of(it.model, it.inputs), output) > MIN_CHANGE, name
        with torch.no_grad():
            parameter.copy_(kept)


@pytest.mark.parametrize("problem", PROBLEMS, ids=lambda problem: problem.name)
def test_no_half_of_the_samples_gives_the_output(problem: Problem):
    # A mean over many samples that half of them already give would reward dropping work.
    it = made(problem, seed=0)
    output = output_of(it.model, it.inputs)
    if output.numel() > 1:
        return
    halves = [value[: len(value) // 2] for value in it.inputs]
    assert relative_change(output_of(it.model, halves), output) > MIN_CHANGE
