"""Write the site into one folder: `python -m reports.site.build OUT`, in a checkout.

Every page is one file with relative links that loads nothing from other hosts. The documentation
is built into `OUT/docs` by Sphinx (`nox -s site`).
"""

import json
import os
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from html import escape
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from compare.base.files import new_directory
from compare.base.versions import versions
from compare.trial.claims.run import settled
from compare.trial.results.contributed import contributed, machine_title
from compare.trial.results.schema import Row
from compare.trial.results.store import CLAIMS, Run, RunError
from reports.answer import data
from reports.claims import headline
from reports.diff import noise_in
from reports.page import FIGURES, PAGE, Around, Charts, draw, render
from reports.site.explorable import SCHEMES, TEMPLATES, script, sources
from reports.site.lesson import EVEN, EXPONENTIAL, growth, searched
from reports.site.machines import cells, pairs
from reports.summary import Summary, figures_of

ROOT = Path(__file__).parents[2]

LINKS = {
    "wheelwork": "index.html",
    "Answer": "",  # the page of the newest run
    "Wheels": "wheels.html",
    "Claims": "claims/index.html",
    "Other languages": "timers.html",
    "Results": "results.html",
    "Documentation": "docs/index.html",
}
"""The site's pages, by the words of the links to them."""

QUESTION = "Which structure should hold your timeouts?"
"""The title of the start."""

PICTURE = "time-hold"
"""The chart on the start page, if the run has it."""


class Site:
    """The pages of the site, from stored runs and what the checkout holds."""

    def __init__(self, out: Path, runs: Sequence[Run], root: Path = ROOT) -> None:
        if not runs:
            raise RunError("there is no stored run in results/; `wheelwork contribute` adds one")
        self.out, self.runs, self.root = out, runs, root
        newest = {machine_title(run.manifest): run for run in reversed(runs)}
        self.shown = sorted(newest.values(), key=runs.index)  # the newest run of each machine
        self.links = {**LINKS, "Answer": self.place(runs[0])}
        self.pages = Environment(
            loader=FileSystemLoader(TEMPLATES),
            autoescape=True,
            undefined=StrictUndefined,
            keep_trailing_newline=True,
        )

    def write(self) -> None:
        """Write all pages but the documentation."""
        self.write_answers()
        self.write_claims()
        rows = self.runs[0].rows
        counted_by = f"the run of {_day(self.runs[0])} on {machine_title(self.runs[0].manifest)}"
        self.write_page(
            "wheels.html",
            "Wheels",
            "Explore the wheels",
            "Timing wheels and a heap that run in the page, on your own log.",
            schemes=SCHEMES,
            sources=sources(),
            script=Markup(script()),
            growth=[*growth(rows)],
            counted_by=counted_by,
            searched={"exponential": searched(EXPONENTIAL), "even": searched(EVEN)},
        )
        figures = self.root / "docs" / "figures"
        peers, passes = (
            (figures / f"{name}.md").read_text(encoding="utf-8") for name in ("peers", "passes")
        )
        self.write_page(
            "timers.html",
            "Other languages",
            "Timers of other languages",
            "Timers in C, C++, Go, Java, JavaScript, Python and Rust, and who passes the check.",
            peers=table(peers, "| peer | structure |"),
            verdicts=table(passes, "| peer | library | result |"),
        )
        self.write_page(
            "results.html",
            "Results",
            "Results of several machines",
            "Stored runs of several machines: where they rank the timers alike, and where not.",
            runs=self.runs,
            pairs=pairs(self.runs),
            cells=cells(self.runs),
            title_of=lambda run: machine_title(run.manifest),
            moment=lambda run: str(run.manifest["created"])[:16].replace("T", " "),
            shown=self.shown,
            place=self.place,
            noise=noise_in,
        )

    def place(self, run: Run) -> str:
        """The page of a run, relative to the start page."""
        return f"answer/{run.path.parent.name}-{run.path.name}/{PAGE}"

    def write_page(self, name: str, here: str, title: str, description: str, **facts: Any) -> None:
        """Write a page from the template of its name."""
        page = self.pages.get_template(name).render(
            **self.frame(here), title=title, description=description, **facts
        )
        (self.out / name).write_text(page, encoding="utf-8")

    def frame(self, here: str, root: str = "", choices: Mapping[str, str] = {}) -> dict[str, Any]:
        """What the navigation and the footer of a page need; `root` leads to the start."""
        return {
            "links": self.links,
            "here": here,
            "root": root,
            "choices": choices,
            "chosen": "",
            "version": versions()["wheelwork"] or "",
        }

    def navigation(self, here: str, root: str, **more: Any) -> Markup:
        """The links to all pages, for a page that is made elsewhere."""
        return self.html("nav.html", **self.frame(here, root) | more)

    def html(self, template: str, **facts: Any) -> Markup:
        """A part of a page."""
        return Markup(self.pages.get_template(template).render(**facts))

    def write_answers(self) -> None:
        """Write the start, and a page of each machine's newest run with the choice of another."""
        titles = {f"{machine_title(run.manifest)}, {_day(run)}": run for run in self.shown}
        choices = {title: f"../../{self.place(run)}" for title, run in titles.items()}
        for title, run in titles.items():
            nav = self.navigation("Answer", "../../", choices=choices, chosen=title)
            around = Around(above=nav, files=False)
            with drawn(run) as (summary, charts, figures):
                self.write_report(self.place(run), run, summary, charts, around)
                if run is self.runs[0]:
                    self.write_start(summary, charts, figures)

    def write_report(
        self, place: str, run: Run, summary: Summary, charts: Charts, around: Around
    ) -> None:
        """Write a report of a run. Its charts are in it: as files they would double the site."""
        page = self.out / place
        page.parent.mkdir(parents=True, exist_ok=True)
        page.write_text(render(summary, run.path.name, charts, around), encoding="utf-8")

    def write_start(self, summary: Summary, charts: Charts, figures: Path) -> None:
        """Write the start page: the question, the newest answer with its controls, the picture."""
        answer = data(summary)
        if not (answer["callers"] or answer["cases"]):
            raise RunError(f"{self.runs[0].path} has no figures from which an answer follows")
        shown = {picture.name: picture for each in charts.values() for picture, _ in each}
        picture = shown.get(PICTURE) or next(iter(shown.values()))
        figure = f"{picture.name}.svg"
        (figures / figure).rename(self.out / figure)
        facts = self.frame("wheelwork") | {
            "figure": figure,
            "alt": picture.caption,
            "claims": headline(figures_of(self.claims())),
            "answer": self.place(self.runs[0]),
            "question": QUESTION,
        }
        around = Around(
            title=QUESTION,
            above=self.navigation("wheelwork", "") + self.html("start.html", **facts),
            below=self.html("start_end.html", **facts),
            answer_only=True,
            files=False,
        )
        self.write_report(PAGE, self.runs[0], summary, charts, around)

    def claims(self) -> Run:
        """The stored figures of the claims, as a run."""
        facts = json.loads((self.root / "docs" / "claims.json").read_text(encoding="utf-8"))
        rows = [Row(*row) for row in facts.pop("rows")]
        unknown: dict[str, Any] = {"commit": None, "dirty": None, "parameters": {}, "sources": []}
        unknown |= {"agreement": {}, "contestants": [], "tasks": {}}
        return Run(Path("docs", "claims.json"), {"kind": CLAIMS, **unknown, **facts}, rows)

    def write_claims(self) -> None:
        """Write the claims with their verdicts and the figures that decide them."""
        run = self.claims()
        index = self.html("claims.html", claims=settled(run.rows))
        nav = self.navigation("Claims", "../")
        with drawn(run) as (summary, charts, _):
            around = Around(above=nav, begin=index, files=False)
            self.write_report(f"claims/{PAGE}", run, summary, charts, around)


