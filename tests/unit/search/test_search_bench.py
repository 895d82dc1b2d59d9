import json
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[3] / "scripts" / "bench_search.py"


def bench(*arguments):
    return subprocess.run(
        [sys.executable, str(SCRIPT), *arguments], capture_output=True, text=True, check=False
    )


def test_the_benchmark_prints_one_json_object_last():
    done = bench("nodes=200", "in_flight=4", "--json")
    result = json.loads(done.stdout.splitlines()[-1])
    assert (result["nodes"], result["policy"], result["in_flight"]) == (200, "mcts", 4)
    assert result["ask"]["median_us"] > 0


@pytest.mark.parametrize("policy", ["greedy", "beam", "best_of_n"])
def test_every_policy_of_ours_can_be_timed(policy):
    done = bench("nodes=100", f"policy={policy}", "candidates=4", "--json")
    result = json.loads(done.stdout.splitlines()[-1])
    assert (result["nodes"], result["policy"]) == (100, policy)


def test_a_wrong_setting_is_one_line_and_exit_2():
    done = bench("node=200")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.splitlines() == [
        "bench_search: expected one of nodes, policy, candidates, in_flight, seed as name=value, "
        "got node=200"
    ]
