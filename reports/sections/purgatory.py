"""The enqueue experiment: two designs of a purgatory under the same requests."""

from collections.abc import Iterable, Mapping, Sequence
from statistics import median

from compare.purgatory.figures import (
    COMPILED,
    DESIGNS,
    MEMORY,
    NONE,
    PURGING,
    RATE,
    SCANNING,
    Row,
    keeps_up,
    saturation,
)
from reports import formats
from reports.sections.parts import NOTHING, Entry, Section, Table, entry
from reports.sections.parts import Row as Line
from reports.summary import Summary

_SWATCHES = {PURGING: "hierarchical-wheel", SCANNING: "delay-queue"}


def section(summary: Summary) -> Section | None:
    """What both designs keep up with, what they cost, and the same compiled."""
    rows, run = summary.trials, summary.experiment
    if run is None or not rows:
        return None
    machine = run.manifest["machine"]
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
        "Of load “low” 7.87 % time out, of load “high” half.",
        tables=[table for table in tables if table.rows],
        points=[
            "In real time all threads of a design share one interpreter lock, so they have one "
            "core together. In other languages both reach other rates; compare the two designs.",
            "The processor time includes the threads of the experiment itself: one that enqueues, "
            "one that answers.",
            f"Measured {run.manifest['created']} with {machine.get('cores')} cores of "
            f"{machine.get('cpu') or 'an unknown processor'}, stored in {run.path.name}.",
        ],
    )


def of_rates(rows: Iterable[Row]) -> Table:
    """Both designs in real time at the highest rate that they kept up with."""
    rows = list(rows)
    found = []
    for (load, design), (highest, failed) in saturation(rows).items():
        of_case = [row for row in rows if _is(row, RATE, load, design)]
        at_it = [row for row in of_case if row["rate"] == highest and keeps_up(row)]
        row = at_it[0] if at_it else of_case[0]
        late = [row[f"late_{which}_ms"] for which in ("p50", "p99", "max")]
        estimated = (
            Entry(
                _count(row["estimated_total"]),
                f"exact {_count(row['exact_total'])}, off by at most "
                f"{_count(row['estimate_error'])}",
            )
            if row["estimated_total"] is not None
            else NOTHING
        )
        found.append(
            Line(
                f"{DESIGNS[design]}, load {load}",
                "",
                [
                    Entry(formats.count(highest), "" if failed else "or more"),
                    entry(row["cpu_us"], lambda us: formats.nanoseconds(us * 1e3)),
                    entry(row["gc_us"], lambda us: formats.nanoseconds(us * 1e3)),
                    entry(row["peak_bytes"], formats.data_size),
                    NOTHING
                    if late[0] is None
                    else Entry(" / ".join(formats.amount(ms) for ms in late)),
                    entry(row["share_expired"], "{:.2%}".format),
                    estimated,
                ],
                _SWATCHES[design],
            )
        )
    return Table(
        "purgatory-rates",
        "In real time, at the highest rate that each kept up with",
        [
            "design",
            "requests/s",
            "CPU time per request",
            "of it in the garbage collector",
            "most memory",
            "late: p50 / p99 / most [ms]",
            "timed out",
            "estimated total",
        ],
        found,
        "A design keeps up if it achieves 95 % of the rate, and 99 % of the timeouts are less than "
        "200 ms late, in the first trial or the second. The estimated total is the number of "
        "requests in the lists as the new design estimates it, on average.",
        loose=True,
    )


def of_memory(rows: Iterable[Row]) -> Table:
    """The trials with little memory."""
    found = [row for row in rows if row["kind"] == MEMORY]
    room = formats.data_size(found[0]["memory_bytes"]) if found else ""
    rate = formats.count(found[0]["rate"]) if found else ""
    return Table(
        "purgatory-memory",
        f"With {room} more memory than at the start, at {rate} requests/s",
        ["design", "limit", "requests", "most memory", "outcome"],
        [
            Line(
                f"{DESIGNS[row['design']]}, load {row['load']}",
                "",
                [
                    entry(row["interval"]),
                    entry(row["requests"]),
                    entry(row["peak_bytes"], formats.data_size),
                    Entry(f"failed: {row['failed']}" if row["failed"] else "went on", number=False),
                ],
                _SWATCHES[row["design"]],
            )
            for row in found
        ],
        "The limit is the purge interval of the new design, and the number of entries above which "
        "the old one scans: at this limit it costs the least processor time.",
    )


def of_compiled(rows: Iterable[Row]) -> Table:
    """Time and counted work of the compiled designs, at each rate."""
    samples: dict[tuple[str, str], dict[int, list[Row]]] = {}
    for row in rows:
        if row["kind"] == COMPILED:
            rates = samples.setdefault((row["load"], row["design"]), {})
            rates.setdefault(row["rate"], []).append(row)
    columns = sorted({rate for rates in samples.values() for rate in rates})
    return Table(
        "purgatory-compiled",
        "Compiled, in simulated time: time per request, and entries scanned for it",
        ["design", *(f"{formats.count(rate)}/s" for rate in columns)],
        [
            Line(
                f"{DESIGNS[design]}, load {load}",
                "",
                [_compiled(rates[rate]) if rate in rates else NOTHING for rate in columns],
                _SWATCHES[design],
            )
            for (load, design), rates in samples.items()
        ],
        "One core, without Python's cost. A design is not run at rates above the first that is too "
        "high for one core.",
        loose=True,
    )


def _compiled(samples: Sequence[Row]) -> Entry:
    counters: Mapping[str, int] = dict(samples[0]["counters"])
    scanned = counters["entries_scanned"] + counters["queue_scanned"]
    ns = median(row["cpu_us"] for row in samples) * 1e3
    return Entry(
        formats.nanoseconds(ns), f"{formats.amount(scanned / samples[0]['requests'])} scanned"
    )


def _headline(rows: Iterable[Row]) -> str:
    """The two designs where half of the requests time out."""
    found = saturation(rows)
    new, old = (found.get(("high", design), (0, False)) for design in (PURGING, SCANNING))
    if not new[0] or not old[0]:
        return ""
    least = "" if new[1] else "at least "
    most = "" if old[1] else "at least "
    return (
        f"Where half of the requests time out, the new design keeps up with {least}"
        f"{formats.count(new[0])} requests/s, the old one with {most}{formats.count(old[0])}."
    )


def _count(value: float) -> str:
    return formats.count(round(value))


def _is(row: Row, kind: str, load: str, design: str) -> bool:
    return (row["kind"], row["load"], row["design"]) == (kind, load, design) and design != NONE
