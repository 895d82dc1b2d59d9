"""What a confined process can do, level by level, in real processes of the kernel at hand."""

from __future__ import annotations

import os
import shutil
import signal
import textwrap

import pytest

WORD = str(97_000_000 + os.getpid())
"""Seconds that no other process of this machine sleeps."""

TRY = """
def attempt(act):
    try:
        return act()
    except OSError as error:
        return error.strerror
"""


@pytest.mark.parametrize("levels", ["", "process"])
def test_a_confined_process_computes_forks_and_starts_programs(confined, levels) -> None:
    body = """
        import subprocess, tempfile, threading
        started = threading.Thread(target=print, args=("a thread",))
        started.start()
        started.join()
        print(subprocess.run(["sh", "-c", "echo a program"], capture_output=True, text=True).stdout)
        with tempfile.TemporaryFile(dir=".") as file:
            file.write(b"x")
        pid = os.fork()
        if pid == 0:
            os._exit(7)
        print("a child", os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
    """
    words = confined(body, levels=levels).split("\n")
    assert [word for word in words if word] == ["a thread", "a program", "a child 7"]


@pytest.mark.parametrize("levels", ["process+seccomp", "process+landlock", "process+namespace"])
def test_no_level_alone_lets_a_process_connect(confined, levels) -> None:
    body = f"""
        {textwrap.indent(TRY, " " * 8).lstrip()}
        import socket
        listener = attempt(lambda: socket.create_server(("127.0.0.1", 0)))
        def call():
            with socket.socket() as caller:
                caller.settimeout(2)
                caller.connect(("127.0.0.1", 1))
            return "connected"
        print(attempt(call))
        a, b = socket.socketpair()
        a.send(b"unix works")
        print(b.recv(100).decode())
    """
    refused, unix = confined(body, levels=levels).splitlines()
    expected = {
        "process+seccomp": "Address family not supported by protocol",
        "process+landlock": "Permission denied",
        "process+namespace": "Network is unreachable",
    }
    assert refused in (expected[levels], "Cannot assign requested address")
    assert unix == "unix works"


@pytest.mark.parametrize("family", ["AF_NETLINK", "AF_VSOCK", "AF_PACKET"])
def test_sockets_that_go_round_a_network_namespace_are_refused(confined, family) -> None:
    body = f"""
        import socket
        try:
            socket.socket(socket.{family}, socket.SOCK_RAW)
        except OSError as error:
            print(error.strerror)
    """
    assert confined(body, levels="process+seccomp") == "Address family not supported by protocol"


def test_calls_that_look_into_others_or_mount_are_refused(confined) -> None:
    body = """
        import ctypes
        libc = ctypes.CDLL(None, use_errno=True)
        refused = []
        for name, arguments in (
            ("ptrace", (16, 1, 0, 0)),
            ("unshare", (0x10000000,)),
            ("mount", (b"x", b"/mnt", b"tmpfs", 0, None)),
            ("process_vm_readv", (1, None, 0, None, 0, 0)),
            ("syscall", (425, 1, None)),
        ):
            failed = getattr(libc, name)(*arguments) == -1
            refused.append((name, failed and ctypes.get_errno() == 1))
        print(all(done for _, done in refused), refused)
    """
    assert confined(body, levels="process+seccomp").startswith("True")


def test_the_processes_of_others_are_out_of_sight_and_reach(confined) -> None:
    body = f"""
        pids = sorted(int(name) for name in os.listdir("/proc") if name.isdigit())
        print(len(pids), os.getpid() in pids, os.getppid())
        try:
            os.kill({os.getpid()}, 0)
        except OSError as error:
            print(type(error).__name__)
    """
    words = confined(body, levels="process+namespace+pid").splitlines()
    assert words == ["2 True 0", "ProcessLookupError"]


def test_what_a_container_mounts_below_proc_stays(confined) -> None:
    if os.geteuid() != 0 or shutil.which("unshare") is None:
        pytest.skip("mounting below /proc takes root and unshare")
    body = "print(os.listdir('/proc/fs'), os.getppid())"
    cover = "mount -t tmpfs none /proc/fs && mkdir /proc/fs/planted && exec "
    words = confined(body, levels="process+namespace+pid", within=["unshare", "-m"], before=cover)
    assert words == "['planted'] 0"


