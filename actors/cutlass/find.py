"""Where CUTLASS is: a checkout that the user names, or the headers of an installed package.

PyPI's `nvidia-cutlass` has the whole of `include/`, and examples; `nvidia-cutlass-dsl` has none.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import re
from pathlib import Path

from kopt.actors.cutlass.checkout import MARK, Checkout
from kopt.errors import ConfigError

PACKAGE = "nvidia-cutlass"
_MODULE, _SOURCE = "cutlass_library", "source"
_VERSION = re.compile(r"#define[ \t]+CUTLASS_(MAJOR|MINOR|PATCH)[ \t]+(\d+)")


def checkout_at(path: str, *, key: str = "programmer.tools.cutlass") -> Checkout:
    """Return the checkout in a folder that the configuration names.

    Args:
        path: of the checkout, or of its folder include.
        key: of the configuration, for the error.

    Raises:
        ConfigError: it holds no CUTLASS headers.
    """
    root = Path(path).expanduser().resolve()
    if root.name == "include" and (root.parent / MARK).is_file():
        root = root.parent
    if not (root / MARK).is_file():
        raise ConfigError(f"conf {key}: {path} has no {MARK}; expected a checkout of CUTLASS")
    return Checkout(root=root, origin=f"CUTLASS {_version(root)} in {root}")


def packaged_checkout() -> Checkout | None:
    """Return the headers of the installed package; None without it. It is not imported."""
    try:
        spec = importlib.util.find_spec(_MODULE)
        version = importlib.metadata.version(PACKAGE)
    except (ImportError, ValueError):
        return None
    for folder in (spec.submodule_search_locations or ()) if spec is not None else ():
        root = Path(folder, _SOURCE).resolve()
        if (root / MARK).is_file():
            return Checkout(root=root, origin=f"{PACKAGE} {version}")
    return None


def _version(root: Path) -> str:
    try:
        text = (root / "include/cutlass/version.h").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return "of an unknown version"
    parts = dict(_VERSION.findall(text))
    return ".".join(parts.get(name, "?") for name in ("MAJOR", "MINOR", "PATCH"))
