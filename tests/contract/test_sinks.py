"""Every EventSink keeps the contract of EventSink."""

from __future__ import annotations

from pathlib import Path

from kopt.data.journal import Journal, read_events
from kopt.data.record import Record
from kopt.ports import EventSink
from kopt.testing.fakes import ManualClock, MemorySink
from kopt.testing.sink_suite import SinkSuite


class TestMemorySink(SinkSuite):
    def make_sink(self, folder: Path) -> EventSink:
        return MemorySink()

    def read_back(self, sink: EventSink) -> list[Record]:
        assert isinstance(sink, MemorySink)
        return sink.records


class TestJournal(SinkSuite):
    def make_sink(self, folder: Path) -> EventSink:
        self.folder = folder
        return Journal(folder, run="run", clock=ManualClock())

    def read_back(self, sink: EventSink) -> list[Record]:
        return list(read_events(self.folder))


class TestSealedJournal(TestJournal):
    """The same when every second line makes a part."""

    def make_sink(self, folder: Path) -> EventSink:
        self.folder = folder
        return Journal(folder, run="run", clock=ManualClock(), seal_lines=2)

    def read_back(self, sink: EventSink) -> list[Record]:
        assert isinstance(sink, Journal)
        sink.close()
        assert not list(self.folder.glob("journal/open-*"))
        return list(read_events(self.folder))
