"""The hub: a small server that answers as it does, and its cache with nothing behind it.

huggingface_hub reads its environment when it is imported, so that each listing is a process: a
fork of one that has imported kopt's command, and nothing of the hub.
"""

import hashlib
import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import SimpleNamespace

import pytest

pytest.importorskip("huggingface_hub")

COMMIT = "a" * 40
DATASET = "owner/bench"
OFFICIAL = "ScalingIntelligence/KernelBench"
SPLIT = "data/level_1-00000-of-00001.parquet"


class Handler(BaseHTTPRequestHandler):
    """Answers for every data set below `owner` and the official one, at revision main."""

    split: bytes
    status = 0
    """An error that every request is answered with; 0 for none."""
    asked: list[str]

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_GET(self) -> None:
        self.asked.append(self.path)
        parts = self.path.split("?")[0].strip("/").split("/")
        if self.status:
            self._fail(self.status, "")
        elif parts[:2] == ["api", "datasets"] and parts[2] == "nobody":
            self._fail(404, "RepoNotFound")
        elif parts[-2:-1] == ["revision"] and parts[-1] not in ("main", COMMIT):
            self._fail(404, "RevisionNotFound")
        elif parts[-2:-1] == ["revision"]:
            files = [{"rfilename": SPLIT}, {"rfilename": "README.md"}]
            self._json({"id": "/".join(parts[2:4]), "sha": COMMIT, "siblings": files})
        elif parts[-1] == "refs":
            branches = [{"name": "main", "ref": "refs/heads/main", "targetCommit": COMMIT}]
            self._json({"branches": branches, "tags": [], "converts": []})
        elif "tree" in parts:
            oid = hashlib.sha1(self.split, usedforsecurity=False).hexdigest()
            entry = {"type": "file", "path": SPLIT, "size": len(self.split), "oid": oid}
            self._json([entry])
        elif "resolve" in parts:
            self._bytes(self.split, **{"ETag": f'"{"b" * 40}"', "X-Repo-Commit": COMMIT})
        else:
            self._fail(404, "EntryNotFound")

    def _json(self, value: object) -> None:
        self._bytes(json.dumps(value).encode(), **{"Content-Type": "application/json"})

    def _bytes(self, data: bytes, **headers: str) -> None:
        self.send_response(200)
        for name, value in {**headers, "Content-Length": str(len(data))}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(data)

    def _fail(self, status: int, code: str) -> None:
        self.send_response(status)
        self.send_header("X-Error-Code", code)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Keep quiet."""


FORKING = """
import json, os, sys
from kopt.cli import main
import kopt.cli.problems
import hydra, pyarrow.parquet, pydantic
assert "huggingface_hub" not in sys.modules
for line in sys.stdin:
    arguments, environment, out, err = json.loads(line)
    child = os.fork()
    if child == 0:
        os.environ.clear()
        os.environ.update(environment)
        for number, path in ((1, out), (2, err)):
            os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), number)
        sys.exit(main(arguments))
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""
Kopt = Callable[[list[str], dict[str, str]], "subprocess.CompletedProcess[str]"]


@pytest.fixture(scope="module")
def kopt(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kopt]:
    """Returns a function that runs the command in a process and an environment of its own."""
    folder = tmp_path_factory.mktemp("said")
    said = [folder / "out", folder / "err"]
    # What is imported ahead may have read no more of the hub's settings than of the user's.
    bare = {name: value for name, value in os.environ.items() if not is_of_the_hub(name)}
    with subprocess.Popen(
        [sys.executable, "-c", FORKING],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=bare,
    ) as server:
        assert server.stdin is not None
        assert server.stdout is not None

        def run(
            arguments: list[str], environment: dict[str, str]
        ) -> subprocess.CompletedProcess[str]:
            order = (arguments, environment, *map(str, said))
            print(json.dumps(order), file=server.stdin, flush=True)
            status = int(server.stdout.readline())
            return subprocess.CompletedProcess(arguments, status, *(p.read_text() for p in said))

        yield run
        server.stdin.close()


def is_of_the_hub(name: str) -> bool:
    return name.lower().endswith("_proxy") or name.startswith(("HF_", "KOPT_"))


@pytest.fixture
def hub(tmp_path: Path, write_split, kopt: Kopt) -> Iterator[SimpleNamespace]:
    """Its address, its cache's home, its handler class, and a function that runs kopt on it."""
    path = write_split(tmp_path / "level_1.parquet", (1, 1, 7))
    handler = type("Hub", (Handler,), {"split": path.read_bytes(), "asked": []})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=lambda: server.serve_forever(poll_interval=0.02), daemon=True)
    thread.start()
    yield SimpleNamespace(
        url=f"http://127.0.0.1:{server.server_port}",
        home=tmp_path / "home",
        handler=handler,
        kopt=kopt,
    )
    server.shutdown()
    server.server_close()
    thread.join()


