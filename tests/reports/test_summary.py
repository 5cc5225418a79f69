"""The summary of a run, and of grids, holds each figure in its place."""

import dataclasses
import json
from statistics import median

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from compare.bench.store import RunError, read_run
from compare.bench.task import TASKS
from compare.pipeline.summarise import ABOUT, SCHEMA
from reports.grid import read_grids
from reports.sections import workloads
from reports.sections.parts import MEDIAN
from reports.statistics import Spread
from reports.summary import Summary, figures_of, leaders
from tests.reports.primes import (
    CAPACITIES,
    COUNTERS,
    LABELS,
    OVER,
    OVER_REPLAY,
    OWN,
    SIZES,
    SOURCES,
    WHEELS,
    WHO,
    ZERO,
    Supply,
    who_of,
)
from tests.reports.synthetic import contestant_of, write_synthetic


def test_every_cell_has_its_samples(primes, distinct):
    assert tuple(distinct.cells) == TASKS
    assert distinct.sizes == SIZES
    for task in TASKS:
        assert [who.label for who in distinct.cells[task]] == list(LABELS)
        for label in LABELS:
            found = distinct.cells[task][who_of(distinct, label)]
            for size in SIZES:
                if (label, task) == OVER[:2] and size >= OVER[2]:
                    assert size not in found
                    continue
                samples = primes.samples[label, task, size]
                assert found[size] == Spread.of(samples)
                assert found[size].level == median(samples)
                assert found[size][1:3] == (min(samples), max(samples))
                assert distinct.column(task, size)[who_of(distinct, label)] is found[size]


def test_what_was_over_budget_is_told_with_its_size(distinct):
    who = who_of(distinct, OVER[0])
    (keepalive,) = [source for source in distinct.replays if source.name == OVER_REPLAY[1]]
    assert distinct.over_budget == {(OVER[1], who): OVER[2], (keepalive, who): None}
    assert [*distinct.stopped(str)] == [
        f"{who.full}, expiry, clock-driven: over budget at 20000",
        f"{who.full}, keepalive: over budget",
    ]


def test_tasks_and_sources_stay_in_order_whoever_is_over_budget(primes, distinct):
    """The first contestant at the first task and source, and all of them at the second."""
    run = primes.run

    def without(row, position):
        over = position == 1 or (position == 0 and row["contestant"] == LABELS[0])
        return row | {"ns_per_operation": None} if over else row

    samples = [
        without(row, TASKS.index((row["operation"], row["driver"])))
        for row in run.samples.to_pylist()
    ]
    replays = [without(row, list(SOURCES).index(row["source"])) for row in run.replays.to_pylist()]
    changed = dataclasses.replace(
        run,
        samples=pa.Table.from_pylist(samples, schema=run.samples.schema),
        replays=pa.Table.from_pylist(replays, schema=run.replays.schema),
    )
    found = figures_of(changed)
    assert tuple(found.cells) == TASKS
    assert [source.name for source in found.replays] == list(SOURCES)
    assert found.sizes == SIZES
    first, second, *_ = found.replays
    assert [who.label for who in found.replays[first]] == [*LABELS[1:]]
    assert (found.cells[TASKS[1]], found.replays[second]) == ({}, {})
    heading = second.short, f"time per operation, {MEDIAN}"
    rows = workloads.table(found).rows.values()
    assert [row[heading].detail for row in rows] == ["over budget"] * len(LABELS)


def test_counts_are_divided_by_their_operations(primes, distinct):
    for task in TASKS:
        assert distinct.counters(task) == list(COUNTERS)
        for counter in (*COUNTERS, ZERO):
            curves = distinct.counts[task][counter]
            assert [who.label for who in curves] == [
                label for label in LABELS if WHO[label][0] == "compiled"
            ]
            for who, curve in curves.items():
                assert curve == {
                    size: primes.counts[who.label, task, counter, size][0]
                    / primes.counts[who.label, task, counter, size][1]
                    for size in SIZES
                }


