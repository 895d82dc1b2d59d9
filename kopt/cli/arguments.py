"""Argument parsers of the commands: a wrong argument is a ConfigError of one line."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import NoReturn

from kopt.errors import ConfigError


class Parser(argparse.ArgumentParser):
    """An argparse parser that raises instead of printing its usage and leaving."""

    def error(self, message: str) -> NoReturn:
        """Raise what argparse found wrong.

        Raises:
            ConfigError: always.
        """
        raise ConfigError(f"{message}; `{self.prog} --help` says what it takes")


def command_parser(name: str, *, description: str, epilog: str = "") -> Parser:
    """Return the parser of one command, `--json` included.

    Args:
        name: of the command.
        description: what it does, in a sentence or two.
        epilog: lines shown below the arguments, as they are.
    """
    parser = Parser(
        prog=f"kopt {name}",
        description=description,
        epilog=epilog,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--json", action="store_true", help="one JSON object on stdout, last")
    return parser


def parse(parser: Parser, arguments: Sequence[str]) -> argparse.Namespace | None:
    """Return the parsed arguments; None where help was asked for and has been printed.

    Options may stand between overrides.

    Raises:
        ConfigError: an argument is unknown, missing or malformed.
    """
    try:
        return parser.parse_intermixed_args(list(arguments))
    except SystemExit:
        return None
