"""A store of values: whole or absent, shared, bounded, and never a wrong one."""

import errno
import json
import logging
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from kopt.actors.cache import store as store_module
from kopt.actors.cache.kinds import (
    KINDS,
    TOTAL_BYTES,
    USERS_FILE,
    kind_bound,
    open_store,
    see_store,
    set_total_bound,
    total_bound,
)
from kopt.actors.cache.locks import holders
from kopt.actors.cache.store import Store

KEY, OTHER, THIRD = ("ab" + "0" * 62, "cd" + "0" * 62, "ef" + "0" * 62)
VALUE = b'{"kind":"correct"}'


def small(root: Path, *, max_bytes: int = 1 << 20, least_free_bytes: int = 0) -> Store:
    return Store(root=root, kind="verdict", max_bytes=max_bytes, least_free_bytes=least_free_bytes)


def value_file(store: Store, key: str = KEY) -> Path:
    return store.folder(key) / "value"


def test_what_was_put_is_found_by_another_store_of_the_same_folder(tmp_path) -> None:
    small(tmp_path).put(KEY, VALUE)
    assert small(tmp_path).get(KEY) == VALUE
    assert small(tmp_path).get(OTHER) is None


def test_the_first_value_of_a_key_stays(tmp_path) -> None:
    store = small(tmp_path)
    store.put(KEY, VALUE)
    store.put(KEY, b"another")
    assert store.get(KEY) == VALUE