def test_without_a_pid_namespace_others_can_be_seen_and_not_signalled(confined) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root gets a user of its own")
    body = f"""
        try:
            os.kill({os.getpid()}, 0)
        except OSError as error:
            print(type(error).__name__, os.getuid() >= 0x70000000)
    """
    assert confined(body, levels="process+user") == "PermissionError True"


def test_what_a_process_leaves_behind_dies_with_it(confined, running_with) -> None:
    body = f"""
        import subprocess
        subprocess.run("setsid sleep {WORD} & setsid sh -c 'setsid sleep {WORD} &' & exit 0",
                       shell=True, stdout=subprocess.DEVNULL)
        print("left")
    """
    assert confined(body, levels="process+namespace+pid") == "left"
    assert running_with(WORD) == []


ENDS = {
    "an exit": ("os._exit(3)", 3),
    "a segmentation fault": ("import ctypes; ctypes.string_at(8)", -signal.SIGSEGV),
    "an abort": ("os.abort()", -signal.SIGABRT),
    "its own kill": ("os.kill(os.getpid(), 9)", -signal.SIGKILL),
}


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("levels", ["", "process"])
def test_how_a_process_ends_is_seen_through_its_guard(confined, end, levels) -> None:
    body, status = ENDS[end]
    confined(body, levels=levels)
    assert confined.status == status


def test_a_fork_bomb_stops_at_the_limit_and_leaves_nothing(confined, running_with) -> None:
    """At most sixty processes: the limit, lowered to forty, holds for this process's own alone."""
    body = f"""
        import resource, subprocess
        resource.setrlimit(resource.RLIMIT_NPROC, (40, 40))
        started = []
        try:
            for _ in range(60):
                started.append(subprocess.Popen(["sleep", "{WORD}"]))
        except OSError as error:
            print(error.strerror, 20 < len(started) < 40)
    """
    levels = "process+user+namespace+pid" if os.geteuid() == 0 else "process+namespace+pid"
    words = confined(body, levels=levels)
    assert words == "Resource temporarily unavailable True"
    assert running_with(WORD) == []


def test_memory_beyond_the_limit_cannot_be_mapped(confined) -> None:
    body = """
        try:
            bytearray(2 << 30)
        except MemoryError:
            print("refused")
        import mmap
        try:
            mmap.mmap(-1, 2 << 30)
        except OSError as error:
            print(error.strerror)
    """
    words = confined(body, levels="process", memory_bytes=1 << 30)
    assert words.splitlines() == ["refused", "Cannot allocate memory"]


def test_counted_by_data_address_space_is_free_and_private_memory_is_not(confined) -> None:
    body = """
        import mmap
        mmap.mmap(-1, 64 << 30, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, prot=0)
        print("reserved")
        try:
            bytearray(2 << 30)
        except MemoryError:
            print("refused")
    """
    words = confined(body, levels="process", memory_bytes=1 << 30, by_data=True)
    assert words.splitlines() == ["reserved", "refused"]


def test_processor_time_beyond_the_limit_ends_the_process(confined) -> None:
    confined("while True: pass", levels="process", cpu_s=1)
    assert confined.status in (-signal.SIGXCPU, -signal.SIGKILL)


def test_privileges_are_gone_for_good(confined) -> None:
    body = """
        import subprocess
        script = "grep -E 'NoNew|CapEff|CapBnd' /proc/self/status; cat /proc/self/oom_score_adj"
        print(subprocess.run(["sh", "-c", script], capture_output=True, text=True).stdout)
    """
    fields = dict(line.split(":") for line in confined(body).splitlines() if ":" in line)
    assert fields["NoNewPrivs"].strip() == "1"
    files = 0b1110  # DAC_OVERRIDE, DAC_READ_SEARCH, FOWNER
    assert int(fields["CapEff"], 16) & ~files == 0
    assert int(fields["CapBnd"], 16) & ~files == 0 or os.geteuid() != 0
    assert confined(body).splitlines()[-1] == "1000"


def test_a_process_that_a_signal_ends_takes_everything_with_it(confined, running_with) -> None:
    body = f"""
        import subprocess, time
        subprocess.Popen(["setsid", "sleep", "{WORD}"])
        os.kill(os.getpid(), 15)
        time.sleep(60)
    """
    confined(body, levels="process+namespace+pid")
    assert confined.status == -signal.SIGTERM
    assert running_with(WORD) == []
