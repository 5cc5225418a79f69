"""Lateness against load, of a fake contender with a manual clock and fixed times of calls."""

import time
from heapq import heappop, heappush
from types import SimpleNamespace

import numpy as np
import pytest

from compare.base.quantiles import QUANTILES
from compare.trial.bench import overload, process
from compare.trial.bench.comparison import ALL_TAILS, QUICK_TAILS, Comparison
from compare.trial.bench.overload import (
    LEAD,
    LOADS,
    PENDING,
    Load,
    Overload,
    capacity_of,
    contenders,
    measure,
    measured,
    random_moments,
)
from compare.trial.bench.process import ProcessFailedError
from compare.trial.bench.run import run_comparison
from compare.trial.results.schema import OVERLOAD, Row
from compare.trial.results.store import read_run
from tests.words import one_line


class Server:
    """Runs calls one after another in the order of deadlines; each takes `cost` ns."""

    def __init__(self, cost):
        self.cost, self.clock, self.heap, self.most, self.finished = cost, 0, [], 0, 0

    def now(self):
        return self.clock

    def schedule(self, moment, callback, k):
        heappush(self.heap, (round(moment * 1e9), k, callback))
        self.most = max(self.most, len(self.heap))

    def finish(self):
        self.finished += 1

    def run(self, load):
        self.heap.clear()
        load.begin(self.schedule, self.finish)
        while self.heap:
            moment, k, callback = heappop(self.heap)
            self.clock = max(self.clock, moment)
            callback(k)
            self.clock += self.cost


