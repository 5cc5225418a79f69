"""Each cell of each table shows its figure of the run."""

from dataclasses import asdict, replace
from statistics import median

import pytest

from compare.base import formats
from compare.traffic.tapes.description import Description
from compare.trial.bench.callers import CALLERS, LOOP, OWN_CLOCK, PYTHON
from compare.trial.bench.callers import METRICS as METRICS_OF_CALLERS
from compare.trial.bench.constants import Constants
from compare.trial.bench.task import HOLD, TASKS
from compare.trial.replay.lateness import lateness_text
from compare.trial.results.metrics import METRICS
from reports import method
from reports.catalogue import (
    MEDIAN,
    callers,
    callers_lead,
    constants,
    memory,
    schemes,
    section,
    sections,
    services,
    times,
    work,
    workloads,
)
from reports.select import Key
from reports.summary import Summary, figures_of
from reports.tables import LAST, NOTHING, Entry, Table
from reports.titles import TITLES
from tests.reports.primes import (
    CAPACITIES,
    LABELS,
    OVER,
    OVER_REPLAY,
    OWN,
    SIZES,
    SMALL,
    SOURCES,
    WHEELS,
    WHO,
    ZERO,
    who_of,
)
from tests.reports.stored import fit_rows

LEAST, P90, GREATEST = "least [ns]", "p90 [ns]", "greatest [ns]"
EXACT = ("cascading-wheel", "delay-queue")
MISSING = "–"


def cells_of(table, distinct):
    """(label, *heading) -> entry, with the rows checked."""
    assert table.of == "timer"
    assert {contestant.label for contestant in table.rows} <= {*LABELS}
    return {
        (contestant.label, *heading): table.entry(contestant, heading)
        for contestant in table.rows
        for heading in table.headings
    }


def check_times(cells, label, heading, samples, base):
    """The statistics that a table shows of a time, each sorted by its exact value."""
    values = {
        MEDIAN: median(samples),
        LEAST: min(samples),
        P90: sorted(samples)[7],  # of eight
        GREATEST: max(samples),
        "ratio to delay-queue": median(samples) / median(base),
    }
    for statistic, value in values.items():
        entry = cells[label, *heading, statistic]
        ratio = statistic.startswith("ratio")
        assert entry.text == (formats.ratio(value) if ratio else formats.significant(value))
        assert entry.value == pytest.approx(value)
        yield entry


def best_of(samples):
    return min(EXACT, key=lambda label: median(samples[label]))


@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.name)
def test_times(primes, distinct, task):
    table = times(distinct)
    cells = cells_of(table, distinct)
    assert table.chosen == {"size": formats.size(SIZES[-1]), "statistic": MEDIAN}
    assert table.choices["size"] == [*map(formats.size, SIZES)]
    assert table.choices["operation"] == [known.title for known in TASKS]
    for size in SIZES:
        samples = {
            label: primes.samples[label, task, size]
            for label in LABELS
            if (label, task, size) in primes.samples
        }
        heading = task.title, formats.size(size)
        for label in LABELS:
            if (label, task) == OVER[:2] and size >= OVER[2]:
                over = Entry("", "over budget at 20\u202f000", value=LAST)
                assert cells[label, *heading, MEDIAN] == over
                continue
            shown = check_times(cells, label, heading, samples[label], samples["delay-queue"])
            assert {entry.best for entry in shown} == {label == best_of(samples)}


def test_work(primes, distinct):
    table = work(distinct)
    assert table.chosen["size"] == formats.size(SIZES[-1])
    cells = cells_of(table, distinct)
    assert {label for label, *_ in cells} == {
        label for label in LABELS if WHO[label][0] == "compiled"
    }
    for (label, task, counter, size), (count, operations) in primes.counts.items():
        title = METRICS[counter].title
        key = label, task.title, formats.size(size), title
        if counter == ZERO:
            assert key not in cells
        else:
            assert cells[key].text == formats.amount(count / operations)


