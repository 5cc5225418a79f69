"""The changes since the run before, beyond noise."""

from collections import Counter

from compare.base import formats
from compare.trial.bench.task import BY_NAME
from reports.diff import Change
from reports.summary import Summary
from reports.tables import Entry, Section, Table


def section(summary: Summary) -> Section | None:
    """Make the section: each change beyond noise, and the number of the others."""
    compared = summary.before
    if compared is None:
        return None
    verdicts = Counter(change.verdict for change in compared.changes)
    beyond = [change for change in compared.changes if change.verdict in ("slower", "faster")]
    by_label = {timer.label: timer for timer in summary.contestants}
    entries: dict[object, dict[tuple[str, ...], Entry]] = {
        timer: {} for timer in summary.contestants
    }
    for change in beyond:
        entries[by_label[change.contestant]][(_heading(change),)] = _entry(change)
    counts = ", ".join(
        f"{formats.count(verdicts[verdict])} {words}"
        for verdict, words in _WORDS.items()
        if verdicts[verdict]
    )
    unit = f" Times are compared as multiples of {compared.base}." if compared.base else ""
    table = Table("changes", "Changes beyond noise", ("figure",), entries, _NOTE)
    return Section(
        "changes",
        "Since the run before",
        lead=f"Compared with {compared.paths[0].rpartition('/')[2]}: {counts}.{unit}",
        tables=[table] if beyond else [],
        folded=True,
    )


_WORDS = {
    "slower": "slower",
    "faster": "faster",
    "same": "within noise",
    "few samples": "with too few samples to tell",
}
_NOTE = (
    "Change of the median time, and the interval of the change. A figure differs beyond noise if "
    "the intervals of the two medians are more than 10 % apart."
)


def _heading(change: Change) -> str:
    subject = change.subject
    if subject.size is None:
        return subject.task
    return f"{BY_NAME[subject.task].title}, {formats.size(subject.size)}"


def _entry(change: Change) -> Entry:
    low, high = (100 * (ratio - 1) for ratio in change.interval)
    percent = 100 * (change.ratio - 1)
    return Entry(f"{percent:+.0f}%", f"({low:+.0f} to {high:+.0f})", value=percent)
