"""The base of every section of the configuration: frozen, and closed to unknown keys."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict

from kopt.part_file import is_part_of_file

SECRET_FAULT = "secret"
"""Type of a validation error (PydanticCustomError) whose input may be a secret: never repeated."""


class Section(BaseModel):
    """One section. Its class lives beside the part that reads it; kopt.config assembles them."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)


def kind_of(section: object) -> str | None:
    """Return the kind of a section, by which a union of them tells it.

    `plugin` for one of another package, or of a file.
    """
    kind = section.get("kind") if isinstance(section, dict) else getattr(section, "kind", None)
    is_plugin = isinstance(kind, str) and ("/" in kind or is_part_of_file(kind))
    return "plugin" if is_plugin else kind