@pytest.mark.parametrize("source", SOURCES)
def test_replays(primes, distinct, source):
    [replay] = [replay for replay in distinct.sources if replay.name == source]
    table, about = workloads(distinct), primes.sources[source]
    parts = [
        formats.counted(about["operations"], "operation"),
        formats.counted(about["timers"], "timer"),
        formats.counted(about["id_space"], "id"),
        formats.counted(about["shards"], "shard"),
    ]
    assert method.described(replay).startswith(", ".join(parts))
    cells = cells_of(table, distinct)
    columns = {
        "scheduled": "scheduled",
        "cancelled": "cancelled",
        "rescheduled": "rescheduled",
        "fired": "fired",
        "most pending": "most_pending",
    }
    for label in LABELS:
        time = cells[label, replay.short, f"time per operation, {MEDIAN}"]
        if (label, source) == OVER_REPLAY:
            assert time == Entry("", "over budget", value=LAST)
            continue
        samples, row = primes.times[label, source], primes.rows[label, source]
        assert time.text == formats.significant(median(samples))
        ends = map(formats.significant, (min(samples), max(samples)))
        assert time.detail == f"({'–'.join(ends)})"
        samples_of = {exact: primes.times[exact, source] for exact in EXACT}
        assert time.best == (label == best_of(samples_of))
        for heading, name in columns.items():
            assert cells[label, replay.short, heading].text == formats.count(row[name])
        late, fired = row["lateness_min"], cells[label, replay.short, "lateness range"]
        text = MISSING
        if late is not None:
            text = lateness_text(late, row["lateness_max"], about["unit"])
        assert (fired.text, fired.value) == (text, None)
        if source in OWN:
            rate = about["operations"] * {"us": 1e6, "ms": 1e3}[about["unit"]] / about["span"]
            cost = cells[label, replay.short, "cost of a second [ms]"]
            assert cost.value == pytest.approx(median(samples) * rate / 1e6)
            _, low, *_, high, _ = sorted(value * rate / 1e6 for value in samples)  # the interval
            assert cost.detail == f"({'–'.join(map(formats.significant, (low, high)))})"


def test_the_facts_of_a_trace_have_its_description(primes, distinct):
    delays = {"p50": 5_000, "p99": 5_000, "max": 5_000}
    description = Description(8, 2, 70.0, delays, {"p50": 10, "p99": 40, "max": 40})
    source = distinct.own[1]

    def facts(kept):
        changed = replace(source, details={**source.details, "description": kept})
        summary = replace(distinct, sources=(changed,))
        return method.facts(summary, changed)

    # The figures of the replays take the place of those of the description.
    whole = method.facts(distinct, source)
    said = description.lines(source.unit, source.details["span"], source.details["shards"])
    row = primes.rows[LABELS[0], source.name]
    assert whole["pending"] == f"at most {formats.count(row['most_pending'])} at once in one shard"
    share = formats.share(row["fired"] / row["scheduled"])
    of = f"{formats.count(row['fired'])} of {formats.counted(row['scheduled'], 'timer')}"
    assert whole["fired"] == f"{of} ({share})"
    # How timers end is that at the end of the log, not after all that a replay waits for.
    del whole["fired"]
    assert [*facts(asdict(description)).items()] == [*(said | whole).items()]
    assert said.keys() > {"rate", "timed out", "delay", "answered"}
    assert facts(None).keys() == {*whole, "fired"}


def test_sources_of_one_name_are_told_apart(primes, distinct):
    first, second, *_ = distinct.sources
    other = replace(second, name=f"elsewhere/{first.short}")
    rows = [
        row._replace(subject=other.name) if row.subject == second.name else row
        for row in primes.run.rows
    ]
    summary = replace(figures_of(replace(primes.run, rows=rows)), sources=(first, other))
    assert workloads(summary).choices["source"] == [
        first.name,
        other.name,
    ]


def test_memory(primes, distinct):
    table = memory(distinct)
    cells = cells_of(table, distinct)
    assert table.chosen == {"size": formats.size(CAPACITIES[-1])}
    for (label, capacity), value in primes.memory.items():
        size = formats.size(capacity)
        peak, grown, pauses = primes.growth[label, capacity]
        for figure, nbytes in {
            "at rest [B]": value,
            "at the peak [B]": peak / capacity,
            "after growth [B]": grown / capacity,
        }.items():
            assert cells[label, size, figure].text == formats.amount(nbytes)
        pause = cells[label, size, "pause [ms]"]
        if not pauses:
            assert pause == NOTHING
            continue
        ms = [1e3 * seconds for seconds in pauses]
        assert pause.text == formats.significant(median(ms))
        ends = map(formats.significant, (min(ms), max(ms)))
        assert pause.detail == (f"({'–'.join(ends)})" if len(ms) > 1 else "")
    assert cells[SMALL, formats.size(CAPACITIES[-1]), "at rest [B]"] == NOTHING
    # Bold is for the fastest; of memory there is more to say than which is least.
    assert not any(entry.best for entry in cells.values())


