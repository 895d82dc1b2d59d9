"""The cache of builds: whole or absent, bounded, shared, and never a wrong artefact."""

import fcntl
import json
import logging
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from kopt.actors.build import cache as cache_module
from kopt.actors.build.cache import IN_USE_S, BuildCache

KEY, OTHER = "ab" + "0" * 62, "cd" + "0" * 62


def build(cache: BuildCache, key: str, *, content: bytes = b"made") -> Path:
    with cache.entry(key) as entry:
        assert not entry.is_whole
        (entry.folder / "deep").mkdir()
        (entry.folder / "deep" / "kernel.so").write_bytes(content)
        cache.keep(entry)
        return entry.folder


def is_whole(cache: BuildCache, key: str) -> bool:
    with cache.entry(key) as entry:
        return entry.is_whole


def test_what_was_kept_is_found_whole(tmp_path) -> None:
    folder = build(BuildCache(tmp_path), KEY)
    again = BuildCache(tmp_path)
    with again.entry(KEY) as entry:
        assert entry.is_whole
        assert entry.folder == folder == again.folder(KEY)
        assert (entry.folder / "deep" / "kernel.so").read_bytes() == b"made"


def test_a_build_that_was_not_kept_is_removed_before_the_next(tmp_path) -> None:
    cache = BuildCache(tmp_path)
    with cache.entry(KEY) as entry:
        (entry.folder / "half.o").write_bytes(b"ha")
    with cache.entry(KEY) as entry:
        assert not entry.is_whole
        assert os.listdir(entry.folder) == []


def test_what_was_dropped_leaves_nothing(tmp_path) -> None:
    cache = BuildCache(tmp_path)
    with cache.entry(KEY) as entry:
        (entry.folder / "bad.o").write_bytes(b"bad")
        cache.drop(entry)
    assert not cache.folder(KEY).exists()


@pytest.mark.parametrize("damage", ["changed", "missing", "manifest"])
def test_a_damaged_build_is_made_again_and_said_in_one_line(tmp_path, caplog, damage) -> None:
    cache = BuildCache(tmp_path)
    folder = build(cache, KEY)
    if damage == "changed":
        (folder / "deep" / "kernel.so").write_bytes(b"fake")
    elif damage == "missing":
        (folder / "deep" / "kernel.so").unlink()
    else:
        (folder / ".built").write_text('{"version": 1, "fil')
    with caplog.at_level(logging.WARNING):
        assert not is_whole(cache, KEY)
    (record,) = caplog.records
    assert "damaged" in record.getMessage()
    assert "\n" not in record.getMessage()
    build(cache, KEY)
    assert is_whole(cache, KEY)


def test_a_build_of_another_version_is_made_again(tmp_path) -> None:
    cache = BuildCache(tmp_path)
    manifest = build(cache, KEY) / ".built"
    manifest.write_text(json.dumps({**json.loads(manifest.read_text()), "version": 0}))
    assert not is_whole(cache, KEY)


def test_a_second_request_waits_for_the_builder_and_builds_nothing(tmp_path) -> None:
    cache = BuildCache(tmp_path)
    entered, found = threading.Event(), []

    def ask() -> None:
        entered.set()
        found.append(is_whole(BuildCache(tmp_path), KEY))

    with cache.entry(KEY) as entry:
        waiter = threading.Thread(target=ask)
        waiter.start()
        assert entered.wait(10)
        (entry.folder / "kernel.so").write_bytes(b"made")
        cache.keep(entry)
    waiter.join(10)
    assert found == [True]


def test_who_waits_goes_on_when_the_builder_is_killed(tmp_path) -> None:
    script = (
        "import sys, time\nfrom pathlib import Path\n"
        "from kopt.actors.build.cache import BuildCache\n"
        f"with BuildCache(Path(sys.argv[1])).entry({KEY!r}) as entry:\n"
        "    (entry.folder / 'half.o').write_bytes(b'ha')\n"
        "    print('holding', flush=True)\n    time.sleep(600)\n"
    )
    command = [sys.executable, "-c", script, str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "holding\n"
        holder.kill()
    build(BuildCache(tmp_path), KEY)
    assert is_whole(BuildCache(tmp_path), KEY)


def test_keys_do_not_wait_for_each_other(tmp_path) -> None:
    cache = BuildCache(tmp_path)
    with cache.entry(KEY):
        build(cache, OTHER)
    assert is_whole(cache, OTHER)


def test_the_build_asked_for_longest_ago_goes_first(tmp_path) -> None:
    cache = BuildCache(tmp_path)
    keys = [f"{number:02x}" + "0" * 62 for number in range(3)]
    for age, key in enumerate(keys):
        folder = build(cache, key, content=bytes(1_000))
        old_s = time.time() - 10 * IN_USE_S + age
        os.utime(folder / ".built", (old_s, old_s))
    assert is_whole(cache, keys[0])  # now it was used last
    # 3,000 bytes, 2,500 allowed: one goes.
    assert cache.prune(now_s=time.time(), max_bytes=2_500) == 1_000
    assert cache.num_bytes() == 2_000
    assert not cache.folder(keys[1]).exists()
    assert not cache.folder(keys[1]).with_suffix(".lock").exists()
    assert is_whole(cache, keys[2])


def test_a_build_that_was_just_asked_for_stays_whatever_it_takes(tmp_path) -> None:
    cache = BuildCache(tmp_path, max_bytes=100)
    build(cache, KEY, content=bytes(1_000))  # prunes by itself
    assert cache.prune(now_s=time.time()) == 0
    assert is_whole(cache, KEY)
    assert cache.prune(now_s=time.time() + 2 * IN_USE_S) == 1_000


def test_a_build_that_is_held_is_not_removed(tmp_path) -> None:
    cache = BuildCache(tmp_path)
    build(cache, KEY)
    with cache.entry(KEY):
        assert cache.prune(now_s=time.time() + 2 * IN_USE_S, max_bytes=0) == 0
    assert cache.prune(now_s=time.time() + 2 * IN_USE_S, max_bytes=0) == len(b"made")


def test_who_waited_for_a_lock_that_was_removed_takes_the_new_one(tmp_path) -> None:
    cache = BuildCache(tmp_path)
    folder = build(cache, KEY)
    lock = folder.with_suffix(".lock")
    done = []
    with lock.open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        waiter = threading.Thread(target=lambda: done.append(build(cache, KEY)))
        waiter.start()
        lock.unlink()  # as pruning does, with the folder
        (folder / ".built").unlink()
    waiter.join(10)
    assert done == [folder]
    assert lock.exists()


def test_a_full_disk_is_said_in_one_line(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(cache_module, "LEAST_FREE_BYTES", 1 << 62)
    cache = BuildCache(tmp_path)
    with pytest.raises(OSError, match=r"^\S+ has less than \d+ MiB free$"), cache.entry(KEY):
        pass
    assert not cache.folder(KEY).exists()


def test_links_out_of_a_build_are_no_part_of_it(tmp_path) -> None:
    cache = BuildCache(tmp_path / "cache")
    secret = tmp_path / "secret"
    secret.write_bytes(bytes(5_000))
    with cache.entry(KEY) as entry:
        (entry.folder / "kernel.so").write_bytes(b"made")
        (entry.folder / "link").symlink_to(secret)
        cache.keep(entry)
    assert cache.num_bytes() == len(b"made")
