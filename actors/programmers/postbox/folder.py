"""The mailbox's folder: what lies where in it, and every move. Blocking; nobody is waited for.

prompts/<id>.md    questions that are open
answers/<id>.md    written by whoever answers
taken/             answers that were used, and <id>.prompt.md, what they answer
expired/           questions that were given up unanswered
refused.log        a line for each answer that could not be used, which lies beside as
                   answers/<id>.refused-1.md

The answers are another's: links, folders and pipes are never followed, entered or waited for.
"""

from __future__ import annotations

import errno
import os
import re
import stat
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from kopt.data.atomic import make_folder, write_bytes

MAX_ANSWER_BYTES = 4_000_000
"""A longer answer is refused unread."""
SUFFIX = ".md"
LOG_FILE = "refused.log"
_REFUSED = re.compile(r"(?P<id>.+)\.refused-(?P<number>\d+)\.md")
_DRAFT = re.compile(r"\..*|.*(?:~|\.tmp|\.part|\.swp|\.draft)")
"""Names of files that their writer is not done with."""


class Signature(NamedTuple):
    """What changes when a file does."""

    modified_ns: int
    size_bytes: int
    inode: int


class Found(NamedTuple):
    """An entry of `answers/`."""

    name: str
    signature: Signature


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerFile:
    """An answer as it was read."""

    content: bytes
    signature: Signature
    fault: str = ""
    """Why it was not read; empty where it was."""


class Refusal(NamedTuple):
    """An answer that could not be used."""

    text: str
    reason: str


