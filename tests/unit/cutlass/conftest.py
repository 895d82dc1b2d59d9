"""The toy tree, mined."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from kopt.cutlass.constraint import MinedTree
from kopt.cutlass.mining import mine
from kopt.testing.toy_cutlass import TEXTS


@pytest.fixture(scope="session")
def texts() -> Mapping[str, str]:
    return TEXTS


@pytest.fixture(scope="session")
def toy_tree() -> MinedTree:
    return mine(TEXTS, root="/opt/toy", origin="toy 9.1.2")
