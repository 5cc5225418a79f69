"""What the summary of a run says beside its figures, which the tests of the tables check."""

import dataclasses
import json

import pyarrow as pa
import pytest

from compare.bench.store import RunError, read_run
from compare.bench.task import TASKS
from reports.sections import workloads
from reports.sections.parts import MEDIAN
from reports.statistics import Spread
from reports.summary import Summary, figures_of, leaders
from tests.reports.primes import (
    LABELS,
    OWN,
    SIZES,
    SOURCES,
    WHO,
    who_of,
)
from tests.reports.synthetic import write_synthetic


def test_tasks_and_sources_stay_in_order_whoever_is_over_budget(primes, distinct):
    """The first contestant at the first task and source, all of them at the second, and at the
    greatest size.
    """
    run = primes.run

    def without(row, position):
        over = position == 1 or (position == 0 and row["contestant"] == LABELS[0])
        over = over or row.get("size") == SIZES[-1]
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
    figures = figures_of(changed)
    assert tuple(figures.cells) == TASKS
    assert [source.name for source in figures.replays] == list(SOURCES)
    assert figures.sizes == SIZES
    first, second, *_ = figures.replays
    assert [contestant.label for contestant in figures.replays[first]] == [*LABELS[1:]]
    assert (figures.cells[TASKS[1]], figures.replays[second]) == ({}, {})
    heading = second.short, f"time per operation, {MEDIAN}"
    rows = workloads.table(figures).rows.values()
    assert [row[heading].detail for row in rows] == ["over budget"] * len(LABELS)


def test_rates_are_those_of_the_trace(primes, distinct):
    assert [source.name for source in distinct.own] == list(OWN)
    for source in distinct.replays:
        about = primes.sources[source.name]
        seconds = about["span"] / {"us": 1e6, "ms": 1e3, "s": 1.0}.get(about["unit"], float("inf"))
        assert source.seconds == pytest.approx(seconds)
        assert source.rate == (pytest.approx(about["operations"] / seconds) if seconds else 0.0)


def test_contestants_are_what_the_manifest_says(distinct):
    assert [contestant.label for contestant in distinct.contestants] == list(LABELS)
    for contestant in distinct.contestants:
        engine, low, high = WHO[contestant.label]
        assert (contestant.lateness, contestant.exact) == ((low, high), low == high == 0)
        assert contestant.compiled == (engine == "compiled")
        assert contestant.variant == (1 if contestant.label == "hashed-wheel" else 0)
    assert [contestant.full for contestant in distinct.contestants] == [
        "cascading-wheel",
        "delay-queue",
        "hashed-wheel (tick=10: 1 to 10 late)",
        "hashed-wheel (0 to 100ms late)",
        "hierarchical-wheel (tick=5: 0 to 4 early)",
        "heapq-delay-queue (Python loop)",
        "Mine (3 early to 7 late)",
    ]
    assert [contestant.plain for contestant in distinct.contestants][2:4] == [
        "hashed-wheel (tick=10)",
        "hashed-wheel",
    ]
    assert distinct.base.label == "delay-queue"


def test_without_the_yardstick_the_first_compiled_timer_is_the_base(tmp_path):
    chosen = "heapq-delay-queue", "simple-wheel", "hashed-wheel"
    base = figures_of(read_run(write_synthetic(tmp_path, chosen, sizes=(1000,)))).base
    assert base is not None
    assert base.timer == "simple-wheel"  # not heapq-delay-queue, which stands before it


def test_leaders_are_exact_compiled_and_tied_with_the_fastest(summary: Summary):
    heapq, delay, simple, hashed, cascading = (
        who_of(summary, name)
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
    figures = figures_of(read_run(write_synthetic(tmp_path, texts, sizes=(1000,))))
    assert [contestant.full for contestant in figures.contestants] == [
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
