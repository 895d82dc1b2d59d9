"""How a section of the configuration names a part that is not kopt's own."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, StringConstraints

from kopt.part_file import with_whole_path

PluginKind = Annotated[
    str,
    StringConstraints(pattern=r"^(?:[^/]+/[^/]+|.+\.py:[A-Za-z_]\w*)$"),
    AfterValidator(with_whole_path),
]
"""`package/name`, the name of an entry point, or `path/to/mine.py:NAME`."""
