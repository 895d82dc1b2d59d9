"""Blocks written in this process, or in several where there is more than one of them."""

from __future__ import annotations

import multiprocessing
import pickle
import signal
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess

from kopt.data.exports.blocks import Block, Job, WrittenBlock, write_block
from kopt.errors import KoptError, StoreError


class BlockPool:
    """Writes the blocks of one export. A context manager; no process outlives it.

    The one block of a small export is written here: nobody waits for a process to start. A process
    that has ended, for whatever reason, closes its end of a pipe; so does this one, whatever ends
    it, and those that it started end with it.
    """

    def __init__(self, job: Job, *, processes: int) -> None:
        """Take what blocks are written for.

        Args:
            job: that they share.
            processes: that may write at once, beside this one, which reads; 1: this one writes.
        """
        self._job = job
        self._processes = processes
        self._held: Block | None = None
        self._written: list[WrittenBlock] = []
        self._started: list[SpawnProcess] = []
        self._idle: list[Connection] = []
        self._busy: list[Connection] = []

    def __enter__(self) -> BlockPool:
        return self

    def __exit__(self, *raised: object) -> None:
        for pipe in (*self._idle, *self._busy):
            pipe.close()
        for process in self._started:
            process.kill()  # idle, or what it writes is not wanted any more
            process.join()

    def write(self, block: Block) -> None:
        """Write a block, now or soon; waits while all processes are at work.

        Raises:
            StoreError: this block or one before cannot be written.
        """
        if self._processes == 1:
            self._written.append(write_block(block, self._job))
        elif not self._started and self._held is None:
            self._held = block
        else:
            if self._held is not None:
                first, self._held = self._held, None
                self._start()
                self._send(first)
            self._send(block)

    def finish(self) -> list[WrittenBlock]:
        """Return all blocks, in order, when the last one is written.

        Raises:
            StoreError: one cannot be.
        """
        if self._held is not None:
            held, self._held = self._held, None
            self._written.append(write_block(held, self._job))
        while self._busy:
            self._receive()
        return sorted(self._written, key=lambda each: each.number)

    def _start(self) -> None:
        # Not forked: threads of Arrow, and of whoever calls, would not be in the copy.
        context = multiprocessing.get_context("spawn")
        for _ in range(self._processes):
            pipe, theirs = context.Pipe()
            process = context.Process(target=_serve, args=(theirs, self._job), daemon=True)
            try:
                process.start()
            except OSError as error:  # it ended before it was told what for
                pipe.close()
                raise self._lost() from error
            finally:
                theirs.close()
            self._started.append(process)
            self._idle.append(pipe)

    def _send(self, block: Block) -> None:
        # Before a process is free, so that it need not wait for it.
        pickled = pickle.dumps(block, pickle.HIGHEST_PROTOCOL)
        while not self._idle:
            self._receive()
        pipe = self._idle.pop(0)
        self._busy.append(pipe)
        try:
            pipe.send_bytes(pickled)
        except OSError as error:
            raise self._lost() from error

    def _receive(self) -> None:
        for pipe in wait(self._busy):
            assert isinstance(pipe, Connection)
            try:
                found = pipe.recv()
            except (EOFError, OSError) as error:
                raise self._lost() from error
            if isinstance(found, KoptError):
                raise found
            self._written.append(found)
            self._busy.remove(pipe)
            self._idle.append(pipe)

    def _lost(self) -> StoreError:
        return StoreError(
            str(self._job.folder.parent),
            "expected a written block, found that its process had died (killed, or out of memory); "
            "nothing is left of the export: try again, or with --processes 1",
        )


def _serve(pipe: Connection, job: Job) -> None:
    """Write blocks until the other end is closed."""
    # An interrupt ends the export, and that ends this process.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    while True:
        try:
            pickled = pipe.recv_bytes()
        except (EOFError, OSError):
            return
        try:
            found: WrittenBlock | KoptError = write_block(pickle.loads(pickled), job)
        except KoptError as error:
            found = error
        pipe.send(found)
