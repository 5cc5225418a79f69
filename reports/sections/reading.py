"""How to read the page: its terms, each in a sentence or two."""

from reports.sections.parts import Section
from reports.summary import Summary


def section(summary: Summary) -> Section:
    """The terms that the other sections use."""
    title = "How to read this page"
    return Section("reading", "Reading", title, template="reading.html", folded=True)
