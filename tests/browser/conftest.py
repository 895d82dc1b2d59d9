"""A Chromium for tests of pages, the system's or Playwright's own; without one they are skipped."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

BROWSERS = ("chromium", "chromium-browser", "google-chrome")


@pytest.fixture(scope="module")
def browser() -> Iterator[object]:
    """A headless Chromium. While it is open, its thread has an event loop that runs: no longer."""
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    found = next(filter(None, map(shutil.which, BROWSERS)), None)
    with playwright.sync_playwright() as started:
        own = Path(started.chromium.executable_path)
        if found is None and not own.exists():
            pytest.skip("no Chromium: install the system's, or run `playwright install chromium`")
        # The pages are our own files, and a container may have no user namespaces for its sandbox.
        launched = started.chromium.launch(executable_path=found, args=["--no-sandbox"])
        yield launched
        launched.close()
