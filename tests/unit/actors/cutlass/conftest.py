"""The toy tree on disk, and the real headers where the package is installed."""

from __future__ import annotations

from pathlib import Path

import pytest

from kopt.actors.cutlass.checkout import Checkout
from kopt.actors.cutlass.find import PACKAGE, packaged_checkout
from kopt.actors.cutlass.library import Library
from kopt.testing.toy_cutlass import write_toy


@pytest.fixture
def toy(tmp_path: Path) -> Checkout:
    return Checkout(root=write_toy(tmp_path / "toy").resolve(), origin="toy 9.1.2")


@pytest.fixture(scope="session")
def real() -> Library:
    found = packaged_checkout()
    if found is None:
        pytest.skip(f"the package {PACKAGE} is not installed")
    return Library(found)
