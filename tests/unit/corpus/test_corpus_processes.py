"""Blocks: the bytes are the same however many processes write, and one that dies leaves nothing."""

import multiprocessing
import shutil
import threading
from collections.abc import Callable, Sequence
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from kopt.cli import main
from kopt.data.corpus.gathering import gathered
from kopt.data.corpus.losses import Losses
from kopt.data.exports import blocks
from kopt.data.exports.block_pool import BlockPool
from kopt.data.exports.blocks import Block, Job, Piece
from kopt.data.exports.choice import Choice
from kopt.data.exports.data_card import Card
from kopt.data.exports.export import Format, export
from kopt.data.journal_files import JOURNAL_FOLDER
from kopt.data.rundir import RunDir
from kopt.errors import StoreError

Make = Callable[..., RunDir]


@pytest.fixture
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """A search fills a block."""
    monkeypatch.setattr(blocks, "BLOCK_ROWS", 1)


def write(
    runs: Sequence[RunDir],
    out: Path,
    *,
    format: Format = "corpus",  # noqa: A002 - what users call it
    processes: int = 1,
) -> Card:
    return export(runs, out, format=format, choice=Choice(), settings={}, processes=processes)


def contents(folder: Path) -> dict[str, bytes]:
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


def _kill_a_child() -> None:
    while not (children := multiprocessing.active_children()):
        pass
    children[0].kill()


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("format", ["corpus", "dpo"])
def test_one_and_two_processes_give_the_same_bytes(
    make_run: Make,
    tmp_path: Path,
    format: Format,  # noqa: A002
) -> None:
    runs = [make_run(name="a"), make_run(name="b")]
    write(runs, tmp_path / "one", format=format)
    write(runs, tmp_path / "two", format=format, processes=2)
    assert contents(tmp_path / "one") == contents(tmp_path / "two")
    assert multiprocessing.active_children() == []


def test_the_rows_and_the_card_do_not_depend_on_how_many_blocks_there_are(
    make_run: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = [make_run(name="a"), make_run(name="b")]
    shutil.rmtree(runs[1].problems_folder)
    whole = write(runs, tmp_path / "whole").to_json()
    monkeypatch.setattr(blocks, "BLOCK_ROWS", 1)
    cut = write(runs, tmp_path / "cut").to_json()
    names = [path.name for path in sorted((tmp_path / "cut" / "data").iterdir())]
    # Two runs of two searches.
    assert names == [f"train-{number:05d}.parquet" for number in range(4)]
    one = pq.read_table(tmp_path / "whole" / "data").to_pylist()
    assert pq.read_table(tmp_path / "cut" / "data").to_pylist() == one
    assert len(one) == 14
    # What a text held that comes again is counted with each block that reads it.
    assert whole.pop("redacted").keys() == cut.pop("redacted").keys()
    assert cut == whole


@pytest.mark.usefixtures("small_blocks")
def test_a_process_that_dies_ends_the_export_and_leaves_nothing(
    make_run: Make, tmp_path: Path
) -> None:
    runs = [make_run(name="a"), make_run(name="b")]
    # It is there as soon as the export starts it, and has nothing written for a while.
    killer = threading.Thread(target=_kill_a_child)
    killer.start()
    with pytest.raises(StoreError, match="its process had died") as raised:
        write(runs, tmp_path / "out", processes=2)
    killer.join()
    assert "\n" not in str(raised.value)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "b"]
    assert multiprocessing.active_children() == []


@pytest.mark.usefixtures("small_blocks")
def test_what_every_process_misses_is_lost_once(make_run: Make, tmp_path: Path) -> None:
    run = make_run()
    (run.path / "manifest.json").unlink()
    card = write([run], tmp_path / "out", processes=2)
    assert card.losses.counts["run without a manifest"] == 1


def test_what_a_process_cannot_write_is_said_here(make_run: Make, tmp_path: Path) -> None:
    run = make_run()
    searches = list(gathered(run.path / JOURNAL_FOLDER, Losses()))
    job = Job(folder=tmp_path, format="corpus", choice=Choice(), words=())
    (tmp_path / ".block-000001").write_text("where the folder of the second block would be")
    pieces = (Piece(run=run.path, run_number=0, searches=searches),)
    with BlockPool(job, processes=2) as pool:
        for number in range(2):
            pool.write(Block(number=number, pieces=pieces))
        with pytest.raises(StoreError, match=r"\.block-000001"):
            pool.finish()
    assert multiprocessing.active_children() == []


def test_a_small_export_starts_no_process(
    make_run: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(BlockPool, "_start", None)
    assert write([make_run()], tmp_path / "out", processes=2).splits["data"] == {"train": 7}


def test_a_thing_that_two_blocks_miss_is_lost_once() -> None:
    one, two = Losses(), Losses()
    for each in (one, two):
        each.lose_thing("text that is lost", "artefact 12", why="gone")
        each.lose_thing("text that is lost", "artefact 12", why="gone")
        each.lose("expansion without an answer", "s expansion 1")
    two.lose_thing("text that is lost", "artefact 34", why="gone")
    one.add(two)
    assert one.counts == {"text that is lost": 2, "expansion without an answer": 2}
    assert one.places == [
        "text that is lost: artefact 12: gone",
        "expansion without an answer: s expansion 1",
        "text that is lost: artefact 34: gone",
    ]


def test_the_number_of_processes_is_one_or_more(
    make_run: Make, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = str(tmp_path / "out")
    arguments = ["export", str(make_run().path), "--format", "corpus", "--out", out]
    assert main([*arguments, "--processes", "0"]) == 2
    assert "--processes: expected 1 or more, found 0" in capsys.readouterr().err
