"""Each cell of each table shows its figure of the run."""

from dataclasses import replace
from statistics import median

import pytest

from compare.bench.task import TASKS
from compare.replay.lateness import lateness_text
from reports import formats
from reports.sections import (
    answer,
    limits,
    memory,
    method,
    reading,
    schemes,
    times,
    work,
    workloads,
)
from reports.sections.catalogue import sections
from reports.sections.parts import NOTHING, Entry, Table, chart_notes, time_entry
from reports.statistics import Spread
from reports.summary import Cell, Footprint
from tests.reports.primes import (
    CAPACITIES,
    COUNTERS,
    LABELS,
    ONE_AT_ZERO,
    OVER,
    OVER_REPLAY,
    OWN,
    SILENT,
    SIZES,
    SMALL,
    SOURCES,
    WHEELS,
    WHO,
    only,
    who_of,
)

EXACT = ("cascading-wheel", "delay-queue")
MISSING = "–"


def cells_of(table, distinct):
    """(label, heading) -> entry, with the rows checked."""
    found = {}
    expected = [who for who in distinct.contestants if who.label in LABELS]
    for who, entries in table.rows.items():
        assert who in expected
        for heading, entry in zip(table.headings, entries, strict=True):
            found[who.label, heading] = entry
    assert table.of == "timer"
    return found


def time_of(samples, base, *, spread=True):
    """What a table shows for a time: the median, the spread, the ratio to the yardstick."""
    details = [f"({formats.time_range(min(samples), max(samples))})"] * spread
    details += [formats.ratio(median(samples) / median(base))] if base else []
    return formats.nanoseconds(median(samples)), " ".join(details)


def best_of(samples):
    return min(EXACT, key=lambda label: median(samples[label]))


@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.name)
def test_times(primes, distinct, task):
    table = times.times(distinct, task)
    assert (table.name, table.caption) == (
        f"times-{task.name}",
        f"{task.title}: time per {task.unit}",
    )
    assert table.headings == [*map(formats.size, SIZES)]
    found = cells_of(table, distinct)
    for size in SIZES:
        samples = {
            label: primes.samples[label, task, size]
            for label in LABELS
            if (label, task, size) in primes.samples
        }
        for label in LABELS:
            entry = found[label, formats.size(size)]
            if (label, task) == OVER[:2] and size >= OVER[2]:
                assert (entry.text, entry.detail) == ("over budget", "at 20\u202f000")
                continue
            expected = time_of(samples[label], samples["delay-queue"])
            assert (entry.text, entry.detail) == expected
            assert entry.best == (label == best_of(samples))
            assert entry.number
    assert table.note.startswith(f"{task.meaning} Median; the least and the greatest sample in")
    assert table.note.endswith("ratio to the time of delay-queue in the same column.")


def test_at_a_glance(primes, distinct):
    table = answer.at_a_glance(distinct)
    found = cells_of(table, distinct)
    for task in TASKS:
        samples = {
            label: primes.samples[label, task, SIZES[-1]]
            for label in LABELS
            if (label, task, SIZES[-1]) in primes.samples
        }
        for label, own in samples.items():
            entry = found[label, task.title]
            assert (entry.text, entry.detail) == time_of(own, samples["delay-queue"], spread=False)
            assert entry.best == (label == best_of(samples))
    assert found[OVER[0], OVER[1].title] == Entry("over budget", "at 20\u202f000")
    for label in LABELS:
        capacity = CAPACITIES[-2 if label == SMALL else -1]
        value = formats.data_size(primes.memory[label, capacity])
        assert found[label, "memory per timer"].text == value
        fires = found[label, "fires"]
        assert (fires.text, fires.number) == (who_of(distinct, label).precision, False)
    assert found["delay-queue", "fires"].text == "exact"
    assert table.caption.startswith(f"With 500\u202f000{formats.SPACE}timers pending: ")


