"""The enqueue experiment: two designs of a purgatory under the same requests."""

from collections.abc import Sequence

from compare.trial.purgatory.figures import (
    MEMORY,
    PURGING,
    RATE,
    SCANNING,
    Row,
    median_row,
    saturation,
)
from reports import formats
from reports.sections.parts import Entry, Figures, Section, Table, entries, plain_row
from reports.summary import Summary
from reports.trials import by_case


def section(summary: Summary) -> Section | None:
    """Make the section: the rates that both designs sustain, and their costs."""
    rows = summary.trials
    if not rows:
        return None
    return Section(
        "purgatory",
        "Requests that wait: the enqueue experiment",
        headline=_headline(rows),
        lead="A purgatory holds requests until they are answered or time out, here after 200 ms. "
        "Each request watches 3 of 100 keys. The new design takes an answered request out of its "
        "timing wheel at once, and purges the lists of watchers by an estimate. The old one "
        "leaves it in a delay queue, and a reaper scans queue and lists when they are too long. "
        "The loads “low” and “high” are those of the workloads lognormal-low and lognormal-high.",
        tables=[table for table in (of_rates(rows), of_memory(rows)) if table.rows],
    )


def _microseconds(us: float) -> str:
    return formats.nanoseconds(us * 1e3)


def _whole(number: float) -> str:
    return formats.count(round(number))


_RATES: Figures = {
    "CPU time per request": ("cpu_us", _microseconds),
    "of it in the garbage collector": ("gc_us", _microseconds),
    "most memory": ("peak_bytes", formats.data_size),
    "p50 lateness [ms]": ("late_p50_ms", formats.amount),
    "p99 lateness [ms]": ("late_p99_ms", formats.amount),
    "greatest lateness [ms]": ("late_max_ms", formats.amount),
    "timed out": ("share_expired", formats.share),
    "estimated total": ("estimated_total", _whole),
    "exact total": ("exact_total", _whole),
    "greatest error": ("estimate_error", _whole),
}
_MEMORY: Figures = {
    "limit": ("interval", formats.count),
    "requests": ("requests", formats.count),
    "most memory": ("peak_bytes", formats.data_size),
    "failure": ("failed", str),
}


def of_rates(rows: Sequence[Row]) -> Table:
    """Both designs in real time at the highest rate that they kept up with."""
    highest, shown = saturation(rows), {}
    for case, rates in by_case(rows, RATE).items():
        rate, failed = highest[case.load, case.design]
        row = median_row(rates.get(rate) or next(iter(rates.values())))
        reached = Entry(formats.count(rate), "" if failed else "or more", value=rate)
        shown[case] = plain_row({"requests/s": reached, **entries(row, _RATES)})
    return Table(
        "purgatory-rates",
        "In real time, at the highest rate that each kept up with",
        ("figure",),
        shown,
        "A rate counts as sustained if most trials reach 95% of it with a p99 lateness below 200 "
        "ms. Figures are medians of the trials. The estimated total is the number of requests in "
        "the lists as the new design estimates it, on average. All threads of a design share one "
        "interpreter lock, so they have one core together, and the processor time includes the two "
        "threads of the experiment. In other languages both designs reach other rates.",
        of="design",
    )


def of_memory(rows: Sequence[Row]) -> Table:
    """The trials with little memory."""
    medians = {
        case: median_row(same)
        for case, trials in by_case(rows, MEMORY).items()
        for same in trials.values()
    }
    room, rate = next(((row["memory_bytes"], row["rate"]) for row in medians.values()), (0, 0))
    return Table(
        "purgatory-memory",
        f"With {formats.data_size(room)} more memory than at the start, at {formats.count(rate)} "
        "requests/s",
        ("figure",),
        {case: plain_row(entries(row, _MEMORY)) for case, row in medians.items()},
        "The limit is the purge interval of the new design, and the number of entries above which "
        "the old one scans: at the highest limit it scans least.",
        of="design",
    )


def _headline(rows: Sequence[Row]) -> str:
    """The two designs where half of the requests time out."""
    highest = saturation(rows)
    texts = []
    for design in (PURGING, SCANNING):
        rate, failed = highest.get(("high", design), (0, False))
        if not rate:
            return ""
        texts.append(f"{'' if failed else 'at least '}{formats.count(rate)}")
    return (
        "Where half of the requests time out, the new design keeps up with {} requests/s, the old "
        "one with {}.".format(*texts)
    )
