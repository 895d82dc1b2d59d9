"""Candidates that crash, hang, flood and linger: each costs its own verdict and nothing else."""

from __future__ import annotations

import textwrap
import time

import pytest

pytestmark = pytest.mark.usefixtures("leaves_nothing")

PROMPT_S = 20.0
"""Generous for a busy host; an idle one needs under two seconds."""


@pytest.fixture
def still_serves(judge, candidate):
    """After the test, the next candidate is judged promptly."""
    yield
    began_s = time.monotonic()
    assert judge(candidate()).verdict.kind == "correct"
    assert time.monotonic() - began_s < PROMPT_S


def test_an_exception_is_a_crash_with_its_last_line(judge, candidate) -> None:
    made = judge(candidate("raise RuntimeError('no such tile')"))
    assert made.verdict.kind == "crashed"
    assert made.verdict.stage == "correctness"
    assert made.verdict.reason.endswith("RuntimeError: no such tile")


def test_a_segmentation_fault_is_a_crash_that_names_the_signal(
    judge, candidate, still_serves
) -> None:
    made = judge(candidate("import ctypes; ctypes.string_at(8)"))
    assert made.verdict.kind == "crashed"
    assert "SIGSEGV" in made.verdict.reason


@pytest.mark.parametrize("status", [0, 3])
def test_an_exit_is_a_crash_whatever_its_status(judge, candidate, status) -> None:
    made = judge(candidate(f"import os; os._exit({status})", hidden=True))
    assert made.verdict.kind == "crashed"
    assert f"exit status {status}" in made.verdict.reason


def test_a_system_exit_is_a_crash_and_no_pass(judge, candidate) -> None:
    made = judge(candidate("raise SystemExit(0)"))
    assert made.verdict.kind == "crashed"


def test_an_exit_at_import_is_a_crash(judge, candidate) -> None:
    made = judge(candidate(before="import os; os._exit(0)", hidden=True))
    assert made.verdict.kind == "crashed"
    assert made.verdict.stage == "import"


def test_an_exception_at_import_is_a_failed_compile(judge, candidate) -> None:
    made = judge(candidate(before="import no_such_package"))
    assert made.verdict.kind == "compile_failed"
    assert made.verdict.stage == "import"
    assert "no_such_package" in made.verdict.reason


def test_an_exception_in_the_constructor_is_a_failed_compile(judge) -> None:
    made = judge(
        """
        import torch
        class ModelNew(torch.nn.Module):
            def __init__(self):
                super().__init__()
            def forward(self, x):
                return x
        """
    )
    assert made.verdict.kind == "compile_failed"
    assert made.verdict.stage == "construct"


def test_a_hang_is_a_timeout_of_its_stage(judge, candidate, still_serves) -> None:
    made = judge(candidate("while True: pass"))
    assert made.verdict.kind == "timed_out"
    assert made.verdict.stage == "correctness"
    assert made.verdict.limit_s == 2.0


def test_a_hang_that_ignores_signals_is_a_timeout(judge, candidate) -> None:
    body = """
        import signal
        for number in range(1, 65):
            try:
                signal.signal(number, signal.SIG_IGN)
            except (OSError, ValueError):
                pass
        while True:
            pass
    """
    assert judge(candidate(body)).verdict.kind == "timed_out"


def test_a_hang_while_it_is_timed_is_a_timeout_of_timing(judge, candidate) -> None:
    body = """
        frame = sys._getframe()
        while frame:
            while frame.f_code.co_name == "time_calls":
                pass
            frame = frame.f_back
        return right(self, x)
    """
    made = judge(candidate(body, before="import sys", hidden=True))
    assert made.verdict.kind == "timed_out"
    assert made.verdict.stage == "timing"


def test_a_flood_of_output_is_drained_and_its_end_is_kept(judge, candidate) -> None:
    body = """
        import os
        for _ in range(200):
            os.write(1, b"x" * 1_000_000)
        raise RuntimeError("the end")
    """
    made = judge(candidate(body))
    assert made.verdict.kind == "crashed"
    assert made.verdict.reason.endswith("the end")
    assert len(made.verdict.log) <= 8_192


