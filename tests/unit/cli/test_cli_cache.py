"""`kopt cache`: what is there, bounded and cleared; refused while a run uses it."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from kopt.actors.cache.kinds import KINDS, TOTAL_BYTES, USERS_FILE, see_store, total_bound
from kopt.actors.cache.locks import share
from kopt.cli import main

KEYS = [f"{number:02x}" + "0" * 62 for number in range(4)]


@pytest.fixture
def folder(tmp_path, monkeypatch) -> Path:
    monkeypatch.setenv("KOPT_CACHE_DIR", str(tmp_path))
    for key in KEYS:
        see_store(tmp_path, "verdict").put(key, bytes(1_000))
    (tmp_path / "inductor" / "deep").mkdir(parents=True)
    (tmp_path / "inductor" / "deep" / "kernel.so").write_bytes(bytes(500))
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "file").write_text("kept")
    return tmp_path


def shown(capfd: pytest.CaptureFixture[str], *arguments: str) -> dict:
    assert main(["cache", "--json", *arguments]) == 0
    return json.loads(capfd.readouterr().out)


def rows(about: dict) -> dict:
    return {row["kind"]: row for row in about["rows"]}


def test_every_cache_is_shown_with_what_it_holds(folder, capfd) -> None:
    about = shown(capfd)
    found = rows(about)
    assert list(found) == [*KINDS, "cutlass", "inductor", "toolchains"]
    verdicts = found["verdict"]
    assert (verdicts["entries"], verdicts["num_bytes"]) == (4, 4_000)
    assert verdicts["path"] == str(folder / "verdict")
    assert verdicts["version"] == 1
    assert verdicts["oldest"] <= verdicts["newest"]
    assert (found["inductor"]["entries"], found["inductor"]["num_bytes"]) == (1, 500)
    assert found["build"]["oldest"] is None
    assert about["max_bytes"] == TOTAL_BYTES
    assert not about["in_use"]


def test_the_table_is_for_a_person(folder, capfd) -> None:
    assert main(["cache"]) == 0
    out, err = capfd.readouterr()
    assert err == ""
    assert f"in {folder}, layout version 1" in out
    (line,) = [line for line in out.splitlines() if line.startswith("verdict")]
    assert line.split()[1:4] == ["4", "3.9", "KiB"]


def test_a_cache_that_is_not_there_is_empty_and_is_not_made(tmp_path, monkeypatch, capfd) -> None:
    monkeypatch.setenv("KOPT_CACHE_DIR", str(tmp_path / "none"))
    assert all(row["entries"] == 0 for row in shown(capfd)["rows"])
    shown(capfd, "--clear", "all")
    assert not (tmp_path / "none").exists()


def test_one_kind_is_cleared_and_the_others_stay(folder, capfd) -> None:
    about = shown(capfd, "--clear", "verdict")
    assert about["removed_bytes"] == 4_000
    found = rows(about)
    assert found["verdict"]["entries"] == 0
    assert found["inductor"]["entries"] == 1


def test_all_are_cleared_and_what_is_not_ours_stays(folder, capfd) -> None:
    about = shown(capfd, "--clear", "all")
    assert about["removed_bytes"] == 4_500
    assert sum(row["entries"] for row in about["rows"]) == 0
    assert (folder / "mine" / "file").read_text() == "kept"
    assert list(folder.glob(".*.cleared")) == []


def test_nothing_is_cleared_while_a_run_uses_the_cache(folder, capfd) -> None:
    script = (
        "import sys, time\nfrom pathlib import Path\n"
        "from kopt.actors.cache.kinds import open_store\n"
        "open_store(Path(sys.argv[1]), 'build')\nprint('open', flush=True)\ntime.sleep(600)\n"
    )
    command = [sys.executable, "-c", script, str(folder)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as user:
        assert user.stdout is not None
        assert user.stdout.readline() == "open\n"
        assert main(["cache", "--clear", "verdict"]) == 2
        assert f"(pid {user.pid}); wait for it or end it" in capfd.readouterr().err
        about = shown(capfd, "--max-gib", "1")
        assert about["in_use"]
        user.kill()
    assert rows(about)["verdict"]["entries"] == 4
    assert rows(shown(capfd, "--clear", "verdict"))["verdict"]["entries"] == 0


def test_a_bound_is_kept_and_what_is_beyond_it_goes(folder, capfd) -> None:
    for age, key in enumerate(KEYS):
        manifest = see_store(folder, "verdict").folder(key) / ".built"
        old_s = time.time() - 1_000 + age
        os.utime(manifest, (old_s, old_s))
    # Verdicts may take 1 of some 13 GiB: of 40,000 bytes in all, some 3,000.
    share_bytes = 40_000 * KINDS["verdict"].max_bytes // TOTAL_BYTES
    assert 2_000 < share_bytes < 4_000
    about = shown(capfd, "--max-gib", str(40_000 / 2**30))
    left = share_bytes // 1_000
    assert rows(about)["verdict"]["entries"] == left
    assert about["removed_bytes"] == 4_000 - 1_000 * left
    assert total_bound(folder) == about["max_bytes"] == 40_000
    assert see_store(folder, "verdict").max_bytes == share_bytes


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--clear", "everything"], "invalid choice: 'everything'"),
        (["--max-gib", "-1"], "--max-gib must be above 0, got -1"),
        (["--max-gib", "nan"], "--max-gib must be above 0, got nan"),
        (["--max-gib", "much"], "invalid float value: 'much'"),
        (["--clear"], "expected one argument"),
    ],
)
def test_a_wrong_argument_is_one_line(folder, capfd, arguments, words) -> None:
    assert main(["cache", *arguments]) == 2
    out, err = capfd.readouterr()
    assert out == ""
    (line,) = err.splitlines()
    assert words in line


def test_the_command_loads_nothing_heavy(folder) -> None:
    program = (
        "import sys\nfrom kopt.cli import main\ncode = main(['cache'])\n"
        "heavy = {'torch', 'ray', 'pydantic', 'numpy', 'pyarrow', 'hydra'} & set(sys.modules)\n"
        "sys.exit(f'loaded: {heavy}' if heavy else code)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, b"")


def test_a_lock_is_shared_by_many(tmp_path) -> None:
    first, second = share(tmp_path / USERS_FILE), share(tmp_path / USERS_FILE)
    assert first is not None
    assert second is not None
    first.close()
    second.close()
