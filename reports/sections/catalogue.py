"""All sections, in the order of the page. A new one is a file and a line here."""

from collections.abc import Callable

from reports.sections import (
    calls,
    limits,
    memory,
    method,
    purgatory,
    reading,
    schemes,
    times,
    work,
    workloads,
)
from reports.sections.parts import Section
from reports.summary import Summary

SECTIONS: tuple[Callable[[Summary], Section | None], ...] = (
    times.section,
    calls.section,
    workloads.section,
    memory.section,
    purgatory.section,
    work.section,
    schemes.section,
    reading.section,
    method.section,
    limits.section,
)
"""Each makes its section, or None where the run has no figures for it."""


def sections(summary: Summary) -> list[Section]:
    """The sections that the run has figures for."""
    alone = summary.trials and not summary.contestants
    makers = (purgatory.section, method.section) if alone else SECTIONS
    found = (make(summary) for make in makers)
    return [section for section in found if section is not None]
