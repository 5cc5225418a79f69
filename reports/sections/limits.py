"""What the figures of a run cannot say."""

from reports.sections.parts import Section
from reports.summary import Summary


def section(summary: Summary) -> Section:
    """The limits, from those of this run to those of all."""
    title = "What these figures cannot say"
    return Section("limits", "Limits", title, template="limits.html", folded=True)