def test_traffic(primes, distinct):
    table = answer.traffic(distinct)
    assert table.caption.startswith("Your traffic: what each second of it costs")
    assert table.headings == [
        "dns.trace: cost of a second",
        "timers fired",
        f"clients.trace: cost of each second of all 3{formats.SPACE}shards together",
        "timers fired",
    ]
    for s, source in enumerate(OWN):
        about = primes.sources[source]
        seconds = about["span"] / {"us": 1e6, "ms": 1e3}[about["unit"]]
        for row, label in zip(table.rows.values(), LABELS, strict=True):
            cost, fired = row[2 * s : 2 * s + 2]
            samples = [
                value * about["operations"] / seconds for value in primes.times[label, source]
            ]
            assert cost.text == formats.nanoseconds(median(samples))
            _, low, *_, high, _ = sorted(samples)  # the interval, which of eight is not the range
            assert cost.detail == f"({formats.time_range(low, high)})"
            bins = primes.bins[label, source]
            assert fired.text == lateness_text(bins[0][0], bins[-1][0], about["unit"])
            assert not fired.number
            assert cost.best == (
                label == best_of({one: primes.times[one, source] for one in EXACT})
            )


def test_generated_traffic_is_not_called_ones_own(distinct):
    made = {"workload": "uniform", "seed": 0}
    own = {
        replace(source, details={**source.details, "details": made}): found
        for source, found in distinct.replays.items()
        if source.own
    }
    table = answer.traffic(only(distinct, replays=own))
    assert table.caption.startswith("The traffic: what each second of it costs")


def test_traffic_of_which_nothing_fired(distinct):
    own = {
        replace(source, own=True, details={**source.details, "span": 7}, unit="ms"): found
        for source, found in distinct.replays.items()
        if source.name == SILENT[1]
    }
    rows = answer.traffic(only(distinct, replays=own)).rows
    assert rows[who_of(distinct, SILENT[0])][1] == replace(NOTHING, number=False)


@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.name)
def test_work(primes, distinct, task):
    table = work.work(distinct, task)
    found = cells_of(table, distinct)
    titles = list(map(formats.counter_title, COUNTERS))
    assert table.headings == titles
    assert {label for label, _ in found} == {
        label for label in LABELS if WHO[label][0] == "compiled"
    }
    for (label, heading), entry in found.items():
        counter = COUNTERS[titles.index(heading)]
        first, last = (
            count / operations
            for size in (SIZES[0], SIZES[-1])
            for count, operations in [primes.counts[label, task, counter, size]]
        )
        both = f"{formats.amount(first)} →{formats.NO_BREAK}{formats.amount(last)}"
        zero = (label, counter) == (ONE_AT_ZERO, COUNTERS[1])
        assert (entry.text, entry.detail) == ("0" if zero else both, "")
    assert table.caption == f"{task.title}: counted work per {task.unit}"
    first, last = formats.size(SIZES[0]), formats.size(SIZES[-1])
    assert table.note == f"Counts at {first} → at {last}. Zero for all: empty buckets polled."


def test_work_at_one_size_and_where_it_ends_earlier(distinct):
    task, who = TASKS[0], distinct.contestants[1]
    curves = {who: {SIZES[0]: 2.5, SIZES[1]: 7.5}}
    changed = only(distinct, counts={task: {"refiled": curves}})
    (row,) = work.work(changed, task).rows.values()
    assert row == [Entry(f"2.5 →{formats.NO_BREAK}7.5", f"at {formats.size(SIZES[1])}")]
    one = only(
        distinct,
        cells={task: {who: {SIZES[0]: distinct.cells[task][who][SIZES[0]]}}},
        counts={task: {"refiled": {who: {SIZES[0]: 2.5}}}},
        over_budget={},
    )
    table = work.work(one, task)
    assert (table.rows[who], table.note) == (
        [Entry("2.5")],
        f"Counts at {formats.size(SIZES[0])}.",
    )