@contextmanager
def drawn(run: Run) -> Iterator[tuple[Summary, Charts, Path]]:
    """The figures of a run and its charts; their files are there until the block ends."""
    summary = figures_of(run)
    with TemporaryDirectory() as scratch:
        figures = Path(scratch, FIGURES)
        yield summary, draw(summary, figures), figures


def _day(run: Run) -> str:
    return str(run.manifest["created"])[:10]


def table(markdown: str, head: str) -> list[list[Markup]]:
    """The rows of a table of a page of the documentation, its heading first, as HTML.

    >>> table("| peer | x |\\n|---|---|\\n| `a` | 1 < 2 |\\n\\ntext", "| peer")[1]
    [Markup('<code>a</code>'), Markup('1 &lt; 2')]
    """
    lines = markdown[markdown.index(head) :].split("\n\n")[0].splitlines()
    del lines[1]
    return [
        [
            Markup(re.sub("`([^`]*)`", r"<code>\1</code>", escape(cell.strip(), quote=False)))
            for cell in line.strip().removeprefix("|").removesuffix("|").split("|")
        ]
        for line in lines
    ]


def build(out: str | os.PathLike[str], root: Path = ROOT) -> Path:
    """Write the site into the folder `out`, which it replaces, and return the path of its start."""
    with new_directory(out, replace=True) as directory:
        Site(directory, contributed(root / "results"), root).write()
    return Path(out) / PAGE


if __name__ == "__main__":
    print(build(sys.argv[1]))
