import pytest
from bench_throughput_candidates import Mixed
from bench_throughput_others import judge_each
from bench_throughput_problems import ROW_SUM

from kopt.candidate import Candidate

pytestmark = pytest.mark.slow  # each candidate has an interpreter of its own, which imports torch


def judge(tmp_path, forward):
    """What the stock path says of a candidate in torch, which it need not build."""
    source = (
        "import os\nimport torch\nfrom torch import nn\n\n\n"
        f"class ModelNew(nn.Module):\n    def forward(self, x):\n        {forward}\n"
    )
    mixed = Mixed(
        problem=ROW_SUM.problem("cpu"),
        candidate=Candidate(source=source, language="torch", strategy="own"),
        outcome="correct",
    )
    (found,) = judge_each([mixed], device="cpu", folder=tmp_path, clone="", limit_s=60.0)
    return found


def test_a_right_candidate_is_correct_and_timed(tmp_path):
    found = judge(tmp_path, "return (torch.relu(x) * 1.5 + 0.25).sum(dim=1)")
    assert found.verdict == "correct", found.reason
    assert found.time_us > 0
    assert found.wall_s > found.judged_s > 0


def test_a_wrong_candidate_is_wrong(tmp_path):
    assert judge(tmp_path, "return x.sum(dim=1)").verdict == "wrong"


def test_a_process_that_dies_is_a_crash_and_says_how(tmp_path):
    found = judge(tmp_path, "os.abort()")
    assert (found.verdict, found.reason) == ("crashed", "exit code -6: ")


def test_no_time_is_no_candidate(tmp_path):
    assert judge_each([], device="cpu", folder=tmp_path, clone="", limit_s=0.0) == []
