"""The GPU suite leaves out no test that needs a GPU, and runs none twice."""

from __future__ import annotations

import re
import subprocess
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
SCRIPT = ROOT / "scripts" / "gpu_suite.sh"
SEARCHES = "searches"
"""The one part that is no tests."""


def places_of(part: str) -> list[str]:
    """Ask the script's own function."""
    function = re.search(r"^tests_of\(\) \{.*?^\}", SCRIPT.read_text(), re.M | re.S)
    assert function is not None
    done = subprocess.run(
        ["bash", "-c", f"{function[0]}\ntests_of {part}"],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    )
    return done.stdout.split()


def test_every_file_with_a_test_for_a_gpu_is_in_one_part() -> None:
    default = re.search(r"^parts=\$\{parts:-(.+)\}$", SCRIPT.read_text(), re.M)
    assert default is not None
    parts = default[1].split()
    assert SEARCHES in parts
    run: Counter[Path] = Counter()
    for part in parts:
        for place in places_of(part) if part != SEARCHES else ():
            path = ROOT / place
            assert path.exists(), place
            run.update(sorted(path.rglob("test_*.py")) if path.is_dir() else [path])
    assert max(run.values()) == 1
    needing = {
        path
        for path in (ROOT / "tests").rglob("test_*.py")
        if re.search(r"\bmark\.gpu\b", path.read_text())
    }
    assert len(needing) > 20  # it finds any
    assert needing <= set(run), sorted(str(path) for path in needing - set(run))
