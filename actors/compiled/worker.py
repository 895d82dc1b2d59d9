"""The process that takes one model apart: `python -m kopt.actors.compiled.worker ORDER.json`.

A process of its own, since what it compiles and runs is the user's, dynamo keeps much between
models, and a compiler that hangs or crashes is to cost one model alone.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from kopt.actors.compiled.order import Order, order_from_json
from kopt.compiled.record import Apart, to_json
from kopt.data.atomic import write_bytes
from kopt.errors import ProblemError


def main(arguments: list[str]) -> int:
    """Read an order, take its model apart, and write `apart.json` into its folder."""
    try:
        order = order_from_json(Path(arguments[0]).read_bytes())
    except (IndexError, OSError, ValueError) as error:
        sys.stderr.write(f"expected the path of an order: {error}\n")
        return 2
    try:
        apart = _apart(order)
    except ProblemError as error:
        sys.stderr.write(f"{error}\n")
        return 3
    path = Path(order.folder) / "apart.json"
    write_bytes(path, json.dumps(to_json(apart), indent=1).encode("utf-8"))
    return 0


def _apart(order: Order) -> Apart:
    from kopt.actors.compiled.subject import load_subject
    from kopt.actors.compiled.take_apart import take_apart

    subject: Any = load_subject(order)
    return take_apart(
        subject, max_autotune=order.max_autotune, merge=order.merge, wishes=order.wishes
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
