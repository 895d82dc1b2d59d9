"""The conformance suite of EventSink: what every journal keeps, wherever it writes.

Subclass it in a test file and fill in the two methods; pytest collects the rest:

    class TestMine(SinkSuite):
        def make_sink(self, folder):
            return MySink(folder)

        def read_back(self, sink):
            return list(sink.records())
"""

# ruff: noqa: D102 - the name of a test is its sentence
from __future__ import annotations

import hashlib
from dataclasses import replace
from pathlib import Path

import pytest

from kopt.data.record import Record
from kopt.errors import StoreError
from kopt.events import Told
from kopt.ports import EventSink
from kopt.testing.sample_journal import sample_events

TOLD = Told(expansion=0, index=0, node=1, reward=0.5)


class SinkSuite:
    """Subclass this, fill in `make_sink` and `read_back`, and name the subclass Test…."""

    def make_sink(self, folder: Path) -> EventSink:
        """Return an empty sink that may use the folder."""
        raise NotImplementedError

    def read_back(self, sink: EventSink) -> list[Record]:
        """Return every record that the sink has kept, in order."""
        raise NotImplementedError

    def test_events_come_back_equal_and_in_order(self, tmp_path: Path) -> None:
        sink = self.make_sink(tmp_path)
        events = sample_events()
        for event in events:
            sink.append("sum/mcts/3", event)
        assert [_as_lists(record.body) for record in self.read_back(sink)] == [
            _as_lists(event) for event in events
        ]

    def test_the_sequence_counts_every_search_from_zero_without_gaps(self, tmp_path: Path) -> None:
        sink = self.make_sink(tmp_path)
        returned = [sink.append(search, TOLD) for search in ("a", "b", "a", "")]
        assert returned == [0, 1, 2, 3]
        records = self.read_back(sink)
        assert [(r.seq, r.search) for r in records] == [(0, "a"), (1, "b"), (2, "a"), (3, "")]

    def test_every_record_has_the_run_and_a_time(self, tmp_path: Path) -> None:
        sink = self.make_sink(tmp_path)
        sink.append("a", TOLD)
        sink.append("b", TOLD)
        first, second = self.read_back(sink)
        assert first.run == second.run != ""
        assert 0 < first.time_ns <= second.time_ns

    @pytest.mark.parametrize("value", [float("nan"), float("inf"), object()])
    def test_what_json_has_no_form_for_is_refused_and_leaves_no_trace(
        self, tmp_path: Path, value: object
    ) -> None:
        sink = self.make_sink(tmp_path)
        sink.append("a", TOLD)
        with pytest.raises(StoreError, match="told"):
            sink.append("a", replace(TOLD, reward=value))  # type: ignore[arg-type]
        assert sink.append("a", TOLD) == 1
        assert [record.seq for record in self.read_back(sink)] == [0, 1]

    @pytest.mark.parametrize("text", ["", "a\nb\r\n", "é \U0001f600 \u2028", "x" * 1_000_000])
    def test_a_text_comes_back_under_its_sha256(self, tmp_path: Path, text: str) -> None:
        sink = self.make_sink(tmp_path)
        name = sink.put_text(text)
        assert name == hashlib.sha256(text.encode()).hexdigest()
        assert sink.get_text(name) == text

    def test_equal_texts_have_one_name(self, tmp_path: Path) -> None:
        sink = self.make_sink(tmp_path)
        assert sink.put_text("a") == sink.put_text("a") != sink.put_text("b")

    def test_a_lone_surrogate_does_not_end_the_run(self, tmp_path: Path) -> None:
        sink = self.make_sink(tmp_path)
        assert sink.get_text(sink.put_text("a\ud800b")) == "a?b"

    def test_an_unknown_text_is_an_error(self, tmp_path: Path) -> None:
        sink = self.make_sink(tmp_path)
        with pytest.raises(StoreError):
            sink.get_text("0" * 64)


def _as_lists(value: object) -> object:
    """JSON knows no tuples: compare what it can tell apart."""
    if isinstance(value, dict):
        return {key: _as_lists(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_as_lists(item) for item in value]
    if hasattr(value, "__dataclass_fields__"):
        return type(value).__name__, {
            name: _as_lists(getattr(value, name)) for name in value.__dataclass_fields__
        }
    return value