@pytest.mark.parametrize("source", SOURCES)
def test_replays(primes, distinct, source):
    (of,) = [one for one in distinct.replays if one.name == source]
    table = workloads.replays(distinct, of)
    about = primes.sources[source]
    parts = [
        formats.counted(about["operations"], "operation"),
        formats.counted(about["timers"], "timer"),
        formats.counted(about["id_space"], "id"),
        formats.counted(about["shards"], "shard"),
    ]
    assert table.caption == f"{of.short}: {', '.join(parts)}"
    found = cells_of(table, distinct)
    symbol = {"us": "µs", "unit": "units"}.get(about["unit"], about["unit"])
    columns = {
        "scheduled": "scheduled",
        "cancelled": "cancelled",
        "rescheduled": "rescheduled",
        "fired": "fired",
        "most pending": "most_pending",
        "still pending": "pending",
        "wake-ups at the end": "wakeups",
        "… with nothing due": "idle_wakeups",
    }
    for label in LABELS:
        if (label, source) == OVER_REPLAY:
            continue
        samples, row = primes.times[label, source], primes.rows[label, source]
        entry = found[label, "time per operation"]
        assert (entry.text, entry.detail) == time_of(samples, primes.times["delay-queue", source])
        assert entry.best == (label == best_of({one: primes.times[one, source] for one in EXACT}))
        for heading, name in columns.items():
            assert found[label, heading].text == formats.count(row[name])
        late = found[label, f"lateness: least / median / most [{symbol}]"].text
        least, middle, most = (row[f"lateness_{which}"] for which in ("min", "median", "max"))
        assert late == (MISSING if least is None else f"{least} / {middle:g} / {most}")
    assert table.note.startswith("Median time per operation")
    assert table.note.endswith(f"Lateness is in {formats.unit_name(about['unit'])}.")


def test_lateness_has_all_its_digits(distinct):
    source, found = next(iter(distinct.replays.items()))
    who, replayed = next(iter(found.items()))
    late = {"lateness_min": -20_000, "lateness_median": 1234.5, "lateness_max": 7_654_321}
    changed = {who: replayed._replace(row={**replayed.row, **late})}
    table = workloads.replays(only(distinct, replays={source: changed}), source)
    text = table.rows[who][-1].text.replace(formats.NO_BREAK, "_")
    assert text == "-20_000 / 1_234.5 / 7_654_321"


def test_replays_of_shards(primes, distinct):
    """Each figure of a grid is in its column, under the name that `summarise` gives it."""
    source = next(iter(distinct.replays))
    names = {
        "fired": "fired",
        "still pending": "pending",
        "most pending, one shard": "most_pending",
        "lateness [µs]: min": "lateness_min",
        "p50": "lateness_p50",
        "p99": "lateness_p99",
        "p99.9": "lateness_p999",
        "max": "lateness_max",
    }
    changed = {
        who: of._replace(
            row={
                **of.row,
                **{name: 101 * (n + 1) for n, name in enumerate(names.values())},
                "nbytes": 5 * 2**20,
            }
        )
        for who, of in distinct.replays[source].items()
    }
    grid = only(distinct, replays={source: changed}, sample="shard")
    table = workloads.replays(grid, source)
    found = cells_of(table, distinct)
    for label in LABELS:
        for n, heading in enumerate(names):
            assert found[label, heading].text == formats.count(101 * (n + 1))
        assert found[label, "memory, one shard"].text == f"5.00{formats.SPACE}MiB"
        counted = found[label, "comparisons of deadlines per operation"].text
        row = primes.rows[label, source.name]
        if row["counters"]:
            assert counted == formats.amount(row["counters"][0][1] / row["operations"])
        else:
            assert counted == MISSING
    assert "of all shards together" in table.note