def damage_truncate(store: Store) -> None:
    os.truncate(value_file(store), len(VALUE) // 2)


def damage_flip(store: Store) -> None:
    value_file(store).write_bytes(bytes([VALUE[0] ^ 1]) + VALUE[1:])


def damage_remove(store: Store) -> None:
    value_file(store).unlink()


def damage_manifest(store: Store) -> None:
    os.truncate(store.folder(KEY) / ".built", 20)


def damage_manifest_kind(store: Store) -> None:
    (store.folder(KEY) / ".built").write_text("[1]")


def damage_files(store: Store) -> None:
    (store.folder(KEY) / ".built").write_text('{"version": 1, "bytes": 1, "files": {}}')


@pytest.mark.parametrize(
    "damage",
    [
        damage_truncate,
        damage_flip,
        damage_remove,
        damage_manifest,
        damage_manifest_kind,
        damage_files,
    ],
)
def test_a_damaged_value_is_none_said_in_one_line_and_healed(tmp_path, caplog, damage) -> None:
    store = small(tmp_path)
    store.put(KEY, VALUE)
    damage(store)
    with caplog.at_level(logging.WARNING):
        assert store.get(KEY) is None
    (record,) = caplog.records
    assert record.getMessage() == f"the verdict in {store.folder(KEY)} is damaged: it is made again"
    store.put(KEY, VALUE)
    assert store.get(KEY) == VALUE


def test_values_of_another_version_are_none_said_once_and_made_again(tmp_path, caplog) -> None:
    store = small(tmp_path)
    for key in (KEY, OTHER):
        store.put(key, VALUE)
        manifest = store.folder(key) / ".built"
        manifest.write_text(json.dumps({**json.loads(manifest.read_text()), "version": 0}))
    with caplog.at_level(logging.WARNING):
        assert store.get(KEY) is None
        assert store.get(OTHER) is None
    (record,) = caplog.records
    assert "of version 0 of the cache, not 1" in record.getMessage()
    store.put(KEY, b"new")
    assert store.get(KEY) == b"new"


def test_a_full_disk_keeps_nothing_and_says_so(tmp_path) -> None:
    store = small(tmp_path, least_free_bytes=1 << 62)
    with pytest.raises(OSError, match=r"has less than \d+ MiB free"):
        store.put(KEY, VALUE)
    assert store.get(KEY) is None


def test_a_disk_that_fills_up_in_the_middle_leaves_nothing_half_kept(tmp_path, monkeypatch) -> None:
    store = small(tmp_path)

    def full(source: object, target: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(store_module.os, "replace", full)
        with pytest.raises(OSError, match="No space left"):
            store.put(KEY, VALUE)
    assert not store.folder(KEY).exists()
    assert store.get(KEY) is None
    store.put(KEY, VALUE)
    assert store.get(KEY) == VALUE


def test_a_store_that_cannot_be_written_is_read(tmp_path, monkeypatch) -> None:
    store = small(tmp_path)
    store.put(KEY, VALUE)

    def refuse(path: object, *arguments: object, **more: object) -> None:
        raise OSError(errno.EROFS, "Read-only file system")

    monkeypatch.setattr(store_module.os, "utime", refuse)
    monkeypatch.setattr(store_module.os, "access", lambda path, mode: False)
    assert store.get(KEY) == VALUE
    with store.entry(KEY) as entry:  # no lock can be made, and none is needed
        assert entry.is_whole


def test_a_store_whose_folder_cannot_be_made_raises_on_put_and_holds_nothing(tmp_path) -> None:
    (tmp_path / "file").write_text("in the way")
    store = small(tmp_path / "file" / "verdict")
    assert store.get(KEY) is None
    with pytest.raises(OSError, match="Not a directory"):
        store.put(KEY, VALUE)
    with pytest.raises(OSError, match="Not a directory"):
        store.claim(KEY)


def test_a_writer_killed_in_the_middle_leaves_nothing_that_is_believed(tmp_path) -> None:
    script = (
        "import os, signal, sys\nfrom pathlib import Path\n"
        "from kopt.actors.cache import store\n"
        "store.os.replace = lambda a, b: os.kill(os.getpid(), signal.SIGKILL)\n"
        "store.Store(root=Path(sys.argv[1]), kind='verdict', max_bytes=1 << 20,\n"
        f"    least_free_bytes=0).put({KEY!r}, {VALUE!r})\n"
    )
    done = subprocess.run([sys.executable, "-c", script, str(tmp_path)], check=False)
    assert done.returncode == -9
    store = small(tmp_path)
    assert value_file(store).exists()  # and yet:
    assert store.get(KEY) is None
    store.put(KEY, VALUE)
    assert store.get(KEY) == VALUE


WRITER = """
import sys
from pathlib import Path
from kopt.actors.cache.store import Store

store = Store(root=Path(sys.argv[1]), kind="verdict", max_bytes=4_000, least_free_bytes=0)
for number in range(30):
    key = f"{number:02x}" + "1" * 62
    store.put(key, str(number).encode() * 100)
    assert store.get(key) in (None, str(number).encode() * 100)
"""


def test_many_writers_that_prune_leave_right_values_and_keep_the_bound(tmp_path) -> None:
    command = [sys.executable, "-c", WRITER, str(tmp_path)]
    writers = [subprocess.Popen(command, stderr=subprocess.PIPE, text=True) for _ in range(3)]
    for writer in writers:
        _, words = writer.communicate(timeout=60)
        assert (writer.returncode, words) == (0, "")  # and nothing was found damaged
    store = small(tmp_path, max_bytes=4_000)
    store.prune(now_s=time.time())
    assert 0 < store.num_bytes() <= 4_000


def test_what_was_read_longest_ago_goes_first(tmp_path) -> None:
    store = small(tmp_path)
    for age, key in enumerate((KEY, OTHER, THIRD)):
        store.put(key, bytes(1_000))
        old_s = time.time() - 1_000 + age
        os.utime(store.folder(key) / ".built", (old_s, old_s))
    assert store.get(KEY) is not None  # now it was read last
    assert store.prune(now_s=time.time() + 1, max_bytes=2_500) == 1_000
    assert [store.get(key) is not None for key in (KEY, OTHER, THIRD)] == [True, False, True]


def test_what_killed_writers_left_goes_with_pruning_unless_it_is_held(tmp_path) -> None:
    store = small(tmp_path)
    for key in (KEY, OTHER):
        store.folder(key).mkdir(parents=True)
        value_file(store, key).write_bytes(b"ha")
    old_s = time.time() - 1_000
    with store.entry(OTHER):
        for path in tmp_path.glob("*/*"):
            os.utime(path, (old_s, old_s))
        store.prune(now_s=time.time())
    assert not store.folder(KEY).exists()
    assert store.folder(OTHER).exists()


def test_one_claims_a_key_and_the_next_can_when_it_is_let_go(tmp_path) -> None:
    store = small(tmp_path)
    claim = store.claim(KEY)
    with pytest.raises(BlockingIOError):
        store.claim(KEY)
    store.claim(OTHER).release()
    store.put(KEY, VALUE)  # a claim is in nobody's way
    claim.release()
    assert list(tmp_path.glob("*/*.claim")) == []
    store.claim(KEY).release()


def test_a_claim_goes_with_a_killed_process(tmp_path) -> None:
    script = (
        "import sys, time\nfrom pathlib import Path\nfrom kopt.actors.cache.locks import Claim\n"
        "claim = Claim(Path(sys.argv[1]))\nprint('held', flush=True)\ntime.sleep(600)\n"
    )
    path = small(tmp_path).folder(KEY).with_suffix(".claim")
    command = [sys.executable, "-c", script, str(path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        with pytest.raises(BlockingIOError):
            small(tmp_path).claim(KEY)
        assert holders(path) == [f"pid {holder.pid}"]
        holder.kill()
    small(tmp_path).claim(KEY).release()


def test_a_bound_that_was_set_is_shared_out_by_kind_and_kept(tmp_path) -> None:
    assert total_bound(tmp_path) is None
    assert kind_bound(tmp_path, "build") == KINDS["build"].max_bytes
    set_total_bound(tmp_path, TOTAL_BYTES // 2)
    assert see_store(tmp_path, "build").max_bytes == KINDS["build"].max_bytes // 2


def test_a_bound_that_cannot_be_read_is_said_and_ignored(tmp_path, caplog) -> None:
    (tmp_path / "bound.json").write_text("{")
    with caplog.at_level(logging.WARNING):
        assert kind_bound(tmp_path, "verdict") == KINDS["verdict"].max_bytes
    (record,) = caplog.records
    assert "cannot be read" in record.getMessage()


def test_an_opened_store_counts_as_used(tmp_path) -> None:
    see_store(tmp_path, "verdict")
    assert holders(tmp_path / USERS_FILE) is None
    open_store(tmp_path, "verdict")
    assert holders(tmp_path / USERS_FILE) == [f"pid {os.getpid()}"]
