"""The report of a run: one self-contained HTML page, with its charts as files beside it."""

import os
import shlex
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from compare.base.files import errors_as, has_format, new_directory, obstacle, write_json
from compare.trial.purgatory.figures import NONE
from compare.trial.results.store import Run, RunError
from reports import claims, statistics, timeouts
from reports.answer import data
from reports.catalogue import plots, sections
from reports.charts import pictures
from reports.charts.pictures import Picture, save
from reports.diff import difference
from reports.method import facts
from reports.palette import INK, css, look_of
from reports.summary import Subject, Summary, figures_of
from reports.trials import Case
from reports.unfinished import unfinished
from timers.errors import TimerError

PAGE = "index.html"
FIGURES = "figures"
TEMPLATES = Path(__file__).parent / "templates"
SCRIPTS = tuple(
    f"page/{name}.js"
    for name in ("text", "model", "rule", "settings", "tuning", "words", "overload", "charts")
)
"""The scripts of the page, in order."""
JOINER = "\u2060"  # after a dash, so that a range stays on one line
MARK = "report.json"
"""The file that marks a directory as a report, which a newer one may replace."""
FORMAT = "wheelwork-report"


_NOTHING = Markup()
Charts = Mapping[str, Sequence[tuple[Picture, str]]]
"""The charts of each section, with their SVG elements."""


@dataclass(frozen=True)
class Around:
    """The HTML that a site puts around a report: above it, at its beginning, and below it."""

    title: str = ""  # instead of the report's own
    above: Markup = _NOTHING
    begin: Markup = _NOTHING
    below: Markup = _NOTHING
    answer_only: bool = False
    files: bool = True  # whether the charts are files, too


class ReportError(TimerError, OSError):
    """A report that cannot be written."""


def check_target(out: str | os.PathLike[str]) -> None:
    """Check, before hours of measuring, that a report can be written to `out`.

    An older report or an empty directory may be replaced; anything else is left alone.

    Raises:
        ReportError: A report cannot be written there.
    """
    path = Path(out)
    if path.is_dir():
        names = {entry.name for entry in path.iterdir()}
        if others := names - {PAGE, MARK, FIGURES}:
            raise ReportError(
                f"{out} contains {min(others)}, which would be deleted; choose another --out"
            )
        if names and not has_format(path / MARK, FORMAT):
            raise ReportError(f"{out} is not a report of wheelwork; choose another --out")
    elif path.exists() or path.is_symlink():
        raise ReportError(f"{out} is not a directory; choose another --out")
    if problem := obstacle(path.absolute().parent):
        raise ReportError(f"cannot write {out}: {problem}")


def write_report(run: Run, out: str | os.PathLike[str], before: Run | None = None) -> Path:
    """Write the report of a run into the directory `out` and return the absolute path of its page.

    The report appears complete or not at all, and replaces an older one. If the run `before` can be
    compared with this one, the page shows what has changed.

    Raises:
        ReportError: It cannot be written, or `out` is something other than a report.
        RunError: The run is damaged.
    """
    summary = figures_of(run)
    if before is not None:
        with suppress(RunError):  # of another machine, or with other timers
            summary = replace(summary, before=difference(before, run))
    return write_page(summary, str(run.path.absolute()), out)


def write_page(summary: Summary, origin: str, out: str | os.PathLike[str]) -> Path:
    """Write a report, as `write_report` does, from figures that were read from `origin`."""
    check_target(out)
    target = Path(out).absolute()
    with errors_as(ReportError, f"cannot write {out}"):
        target.parent.mkdir(parents=True, exist_ok=True)
        with new_directory(target, replace=True) as directory:
            _write(summary, origin, directory)
    return target / PAGE


def _write(summary: Summary, origin: str, directory: Path) -> None:
    names = ", ".join(part.rpartition("/")[2] for part in origin.split(", "))
    page = render(summary, names, draw(summary, directory / FIGURES))
    (directory / PAGE).write_text(page, encoding="utf-8")
    mark = {"format": FORMAT, "version": 1, "run": origin, "created": summary.manifest["created"]}
    write_json(directory / MARK, mark)


def draw(summary: Summary, figures: Path) -> Charts:
    """Draw the charts, and write them as SVG and PNG into a new directory."""
    figures.mkdir()
    return {
        # Only this text is not escaped: Matplotlib escapes the names that it draws.
        section: [(picture, Markup(save(picture, figures, numbers(summary)))) for picture in drawn]
        for section, drawn in pictures(plots(summary)).items()
    }


def numbers(summary: Summary) -> dict[Subject, int]:
    """The entries of the legend, in order, with their numbers: contestants, cases, and traces."""
    cases = (Case(row["load"], row["design"]) for row in summary.trials if row["design"] != NONE)
    subjects: list[Subject] = [*summary.contestants, *dict.fromkeys(cases)]
    subjects += [traffic for traffic, _ in timeouts.curves(summary)]
    subjects += claims.subjects(summary)
    return {subject: number for number, subject in enumerate(subjects)}


def render(summary: Summary, run_name: str, charts: Charts, around: Around = Around()) -> str:
    """The HTML of the page."""
    environment = Environment(
        loader=PackageLoader("reports"),
        autoescape=True,
        undefined=StrictUndefined,
        keep_trailing_newline=True,
        finalize=lambda text: text.replace("–", f"–{JOINER}") if type(text) is str else text,
    )
    environment.policies["json.dumps_kwargs"] = {"sort_keys": False}  # callers have an order
    environment.filters["colour"] = _colour
    environment.filters["symbol"] = lambda timer: look_of(timer).symbol
    manifest = summary.manifest
    machine = manifest["machine"]
    return environment.get_template("page.html").render(
        title=_title(summary),
        around=around,
        machine=machine.get("cpu") or machine.get("platform") or "an unknown machine",
        created=_day(manifest["created"]),
        sections=sections(summary),
        summary=summary,
        statistics=statistics,
        charts=charts,
        number=numbers(summary),
        answer=data(summary),
        scripts=SCRIPTS,
        unfinished=unfinished(summary),
        colours=Markup(css()),
        traffic={summary.called(source): facts(summary, source) for source in summary.own},
        noise=summary.noise.text,
        command=shlex.join(map(str, manifest["command"])),
        version=manifest["versions"].get("wheelwork") or "",
        run_name=run_name,
    )


def _title(summary: Summary) -> str:
    if summary.contestants:
        return "Timers compared"
    return "Claims about timers" if summary.claims else "Purgatories compared"


def _colour(timer: str) -> str:
    colour = look_of(timer).colour
    return "currentColor" if colour == INK else colour


def _day(created: Any) -> str:
    try:
        return f"{datetime.fromisoformat(created):%-d %B %Y}"
    except ValueError:
        return str(created)