def test_replays_have_their_rows(primes, distinct):
    assert [source.name for source in distinct.replays] == list(SOURCES)
    for source, found in distinct.replays.items():
        assert source.unit == SOURCES[source.name]
        assert source.own == (source.name in OWN)
        assert source.details == primes.sources[source.name]
        ran = [label for label in LABELS if (label, source.name) != OVER_REPLAY]
        assert [who.label for who in found] == ran
        for who, replayed in found.items():
            key = who.label, source.name
            assert replayed.time == Spread.of(primes.times[key])
            expected = primes.rows[key]
            assert {name: replayed.row[name] for name in expected} == expected
            assert [*replayed.counters] == [*(expected["counters"] or ())]
        assert distinct.replayed(source) == {who: of.time for who, of in found.items()}


def test_rates_are_those_of_the_trace(primes, distinct):
    assert [source.name for source in distinct.own] == list(OWN)
    for source in distinct.replays:
        about = primes.sources[source.name]
        seconds = about["span"] / {"us": 1e6, "ms": 1e3, "s": 1.0}.get(about["unit"], float("inf"))
        assert source.seconds == pytest.approx(seconds)
        assert source.rate == (pytest.approx(about["operations"] / seconds) if seconds else 0.0)


def test_memory_is_that_of_its_capacity(primes, distinct):
    for label in LABELS:
        own = [capacity for capacity in CAPACITIES if (label, capacity) in primes.memory]
        found = distinct.memory[who_of(distinct, label)]
        for capacity in own:
            peak, grown, pauses = primes.growth[label, capacity]
            assert found[capacity] == (
                primes.memory[label, capacity],
                peak / capacity,
                grown / capacity,
                Spread.of(1e9 * pause for pause in pauses) if pauses else None,
            )
        assert list(found) == own
    assert own[-1] == CAPACITIES[-1]


def test_slots_are_shares(primes, distinct):
    assert [who.label for who in distinct.slots] == list(WHEELS)
    for who, found in distinct.slots.items():
        for size in SIZES:
            in_slots, pending = primes.slots[who.label, size]
            assert found[size] == in_slots / pending


def test_contestants_are_what_the_manifest_says(distinct):
    assert [who.label for who in distinct.contestants] == list(LABELS)
    for who in distinct.contestants:
        engine, low, high = WHO[who.label]
        assert (who.lateness, who.exact) == ((low, high), low == high == 0)
        assert who.compiled == (engine == "compiled")
        assert who.variant == (1 if who.label == "hashed-wheel" else 0)
    assert [who.full for who in distinct.contestants] == [
        "cascading-wheel",
        "delay-queue",
        "hashed-wheel (tick=10: 1 to 10 late)",
        "hashed-wheel (0 to 100ms late)",
        "hierarchical-wheel (tick=5: 0 to 4 early)",
        "heapq-delay-queue (Python loop)",
        "Mine (3 early to 7 late)",
    ]
    assert [who.plain for who in distinct.contestants][2:4] == [
        "hashed-wheel (tick=10)",
        "hashed-wheel",
    ]
    assert distinct.base.label == "delay-queue"


def test_the_leader_is_the_fastest_exact_compiled_timer(primes, distinct):
    exact = "cascading-wheel", "delay-queue"
    for task in TASKS:
        for size in SIZES:
            best = min(exact, key=lambda label: median(primes.samples[label, task, size]))
            assert [who.label for who in leaders(distinct.column(task, size))] == [best]


def test_without_the_yardstick_the_first_compiled_timer_is_the_base(tmp_path):
    chosen = "heapq-delay-queue", "simple-wheel", "hashed-wheel"
    found = figures_of(read_run(write_synthetic(tmp_path, chosen, sizes=(1000,)))).base
    assert found is not None
    assert found.timer == "simple-wheel"  # not heapq-delay-queue, which stands before it


def test_leaders_are_exact_compiled_and_tied_with_the_fastest(summary: Summary):
    heapq, delay, simple, hashed, cascading = (
        contestant_of(summary, name)
        for name in (
            "heapq-delay-queue",
            "delay-queue",
            "simple-wheel",
            "hashed-wheel",
            "cascading-wheel",
        )
    )

    def cell(*samples):
        return Spread.of(samples)

    cells = {
        heapq: cell(3.0),
        hashed: cell(2.0),
        delay: cell(30.0, 31.0, 32.0),
        simple: cell(10.0, 11.0, 12.0),
        cascading: cell(9.0, 10.5, 11.5),
    }
    assert leaders(cells) == [cascading, simple]
    assert leaders({heapq: cells[heapq], hashed: cells[hashed]}) == [heapq]  # slower, but exact
    assert leaders({hashed: cells[hashed]}) == [hashed]
    assert leaders({}) == []


