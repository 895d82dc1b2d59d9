import pickle
import re

import pytest

from kopt.actors.rewriter.plan import plan_of, without_marker
from kopt.actors.rewriter.worker import RewriterWorker
from kopt.candidate import Candidate
from kopt.errors import ProblemError
from kopt.evaluation import Evaluation
from kopt.expansion import Expansion
from kopt.ports import Attempt, Target, WriteRequest
from kopt.problem import Problem
from kopt.verdict import CompileFailed

SOURCE = """
import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(512, 1024)

    def forward(self, x):
        return torch.tanh(self.linear(x).sum(dim=1, keepdim=True) / 40.0) + torch.exp(x)


def get_inputs():
    return [torch.randn(256, 512)]
"""


def ask(
    worker,
    *,
    source=SOURCE,
    count=1,
    first=0,
    parent=None,
    mode="initial",
    languages=("torch", "cpp"),
):
    expansion = Expansion(
        ordinal=0,
        parent_node=0 if parent is None else 1,
        parent=None if parent is None else parent.candidate_id,
        mode=mode,
        num_candidates=count,
        first_child=first,
        seed=7,
    )
    attempt = None
    if parent is not None:
        evaluation = Evaluation(
            verdict=CompileFailed(stage="build", log="no"),
            problem="",
            candidate=parent.candidate_id,
            language=parent.language,
            ladder="strict",
            device="cpu",
        )
        attempt = Attempt(candidate=parent, evaluation=evaluation)
    request = WriteRequest(
        problem=Problem(name="case", source=source),
        target=Target(device="cpu", name="cpu", arch="x86_64", languages=languages),
        search="case/a/0",
        arm="a",
        seed=0,
        expansion=expansion,
        parent=attempt,
    )
    return worker.write(request, "train")


def test_each_slot_has_code_of_its_own_until_there_is_no_more():
    worker = RewriterWorker()
    answer = ask(worker, count=200)
    codes = [without_marker(c.source) for c in answer.candidates]
    assert answer.exhausted
    assert 4 <= len(codes) < 200
    assert len(set(codes)) == len(codes)
    assert answer.note
    assert {c.programmer for c in answer.candidates} == {"rewriter"}
    assert {c.language for c in answer.candidates} == {"torch", "cpp"}


def test_slots_asked_one_by_one_and_by_another_process_are_the_same():
    together = ask(RewriterWorker(), count=5).candidates
    single = [ask(RewriterWorker(), first=i).candidates[0] for i in range(5)]
    assert list(together) == single


def test_the_first_candidate_has_every_rule_and_kernels():
    first = ask(RewriterWorker()).candidates[0]
    assert "linear_reduce" in first.strategy
    assert "generated cpp kernel" in first.strategy
    plan = plan_of(first.source)
    assert plan.algebra
    assert plan.schedule is not None


def test_without_a_compiler_only_torch_is_written():
    answer = ask(RewriterWorker(), count=50, languages=("torch",))
    assert {c.language for c in answer.candidates} == {"torch"}


def test_children_of_a_correct_parent_are_neighbours_and_not_the_roots():
    worker = RewriterWorker()
    first, *others = ask(worker, count=100).candidates
    roots = {first.source, *(c.source for c in others)}
    best = plan_of(first.source).schedule
    scheduled = [c for c in others if plan_of(c.source).algebra and plan_of(c.source).schedule]
    parent = next(c for c in scheduled if plan_of(c.source).schedule != best)
    answer = ask(worker, count=3, parent=parent, mode="optimize")
    assert len(answer.candidates) == 3
    assert not roots & {c.source for c in answer.candidates}
    assert all(c.parent == parent.candidate_id for c in answer.candidates)


def test_a_failed_parent_gets_safer_children():
    worker = RewriterWorker()
    parent = ask(worker).candidates[0]
    children = ask(worker, count=100, parent=parent, mode="debug").candidates
    assert any(plan_of(c.source).schedule is None for c in children)
    assert parent.source not in {c.source for c in children}


def test_a_parent_by_another_hand_gets_what_the_root_gets():
    worker = RewriterWorker()
    foreign = Candidate(source="class ModelNew: ...", language="torch")
    child = ask(worker, parent=foreign, mode="optimize").candidates[0]
    assert child.source == ask(worker).candidates[0].source


def test_past_the_end_there_is_nothing():
    answer = ask(RewriterWorker(), first=500)
    assert answer.candidates == ()
    assert answer.exhausted


def test_a_problem_that_cannot_be_seen_is_exhausted_with_the_reason():
    source = SOURCE.replace("+ torch.exp(x)", "+ torch.rand_like(x)")
    answer = ask(RewriterWorker(), source=source)
    assert answer.exhausted
    assert answer.candidates == ()
    assert "random" in answer.note


def test_a_problem_that_does_not_import_is_a_problem_error():
    with pytest.raises(ProblemError, match="does not import"):
        ask(RewriterWorker(), source="raise RuntimeError('broken')")


@pytest.mark.parametrize(
    ("inputs", "why"),
    [
        ("[]", "missing a required argument: 'x'"),
        ("[torch.randn(256, 512), torch.randn(256)]", "too many positional arguments"),
        ("[object()]", "holds a object, not a tensor"),
        ("[[torch.randn(256, 512), print]]", "holds a builtin_function_or_method"),
        ("['a string']", "must give at least one tensor, found str"),
    ],
)
def test_inputs_that_forward_cannot_be_given_are_a_problem_error(inputs, why):
    source = SOURCE.replace("[torch.randn(256, 512)]", inputs)
    with pytest.raises(ProblemError, match=why):
        ask(RewriterWorker(), source=source)


@pytest.mark.parametrize("result", ["'a string'", "None", "x.shape[0]", "[]"])
def test_a_forward_that_gives_no_tensor_is_a_problem_error(result):
    source = re.sub(r"return .*", f"return {result}", SOURCE, count=1)
    with pytest.raises(ProblemError, match="forward must return a tensor, and gives none"):
        ask(RewriterWorker(), source=source)


def test_a_forward_without_arguments_leaves_the_problem_as_it_is_with_the_reason():
    source = SOURCE.replace("forward(self, x)", "forward(self)").replace(
        "[torch.randn(256, 512)]", "[]"
    )
    source = re.sub(r"return torch.tanh.*", "return self.linear.weight * 2.0", source)
    answer = ask(RewriterWorker(), source=source)
    assert (answer.candidates, answer.exhausted) == ((), True)
    assert answer.note == "not rewritable: forward is given no tensor"


def test_a_result_that_has_no_spelling_leaves_the_problem_as_it_is_with_the_reason():
    source = re.sub(r"return (.*)", r"return slot(\1)", SOURCE, count=1)
    source = "import collections\nslot = collections.namedtuple('slot', 'y')\n" + source
    answer = ask(RewriterWorker(), source=source)
    assert (answer.candidates, answer.exhausted) == ((), True)
    assert "forward gives back a slot" in answer.note


def test_answers_pickle():
    answer = ask(RewriterWorker(), count=2)
    assert pickle.loads(pickle.dumps(answer)) == answer
