"""`kopt cache`: what the caches of this node hold; bound them, clear them."""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path

from kopt.actors.cache.kinds import (
    KINDS,
    TOTAL_BYTES,
    USERS_FILE,
    kind_bound,
    see_store,
    set_total_bound,
    total_bound,
)
from kopt.actors.cache.locks import holders, locked
from kopt.actors.cache.manifest import VERSION
from kopt.cli.arguments import command_parser, parse
from kopt.cli.exit_codes import DONE
from kopt.cli.output import write_json
from kopt.environment import CACHE_VARIABLE, cache_dir
from kopt.errors import ConfigError

EPILOG = f"""\
The caches lie below {CACHE_VARIABLE}, or ~/.cache/kopt. A bound set by --max-gib holds for all of
them together and from then on: what was asked for longest ago goes first. Only a cache that no run
uses is cleared. `evaluate.cache=off` keeps a run from looking for verdicts.
exit codes: 0 done, 2 bad usage, or a cache that is in use or cannot be written"""

FOLDERS = {
    "cutlass": "rules mined from CUTLASS",
    "inductor": "references as torch.compile built them",
    "toolchains": "light headers for torch extensions",
}
"""Caches that are no stores: plain files, other programs' mostly. Folder to what it holds."""
ALL = "all"


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One cache."""

    kind: str
    holds: str
    path: str
    version: int | None
    """Of how its entries lie; None for a folder of plain files."""
    entries: int
    """Entries, or files."""
    num_bytes: int
    max_bytes: int | None
    """None where it has no bound."""
    oldest: str | None
    """When the oldest entry was made, ISO 8601 in UTC; None for an empty cache."""
    newest: str | None


def main(arguments: Sequence[str]) -> int:
    """Show the caches, after they were bounded or cleared as asked.

    Raises:
        ConfigError: an argument cannot be used, or a cache is in use or cannot be written.
    """
    parser = command_parser(
        "cache", description="Say what the caches of this node hold.", epilog=EPILOG
    )
    parser.add_argument(
        "--clear",
        metavar="KIND",
        choices=[*KINDS, *FOLDERS, ALL],
        help=f"remove all of a kind: {', '.join([*KINDS, *FOLDERS])}; or {ALL}",
    )
    parser.add_argument(
        "--max-gib", metavar="N", type=float, help="bound all caches together to N GiB, for good"
    )
    options = parse(parser, arguments)
    if options is None:
        return DONE
    folder = cache_dir()
    removed = 0
    try:
        if options.clear is not None:
            removed += clear(folder, kind=options.clear)
        if options.max_gib is not None:
            removed += bound(folder, max_gib=options.max_gib)
    except OSError as error:
        raise ConfigError(f"{folder} cannot be changed: {error.strerror or error}") from error
    rows = look(folder)
    users = holders(folder / USERS_FILE)
    if options.json:
        about = {
            "path": str(folder),
            "max_bytes": total_bound(folder) or TOTAL_BYTES,
            "removed_bytes": removed,
            "in_use": users is not None,
            "rows": [asdict(row) for row in rows],
        }
        write_json(sys.stdout, about)
    else:
        sys.stdout.write(_table(folder, rows, users=users, removed=removed))
    return DONE


def look(folder: Path) -> list[Row]:
    """Return what each cache below a folder holds."""
    rows = []
    for name, kind in KINDS.items():
        kept = see_store(folder, name).kept()
        made_s = [each.made_s for each in kept]
        rows.append(
            Row(
                kind=name,
                holds=kind.holds,
                path=str(folder / name),
                version=VERSION,
                entries=len(kept),
                num_bytes=sum(each.num_bytes for each in kept),
                max_bytes=kind_bound(folder, name),
                oldest=_when(min(made_s, default=None)),
                newest=_when(max(made_s, default=None)),
            )
        )
    for name, holds in FOLDERS.items():
        sizes, made_s = [], []
        for path in (folder / name).rglob("*"):
            with suppress(OSError):
                about = path.lstat()
                if not path.is_dir():
                    sizes.append(about.st_size)
                    made_s.append(about.st_mtime)
        rows.append(
            Row(
                kind=name,
                holds=holds,
                path=str(folder / name),
                version=None,
                entries=len(sizes),
                num_bytes=sum(sizes),
                max_bytes=None,
                oldest=_when(min(made_s, default=None)),
                newest=_when(max(made_s, default=None)),
            )
        )
    return rows


def bound(folder: Path, *, max_gib: float) -> int:
    """Set the bound of all caches together, prune to it, and return the bytes removed.

    What a run may be about to open stays, so that it may take a while until the bound holds.

    Raises:
        ConfigError: the bound is no size.
        OSError: the cache cannot be written.
    """
    if not 0 < max_gib < float("inf"):
        raise ConfigError(f"--max-gib must be above 0, got {max_gib:g}; --clear empties a cache")
    set_total_bound(folder, int(max_gib * (1 << 30)))
    return sum(see_store(folder, name).prune(now_s=time.time()) for name in KINDS)


def clear(folder: Path, *, kind: str) -> int:
    """Empty a cache, or all, and return the bytes removed.

    Raises:
        ConfigError: a run uses the cache: it would find what it built gone.
        OSError: the cache cannot be written.
    """
    if not folder.exists():
        return 0
    try:
        with locked(folder / USERS_FILE, waits=False):
            before = {row.kind: row.num_bytes for row in look(folder)}
            kinds = list(before) if kind == ALL else [kind]
            for name in kinds:
                _empty(folder / name)
            return sum(before[name] for name in kinds)
    except BlockingIOError:
        who = ", ".join(holders(folder / USERS_FILE) or []) or "on another host or in a container"
        raise ConfigError(
            f"--clear: a run uses {folder} ({who}); wait for it or end it (--max-gib may be set)"
        ) from None


def _empty(path: Path) -> None:
    if path.exists():
        # Aside first: whoever comes now finds nothing rather than half of something.
        aside = path.with_name(f".{path.name}.cleared")
        shutil.rmtree(aside, ignore_errors=True)
        path.rename(aside)
        shutil.rmtree(aside)


def _when(made_s: float | None) -> str | None:
    if made_s is None:
        return None
    return datetime.fromtimestamp(made_s, tz=UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _size(num_bytes: int) -> str:
    for unit, scale in (("GiB", 1 << 30), ("MiB", 1 << 20)):
        if num_bytes >= scale:
            return f"{num_bytes / scale:.1f} {unit}"
    return f"{num_bytes / 1024:.1f} KiB"


def _table(folder: Path, rows: Sequence[Row], *, users: list[str] | None, removed: int) -> str:
    lines = [f"{'cache':<11} {'entries':>7} {'size':>9} {'bound':>9}  {'made':<23}  holds"]
    for row in rows:
        bounded = "-" if row.max_bytes is None else _size(row.max_bytes)
        made = "-"
        if row.oldest is not None and row.newest is not None:
            made = f"{row.oldest[:10]} – {row.newest[:10]}"
        lines.append(
            f"{row.kind:<11} {row.entries:>7} {_size(row.num_bytes):>9} {bounded:>9}  {made:<23}"
            f"  {row.holds}"
        )
    total = sum(row.num_bytes for row in rows)
    lines.append(f"{'':<11} {'':>7} {_size(total):>9}  in {folder}, layout version {VERSION}")
    if removed:
        lines.append(f"removed {_size(removed)}")
    if users is not None:
        lines.append(f"in use ({', '.join(users) or 'elsewhere'})")
    return "\n".join(lines) + "\n"
