"""Tails of small tapes: which rows are stored, and that they are those of the latencies."""

import numpy as np
import pytest

from compare.base.quantiles import TAIL
from compare.traffic.tapes.trace import open_trace, write_trace
from compare.traffic.workloads.catalogue import make
from compare.trial.bench import run, tails
from compare.trial.bench.comparison import ALL_TAILS, NO_TAILS, QUICK_TAILS, Comparison
from compare.trial.bench.sources import trace_source, workload_source
from compare.trial.bench.tails import Tails, ticks_for
from compare.trial.oracle.compiled import AgreementError
from compare.trial.replay.contestant import contestant
from compare.trial.replay.latencies import Latencies
from compare.trial.replay.ticks import Ticks
from compare.trial.replay.timed_loops import ADVANCED
from compare.trial.results.metrics import LATENCIES, METRICS
from compare.trial.results.schema import OVER_BUDGET, TAILS
from compare.trial.results.store import read_run
from timers.kernels.pool import EXPIRY
from timers.registry import names

OWN = "tests.compare.own_timers:"


def measure(*timers, sizes=(), sources=(), repeats=2, budget=1e9):
    """The rows after a run, by task."""
    bench = Tails([contestant(name) for name in timers], sizes, sources, repeats, budget, 7)
    steps, stored = [], {}
    bench.run(steps.append, stored.__setitem__)
    assert len(steps) == bench.steps and [*stored] == bench.tasks
    assert sum(stored.values(), []) == bench.rows
    return bench.rows


def values(rows, **where):
    return {row.metric: row.value for row in rows if where.items() <= row._asdict().items()}


def test_each_timer_has_the_quantiles_of_each_operation_at_each_size_and_source():
    source = workload_source("keepalive", 800, 1)
    rows = measure(*names(), sizes=(60, 40), sources=[source])
    assert {(row.contestant, row.subject, row.size) for row in rows} == {
        (name, *place)
        for name in names()
        for place in ((TAILS, 40), (TAILS, 60), ("keepalive", None))
    }
    assert {row.metric for row in rows} <= METRICS.keys()
    found = values(rows, contestant="cascading-wheel", size=60)
    kinds = {metric.rpartition("_")[0] for metric in found if metric.endswith("_p9999")}
    assert kinds == {"start", "cancel", "advance"}  # this tape re-arms nothing
    assert found["rounds"] == 2 and found["growths"] == 0
    on_source = values(rows, contestant="cascading-wheel", subject="keepalive")
    assert {f"{kind}_{name}" for kind in ("start", "rearm", "advance") for name in TAIL} <= {
        *on_source
    }
    for kind in kinds:
        column = [found[f"{kind}_{name}"] for name in TAIL]
        assert column == sorted(column)


class FakeSeries:
    """A shard's rounds with made ticks."""

    contestant = None
    rounds = (1.0, 1.0, 1.0)

    def __init__(self, spent, ticks):
        self.refiled = np.arange(len(ticks)) * 100
        advances = np.zeros(len(ticks), ADVANCED)
        advances["ticks"], advances["moment"] = ticks, np.arange(len(ticks))
        advances["fired"] = 5
        kinds = np.arange(len(spent), dtype=np.int8) % 2
        self.least = Latencies(kinds, np.array(spent), advances, np.empty(0, EXPIRY), 3)


def test_figures_are_the_quantiles_of_all_shards_in_ns_with_the_slowest_advance(monkeypatch):
    """With a fake clock of half a nanosecond per tick, 5 ns of which are a reading."""
    monkeypatch.setattr(tails, "ticks_for", lambda contestant: Ticks("fake", 0.5, 5.0, 0.5))
    tail = tails.Tail()
    first, second = [*range(1000, 3000)], [*range(9000, 9400)]
    tail.add(FakeSeries(first, [50, 900, 60]))
    tail.add(FakeSeries(second, [40, 70, 5000, 30]))
    figures = tail.figures()
    starts = [ticks * 0.5 - 5 for ticks in first[::2] + second[::2]]
    for name, share in TAIL.items():
        exact = np.quantile(starts, share, method="inverted_cdf")
        assert figures[f"start_{name}"] == pytest.approx(exact, rel=1e-3)
    assert figures["rearm_p50"] is None
    assert figures["advance_max"] == pytest.approx(5000 * 0.5 - 5, rel=1e-3)
    assert figures["worst_refiled"] == 200 and figures["worst_moment"] == 2
    assert (figures["worst_fired"], figures["growths"], figures["rounds"]) == (5, 6, 3)


def test_shards_of_a_trace_are_measured_together(tmp_path):
    shards = [make("uniform", operations=300, seed=1, shard=k).tape for k in (0, 1)]
    path = write_trace(tmp_path / "two", shards, unit="ms", source={"kind": "test"}).path
    rows = measure("delay-queue", sources=[trace_source(open_trace(path))])
    assert {row.subject for row in rows} == {str(path)}
    assert values(rows)["rounds"] == 2


@pytest.mark.parametrize(("own", "words"), [("Late", "than the oracle"), ("Moody", "when timed")])
def test_a_timer_that_disagrees_is_not_timed(own, words):
    with pytest.raises(AgreementError, match=words):
        measure(OWN + own, sources=[workload_source("constant", 400, 1)])


def test_what_is_over_budget_is_not_run_at_larger_sizes():
    rows = measure("unordered-list", "delay-queue", sizes=(10, 20), budget=1e-9)
    assert [(row.size, row.value, row.note) for row in rows] == [
        (size, None, OVER_BUDGET) for size in (10, 10, 20, 20)
    ]


def test_the_metrics_name_every_kind():
    assert (*tails.KINDS, tails.ADVANCE) == LATENCIES


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        (NO_TAILS, set()),
        (QUICK_TAILS, {(TAILS, 40), ("trace", None)}),
        (ALL_TAILS, {(TAILS, 30), (TAILS, 40), (TAILS, 50), ("trace", None), ("uniform", None)}),
    ],
)
def test_a_comparison_measures_the_tails_that_are_wanted(tmp_path, monkeypatch, wanted, expected):
    """Quick tails: the largest size up to a limit, and traces."""
    monkeypatch.setattr(run, "QUICK_SIZE", 45)
    monkeypatch.chdir(tmp_path)
    shards = [make("uniform", operations=100, seed=1).tape]
    write_trace("trace", shards, unit="ms", source={"kind": "test"})
    options = Comparison(
        traces=("trace",),
        workloads=("uniform",),
        timers=("delay-queue",),
        sizes=(30, 50, 40),
        operations=100,
        repeats=1,
        tails=wanted,
    )
    stored = read_run(run.run_comparison(options))
    assert {(r.subject, r.size) for r in stored.rows if r.metric == "start_p50"} == expected
    clocks = [Ticks(**clock).name for clock in stored.manifest["clocks"]]
    assert clocks == ([ticks_for(contestant("delay-queue")).name] if expected else [])
