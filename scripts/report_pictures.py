"""The README's pictures of a report, and of `kopt watch`, made from a real run on this machine.

    python scripts/report_pictures.py [run=FOLDER] [out=kopt/report/pictures] [iterations=3]

Without `run`, three arms search five built-in problems on the CPU first (some minutes; calm hosts
give narrower intervals). Writes report-light.png, report-dark.png (the summary, and a search's tree
with its best candidate), report-narrow.png (a telephone's width) and watch.png. Needs the extra
`report`, playwright, and a Chromium.
"""

from __future__ import annotations

import base64
import io
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console, Group
from rich.text import Text

from kopt.cli.watch_tree_view import tree_frame
from kopt.cli.watch_view import frame
from kopt.cli.watched_run import WatchedRun
from kopt.data.fleet_file import is_fleet
from kopt.evaluation import rank

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

SETTINGS = {"run": "", "out": "kopt/report/pictures", "iterations": "3"}
PROBLEMS = (
    "builtin/linear_row_sum",
    "builtin/matmul_chain_vector",
    "builtin/softmax",
    "builtin/layer_norm",
    "builtin/kl_divergence",
)
WIDTH, HEIGHT, NARROW, NARROW_HEIGHT = 1280, 760, 390, 844
"""Pixels."""
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
USAGE_EXIT = 2
GAP_PX = 8


def settings_of(arguments: list[str]) -> dict[str, str]:
    """Return the settings with the overrides applied.

    Raises:
        ValueError: an argument is not a known name=value.
    """
    settings = dict(SETTINGS)
    for argument in arguments:
        name, separator, value = argument.partition("=")
        if not separator or name not in settings:
            raise ValueError(f"expected one of {', '.join(SETTINGS)} as name=value, got {argument}")
        settings[name] = value
    return settings


def kopt(*arguments: str) -> None:
    """Run a command of kopt in a process of its own."""
    subprocess.run([sys.executable, "-m", "kopt", *arguments], check=True)


def searched(folder: Path, *, iterations: int) -> Path:
    """Run three arms, and return the folder of all of them."""
    kopt(
        *("run", "-m", "search=mcts,greedy,best_of_n", f"problem=[{','.join(PROBLEMS)}]"),
        *(f"search.iterations={iterations}", f"out={folder}", "name=arms", "device=cpu"),
    )
    return folder / "arms"


def picture_of_report(browser: Browser, path: Path, *, scheme: str, out: Path) -> None:
    """Write two parts of the page, one under the other: its top, and the tree with its panel."""
    page = _opened(browser, path, scheme=scheme, width=WIDTH, height=HEIGHT)
    top = page.screenshot()
    page.evaluate("document.querySelector('#tree').scrollIntoView()")
    page.wait_for_timeout(300)
    bottom = page.screenshot()
    page.context.close()
    _stacked(browser, [top, bottom], scheme=scheme, out=out)


def picture_of_narrow(browser: Browser, path: Path, *, out: Path) -> None:
    """Write the page's top as a telephone shows it."""
    page = _opened(browser, path, scheme="light", width=NARROW, height=NARROW_HEIGHT)
    page.screenshot(path=out)
    page.context.close()


def picture_of_watch(browser: Browser, run: Path, *, out: Path) -> None:
    """Write a frame of the run as a whole and one of a search's tree, in 80 columns."""
    watched = WatchedRun(str(run))
    watched.look()
    whole = frame(watched.watched, watched.moment)
    watched.follow(max(watched.watched.best, key=lambda name: rank(watched.watched.best[name])))
    assert watched.tree is not None
    console = Console(width=80, record=True, force_terminal=True, file=io.StringIO())
    console.print(Group(whole, Text(), tree_frame(watched.tree, depth=4)))
    page = browser.new_page(viewport={"width": 1000, "height": 600})
    page.set_content(console.export_svg(title=f"kopt watch {run.name}"))
    page.locator("svg").first.screenshot(path=out)
    page.close()


def _opened(browser: Browser, path: Path, *, scheme: str, width: int, height: int) -> Page:
    context = browser.new_context(
        viewport={"width": width, "height": height},
        color_scheme="dark" if scheme == "dark" else "light",
        offline=True,
    )
    page = context.new_page()
    page.goto(path.resolve().as_uri())
    page.wait_for_selector("html[data-ready]", state="attached", timeout=60_000)
    page.wait_for_timeout(500)
    return page


def _stacked(browser: Browser, pictures: list[bytes], *, scheme: str, out: Path) -> None:
    """Write pictures one under the other."""
    ground = "#444" if scheme == "dark" else "#bbb"
    images = "".join(
        f'<img style="display:block;margin-bottom:{GAP_PX}px" '
        f'src="data:image/png;base64,{base64.b64encode(picture).decode("ascii")}">'
        for picture in pictures
    )
    height = len(pictures) * (HEIGHT + GAP_PX) - GAP_PX
    page = browser.new_page(viewport={"width": WIDTH, "height": height})
    page.set_content(f'<body style="margin:0;background:{ground}">{images}</body>')
    page.wait_for_function("[...document.images].every((image) => image.complete)")
    page.screenshot(path=out)
    page.close()


def main(arguments: list[str]) -> int:
    """Search where there is no run yet, and write the pictures."""
    try:
        settings = settings_of(arguments)
        iterations = int(settings["iterations"])
    except ValueError as error:
        print(f"report_pictures: {error}", file=sys.stderr)
        return USAGE_EXIT
    from playwright.sync_api import sync_playwright

    out = Path(settings["out"])
    out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="kopt-pictures-") as folder, sync_playwright() as start:
        run = Path(settings["run"]) if settings["run"] else None
        if run is None:
            run = searched(Path(folder), iterations=iterations)
        kopt("report", str(run), "--out", folder, "--title", run.name)
        page = Path(folder) / "report.html"
        first = (
            next(each.parent for each in sorted(run.glob("*/journal"))) if is_fleet(run) else run
        )
        program = next(filter(None, map(shutil.which, BROWSERS)), None)
        browser = start.chromium.launch(executable_path=program, args=["--no-sandbox"])
        for scheme in ("light", "dark"):
            picture_of_report(browser, page, scheme=scheme, out=out / f"report-{scheme}.png")
        picture_of_narrow(browser, page, out=out / "report-narrow.png")
        picture_of_watch(browser, first, out=out / "watch.png")
        browser.close()
    for path in sorted(out.glob("*.png")):
        print(f"{path}: {path.stat().st_size / 1e3:.0f} kB")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
