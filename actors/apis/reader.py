"""Reads a language's interface from its package, in a process of its own.

Usage: python -m kopt.actors.apis.reader LANGUAGE

Importing such a package takes seconds, may start compilers and hold a device: the driver does not.
Prints one JSON object as its last line: `signatures`, `names`.
"""

from __future__ import annotations

import inspect
import json
import re
import sys
from importlib import import_module
from types import ModuleType

from kopt.actors.apis.pages import PAGES, Page
from kopt.candidate import LANGUAGES

HIDDEN = frozenset(
    {"_semantic", "_builder", "_generator", "_owner", "loc", "ip", "cute_structural_policy"}
)
"""Parameters that compilers give, or that place an operation in what they write."""
MAX_SIGNATURE = 400
"""Characters of one signature; the end of a longer one is cut."""
MAX_NAMES = 150
_CONSTANT = re.compile(r"constexpr\[([^\[\]]*)\]")
_MEMBER = re.compile(r"<(?:[\w.]+: )?([\w.']+)>")
_OBJECT = re.compile(r"<[^<>]* at 0x[0-9a-f]+>")


def read(page: Page) -> dict[str, list[str]]:
    """Return the signatures of a page's first names, and the other public names, in order.

    Raises:
        ImportError: the package, or what it needs, cannot be imported.
    """
    modules = {alias: import_module(name) for name, alias in page.modules}
    signatures = []
    for name in page.first:
        alias, _, attribute = name.rpartition(".")
        found = getattr(modules[alias], attribute, None)
        words = None if found is None else signature_of(found)
        if words is not None:
            signatures.append(_cut(f"{name}{words}"))
    names = [
        f"{alias}.{name}" for alias, module in modules.items() for name in public_names(module)
    ]
    names.sort(key=_is_class)  # functions first: they are what is called
    return {
        "signatures": signatures,
        "names": [name for name in names if name not in page.first][:MAX_NAMES],
    }


def signature_of(function: object) -> str | None:
    """Return parameters with their defaults, without types; None where there is no telling."""
    inner = getattr(function, "_original_fn", None) or getattr(function, "fn", None) or function
    if not callable(inner):
        return None
    try:
        signature = inspect.signature(inner)
    except (TypeError, ValueError):
        return None
    parameters = [
        parameter.replace(annotation=inspect.Parameter.empty)
        for name, parameter in signature.parameters.items()
        if name not in HIDDEN
    ]
    bare = signature.replace(parameters=parameters, return_annotation=inspect.Signature.empty)
    words = _MEMBER.sub(r"\1", _CONSTANT.sub(r"\1", str(bare)))
    words = _OBJECT.sub("...", words).replace("triton.language.", "tl.")
    return " ".join(words.split())


def public_names(module: ModuleType) -> list[str]:
    """Return the functions and classes of a module that are its package's own."""
    root = module.__name__.partition(".")[0]
    return [
        name
        for name in dir(module)
        if not name.startswith("_")
        and callable(value := getattr(module, name))
        and str(getattr(value, "__module__", None) or root).partition(".")[0] == root
    ]


def _is_class(name: str) -> bool:
    return name.rpartition(".")[2][:1].isupper()


def _cut(words: str) -> str:
    if len(words) <= MAX_SIGNATURE:
        return words
    return f"{words[:MAX_SIGNATURE].rpartition(',')[0]}, …)"


def main(words: list[str]) -> int:
    """Print the interface of the language named."""
    language = next((each for each in LANGUAGES if words == [each] and each in PAGES), None)
    if language is None:
        sys.stderr.write(f"expected one of {', '.join(PAGES)}, found {' '.join(words)!r}\n")
        return 2
    try:
        found = read(PAGES[language])
    except ImportError as error:
        sys.stderr.write(f"{PAGES[language].package}: {error}\n")
        return 1
    sys.stdout.write(f"\n{json.dumps(found)}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