def test_slots(primes, distinct):
    table = work(distinct)
    cells = cells_of(table, distinct)
    for label in WHEELS:
        for size in SIZES:
            in_slots, pending = primes.slots[label, size]
            entry = cells[label, HOLD.title, formats.size(size), "in slots"]
            assert entry.text == formats.share(in_slots / pending)
    table = work(distinct.where(metric=("comparisons", "refiled", "time")))
    assert "in slots" not in table.choices["counter"]


def test_schemes(distinct):
    table = schemes(distinct)
    cells = cells_of(table, distinct)
    assert all(entry.value is None for entry in cells.values())
    for label in LABELS:
        contestant, traits = who_of(distinct, label), f"of {label}"
        texts = {trait: cells[row, about, trait] for row, about, trait in cells if row == label}
        tick = "100ms" if label == "hashed-wheel" else contestant.traits["settings"].get("tick")
        assert texts.pop("scheme") == Entry(f"the scheme {traits}", f"tick {tick}" if tick else "")
        here = "" if contestant.exact else f". Here: {contestant.precision}."
        both = f"this {traits}; that {traits}"
        exact = label == "cascading-wheel"
        assert {trait: entry.text for trait, entry in texts.items()} == {
            "fires at": f"the due_at {traits}{here}",
            "order within one unit": f"the order_text {traits}",
            "horizon": f"the horizon {traits}",
            "over empty time": f"the jumps {traits}",
            "deviations": both if "tick" in label else "none",
            "declared costs": f"schedule {traits}; tick {traits}",
            "suits": f"the suits {traits}",
            "drawback": f"the drawback {traits}",
            "next expiry": "exact" if exact else "a bound that may be earlier",
            "source": f"the source {traits}",
        }


def test_the_method(primes, distinct):
    terms = method.terms(distinct)
    assert terms["When"] == ["2026-01-31T12:00:00+00:00"]
    assert terms["Command"] == ["wheelwork compare 'two words'"]
    assert terms["Code"] == ["commit c0ffee with uncommitted changes"]
    assert terms["Versions"] == ["wheelwork 1.2.3", "numba unknown"]
    assert terms["Machine"] == [
        "Some CPU",
        f"5{formats.SPACE}cores usable; the comparison uses one",
        f"3.00{formats.SPACE}GiB of memory",
        "Some platform",
    ]
    assert terms["Parameters"] == [
        "traces: logs/dns.trace, clients.trace/",
        "repeats: 8",
        "budget: 1.5",
    ]
    for text, source in zip(terms["Workloads"], distinct.sources, strict=True):
        assert text.startswith(f"{source.name}: {method.described(source)}; ")
    assert terms["Checks"] == ["checked: all of it", "expiries: 1\u202f234\u202f577"]
    contestant = who_of(distinct, OVER[0]).full
    assert terms["Over budget"] == [
        f"{contestant}, expiry, clock-driven: over budget at 20\u202f000",
        f"{contestant}, keepalive: over budget",
    ]


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
    terms = method.terms(replace(distinct, manifest={**distinct.manifest, **change}))
    assert text in terms[term]


def test_all_that_are_tied_are_bold(distinct):
    source = distinct.own[0]
    time = distinct.column("replay_time", source.name)[who_of(distinct, EXACT[1])]
    same = {
        key: time
        for key in distinct.where(metric="replay_time", subject=source.name).figures
        if key.contestant in EXACT
    }
    tied = replace(distinct, figures={**distinct.figures, **same}, sources=(source,))
    table = workloads(tied)
    for figure in (f"time per operation, {MEDIAN}", "ratio to delay-queue"):
        heading = source.short, figure
        bold = {contestant.label for contestant, row in table.rows.items() if row[heading].best}
        assert bold == {*EXACT}


def test_the_lead_of_times(distinct):
    text = section("times", distinct).lead
    assert "longer than 1.5 s is over budget" in text and "“Python loop”" in text
    plain = tuple(timer for timer in distinct.contestants if timer.exact and timer.compiled)
    text = section("times", replace(distinct, contestants=plain, over_budget={})).lead
    assert "Python loop" not in text and "budget" not in text