def listing(
    hub: SimpleNamespace, *overrides: str, dataset: str = DATASET, **environment: str
) -> subprocess.CompletedProcess[str]:
    """What `kopt problems` says of the data set."""
    arguments = ["problems", "kernelbench/*", "--json"]
    settings = {"HF_ENDPOINT": hub.url, "HF_HOME": str(hub.home), "HF_HUB_DISABLE_XET": "1"}
    kept = {name: value for name, value in os.environ.items() if not is_of_the_hub(name)}
    return hub.kopt(
        [*arguments, f"problems.kernelbench.dataset={dataset}", *overrides],
        {**kept, **settings, **environment},
    )


def revisions(answer: subprocess.CompletedProcess[str]) -> list[str]:
    assert answer.returncode == 0, answer.stderr
    return [row["revision"] for row in json.loads(answer.stdout)["problems"]]


def error_of(answer: subprocess.CompletedProcess[str]) -> str:
    assert answer.returncode == 2, answer.stderr
    (line,) = [line for line in answer.stderr.splitlines() if line.startswith("kopt: ")]
    assert "Traceback" not in answer.stderr
    return line


def test_the_data_set_is_fetched_once_and_then_served_from_the_cache(hub: SimpleNamespace):
    assert revisions(listing(hub)) == [f"hub:{COMMIT}"]
    assert any("resolve" in path for path in hub.handler.asked)
    hub.handler.asked.clear()
    assert revisions(listing(hub)) == [f"hub:{COMMIT}"]
    assert not any("resolve" in path for path in hub.handler.asked)


@pytest.mark.slow
def test_a_cached_copy_is_used_where_the_hub_cannot_be_reached(hub: SimpleNamespace):
    revisions(listing(hub))
    gone = "http://127.0.0.1:9"
    assert revisions(listing(hub, HF_ENDPOINT=gone)) == [f"hub:{COMMIT}"]
    assert revisions(listing(hub, HF_HUB_OFFLINE="1")) == [f"hub:{COMMIT}"]
    assert revisions(listing(hub, HTTP_PROXY=gone, NO_PROXY="")) == [f"hub:{COMMIT}"]
    hub.handler.status = 500
    assert revisions(listing(hub)) == [f"hub:{COMMIT}"]


def test_without_hub_and_cache_the_error_says_what_to_do(hub: SimpleNamespace):
    for answer in (
        listing(hub, HF_ENDPOINT="http://127.0.0.1:9"),
        listing(hub, HF_HUB_OFFLINE="1"),
    ):
        words = error_of(answer)
        assert "the hub cannot be reached and no copy is cached" in words
        assert "problems.kernelbench.path or KOPT_KERNELBENCH" in words


def test_a_commit_is_a_revision(hub: SimpleNamespace):
    answer = listing(hub, f"problems.kernelbench.revision={COMMIT}")
    assert revisions(answer) == [f"hub:{COMMIT}"]


def test_an_unknown_revision_has_those_there_are(hub: SimpleNamespace):
    words = error_of(listing(hub, "problems.kernelbench.revision=v0.1"))
    assert f"data set {DATASET} has no revision 'v0.1'; there are: main" in words
    words = error_of(listing(hub, "problems.kernelbench.revision=mian"))
    assert "did you mean main?" in words


def test_the_main_of_the_official_set_stands_for_the_release_that_it_is(hub: SimpleNamespace):
    override = "problems.kernelbench.revision=v0.1"
    assert revisions(listing(hub, override, dataset=OFFICIAL)) == [f"v0.1 hub:{COMMIT}"]
    offline = listing(hub, override, dataset=OFFICIAL, HF_HUB_OFFLINE="1")
    assert revisions(offline) == [f"v0.1 hub:{COMMIT}"]
    other = listing(hub, "problems.kernelbench.revision=v0.2", dataset=OFFICIAL)
    assert "has no revision 'v0.2'" in error_of(other)


def test_a_data_set_that_is_not_there(hub: SimpleNamespace):
    assert "the hub has no data set nobody/x" in error_of(listing(hub, dataset="nobody/x"))


def test_the_hub_is_not_asked_unless_it_is_named(hub: SimpleNamespace):
    command = [sys.executable, "-m", "kopt", "problems"]
    environment = {**os.environ, "HF_ENDPOINT": hub.url, "HF_HOME": str(hub.home)}
    subprocess.run(command, env=environment, capture_output=True, check=True)
    assert hub.handler.asked == []


def test_without_the_package_the_error_names_the_extra(hub: SimpleNamespace):
    program = (
        "import sys; sys.modules['huggingface_hub'] = None\n"
        "from kopt.cli import main\n"
        f"sys.exit(main(['problems', 'problems.kernelbench.dataset={DATASET}']))"
    )
    answer = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert "pip install 'kopt-search[hub]'" in error_of(answer)
