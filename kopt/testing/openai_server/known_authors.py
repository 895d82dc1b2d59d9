"""The scripted models by name."""

from __future__ import annotations

from kopt.testing.openai_server.authors import Author, long_author, reference_author, stock_author
from kopt.testing.openai_server.roles import roles_author

AUTHORS: dict[str, Author] = {
    "reference": reference_author,
    "stock": stock_author,
    "long": long_author,
    "roles": roles_author,
}
"""By the name that the command takes."""