def test_moments_are_ascending_and_random_at_the_rate():
    moments = random_moments(50_000, 2.0, seed=1)
    assert moments.size == 100_000 and moments.dtype == np.int64
    assert (np.diff(moments) >= 0).all() and moments[0] >= 0 and moments[-1] < 2e9
    by_tenth = np.bincount(moments // 200_000_000)
    assert by_tenth.size == 10 and by_tenth == pytest.approx(np.full(10, 10_000), rel=0.05)
    assert not np.array_equal(moments, random_moments(50_000, 2.0, seed=2))
    assert random_moments(0.1, 1.0).size == 0


def test_lateness_is_that_of_a_queue():
    moments = np.array([0, 10, 20, 1000, 1001])
    load, server = Load(moments), Server(100)
    load.now = server.now
    server.run(load)
    assert load.late == [0, 90, 180, 0, 99]
    assert load.ended - load.start == 1100 and load.start == LEAD and server.finished == 1
    assert load.throughput == pytest.approx(5 / 1100e-9)
    figures = load.figures()
    assert (figures["late_end_ms"], figures["late_max_ms"]) == (99 / 1e6, 180 / 1e6)


def test_what_has_not_run_when_time_is_up_is_undelivered():
    server = Server(100)
    load = Load(np.arange(30, dtype=np.int64), span=1000, now=server.now)
    server.run(load)
    assert load.late == [100 * k - k for k in range(10)]
    figures = load.figures()
    assert figures["undelivered"] == 20 and server.finished == 1
    assert figures["late_end_ms"] == figures["late_max_ms"] == 891 / 1e6
    assert figures["late_p50_ms"] == 396 / 1e6


def test_a_load_that_delivers_nothing_has_no_lateness():
    server = Server(1)
    load = Load(np.array([5]), span=5, now=server.now)
    server.run(load)
    figures = load.figures()
    assert figures.pop("undelivered") == 1 and {*figures.values()} == {None}


def test_a_fixed_number_of_calls_is_pending(monkeypatch):
    monkeypatch.setattr(overload, "PENDING", 7)
    server = Server(1)
    load = Load(random_moments(1000, 1.0), now=server.now)
    server.run(load)
    assert server.most == 7 and len(load.late) == 1000


def test_capacity_is_the_rate_at_which_calls_run():
    server = Server(4_000)
    assert capacity_of(server.run, server.now) == pytest.approx(250_000, rel=0.001)


def test_beyond_capacity_lateness_grows_with_the_excess():
    server = Server(10_000)
    capacity, figures = measure(server.run, 0.5, server.now)
    assert capacity == pytest.approx(100_000, rel=0.001) and tuple(figures) == LOADS
    for percent in (50, 80):
        assert figures[percent]["late_p999_ms"] < 1 and figures[percent]["undelivered"] < 20
    medians = [figures[percent]["late_p50_ms"] for percent in LOADS]
    assert medians == sorted(medians)
    for percent in (105, 120):
        excess = (percent - 100) / 100 * capacity * 0.5
        assert figures[percent]["undelivered"] == pytest.approx(excess, rel=0.1, abs=50)
        assert figures[percent]["late_end_ms"] == pytest.approx(500 * (1 - 100 / percent), rel=0.15)


@pytest.mark.parametrize("name", contenders())
def test_a_contender_delivers_each_call(name):
    load = Load(random_moments(20 * PENDING, 0.1))
    contenders()[name](load)
    assert len(load.late) == 2 * PENDING
    assert min(load.late) >= (
        -2_000_000 if name == "uvloop" else 0
    )  # whose clock has steps of 1 ms


def test_rows_are_of_each_contender_and_load(monkeypatch):
    values = {f"late_{name}_ms": 1.5 for name in QUANTILES} | {"undelivered": 3}
    known = {("asyncio", 1.0): [9000.0, {"50": values, "120": values | {"undelivered": 700}}]}
    stored, steps = {}, []

    def measured(*case):
        if case in known:
            return known[case]
        raise ProcessFailedError("took longer than 120 s")

    monkeypatch.setattr(overload, "measured", measured)
    bench = Overload(1.0, ["SystemTimer", "asyncio"])
    bench.run(steps.append, stored.__setitem__)
    assert len(steps) == bench.steps == 2 and [*stored] == bench.tasks
    found = {tuple(row[:4]): row.value for row in stored["overload"]}
    assert found["asyncio", OVERLOAD, None, "capacity"] == 9000
    assert found["asyncio", OVERLOAD, 120, "undelivered"] == 700
    assert found["asyncio", OVERLOAD, 50, "late_p99_ms"] == 1.5
    assert len(found) == 2 + 2 * len(values)
    failed = Row("SystemTimer", OVERLOAD, None, "capacity", None, None, "took longer than 120 s")
    assert failed in stored["overload"]
    nothing = Overload(0.0)
    assert nothing.tasks == [] and nothing.steps == 0


def test_a_process_measures_a_contender():
    capacity, figures = measured("asyncio", 0.05)
    assert capacity > 1000 and [*figures] == [str(percent) for percent in LOADS]
    with one_line(ProcessFailedError, "failed: KeyError: 'no-such-loop'"):
        measured("no-such-loop", 0.05)


@pytest.mark.parametrize(
    ("tails", "size", "asked"),
    [(ALL_TAILS, PENDING, True), (ALL_TAILS, PENDING - 1, False), (QUICK_TAILS, PENDING, False)],
)
def test_a_comparison_measures_it_with_all_tails_and_large_sizes(
    tails, size, asked, tmp_path, monkeypatch
):
    waited = [0.0]

    def measure(name, seconds):
        waited[0] += 1e6
        return seconds, {}

    clock = SimpleNamespace(perf_counter=lambda: waited[0] + time.perf_counter())
    monkeypatch.setattr("compare.trial.bench.run.time", clock)
    monkeypatch.setattr(overload, "measured", measure)
    monkeypatch.setattr(process, "measured", lambda label, size: {})
    options = Comparison(
        workloads=(),
        timers=("cascading-wheel",),
        sizes=(size,),
        tails=tails,
        repeats=1,
        runs=str(tmp_path),
    )
    run = read_run(run_comparison(options))
    assert run.manifest["seconds"]["wall"] < 1e6  # the machine is not busy while calls are not due
    rows = [row for row in run.rows if row.subject == OVERLOAD]
    names = {row.contestant for row in rows if row.value == overload.SECONDS}
    assert names == ({*contenders()} if asked else set())
