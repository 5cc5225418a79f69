"""A stored run as one self-contained HTML page, with its charts as files beside it."""

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from compare.bench.store import Run
from compare.files import errors_as, has_format, new_directory, obstacle, write_json
from reports.charts.figures import (
    how_to_read_replays,
    how_to_read_times,
    how_to_read_work,
    pictures,
)
from reports.charts.pictures import Picture, inline, save
from reports.findings import answer
from reports.sections import tables
from reports.sections.method import limits, method
from reports.sections.tables import Table
from reports.style import INK, look_of
from reports.summary import Summary, summarise
from reports.words import list_of
from timers.errors import TimerError

PAGE = "index.html"
MARK = "report.json"
"""The file by which a directory is known as a report, and may be replaced by a newer one."""
FORMAT = "wheelwork-report"

_TEMPLATES = Path(__file__).parent / "templates"


class ReportError(TimerError, OSError):
    """A report that cannot be written; one line that names the path and what is wrong."""

    def __str__(self) -> str:
        return str(self.args[0])


@dataclass(frozen=True)
class Chart:
    """A picture as the page shows it."""

    name: str
    caption: str
    alt: str
    svg: Markup


@dataclass(frozen=True)
class Section:
    """A part of the page with its own heading."""

    name: str
    short: str  # for the list of sections
    title: str
    lead: str = ""
    charts: Sequence[Chart] = ()
    tables: Sequence[Table] = ()


def check_target(out: str | os.PathLike[str]) -> None:
    """Raise ReportError unless a report can be written to `out`: before hours of measuring.

    What is there may be an older report or an empty directory; anything else is left alone.
    """
    path = Path(out)
    if path.is_dir():
        if not has_format(path / MARK, FORMAT) and any(path.iterdir()):
            raise ReportError(
                f"{out} is no report of wheelwork, so it is not replaced; choose another --out"
            )
    elif path.exists() or path.is_symlink():
        raise ReportError(f"{out} is not a directory; choose another --out")
    if problem := obstacle(path.absolute().parent):
        raise ReportError(f"cannot write {out}: {problem}")


def write_report(run: Run, out: str | os.PathLike[str]) -> Path:
    """Write the report of a run into the directory `out` and return the absolute path of its page.

    It appears complete or not at all, and replaces an older report. Raises ReportError where it
    cannot be written, RunError where the run is damaged.
    """
    return write_page(summarise(run), str(run.path.absolute()), out)


def write_page(summary: Summary, origin: str, out: str | os.PathLike[str]) -> Path:
    """The same, of figures that come from `origin`."""
    check_target(out)
    target = Path(out).absolute()
    with errors_as(ReportError, f"cannot write {out}"):
        target.parent.mkdir(parents=True, exist_ok=True)
        with new_directory(target, replace=True) as directory:
            _write(summary, origin, directory)
    return target / PAGE


def _write(summary: Summary, origin: str, directory: Path) -> None:
    figures = directory / "figures"
    figures.mkdir()
    charts = []
    for picture in pictures(summary):
        svg = save(picture, figures)
        charts.append(_chart(picture, svg))
    (directory / PAGE).write_text(
        render(summary, origin.rpartition("/")[2], charts), encoding="utf-8"
    )
    mark = {"format": FORMAT, "version": 1, "run": origin, "created": summary.manifest["created"]}
    write_json(directory / MARK, mark)


def _chart(picture: Picture, svg: str) -> Chart:
    # The only text that is not escaped: made by Matplotlib, which escapes the names that it draws.
    return Chart(picture.name, picture.caption, picture.alt, Markup(inline(svg, picture.name)))


def render(summary: Summary, run_name: str, charts: Sequence[Chart]) -> str:
    """The page's text."""
    environment = Environment(
        loader=FileSystemLoader(_TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        keep_trailing_newline=True,
    )
    environment.filters["colour"] = _colour
    environment.filters["anchor"] = lambda name: re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")
    manifest = summary.manifest
    machine = manifest["machine"]
    return environment.get_template("page.html").render(
        css=Markup((_TEMPLATES / "style.css").read_text(encoding="utf-8")),
        names=list_of(who.plain for who in summary.contestants),
        machine=machine.get("cpu") or machine.get("platform") or "an unknown machine",
        created=_day(manifest["created"]),
        answer=answer(summary),
        glance=tables.at_a_glance(summary) if summary.sizes else None,
        sections=_sections(summary, {chart.name: chart for chart in charts}),
        method=method(summary),
        limits=limits(summary),
        version=manifest["versions"].get("wheelwork") or "",
        run_name=run_name,
    )


def _sections(summary: Summary, charts: dict[str, Chart]) -> list[Section]:
    def some(*names: str) -> list[Chart]:
        return [charts[name] for name in names if name in charts]

    tasks = summary.tasks
    work = [table for task in tasks if (table := tables.work(summary, task))]
    found = [
        Section("answer", "In short", "In short"),
        Section(
            "times",
            "Time",
            "Time against the number of pending timers",
            f"What one operation costs as more and more timers are pending. {how_to_read_times(summary)}",
            some(*(f"time-{task.name}" for task in tasks)),
            [tables.times(summary, task) for task in tasks],
        ),
        Section(
            "work",
            "Work",
            "Work, counted",
            "What the same operations did inside: the reason for the times, and the same on every machine. "
            + how_to_read_work(summary),
            some(*(f"work-{task.name}" for task in tasks)),
            work,
        ),
        Section(
            "workloads",
            "Workloads",
            "Whole workloads: time and precision",
            "Recorded or generated traffic, replayed from the first operation to the last expiry. A timer with a "
            "coarse tick saves work by firing late, or early: its times and those of an exact timer answer different "
            f"questions. {how_to_read_replays(summary)}",
            some("replays", "trade-off", "lateness"),
            [
                tables.grid(summary, source)
                if summary.of_shards
                else tables.replays(summary, source)
                for source in summary.sources
            ],
        ),
        Section(
            "memory",
            "Memory",
            "Memory",
            "What a pending timer takes up.",
            some("memory"),
            [tables.memory(summary)] if summary.memory else [],
        ),
        Section(
            "schemes",
            "Schemes",
            "The schemes",
            "What is declared about each. "
            + (
                ""
                if summary.of_shards
                else "Every firing is held to the declared moment before anything is timed. "
            )
            + "The tests hold the counted work to the declared costs.",
            [],
            [tables.behaviour(summary), tables.advice(summary)],
        ),
        Section("method", "Method", "How it was measured"),
        Section("limits", "Limits", "What these figures cannot say"),
    ]
    always = {"answer", "method", "limits"}
    return [
        section for section in found if section.name in always or section.charts or section.tables
    ]


def _colour(timer: str) -> str:
    colour = look_of(timer).colour
    return "currentColor" if colour == INK else colour


def _day(created: Any) -> str:
    try:
        return f"{datetime.fromisoformat(created):%-d %B %Y}"
    except ValueError:
        return str(created)