def test_memory(primes, distinct):
    section = memory.section(distinct)
    table, growth = section.tables
    found = cells_of(table, distinct)
    assert table.headings == [*map(formats.size, CAPACITIES)]
    for label in LABELS:
        for capacity in CAPACITIES:
            value = primes.memory.get((label, capacity))
            text = MISSING if value is None else formats.data_size(value)
            assert found[label, formats.size(capacity)].text == text
    found = cells_of(growth, distinct)
    for label in LABELS:
        if label == SMALL:
            assert (label, "pause") not in found
            continue
        at = label, CAPACITIES[-1]
        peak, grown, pauses = primes.growth[at]
        assert found[label, "at rest"].text == formats.data_size(primes.memory[at])
        assert found[label, "at the peak"].text == formats.data_size(peak / CAPACITIES[-1])
        assert found[label, "after growth"].text == formats.data_size(grown / CAPACITIES[-1])
        pause = found[label, "pause"]
        if label == LABELS[0]:
            assert pause is NOTHING
            continue
        times = [1e9 * seconds for seconds in pauses]
        assert pause.text == formats.nanoseconds(median(times))
        assert pause.detail == f"({formats.time_range(min(times), max(times))})"
    assert growth.caption.endswith(formats.size(CAPACITIES[-1]))
    # Bold is for the fastest; of memory there is more to say than which is least.
    entries = [one for of in section.tables for row in of.entries.values() for one in row]
    assert entries and not any(one.best for one in entries)


@pytest.mark.parametrize("samples", [[15_812.0], [15_812.0, 15_813.0]], ids=["one", "alike"])
def test_samples_alike_have_no_range(distinct, samples):
    who = distinct.contestants[0]
    pause = Spread.of(samples)
    found = only(distinct, memory={who: {7: Footprint(1.0, 2.0, 3.0, pause)}})
    _, growth = memory.section(found).tables
    assert growth.rows[who][-1] == Entry(f"15.8{formats.SPACE}µs")


def test_slots(primes, distinct):
    table = work.section(distinct).tables[-1]
    found = cells_of(table, distinct)
    assert {label for label, _ in found} == set(WHEELS)
    for label in WHEELS:
        for size in SIZES:
            in_slots, pending = primes.slots[label, size]
            assert found[label, formats.size(size)].text == formats.share(in_slots / pending)
    assert len(work.section(only(distinct, slots={})).tables) == len(TASKS)


def test_schemes(distinct):
    found = cells_of(schemes.behaviour(distinct), distinct)
    found |= cells_of(schemes.advice(distinct), distinct)
    for label in LABELS:
        who, traits = who_of(distinct, label), f"of {label}"
        assert found[label, "scheme"].text == f"the scheme {traits}"
        tick = "100ms" if label == "hashed-wheel" else who.traits["settings"].get("tick")
        assert found[label, "scheme"].detail == (f"tick {tick}" if tick else "")
        here = "" if who.exact else f". Here: {who.precision}."
        assert found[label, "fires at"].text == f"the due_at {traits}{here}"
        order = "first armed, first fired" if label == "delay-queue" else "unspecified"
        assert found[label, "order within one unit"].text == order
        assert found[label, "horizon"].text == f"the horizon {traits}"
        assert found[label, "over empty time"].text == f"the jumps {traits}"
        both = f"this {traits}; that {traits}" if "tick" in label else "none"
        assert found[label, "deviations"].text == both
        assert found[label, "declared costs"].text == f"schedule {traits}; tick {traits}"
        assert found[label, "suits"].text == f"the suits {traits}"
        assert found[label, "drawback"].text == f"the drawback {traits}"
        bound = "exact" if label == "cascading-wheel" else "a bound that may be earlier"
        assert found[label, "next expiry"].text == bound
        assert found[label, "source"].text == f"the source {traits}"
        assert not any(entry.number for (of, _), entry in found.items() if of == label)


