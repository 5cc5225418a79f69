"""The changes since the run before, beyond noise."""

from collections import Counter

from compare.base import formats
from compare.trial.bench.task import BY_NAME
from reports.diff import Change
from reports.summary import Subject, Summary
from reports.tables import Entry, Row, Table

_WORDS = {
    "slower": "slower",
    "faster": "faster",
    "same": "within noise",
    "few samples": "with too few samples to tell",
}


def headline(summary: Summary) -> str:
    """The numbers of changes; empty without a run before."""
    compared = summary.before
    if compared is None:
        return ""
    verdicts = Counter(change.verdict for change in compared.changes)
    counts = ", ".join(
        f"{formats.count(verdicts[verdict])} {words}"
        for verdict, words in _WORDS.items()
        if verdicts[verdict]
    )
    unit = f" Times are compared as multiples of {compared.base}." if compared.base else ""
    return f"Compared with {compared.paths[0].rpartition('/')[2]}: {counts}.{unit}"


def table(summary: Summary) -> Table:
    """Each change beyond noise."""
    changes = summary.before.changes if summary.before else ()
    entries: dict[Subject, Row] = {
        timer: {
            (_heading(change),): _entry(change)
            for change in changes
            if change.contestant == timer.label and change.verdict in ("slower", "faster")
        }
        for timer in summary.contestants
    }
    note = (
        "Change of the median time, and the interval of the change. A figure differs beyond noise "
        "if the intervals of the two medians are more than 10 % apart."
    )
    return Table("changes", "Changes beyond noise", ("figure",), entries, note)


def _heading(change: Change) -> str:
    subject = change.subject
    if subject.size is None:
        return subject.task
    return f"{BY_NAME[subject.task].title}, {formats.size(subject.size)}"


def _entry(change: Change) -> Entry:
    low, high = (100 * (ratio - 1) for ratio in change.interval)
    percent = 100 * (change.ratio - 1)
    return Entry(f"{percent:+.0f}%", f"({low:+.0f} to {high:+.0f})", value=percent)
