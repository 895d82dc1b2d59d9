"""The page: one HTML file that holds everything it needs and may ask the network for nothing.

Texts of runs are untrusted. In markup they go through the template's escaping; in blocks of data
they are base64; and the page's policy (CSP) lets only the two scripts run whose hashes it names.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.resources import files
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from kopt.analysis.trial import Terms
from kopt.report import wording
from kopt.report.charts import Chart
from kopt.report.packing import packed, packed_text
from kopt.report.reading import ReportedRun
from kopt.report.report import Report
from kopt.version import __version__

SCRIPTS = (
    "blocks.js",
    "theme.js",
    "charts.js",
    "tables.js",
    "figures.js",
    "tree.js",
    "panel.js",
    "start.js",
)
"""In the order in which they are put together."""
FILTERS = ("times", "between", "microseconds", "seconds", "percent", "share", "chance", "number")
VERSIONS = ("kopt", "python", "torch", "triton", "ray")


@dataclass(frozen=True, slots=True)
class Column:
    """A column of the table of searches."""

    title: str
    numeric: bool = False


COLUMNS = (
    Column("problem"),
    Column("arm"),
    Column("seed", numeric=True),
    Column("outcome"),
    Column("speed-up", numeric=True),
    Column("interval", numeric=True),
    Column("ladder"),
    Column("over eager", numeric=True),
    Column("over compile", numeric=True),
    Column("time", numeric=True),
    Column("baseline", numeric=True),
    Column("of speed of light", numeric=True),
    Column("correct", numeric=True),
    Column("why no win"),
    Column("run"),
)


def html(report: Report, *, plotly_js: str, made_ns: int) -> str:
    """Return the page.

    Args:
        report: what it shows.
        plotly_js: source of Plotly.js.
        made_ns: when it is made, nanoseconds since the epoch.
    """
    script = '"use strict";\n' + "".join(_template_text(name) for name in SCRIPTS)
    environment = _environment()
    chart_template = environment.get_template("chart.html.j2")

    def chart_figure(chart: Chart, terms: Terms | None) -> Markup:
        return Markup(chart_template.render(chart=chart, terms=terms))

    main_block = {
        "charts": {chart.key: chart.figure() for chart in report.charts()},
        "trees": report.contents.trees,
        "first": report.first_tree(),
    }
    return environment.get_template("report.html.j2").render(
        title=report.title,
        version=__version__,
        made=f"{datetime.fromtimestamp(made_ns / 1e9, tz=UTC):%Y-%m-%d %H:%M} UTC",
        style=Markup(_template_text("report.css")),
        script=Markup(script),
        script_hashes=Markup(f"{_hash(script)} {_hash(plotly_js)}"),
        main_block=packed(main_block),
        plotly_block=packed_text(plotly_js),
        blocks=report.contents.blocks,
        told=report.contents.told,
        candidates=report.contents.candidates,
        over_seeds=report.asked.over_seeds,
        capped=_capped(report),
        strata=report.strata,
        rows=report.rows,
        columns=COLUMNS if len(report.runs) > 1 else COLUMNS[:-1],
        arm_names=list(dict.fromkeys(row.arm for row in report.rows)),
        outcomes=sorted({row.row["outcome"] for row in report.rows}),
        tree_options=[_tree_option(report, place) for place in range(len(report.rows))],
        throughputs=report.throughputs,
        cost_charts=report.cost,
        runs=[
            {"label": run.label, "path": run.path, "status": run.status, "facts": _facts(run)}
            for run in report.runs
        ],
        notes=report.notes,
        chart_figure=chart_figure,
    )


def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("kopt.report", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    words: dict[str, Callable[..., str]] = {name: getattr(wording, name) for name in FILTERS}
    environment.filters.update(words, usd=wording.usd)
    return environment


def _template_text(name: str) -> str:
    return (files("kopt.report") / "templates" / name).read_text(encoding="utf-8")


def _hash(script: str) -> str:
    digest = hashlib.sha256(script.encode("utf-8")).digest()
    return f"'sha256-{base64.b64encode(digest).decode('ascii')}'"


def _capped(report: Report) -> str:
    words = "" if report.asked.cap is None else f"; no search counts above {report.asked.cap:g}×"
    at = report.asked.at
    return words if at is None else f"{words}; after {at} candidates of each search"


def _tree_option(report: Report, place: int) -> str:
    row = report.rows[place]
    nodes = len(report.contents.trees[place]["node"])
    reached = wording.times(row.row["speedup"]) if row.row["speedup"] is not None else "unsolved"
    where = f" ({row.run})" if len(report.runs) > 1 else ""
    return (
        f"{row.search}{where}: {wording.counted(nodes, 'node')}, "
        f"{'win, ' if row.is_win else ''}{reached}"
    )


def _facts(run: ReportedRun) -> list[tuple[str, str]]:
    manifest = run.manifest
    if not manifest:
        return [("manifest", "none: the run has only begun")]
    device: dict[str, Any] = manifest.get("device") or {}
    versions: dict[str, Any] = manifest.get("versions") or {}
    host: dict[str, Any] = manifest.get("host") or {}
    facts = [
        ("begun", manifest.get("created")),
        ("command", " ".join(map(str, manifest.get("argv") or ()))),
        ("device", " ".join(str(device[key]) for key in ("count", "name") if key in device)),
        ("driver", device.get("driver")),
        ("host", f"{host.get('cpu', '')}, {host.get('cores', '')} cores, {host.get('system', '')}"),
        (
            "versions",
            ", ".join(f"{name} {versions[name]}" for name in VERSIONS if name in versions),
        ),
        ("revision of kopt", manifest.get("git_revision")),
        ("resumed", f"{len(manifest.get('resumes', []))} times" if "resumes" in manifest else None),
        ("commitment to seeds", manifest.get("seed_commitment")),
    ]
    facts += [
        ("device given up", f"{lost.device_name} {lost.device}: {lost.reason}")
        for lost in run.state.quarantined
    ]
    return [(name, str(value)) for name, value in facts if value]