class MailFolder:
    """The files of one mailbox. Several runs may share one; their prompts differ by id."""

    def __init__(self, path: Path) -> None:
        """Name the folder."""
        self.path = path
        self._prompts = path / "prompts"
        self._answers = path / "answers"
        self._taken = path / "taken"
        self._expired = path / "expired"

    def prepare(self, readme: str) -> None:
        """Make the folder, with its README.

        Raises:
            StoreError: it cannot be made.
        """
        for folder in (self._prompts, self._answers, self._taken):
            make_folder(folder)
        path = self.path / "README.md"
        if not path.is_file() or path.read_text(encoding="utf-8", errors="replace") != readme:
            write_bytes(path, readme.encode())

    def lay_out(self, prompt_id: str, text: str) -> bool:
        """Open a prompt; False where it lies there already.

        Raises:
            StoreError: it cannot be written.
        """
        path = self._prompts / f"{prompt_id}{SUFFIX}"
        if path.is_file():
            return False
        write_bytes(path, text.encode("utf-8", errors="replace"))
        return True

    def prompt(self, prompt_id: str) -> str | None:
        """Return a prompt as it was laid out, open or answered; None where there is none.

        Raises:
            OSError: it cannot be read.
        """
        for path in (
            self._prompts / f"{prompt_id}{SUFFIX}",
            self._taken / f"{prompt_id}.prompt{SUFFIX}",
        ):
            with suppress(FileNotFoundError):
                return path.read_text(encoding="utf-8", errors="replace")
        return None

    def is_open(self, prompt_id: str) -> bool:
        """Return whether a prompt is open, in this run or another that shares the folder."""
        return (self._prompts / f"{prompt_id}{SUFFIX}").is_file()

    def closed_as(self, prompt_id: str) -> str | None:
        """Return what became of a prompt that is no longer open; None where there was none."""
        if (self._taken / f"{prompt_id}{SUFFIX}").exists():
            return "the prompt was answered before"
        if (self._expired / f"{prompt_id}{SUFFIX}").exists():
            return "the prompt was given up"
        return None

    def look(self) -> list[Found]:
        """Return the answers that lie there now, without drafts and refused ones.

        Raises:
            OSError: the folder cannot be listed.
        """
        found = []
        with os.scandir(self._answers) as entries:
            for entry in entries:
                if _DRAFT.fullmatch(entry.name) or _REFUSED.fullmatch(entry.name):
                    continue
                try:
                    found.append(Found(entry.name, _signature(entry.stat(follow_symlinks=False))))
                except FileNotFoundError:
                    continue  # its writer has just moved it
        return sorted(found)

    def read(self, prompt_id: str) -> AnswerFile | None:
        """Return the answer to a prompt; None where it is not there any more."""
        path = self._answers / f"{prompt_id}{SUFFIX}"
        # Non-blocking: opening a pipe would wait for its writer.
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        try:
            seen = _signature(path.lstat())
            descriptor = os.open(path, flags)
        except FileNotFoundError:
            return None
        except OSError as error:
            is_link = error.errno == errno.ELOOP
            why = (
                "a link; the answer must be a file" if is_link else f"unreadable ({error.strerror})"
            )
            return AnswerFile(content=b"", signature=seen, fault=why)
        status = os.fstat(descriptor)
        if fault := _fault(status):
            os.close(descriptor)
            return AnswerFile(content=b"", signature=_signature(status), fault=fault)
        with os.fdopen(descriptor, "rb") as file:
            return AnswerFile(content=file.read(MAX_ANSWER_BYTES), signature=_signature(status))

    def take(self, prompt_id: str, answer: AnswerFile) -> None:
        """Put an answer away as the one that was used, and close its prompt.

        What was read is what is kept: a file that changed since then stays, as a second answer.

        Raises:
            StoreError: it cannot be kept; everything is as it was.
        """
        write_bytes(self._taken / f"{prompt_id}{SUFFIX}", answer.content)
        path = self._answers / f"{prompt_id}{SUFFIX}"
        with suppress(FileNotFoundError):
            if _signature(path.lstat()) == answer.signature:
                path.unlink()
        self._close(prompt_id, self._taken / f"{prompt_id}.prompt{SUFFIX}")

    def taken(self, prompt_id: str) -> bytes | None:
        """Return the answer that was used for a prompt; None where none was.

        Raises:
            OSError: it cannot be read.
        """
        try:
            return (self._taken / f"{prompt_id}{SUFFIX}").read_bytes()
        except FileNotFoundError:
            return None

    def expire(self, prompt_id: str) -> None:
        """Close a prompt that nobody answered.

        Raises:
            StoreError: it cannot be moved.
        """
        make_folder(self._expired)
        self._close(prompt_id, self._expired / f"{prompt_id}{SUFFIX}")

    def remove(self, prompt_id: str) -> None:
        """Remove an answer that says nothing new."""
        (self._answers / f"{prompt_id}{SUFFIX}").unlink(missing_ok=True)

    def refuse(self, prompt_id: str, reason: str) -> str:
        """Move an answer out of the way, with its reason in the log, and return its new name.

        Raises:
            OSError: it cannot be moved.
        """
        number = 1
        while os.path.lexists(self._answers / _refused_name(prompt_id, number)):
            number += 1
        name = _refused_name(prompt_id, number)
        # The log first: a refused answer without a reason would puzzle its writer.
        log = os.open(
            self.path / LOG_FILE, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o644
        )
        try:
            os.write(log, f"{name}: {reason}\n".encode("utf-8", errors="replace"))
        finally:
            os.close(log)
        os.rename(self._answers / f"{prompt_id}{SUFFIX}", self._answers / name)
        return name

    def refusals(self, prompt_id: str) -> list[Refusal]:
        """Return the answers to a prompt that were refused so far, in order."""
        try:
            log = (self.path / LOG_FILE).read_text(encoding="utf-8", errors="replace")
        except FileNotFoundError:
            return []
        reasons: dict[str, str] = {}
        for line in log.splitlines():
            name, _, reason = line.partition(": ")
            match = _REFUSED.fullmatch(name)
            if match and match["id"] == prompt_id:
                reasons[name] = reason
        refusals = []
        for name, reason in reasons.items():
            answer = self.read(name.removesuffix(SUFFIX))
            if answer is not None:
                text = answer.content.decode("utf-8", errors="replace")
                refusals.append(Refusal(text=text, reason=reason))
        return refusals

    def _close(self, prompt_id: str, destination: Path) -> None:
        with suppress(FileNotFoundError):  # somebody tidied up; the answer counts all the same
            os.replace(self._prompts / f"{prompt_id}{SUFFIX}", destination)


def _refused_name(prompt_id: str, number: int) -> str:
    return f"{prompt_id}.refused-{number}{SUFFIX}"


def _signature(status: os.stat_result) -> Signature:
    return Signature(status.st_mtime_ns, status.st_size, status.st_ino)


def _fault(status: os.stat_result) -> str:
    if not stat.S_ISREG(status.st_mode):
        return "not a plain file"
    if status.st_size > MAX_ANSWER_BYTES:
        return f"{status.st_size} bytes; at most {MAX_ANSWER_BYTES} are read"
    return ""