def test_each_section_has_its_tables(called):
    tables = {each.name: [table.name for table in each.tables] for each in sections(called)}
    assert tables == {
        "times": ["times"],
        "callers": ["callers", "services"],
        "workloads": ["replays"],
        "memory": ["memory"],
        "work": ["work"],
        "schemes": ["schemes"],
        "reading": [],
        "method": [],
        "limits": [],
    }
    for table in (table for one in sections(called) for table in one.tables):
        assert all(len(heading) == len(table.facets) for heading in table.headings)
        for facet, part in table.chosen.items():
            assert part in table.choices[facet], table.name
    nothing = Summary(called.manifest, ())
    assert [one.name for one in sections(nothing)] == ["method"]


def test_columns_are_set_by_what_they_hold(distinct):
    def table(*rows):
        """Numbers where a text has n, and words where it has w."""
        entries = [
            {
                (str(place),): Entry("7", value=7 if kind == "n" else None)
                for place, kind in enumerate(row)
            }
            for row in rows
        ]
        return Table("t", "c", ["f"], dict(zip(distinct.contestants, entries, strict=False)))

    assert table("n", "w").in_words
    assert [table("nw").is_number((column,)) for column in "01"] == [True, False]
    assert not table("nw").in_words and table("ww").in_words


def test_rows_without_figures_are_left_out(distinct):
    first, other, *_ = distinct.contestants
    table = Table("t", "c", ["f"], {first: {("x",): NOTHING}, other: {("x",): Entry("3")}})
    assert table.rows == {other: {("x",): Entry("3")}}


def test_each_caller_and_size_has_three_costs(called):
    ways = {callers: [*CALLERS.keys() - {*OWN_CLOCK}], services: [*OWN_CLOCK]}
    for table, names in ways.items():
        made = table(called)
        assert len(made.headings) == len(names) * 2 * 3
        assert {heading[0] for heading in made.headings} == {TITLES[name][0] for name in names}
        for k, caller in enumerate(CALLERS):
            if caller not in names:
                continue
            for n, label in enumerate(LABELS):
                [timer] = [each for each in called.contestants if each.label == label]
                for size in (1_000, 100_000):
                    own = [
                        made.entry(timer, heading).value
                        for heading in made.headings
                        if heading[:2] == (TITLES[caller][0], formats.size(size))
                    ]
                    ns = 1_000.0 * k + 100 * n + size / 10_000 + 2
                    assert own == [ns, ns + 10, ns + 20]


def test_hosts_come_first_in_the_table_of_services_alone(called):
    table = services(called)
    assert next(row.full for row in table.rows) == "uvloop"
    heading = (TITLES[LOOP][0], formats.size(100_000), "call and cancel [ns]")
    assert table.entry(next(iter(table.rows)), heading).value == 779
    assert table.chosen == dict(zip(("caller", "size"), heading, strict=False))
    assert "uvloop" not in [row.full for row in callers(called).rows]
    assert "not installed" not in callers_lead(called)
    assert section("callers", called.where(metric="time")) is None
    absent = {Key("uvloop", LOOP, None, METRICS_OF_CALLERS[0]): "is not installed"}
    assert callers_lead(replace(called, failures=absent)).endswith(" uvloop is not installed here.")


def test_the_constants_of_a_cost_are_those_that_are_stored(primes):
    rows, values = [*primes.run.rows], {}
    for n, (caller, kind, label) in enumerate(
        [(PYTHON, "one", LABELS[1]), (PYTHON, "one", "sched"), (LOOP, "random", LABELS[0])]
    ):
        values[caller, label] = [100.0 * n + part for part in range(8)]
        *made, error = values[caller, label]
        rows += fit_rows(label, caller, kind, 1_000, Constants(*made), error)
    table = constants(figures_of(replace(primes.run, rows=rows)))
    shown = {
        (heading[0], row.full.partition(" ")[0]): []
        for row in table.rows
        for heading in table.headings
    }
    for row in table.rows:
        for caller, kind, size, figure in table.headings:
            cell = table.entry(row, (caller, kind, size, figure))
            if cell is not NOTHING:
                shown[caller, row.full.partition(" ")[0]].append(cell.value)
    found = {who: figures for who, figures in shown.items() if figures}
    assert found == {(TITLES[caller][0], label): each for (caller, label), each in values.items()}
    assert next(row.full for row in table.rows) == "sched"
    assert table.chosen["caller"] == TITLES[PYTHON][0]
