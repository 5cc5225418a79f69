"""The enqueue experiment: two designs of a purgatory under the same requests."""

from collections.abc import Sequence
from statistics import median

from compare.purgatory import figures
from compare.purgatory.figures import Row
from reports import formats
from reports.sections.parts import NOTHING, Entry, Section, Table, entry, plain_row
from reports.summary import Summary
from reports.trials import by_case


def section(summary: Summary) -> Section | None:
    """What both designs keep up with, what they cost, and the same compiled."""
    rows = summary.trials
    if not rows:
        return None
    tables = [of_rates(rows), of_memory(rows), of_compiled(rows)]
    return Section(
        "purgatory",
        "Purgatory",
        "Requests that wait: the enqueue experiment",
        headline=_headline(rows),
        lead="A purgatory holds requests until they are answered or time out, here after 200 ms. "
        "Each request watches 3 of 100 keys. The new design takes an answered request out of its "
        "timing wheel at once, and purges the lists of watchers by an estimate. The old one "
        "leaves it in a delay queue, and a reaper scans queue and lists when they are too long. "
        "The loads “low” and “high” are those of the workloads lognormal-low and lognormal-high.",
        tables=[table for table in tables if table.rows],
        points=[
            "In real time all threads of a design share one interpreter lock, so they have one "
            "core together. In other languages both reach other rates; compare the two designs.",
            "The processor time includes the threads of the experiment itself: one that enqueues, "
            "one that answers.",
        ],
    )


def of_rates(rows: Sequence[Row]) -> Table:
    """Both designs in real time at the highest rate that they kept up with."""
    highest, found = figures.saturation(rows), {}
    for case, rates in by_case(rows, figures.RATE).items():
        rate, failed = highest[case.load, case.design]
        trials = rates.get(rate) or next(iter(rates.values()))
        row, cpu = figures.median_row(trials), figures.values_of(trials, "cpu_us")
        time = NOTHING
        if cpu:
            time = Entry(_microseconds(row["cpu_us"]), _range(cpu), value=row["cpu_us"])
        found[case] = plain_row(
            {
                "requests/s": Entry(formats.count(rate), "" if failed else "or more", value=rate),
                "CPU time per request": time,
                "of it in the garbage collector": entry(row["gc_us"], _microseconds),
                "most memory": entry(row["peak_bytes"], formats.data_size),
                "late: p50 / p99 / most [ms]": _lateness(row),
                "timed out": entry(row["share_expired"], formats.share),
                "estimated total": _estimate(row),
            }
        )
    return Table(
        "purgatory-rates",
        "In real time, at the highest rate that each kept up with",
        ("figure",),
        found,
        "A rate counts as sustained if most trials reach 95% of it with a p99 lateness below 200 "
        "ms. Figures are medians of the trials. The estimated "
        "total is the number of requests in the lists as the new design estimates it, on average.",
        of="design",
    )


def _microseconds(us: float) -> str:
    return formats.nanoseconds(us * 1e3)


def _range(us: Sequence[float]) -> str:
    return f"({formats.time_range(us[0] * 1e3, us[-1] * 1e3)})" if len(us) > 1 else ""


def _lateness(row: Row) -> Entry:
    late = [row[f"late_{which}_ms"] for which in ("p50", "p99", "max")]
    return NOTHING if None in late else Entry(" / ".join(map(formats.amount, late)))


def _estimate(row: Row) -> Entry:
    if row["estimated_total"] is None:
        return NOTHING
    names = ("estimated_total", "exact_total", "estimate_error")
    estimated, exact, error = (formats.count(round(row[name])) for name in names)
    return Entry(estimated, f"exact {exact}, off by at most {error}")


def of_memory(rows: Sequence[Row]) -> Table:
    """The trials with little memory."""
    found = {
        case: figures.median_row(same)
        for case, trials in by_case(rows, figures.MEMORY).items()
        for same in trials.values()
    }
    room, rate = next(((row["memory_bytes"], row["rate"]) for row in found.values()), (0, 0))
    return Table(
        "purgatory-memory",
        f"With {formats.data_size(room)} more memory than at the start, at {formats.count(rate)} "
        "requests/s",
        ("figure",),
        {
            case: plain_row(
                {
                    "limit": entry(row["interval"]),
                    "requests": entry(row["requests"]),
                    "most memory": entry(row["peak_bytes"], formats.data_size),
                    "outcome": Entry(
                        f"failed: {row['failed']}" if row["failed"] else "went on", number=False
                    ),
                }
            )
            for case, row in found.items()
        },
        "The limit is the purge interval of the new design, and the number of entries above which "
        "the old one scans: at the highest limit it scans least.",
        of="design",
    )


def of_compiled(rows: Sequence[Row]) -> Table:
    """Time and counted work of the compiled designs, at each rate."""
    found = by_case(rows, figures.COMPILED)
    columns = sorted({rate for rates in found.values() for rate in rates})
    return Table(
        "purgatory-compiled",
        "Compiled, in simulated time: time per request, and entries scanned for it",
        ("rate",),
        {
            case: plain_row(
                {
                    f"{formats.count(rate)}/s": _compiled(rates[rate]) if rate in rates else NOTHING
                    for rate in columns
                }
            )
            for case, rates in found.items()
        },
        "One core, without Python's cost. A design is not run at rates above the first that is too "
        "high for one core.",
        of="design",
    )


def _compiled(samples: Sequence[Row]) -> Entry:
    us = median(row["cpu_us"] for row in samples)
    scanned = f"{formats.amount(figures.scanned(samples[0]))} scanned"
    return Entry(_microseconds(us), scanned, value=us)


def _headline(rows: Sequence[Row]) -> str:
    """The two designs where half of the requests time out."""
    found = figures.saturation(rows)
    new, old = (
        found.get(("high", design), (0, False)) for design in (figures.PURGING, figures.SCANNING)
    )
    if not new[0] or not old[0]:
        return ""
    least = "" if new[1] else "at least "
    most = "" if old[1] else "at least "
    return (
        f"Where half of the requests time out, the new design keeps up with {least}"
        f"{formats.count(new[0])} requests/s, the old one with {most}{formats.count(old[0])}."
    )
