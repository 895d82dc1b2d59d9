"""The persisting part of a GPU's L2, where there is no driver to ask."""

from __future__ import annotations

import pytest

from kopt.actors.devices.cuda_l2 import PersistingL2


@pytest.mark.parametrize("library", ["libno-such-driver.so.1", "libc.so.6"])
def test_without_a_driver_that_knows_of_it_nothing_is_set_aside_and_nothing_done(library) -> None:
    part = PersistingL2(library)
    part.let_go()
    assert part.set_aside_bytes() == 0
