"""How to read the page: its terms, each in a sentence or two."""

from reports import formats
from reports.formats import SPACE
from reports.sections.parts import Section, Terms
from reports.statistics import FEW, MARGIN, UNSURE
from reports.summary import Summary


def section(summary: Summary) -> Section:
    """The terms that the other sections use."""
    units = dict.fromkeys(formats.unit_name(source.unit) for source in summary.replays)
    replayed = f" Here the replayed workloads count {formats.listed(units)}." if units else ""
    operations: Terms = {
        "N": ["The number of pending timers: scheduled, not yet fired and not cancelled."],
        "Operations": [f"{task.title}: {task.meaning}" for task in summary.cells],
    }
    terms = {
        **(operations if summary.cells else {}),
        "Times": _times(summary),
        "Unit": [f"Timers count time in whole units. The caller decides what a unit is.{replayed}"],
        "Tick": [
            "The number of units that a wheel treats as one moment. A greater tick means less work "
            "and less precision: with a tick of 100, a timer may fire 100 units late."
        ],
        "Lateness": [
            "The moment of firing minus the deadline, or minus the moment of scheduling if the "
            "deadline had already passed. Negative is early. A timer is exact if its lateness is "
            "always 0."
        ],
    }
    return Section("reading", "Reading", "How to read this page", terms=terms)


def _times(summary: Summary) -> list[str]:
    of = "of all shards together" if summary.of_shards else "the median of the samples"
    explained = [f"Times are per operation, {of}. 1{SPACE}µs is 1000{SPACE}ns."]
    if summary.base:
        explained.append(
            f"A ratio such as 1.50× compares with {summary.base.timer}: above 1 is slower."
        )
    tied = (
        f"Two times are tied if their intervals overlap: from the least {summary.sample} to the "
        f"greatest, {MARGIN - 1:.0%} wider at each end with fewer than {FEW} of them."
    )
    if not summary.of_shards:
        tied += (
            f" Where there are many samples, the interval holds the median with {1 - UNSURE:.0%} "
            "confidence."
        )
    explained.append(tied)
    if summary.over_budget:
        budget = summary.manifest["parameters"]["budget"]
        explained.append(
            f"“Over budget” means that the timer took longer than {budget:g} s for one sample. It "
            "was not run with more timers pending."
        )
    return explained