def test_the_method(primes, distinct):
    told = method.section(distinct).terms
    assert told["When"] == ["2026-01-31T12:00:00+00:00"]
    assert told["Command"] == ["wheelwork compare 'two words'"]
    assert told["Code"] == ["commit c0ffee with uncommitted changes"]
    assert told["Versions"] == ["wheelwork 1.2.3", "numba unknown"]
    assert told["Machine"] == [
        "Some CPU",
        f"5{formats.SPACE}cores usable; the comparison uses one",
        f"3.00{formats.SPACE}GiB of memory",
        "Some platform",
    ]
    assert told["Parameters"] == [
        "traces: logs/dns.trace, clients.trace/",
        "repeats: 8",
        "budget: 1.5",
    ]
    assert told["Workloads"][:2] == [f"{name}: kind made as {name}, timeout 30s" for name in OWN]
    assert told["Checks"] == ["checked: all of it", "expiries: 1\u202f234\u202f577"]
    who = who_of(distinct, OVER[0]).full
    assert told["Over budget"] == [
        f"{who}, expiry, clock-driven: over budget at 20\u202f000",
        f"{who}, keepalive: over budget",
    ]
    assert told["Engines"][1].startswith(f"Python loop: {who}.")


@pytest.mark.parametrize(
    ("change", "term", "text"),
    [
        ({"commit": None}, "Code", "not run from a checkout, so the commit is unknown"),
        ({"dirty": False}, "Code", "commit c0ffee"),
        ({"machine": {}}, "Machine", "processor unknown"),
        (
            {"machine": {"cores": 1}},
            "Machine",
            f"1{formats.SPACE}core usable; the comparison uses one",
        ),
        ({"agreement": {"a_b": True, "c": None}}, "Checks", "a b: yes"),
        ({"agreement": {"c": {"d": False, "e": []}}}, "Checks", "c: d no, e none"),
    ],
)
def test_what_is_not_known_is_said(distinct, change, term, text):
    told = method.section(only(distinct, manifest={**distinct.manifest, **change})).terms
    assert text in told[term]


def test_the_terms(distinct):
    told = reading.section(distinct).terms
    assert [text.partition(":")[0] for text in told["Operations"]] == [
        "Insert",
        "Cancel",
        "Hold",
        "Expiry, clock-driven",
        "Expiry, event-driven",
    ]
    assert all(task.meaning in text for task, text in zip(TASKS, told["Operations"], strict=True))
    times = " ".join(told["Times"])
    assert "the median of the samples" in times
    assert "compares with delay-queue" in times
    assert "greatest, 10% wider at each end with fewer than 5" in times
    assert "90% confidence" in times
    assert "“Over budget” means that the timer took longer than 1.5 s" in times
    assert told["Unit"][0].endswith("count microseconds, milliseconds, seconds and units.")
    shards = " ".join(reading.section(only(distinct, sample="shard")).terms["Times"])
    assert "of all shards together" in shards and "confidence" not in shards


def test_the_limits(distinct):
    texts = limits.section(distinct).points
    assert texts[0].startswith("This is one run on one machine.")
    assert "one thread, on one of 5 cores." in texts[1]
    shards = limits.section(only(distinct, sample="shard")).points
    assert shards[0].startswith("Each timer replays each shard once.")
    assert len(shards) == len(texts) - 2
    machine = distinct.manifest["machine"] | {"cores": 1}
    alone = only(distinct, manifest={**distinct.manifest, "machine": machine})
    assert limits.section(alone).points[1].startswith("Everything runs in one thread. The locks")


def test_all_that_are_tied_on_a_trace_are_bold(distinct):
    source = distinct.own[0]
    found = distinct.replays[source]
    cell = found[who_of(distinct, EXACT[1])].cell
    tied = {who: of._replace(cell=cell) if who.label in EXACT else of for who, of in found.items()}
    table = answer.traffic(only(distinct, replays={source: tied}))
    assert {who.label for who, row in table.rows.items() if row[0].best} == {*EXACT}