def test_contestants_say_their_settings_precision_and_engine(tmp_path):
    texts = "hashed-wheel/tick=1/wheel-size=64", "hashed-wheel", "hierarchical-wheel/tick=10ms"
    texts += "heapq-delay-queue", "cascading-wheel"
    found = figures_of(read_run(write_synthetic(tmp_path, texts, sizes=(1000,))))
    assert [who.full for who in found.contestants] == [
        "hashed-wheel (tick=1, wheel-size=64: 0 to 1 late)",
        "hashed-wheel (0 to 100ms late)",
        "hierarchical-wheel (tick=10ms: 0 to 9ms early)",
        "heapq-delay-queue (Python loop)",
        "cascading-wheel",
    ]


@pytest.mark.parametrize("damage", ["traits", "sources", "contestant", "lateness_low", "scheme"])
def test_a_damaged_manifest_is_one_line(tmp_path, damage):
    path = write_synthetic(tmp_path, sizes=(1000,))
    manifest = json.loads((path / "manifest.json").read_text())
    if damage == "contestant":
        del manifest["traits"][0]
    elif damage not in manifest:
        del manifest["traits"][0][damage]
    else:
        manifest[damage] = [{"nothing": 1}]
    (path / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(RunError) as caught:
        figures_of(read_run(path))
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


# ---- grids

NAMES = ("delay-queue", "hashed-wheel")


@pytest.fixture(scope="module")
def grid(tmp_path_factory):
    """Rows of primes in two files, and the summary of both."""
    prime, files, rows = Supply(), [], []
    for unit, workload in (("us", "first"), ("s", "second")):
        own = []
        shared = {"shards": prime.near(11), "span": next(prime), "operations": next(prime)}
        for number, name in enumerate(NAMES):
            row = {
                field.name: next(prime)
                for field in SCHEMA
                if field.type in (pa.int64(), pa.float64())
            }
            row |= shared | {
                "contestant": name,
                "engine": "compiled",
                "workload": workload,
                "source": json.dumps({"timeout": "3s", "examples": ["left out"]}),
                "unit": unit,
                "counters": [("comparisons", next(prime))] if number == 0 else None,
            }
            own.append(row)
        path = tmp_path_factory.mktemp("grid") / workload
        asked = {"asked": {"drained": workload}, "machine": {"cpu": workload}}
        table = pa.Table.from_pylist(own, schema=SCHEMA)
        pq.write_table(table.replace_schema_metadata({ABOUT: json.dumps(asked)}), path)
        files.append(path)
        rows.append(own)
    return rows, read_grids(files)


def test_a_grid_holds_each_figure_in_its_place(grid):
    rows, summary = grid
    assert [source.name for source in summary.replays] == ["first", "second"]
    for own, (source, found) in zip(rows, summary.replays.items(), strict=True):
        assert (source.unit, source.own) == (own[0]["unit"], True)
        assert source.details == {
            "operations": own[0]["operations"],
            "timers": own[0]["scheduled"],
            "shards": own[0]["shards"],
            "span": own[0]["span"],
            "details": {"timeout": "3s"},
        }
        assert [who.timer for who in found] == list(NAMES)
        for row, replayed in zip(own, found.values(), strict=True):
            spread = replayed.time
            assert spread.level == row["ns_per_operation"]  # of all shards together
            assert (spread.low, spread.high, spread.samples) == (
                row["shard_ns_per_operation_least"],
                row["shard_ns_per_operation_most"],
                row["shards"],
            )
            assert replayed.row == row


def test_a_grid_says_where_it_was_made(grid):
    _, summary = grid
    assert summary.of_shards
    assert summary.manifest["machine"] == {"cpu": "first"}
    assert summary.manifest["parameters"] == {
        "results 1": {"drained": "first"},
        "results 2": {"drained": "second"},
    }
