"""The texts of prompts: files of this package, filled in by name."""

from __future__ import annotations

import string
from functools import cache
from importlib.resources import files


def filled(name: str, /, **values: object) -> str:
    """Return a template with its `$names` replaced, without empty lines round it.

    Values are taken as they are: what they hold is not filled in again.

    Args:
        name: file in `templates/`, without `.md`.
        values: one for each name in it, and no other.

    Raises:
        KeyError: the template has a name that is not among the values.
        ValueError: a value has no place in the template.
    """
    template = _template("templates", f"{name}.md")
    unused = sorted(set(values) - set(template.get_identifiers()))
    if unused:
        raise ValueError(f"template {name} has no place for {', '.join(unused)}")
    return template.substitute(values).strip()


def example(name: str, /, **values: object) -> str:
    """Return the example program in a language, `$names` replaced; `examples/<name>.txt`."""
    return _template("examples", f"{name}.txt").substitute(values)


@cache
def _template(folder: str, name: str) -> string.Template:
    # Raises where a file is missing: a broken installation, no user's error.
    return string.Template(files("kopt.prompts").joinpath(folder, name).read_text(encoding="utf-8"))