def test_brackets_hold_the_range_and_not_the_interval(distinct):
    """They differ where there are few samples, and where there are many."""
    who = distinct.contestants[0]
    for samples in ([100.0, 103.0], [100.0 + n for n in range(9)]):
        column = {who: Cell(Spread.of(samples), 1)}
        detail = time_entry(distinct, TASKS[0], column, who).detail
        assert detail == f"({formats.time_range(100.0, samples[-1])})"
    assert time_entry(distinct, TASKS[0], {who: Cell(Spread.of([7.0]), 1)}, who).detail == ""
    assert time_entry(distinct, TASKS[0], {}, who) is NOTHING


@pytest.mark.parametrize(
    ("counts", "sample", "start"),
    [
        ([1, 1], "sample", "There is one sample of each time, so no spread is shown."),
        ([1], "shard", "There is one shard of each time"),
        ([5, 5], "sample", "Markers show the median of 5 samples, bars the range"),
        ([5, 2, 3], "sample", "Markers show the median of 2–5 samples, bars the range"),
        ([4], "shard", "Markers show the time of all 4 shards, bars the range"),
    ],
)
def test_the_notes_of_charts(distinct, counts, sample, start):
    shown = [Cell(Spread.of([1.0] * n), 1) for n in counts]
    text = chart_notes(only(distinct, sample=sample), shown)
    assert text.startswith(start)
    assert "longer than 1.5 s is over budget" in text
    assert "“Python loop”" in text and "late or early" in text
    plain = tuple(who for who in distinct.contestants if who.exact and who.compiled)
    text = chart_notes(only(distinct, contestants=plain, over_budget={}), shown)
    assert "Python loop" not in text and "late or early" not in text and "longer" not in text


def test_each_section_has_its_tables(distinct):
    found = {one.name: [table.name for table in one.tables] for one in sections(distinct)}
    names = [task.name for task in TASKS]
    assert found == {
        "answer": ["traffic", "glance"],
        "reading": [],
        "times": [f"times-{name}" for name in names],
        "work": [*(f"work-{name}" for name in names), "slots"],
        "workloads": [f"replay-{source}" for source in SOURCES],
        "memory": ["memory", "growth"],
        "schemes": ["behaviour", "advice"],
        "method": [],
        "limits": [],
    }
    tables = [table for one in sections(distinct) for table in one.tables]
    assert all(len(row) == len(of.headings) for of in tables for row in of.entries.values())
    others = {one: of for one, of in distinct.replays.items() if not one.own}
    first, *_ = sections(only(distinct, replays=others))
    assert [table.name for table in first.tables] == ["glance"]
    first, *rest = sections(only(distinct, cells={}, over_budget={}))
    assert [table.name for table in first.tables] == ["traffic"]
    assert "times" not in [one.name for one in rest]
    assert "workloads" not in [one.name for one in sections(only(distinct, replays={}))]


def test_columns_are_set_by_what_they_hold(distinct):
    def table(*rows):
        """Numbers where a text has n, and words where it has w."""
        entries = [[Entry("7", number=kind == "n") for kind in row] for row in rows]
        return Table("t", "c", [*rows[0]], dict(zip(distinct.contestants, entries, strict=False)))

    assert table("n", "w").in_words
    assert [table("nw").is_number(column) for column in (0, 1)] == [True, False]
    assert not table("nw").in_words and table("ww").in_words


def test_a_table_stands_beside_charts_where_it_fits(distinct):
    def table(columns, number=True):
        entries = {distinct.contestants[0]: [Entry("7", number=number)] * columns}
        return Table("t", "c", ["heading"] * columns, entries)

    assert [table(columns).beside(2) for columns in (1, 2, 3)] == [True, True, False]
    assert [table(columns).beside(1) for columns in (3, 4, 5)] == [True, True, False]
    assert not table(1).beside(0)
    assert not table(1, number=False).beside(1)


def test_rows_without_figures_are_left_out(distinct):
    one, other, *_ = distinct.contestants
    table = Table("t", "c", ["x"], {one: [NOTHING], other: [Entry("3")]})
    assert table.rows == {other: [Entry("3")]}
