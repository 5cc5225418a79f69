"""All sections, in the order of the page. A new one is a file and a line here."""

from collections.abc import Callable

from reports.sections import calls, memory, method, purgatory, schemes, times, work, workloads
from reports.sections.parts import Section
from reports.summary import Summary

Maker = Callable[[Summary], Section | None]


def prose(name: str, title: str) -> Maker:
    """A function that makes a section from its template alone."""
    section = Section(name, title, template=f"{name}.html", folded=True)
    return lambda summary: section if summary.contestants else None


SECTIONS: tuple[Maker, ...] = (
    times.section,
    calls.section,
    workloads.section,
    memory.section,
    purgatory.section,
    work.section,
    schemes.section,
    prose("reading", "How to read this page"),
    method.section,
    prose("limits", "What these figures cannot say"),
)
"""Each function makes its section, or returns None if the run has no figures for it."""


def sections(summary: Summary) -> list[Section]:
    """The sections for which the run has figures."""
    results = (make(summary) for make in SECTIONS)
    return [section for section in results if section is not None]
