"""What the summary of a run says beside its figures, which the tests of the tables check."""

import dataclasses
import json
import re

import pytest

from compare.trial.bench.task import TASKS
from compare.trial.replay.contestant import contestant
from compare.trial.results.metrics import TIMED
from compare.trial.results.store import RunError, contestant_entry, read_run
from reports.catalogue import MEDIAN, workloads
from reports.statistics import Estimate
from reports.summary import Summary, contestants_of, figures_of, leaders
from tests.reports.primes import LABELS, OWN, SIZES, SOURCES, WHO
from tests.reports.stored import replay_rows
from tests.reports.synthetic import write_synthetic
from tests.words import one_line


def test_tasks_and_sources_stay_in_order_whoever_is_over_budget(primes, distinct):
    """The first contestant at the first task and source, all of them at the second, and at the
    greatest size.
    """
    run, names = primes.run, [task.name for task in TASKS]

    def without(row):
        if row.metric not in TIMED:
            return row
        order = names if row.size else list(SOURCES)
        position = order.index(row.subject)
        over = position == 1 or (position == 0 and row.contestant == LABELS[0])
        return row._replace(value=None) if over or row.size == SIZES[-1] else row

    figures = figures_of(dataclasses.replace(run, rows=[*map(without, run.rows)]))
    assert tuple(figures.tasks) == TASKS
    assert [source.name for source in figures.sources] == list(SOURCES)
    assert figures.sizes == SIZES
    first, second, *_ = figures.sources
    replayed = figures.column("replay_time", first.name)
    assert [contestant.label for contestant in replayed] == [*LABELS[1:]]
    assert figures.curves("time", names[1]) == figures.column("replay_time", second.name) == {}
    heading = second.short, f"time per operation, {MEDIAN}"
    rows = workloads(figures).rows.values()
    assert [row[heading].detail for row in rows] == ["over budget"] * len(LABELS)


def test_rates_are_those_of_the_trace(primes, distinct):
    assert [source.name for source in distinct.own] == list(OWN)
    for source in distinct.sources:
        about = primes.sources[source.name]
        seconds = about["span"] / {"us": 1e6, "ms": 1e3, "s": 1.0}.get(about["unit"], float("inf"))
        assert source.seconds == pytest.approx(seconds)
        assert source.rate == (pytest.approx(about["operations"] / seconds) if seconds else 0.0)


def test_contestants_are_what_the_manifest_says(distinct):
    assert [timer.label for timer in distinct.contestants] == list(LABELS)
    for timer in distinct.contestants:
        engine, low, high = WHO[timer.label]
        assert (timer.lateness, timer.exact) == ((low, high), low == high == 0)
        assert timer.compiled == (engine == "compiled")
        assert timer.variant == (1 if timer.label == "hashed-wheel" else 0)
    assert [timer.full for timer in distinct.contestants] == [
        "cascading-wheel",
        "delay-queue",
        "hashed-wheel (tick=10: 1 to 10 late)",
        "hashed-wheel (up to 100ms late)",
        "hierarchical-wheel (tick=5: up to 4 early)",
        "heapq-delay-queue (Python loop)",
        "Mine (12 early to 7 late)",
    ]
    assert [timer.plain for timer in distinct.contestants][2:4] == [
        "hashed-wheel (tick=10)",
        "hashed-wheel",
    ]
    assert distinct.base.label == "delay-queue"


def test_without_the_yardstick_the_first_compiled_timer_is_the_base(distinct):
    loop, own = distinct.contestants[-2:]
    assert dataclasses.replace(distinct, contestants=(loop, own)).base == own


def test_leaders_are_exact_compiled_and_tied_with_the_fastest(summary: Summary):
    timers = {timer.label: timer for timer in summary.contestants}
    loop, hashed = timers["heapq-delay-queue"], timers["hashed-wheel"]
    cells = {
        loop: Estimate.of([3.0]),
        hashed: Estimate.of([2.0]),
        timers["delay-queue"]: Estimate.of([30.0, 31.0, 32.0]),
        timers["simple-wheel"]: Estimate.of([10.0, 11.0, 12.0]),
        timers["cascading-wheel"]: Estimate.of([9.0, 10.5, 11.5]),
    }
    assert leaders(cells) == [timers["cascading-wheel"], timers["simple-wheel"]]
    assert leaders({loop: cells[loop], hashed: cells[hashed]}) == [loop]  # slower, but exact
    assert leaders({hashed: cells[hashed]}) == [hashed]
    assert leaders({}) == []


def test_contestants_say_their_settings():
    labels = "hashed-wheel/tick=1/wheel-size=64", "hierarchical-wheel/tick=10ms"
    contestants = contestants_of(contestant_entry(contestant(label), ["ms"]) for label in labels)
    assert [timer.full for timer in contestants] == [
        "hashed-wheel (tick=1, wheel-size=64: up to 1 late)",
        "hierarchical-wheel (tick=10ms: up to 9ms early)",
    ]


@pytest.mark.parametrize(
    "damage", ["contestants", "sources", "contestant", "lateness_low", "scheme"]
)
def test_a_damaged_manifest_is_one_line(tmp_path, damage):
    path = write_synthetic(tmp_path, sizes=(1000,))
    manifest = json.loads((path / "manifest.json").read_text())
    if damage == "contestant":
        del manifest["contestants"][0]
    elif damage not in manifest:
        del manifest["contestants"][0][damage]
    else:
        manifest[damage] = [{"nothing": 1}]
    (path / "manifest.json").write_text(json.dumps(manifest))
    with one_line(RunError, re.escape(str(path))):
        figures_of(read_run(path))


def test_a_trace_may_have_the_name_of_a_task(primes, distinct):
    about = {**primes.sources[OWN[0]], "name": "hold"}
    sources = [*primes.run.manifest["sources"], about]
    rows = [*primes.run.rows, *replay_rows("delay-queue", "hold", [3.0, 4.0], comparisons=7.0)]
    rows += replay_rows("heapq-delay-queue", "hold", None)
    manifest = {**primes.run.manifest, "sources": sources}
    both = figures_of(dataclasses.replace(primes.run, rows=rows, manifest=manifest))
    assert both.sources[-1].name == "hold" and both.tasks == distinct.tasks
    for metric in ("time", "comparisons"):
        curves = [
            {timer.label: curve for timer, curve in summary.curves(metric, "hold").items()}
            for summary in (both, distinct)
        ]
        assert curves[0] == curves[1]
    assert set(both.over_budget) - set(distinct.over_budget) == {
        ("heapq-delay-queue", "hold", "replay_time")
    }
    assert both.sizes == distinct.sizes
