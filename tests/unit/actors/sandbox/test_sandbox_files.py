"""Which files a confined process sees and writes, and what is left of them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

WRITES = """
places = {places}
for place in places:
    try:
        with open(place + "/{name}", "w") as file:
            file.write("x")
        print("wrote")
    except OSError as error:
        print(error.strerror)
"""


@pytest.mark.parametrize(
    ("levels", "why"),
    [
        ("process+namespace+mount", "Read-only file system"),
        ("process+landlock", "Permission denied"),
        ("process+namespace+mount+landlock", "Read-only file system"),
    ],
)
def test_files_can_be_written_in_own_folders_alone(confined, tmp_path, levels, why) -> None:
    name = f"written-{os.getpid()}"
    own = [".", str(confined.kept), str(confined.discarded), "/dev/shm"]
    others = [str(tmp_path), "/tmp", str(Path(__file__).parent)]
    words = confined(WRITES.format(places=own + others, name=name), levels=levels).splitlines()
    assert words == ["wrote"] * 4 + [why] * 3
    in_memory = [Path("/dev/shm", name), confined.discarded / name, confined.root / "own" / name]
    left = [path for path in in_memory if path.exists()]
    Path("/dev/shm", name).unlink(missing_ok=True)
    assert (confined.kept / name).exists()
    assert left == ([] if "mount" in levels else in_memory)


def test_the_folders_of_others_look_empty(confined) -> None:
    body = f"""
        for place in {[str(confined.root), str(confined.hidden), str(confined.discarded)]}:
            print(sorted(os.listdir(place)))
    """
    words = confined(body, levels="process+namespace+mount").splitlines()
    assert words == ["['own']", "['discarded', 'kept']", "['before']"]


def test_a_file_can_be_renamed_into_another_own_folder(confined) -> None:
    body = f"""
        for place in {[str(confined.kept), str(confined.discarded)]}:
            os.makedirs(place + "/one")
            os.makedirs(place + "/two")
            open(place + "/one/file", "w").close()
            os.replace(place + "/one/file", place + "/two/file")
        print("renamed")
    """
    assert confined(body) == "renamed"


def test_scratch_is_bounded(confined) -> None:
    body = """
        import resource
        try:
            with open("big", "wb") as file:
                os.posix_fallocate(file.fileno(), 0, 3 << 30)
        except OSError as error:
            print(error.strerror)
    """
    assert confined(body, levels="process+namespace+mount") == "No space left on device"


@pytest.mark.parametrize(
    "levels",
    ["", "process+landlock", "process+namespace+mount", "process+namespace+pid", "process+user"],
)
def test_threads_can_be_named_as_a_gpu_driver_does(confined, levels) -> None:
    body = """
        import threading
        def name():
            with open(f"/proc/self/task/{threading.get_native_id()}/comm", "w") as file:
                file.write("worker")
            with open(f"/proc/self/task/{threading.get_native_id()}/comm") as file:
                print(file.read().strip())
        thread = threading.Thread(target=name)
        thread.start()
        thread.join()
    """
    assert confined(body, levels=levels) == "worker"


@pytest.mark.parametrize(
    "levels", ["", "process+landlock", "process+namespace+mount", "process+namespace+pid"]
)
def test_the_kernel_cannot_be_set(confined, levels) -> None:
    body = """
        for place in ("/proc/sysrq-trigger", "/proc/sys/vm/drop_caches"):
            try:
                os.close(os.open(place, os.O_WRONLY))  # opening alone does nothing
                print("opened")
            except OSError:
                print("refused")
    """
    assert set(confined(body, levels=levels).split()) == {"refused"}
