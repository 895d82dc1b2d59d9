"""Every word in the headers that the light ones stand in for: what a source might mean by a name.

They are taken from the text after preprocessing, so that names which macros put together are among
them, and from the headers as they are written, so that names behind conditions are. Where they
cannot be had, no name is certain to be missing (see `light_errors`).
"""

from __future__ import annotations

import logging
import re
import subprocess
from collections.abc import Sequence
from pathlib import Path

from kopt.actors.build.headers import OVERLAID

_LOG = logging.getLogger(__name__)
READ_S = 300.0
"""For preprocessing on a busy host; some seconds on an idle one."""
_WORD = re.compile(r"[A-Za-z_]\w*")
_MARKER = re.compile(r'^# \d+ "([^"<\n]+)"', re.M)


def write_words(path: Path, *, command: Sequence[str], include: Path, toolkit: Path | None) -> None:
    """Write the words, one a line; no file where the headers cannot be read.

    Args:
        path: of the file.
        command: the C++ compiler with its flags and include folders.
        include: torch's own include folder.
        toolkit: folder of CUDA's headers, of which nvcc includes some by itself.
    """
    names = [name for group in OVERLAID.values() for name in group]
    present = [name for name in names if (include / name).is_file() and "cuda/" not in name]
    text = "".join(f"#include <{name}>\n" for name in ["torch/extension.h", *present])
    try:
        read = subprocess.run(
            [*command, "-E", "-dD", "-x", "c++", "-"],
            input=text,
            capture_output=True,
            text=True,
            check=True,
            timeout=READ_S,
            errors="replace",
        )
    except (OSError, subprocess.SubprocessError) as error:
        _LOG.warning("what does not compile is always compiled torch's way: %s", error)
        return
    headers = {Path(name) for name in _MARKER.findall(read.stdout)}
    headers |= {include / name for name in names}
    for folder in (toolkit, include / "c10" / "cuda", include / "ATen" / "cuda"):
        headers |= set() if folder is None else set(folder.glob("*.h*"))
    headers |= set() if toolkit is None else set((toolkit / "crt").glob("*.h*"))
    words = set(_WORD.findall(read.stdout))
    for header in headers:
        if header.is_file():
            words.update(_WORD.findall(header.read_text(encoding="utf-8", errors="replace")))
    path.write_text("\n".join(sorted(words)), encoding="utf-8")