def test_a_crash_after_a_flood_keeps_the_last_words_bounded(judge, candidate) -> None:
    body = """
        import os
        for _ in range(20):
            os.write(2, b"y" * 1_000_000)
        os.write(2, b"\\nfatal: out of tiles\\n")
        os._exit(9)
    """
    made = judge(candidate(body, hidden=True))
    assert made.verdict.kind == "crashed"
    assert "fatal: out of tiles" in made.verdict.log
    assert len(made.verdict.log.encode()) <= 8_192


def test_more_memory_than_allowed_is_a_crash(judge, candidate, still_serves) -> None:
    made = judge(candidate("return torch.zeros(100 << 30, dtype=torch.uint8)"))
    assert made.verdict.kind == "crashed"
    assert "allocate" in made.verdict.reason


def test_a_full_disk_quota_is_a_crash_of_the_candidate(judge, candidate) -> None:
    body = """
        with open("big", "wb") as file:
            file.truncate(5 << 30)
    """
    made = judge(candidate(body))
    assert made.verdict.kind == "crashed"


LINGERING = {
    "in the same session": "subprocess.Popen(['sleep', '{word}'])",
    "in a session of its own": "subprocess.Popen(['sleep', '{word}'], start_new_session=True)",
    "as an orphan": "subprocess.run('setsid sleep {word} & exit 0', shell=True)",
    "as an orphan of an orphan": """
        script = "setsid sleep {word} & setsid sh -c 'sleep {word}; true' & exit 0"
        subprocess.Popen(["setsid", "sh", "-c", script])
        """,
}


@pytest.mark.parametrize("how", LINGERING)
def test_a_process_left_behind_is_killed_with_its_child(
    judge, candidate, running_with, how
) -> None:
    word = f"98{list(LINGERING).index(how):03d}"
    body = "import subprocess\n" + textwrap.dedent(LINGERING[how]).replace("{word}", word)
    made = judge(candidate(body + "\nraise RuntimeError('left processes')"))
    assert made.verdict.reason.endswith("left processes")
    assert running_with(word) == []


def test_a_lingering_writer_of_the_output_pipe_does_not_hold_the_verdict(
    judge, candidate, running_with
) -> None:
    body = """
        import os, subprocess
        subprocess.run("setsid sleep 98100 & exit 0", shell=True)
        os._exit(1)
    """
    began_s = time.monotonic()
    assert judge(candidate(body, hidden=True)).verdict.kind == "crashed"
    assert time.monotonic() - began_s < PROMPT_S
    assert running_with("98100") == []


def test_a_stopped_child_is_a_timeout_and_is_killed(judge, candidate, still_serves) -> None:
    body = """
        import os, signal
        os.kill(os.getpid(), signal.SIGSTOP)
    """
    assert judge(candidate(body, hidden=True)).verdict.kind == "timed_out"


def test_a_scratch_folder_full_of_files_is_removed(judge, candidate) -> None:
    body = """
        import os
        os.makedirs("deep/er")
        open("deep/er/file", "w").close()
        os.chmod("deep/er", 0)
        os.chmod(".", 0o500)
        raise RuntimeError("left files")
    """
    assert judge(candidate(body)).verdict.kind == "crashed"


@pytest.mark.parametrize("when", ["at once", "while it is timed"])
def test_a_candidate_that_kills_its_parent_costs_no_other_candidate(
    judge, candidate, still_serves, when
) -> None:
    body = """
        global calls
        calls += 1
        if calls > LIMIT:
            import os
            os.kill(os.getppid(), 9)
            while True:
                pass
        return right(self, x)
    """
    limit = "0" if when == "at once" else "40"
    made = judge(candidate(body.replace("LIMIT", limit), before="calls = 0", hidden=True))
    assert made.verdict.kind == "crashed", made.verdict.reason
