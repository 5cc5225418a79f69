import dataclasses
import re
import sys
import time
from contextlib import nullcontext

import numpy as np
import pytest
from tqdm import tqdm

from compare.traffic.tapes.tape import ARM, CANCEL, OP_COUNTS, START
from compare.traffic.tapes.trace import TraceError, write_trace
from compare.traffic.workloads.catalogue import WorkloadError, make
from compare.trial.bench.callers import (
    HOSTS,
    METRICS,
    OWN_CLOCK,
    Callers,
    can_call,
    sizes_of,
)
from compare.trial.bench.comparison import DEFAULT_WORKLOADS, Comparison, workloads_of
from compare.trial.bench.costs import CallerCosts
from compare.trial.bench.measure import Bench
from compare.trial.bench.run import run_comparison
from compare.trial.bench.sources import trace_source, workload_source
from compare.trial.bench.task import TASKS
from compare.trial.bench.work import tapes_of
from compare.trial.oracle.compiled import AgreementError, expect
from compare.trial.replay.contestant import ContestantError, contestant
from compare.trial.results.metrics import is_counter
from compare.trial.results.store import latest_run, read_run
from reports.summary import figures_of
from tests.compare.conftest import SMALL as SHORT
from tests.compare.own_timers import Timed
from tests.compare.small_tapes import tape_of
from tests.words import one_line
from timers.errors import ParameterError, UnknownTimerError
from timers.registry import names

OWN = "tests.compare.own_timers:"
SMALL = Comparison(sizes=(), workloads=(), operations=600, repeats=2, budget=1e9, seed=9)
SIZES = (40, 60)


def keepalive(path):
    """A trace of two shards with 400 operations each."""
    tapes = [make("keepalive", operations=400, seed=1, shard=shard).tape for shard in (0, 1)]
    return write_trace(path, tapes, unit="ms", source={"kind": "test"})


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A run of all timers with a trace and a workload."""
    store = tmp_path_factory.mktemp("store")
    options = dataclasses.replace(
        SMALL,
        sizes=SIZES[::-1],
        traces=(str(keepalive(store / "two.trace").path),),
        workloads=("lognormal-high",),
        runs=str(store / "runs"),
    )
    path = run_comparison(options)
    assert latest_run(store / "runs") == path
    return read_run(path)


@pytest.fixture
def compare(tmp_path):
    """Runs a small comparison and reads the stored run."""

    def compare(*traces, clock=time.perf_counter, **changes):
        changes = {"traces": tuple(str(trace.path) for trace in traces)} | changes
        options = dataclasses.replace(SMALL, runs=str(tmp_path / "runs"), **changes)
        return read_run(run_comparison(options, clock))

    return compare


def rows(run, *metrics, **where):
    """The rows of these metrics, whose columns have these values."""
    return [
        row for row in run.rows if row.metric in metrics and where.items() <= row._asdict().items()
    ]


def columns(found, *names):
    return [tuple(getattr(row, name) for name in names) for row in found]


def count(run, metric, **where):
    """The value of the one row."""
    (row,) = rows(run, metric, **where)
    return row.value


def test_every_time_is_stored_by_size_task_contestant_and_repeat(run):
    stored = columns(rows(run, "time"), "size", "subject", "contestant", "repeat")
    assert sorted(stored) == sorted(
        (size, task.name, name, repeat)
        for size in SIZES
        for task in TASKS
        for name in names()
        for repeat in (0, 1)
    )


def test_each_figure_is_in_the_table(run):
    for metric in METRICS:
        found = [row for row in rows(run, metric) if row.value is not None]
        costs = {(row.contestant, row.subject, row.size) for row in found}
        assert costs == {
            *(
                (each.label, caller, size)
                for each in [*map(contestant, names()), *HOSTS.values()]
                for caller in OWN_CLOCK
                if can_call(caller, each)
                for size in sizes_of(caller, max(SIZES), each)
            ),
        }
    for metric in ("advances", "idle_advances"):
        assert {*columns(rows(run, metric), "contestant", "subject")} == {
            (name, subject) for name in names() for subject in ("expiry-clock", "expiry-event")
        }
    expected = {(name, size) for size in SIZES for name in names()}
    for metric in ("at_rest", "at_peak", "grown"):
        assert {*columns(rows(run, metric), "contestant", "size")} == expected
    wheels = {case for case in expected if case[0].endswith("wheel")}
    assert {*columns(rows(run, "in_slots"), "contestant", "size")} == wheels


def test_a_task_is_a_size_the_callers_or_a_source(run):
    costs = CallerCosts([], 1, 1).tasks
    sizes = [f"pending-{size}" for size in sorted(SIZES)]
    tasks = [*costs, *sizes, "callers", "replay-0", "replay-1"]
    assert [*run.manifest["tasks"]] == tasks
    assert sum(run.manifest["tasks"].values()) == len(run.rows)


def test_replays_keep_their_counters(run):
    for source in run.manifest["sources"]:
        for name in names():
            counters = {
                row.metric
                for row in run.rows
                if row[:3] == (name, source["name"], None) and is_counter(row.metric)
            }
            compiled = contestant(name).engine != "python loop"
            assert (counters >= {"comparisons", "clock_visits"}) == compiled == bool(counters)


def test_all_shards_of_a_trace_are_replayed(run):
    source, workload = run.manifest["sources"]
    assert (source["shards"], source["operations"], source["unit"]) == (2, 800, "ms")
    assert source["details"] == {"kind": "test"}
    assert source["description"]["armed"] == source["starts"] + source["rearms"] + source["arms"]
    assert workload["description"] is None
    assert {row.value for row in rows(run, "operations", subject=source["name"])} == {800}
    replayed = {"subject": source["name"], "contestant": "hashed-wheel"}
    assert count(run, "fired", **replayed) > 0
    low, high = (count(run, f"lateness_{end}", **replayed) for end in ("min", "max"))
    assert 0 < low < high <= 100


def test_the_manifest_tells_what_was_run_where(run):
    manifest, parameters = run.manifest, run.manifest["parameters"]
    expected = {name.lower(): value for name, value in SHORT.items()} | {
        "sizes": [*SIZES[::-1]],
        "traces": [manifest["sources"][0]["name"]],
        "workloads": ["lognormal-high"],
        "timers": names(),
        "pairs_per_unit": 100,
    }
    assert expected.items() <= parameters.items()
    assert manifest["versions"]["numba"] and manifest["machine"]["cores"] >= 1
    assert [entry["timer"] for entry in manifest["contestants"]] == names()
    assert (manifest["kind"], manifest["agreement"]["contestants"]) == ("comparison", len(names()))
    # Of each timer, filling once and holding twice at each size, and three tapes of two sources.
    assert manifest["agreement"]["tapes"] == len(names()) * (len(SIZES) * 3 + 3)
    replayed = sum(row.value for row in rows(run, "fired"))
    measured = sum(
        expect(tape, size, contestant(name).rounding("ms")).fired
        for size in SIZES
        for tapes in [tapes_of(size, SMALL.seed)]
        for tape in (tapes.filling, tapes.holding, tapes.holding)
        for name in names()
    )
    assert manifest["agreement"]["expiries"] == replayed + measured
    workload = manifest["sources"][1]
    assert workload["details"]["seed"] == SMALL.seed
    of_first = {"subject": workload["name"], "contestant": names()[0]}
    assert workload["timers"] == count(run, "scheduled", **of_first)


def test_a_replay_is_timed_over_all_shards(tmp_path, compare, clock, monkeypatch):
    trace = keepalive(tmp_path / "two.trace")
    prime = iter([1, 1, 1, 2, 3, 5, 7, 11, 13])  # the first is made to see that it can be
    create = Timed.__init__

    def make(self, **keywords):
        Timed.factor = next(prime)
        create(self, **keywords)

    monkeypatch.setattr(Timed, "__init__", make)
    run = compare(trace, timers=(OWN + "Timed",), repeats=3, clock=clock)
    _, *checked, a0, b0, a1, b1, a2, b2 = Timed.instances
    seconds = [a0.spent + b0.spent, a1.spent + b1.spent, a2.spent + b2.spent]
    assert len(set(seconds)) == 3
    assert columns(rows(run, "replay_time"), "repeat", "value") == [
        (repeat, 1e9 * spent / 800) for repeat, spent in enumerate(seconds)
    ]
    assert sum(timer.spent for timer in checked) == a0.spent / a0.factor + b0.spent / b0.factor
    counts = count(run, "operations"), count(run, "scheduled")
    assert counts == (800, trace.totals["starts"])
    assert count(run, "wakeups") > 0


def test_a_replay_over_budget_is_not_timed(tmp_path, compare, clock):
    """The first shard is within the budget, and both together are not."""
    trace, timers = keepalive(tmp_path / "two.trace"), (OWN + "Timed", OWN + "Right")
    whole = compare(trace, timers=timers, clock=clock)
    seconds = rows(whole, "replay_time", contestant=OWN + "Timed")[0].value * 800 / 1e9
    run = compare(trace, timers=timers, budget=seconds * 0.9, clock=clock)
    (row,) = (row for row in run.rows if row.contestant == OWN + "Timed")
    assert row[1:] == (str(trace.path), None, "replay_time", None, None, "over budget")
    assert len(rows(run, "replay_time", contestant=OWN + "Right")) == 2
    assert run.manifest["agreement"]["tapes"] == 2
    assert {row.size for row in run.rows} == {None}


def test_replays_are_repeated_within_the_budget(compare, clock):
    options = {"timers": (OWN + "Timed",), "workloads": ("constant",), "repeats": 3}
    whole = compare(**options, clock=clock)
    seconds = rows(whole, "replay_time")[0].value * count(whole, "operations") / 1e9
    for share, repeats in ((1.9, 1), (2.0, 2)):
        run = compare(**options, budget=seconds * share, clock=clock)
        assert columns(rows(run, "replay_time"), "repeat") == [(n,) for n in range(repeats)]


def test_contestants_may_differ_in_parameters_alone(compare, monkeypatch):
    called = []
    monkeypatch.setattr(
        Callers, "run", lambda each, step, store: called.append(each) or store("callers", [])
    )
    timers = ("hashed-wheel", "hashed-wheel/tick=1/wheel-size=64", OWN + "Right")
    run = compare(timers=timers, sizes=(40,), repeats=1, budget=3e9)
    [callers] = called
    assert (callers.budget, callers.seed, callers.largest) == (3e9, SMALL.seed, 40)
    described = [(traits["timer"], traits["settings"]) for traits in run.manifest["contestants"]]
    assert described == [
        ("hashed-wheel", {}),
        ("hashed-wheel", {"tick": 1, "wheel_size": 64}),
        (OWN + "Right", {}),
    ]
    assert {row.contestant for row in rows(run, "time")} == set(timers)


@pytest.mark.parametrize("name", ["Late", "Moody"])
def test_nothing_is_stored_of_a_timer_that_disagrees(tmp_path, compare, name):
    with pytest.raises(AgreementError):
        compare(timers=(OWN + name,), workloads=("constant",), operations=5000)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("after", ["calling", "timing delay-queue on constant", "costs"])
def test_of_an_interrupted_comparison_the_finished_tasks_stay(
    tmp_path, compare, monkeypatch, after
):
    """It is interrupted when the calls begin, in the last source, and before anything is done."""

    class Bar:
        def set_description_str(self, text, refresh):
            if text.startswith(after):
                raise KeyboardInterrupt

        def update(self):
            pass

    monkeypatch.setattr("compare.trial.bench.run.progress_bar", lambda steps: nullcontext(Bar()))
    options = {"timers": ("delay-queue",), "sizes": (40,), "workloads": ("uniform", "constant")}
    with pytest.raises(KeyboardInterrupt) as stopped:
        compare(**options)
    if after == "costs":
        assert not list(tmp_path.iterdir())
        return
    [path] = (tmp_path / "runs").iterdir()
    assert str(path) in stopped.value.__notes__[0]
    missing = ["callers", "replay-0", "replay-1"] if after == "calling" else ["replay-1"]
    run = read_run(path)
    assert run.missing == missing
    assert {row.metric for row in run.rows} >= {"time", "at_rest"}
    summary = figures_of(run)
    assert summary.missing == missing
    assert len(summary.sources) == 2 - len({*missing} & {"replay-0", "replay-1"})


def test_a_progress_bar_is_for_terminals(compare, monkeypatch, capsys):
    options = {"timers": ("delay-queue",), "sizes": (40,), "workloads": ("constant",)}
    compare(**options)
    assert capsys.readouterr() == ("", "")
    bars = []

    class Recorded(tqdm):
        def __init__(self, *arguments, **options):
            super().__init__(*arguments, **options)
            bars.append(self)

    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.setattr("compare.base.progress.tqdm", Recorded)
    compare(**options)
    assert "%" in capsys.readouterr().err
    (bar,) = bars
    assert bar.n == bar.total > 0


def test_workloads_are_replayed_unless_traces_are_given():
    assert workloads_of(Comparison()) == DEFAULT_WORKLOADS
    assert workloads_of(Comparison(traces=("t",))) == ()
    assert workloads_of(Comparison(traces=("t",), workloads=("uniform",))) == ("uniform",)
    assert workloads_of(Comparison(workloads=())) == ()


@pytest.mark.parametrize(
    ("changes", "error", "says"),
    [
        ({"timers": ("nix",)}, UnknownTimerError, "no timer is called 'nix'"),
        ({"timers": ("delay-queue/tick=5",)}, ParameterError, "has no parameter 'tick'"),
        ({"timers": ("hashed-wheel/tick=1us",)}, ParameterError, "is not a whole number of ms"),
        ({"timers": (OWN + "NoTimer",)}, ContestantError, "it lacks now, parameters"),
        ({"workloads": ("nix",)}, WorkloadError, "no workload is called 'nix'"),
        ({"traces": ("nowhere",)}, TraceError, "nowhere does not exist"),
        ({"timers": ("delay-queue",) * 2}, ParameterError, "timer delay-queue is given 2 times"),
        ({"workloads": ("uniform",) * 2}, ParameterError, "source uniform is given 2 times"),
        ({"sizes": (5, 5)}, ParameterError, "size 5 is given 2 times"),
        ({"sizes": (0,)}, ParameterError, "size must lie in [1, 10000000], not 0"),
        ({"sizes": (1.5,)}, ParameterError, "not 1.5"),
        ({"sizes": ()}, ParameterError, "there is nothing to compare"),
        ({"operations": 0}, ParameterError, "operations must lie in"),
        ({"repeats": 0}, ParameterError, "repeats must lie in"),
        ({"seed": -1}, ParameterError, "seed must lie in"),
        ({"budget": float("nan")}, ParameterError, "positive number of seconds, not nan"),
        ({"budget": "2"}, ParameterError, "positive number of seconds, not '2'"),
        ({"budget": 0}, ParameterError, "budget must be a positive number of seconds, not 0"),
    ],
)
def test_nonsense_is_refused_before_anything_is_measured(
    tmp_path, compare, monkeypatch, changes, error, says
):
    monkeypatch.setattr(Bench, "run", lambda *_: pytest.fail("measured"))
    with one_line(error, re.escape(says)):
        compare(**{"sizes": (40,), **changes})
    assert not list(tmp_path.iterdir())


# ---- sources


def trace_of(path, *rows, unit="ms"):
    return write_trace(path, [tape_of(*rows)], unit=unit, source={})


def test_a_trace_without_operations_is_refused(tmp_path, compare):
    trace = trace_of(tmp_path / "t")
    with pytest.raises(ParameterError, match="t has no operations, so there is nothing to replay"):
        compare(trace)


def test_a_source_has_the_timers_that_exact_contestants_schedule(tmp_path, compare):
    """The first timer has fired when its id is armed again, but not in a coarse wheel."""
    tape = (0, START, 0, 10), (12, ARM, 0, 30), (13, START, 1, 99), (14, CANCEL, 1, 0)
    trace = trace_of(tmp_path / "t", *tape)
    timers = ("hashed-wheel/tick=100", "delay-queue")
    run = compare(trace, timers=timers, workloads=None, repeats=1)
    assert columns(rows(run, "scheduled"), "value") == [(2,), (3,)]
    (source,) = run.manifest["sources"]
    assert (source["timers"], source["starts"], source["arms"]) == (3, 2, 1)
    assert run.manifest["agreement"]["expiries"] == 1 + 2  # one timer was cancelled
    assert run.manifest["parameters"]["workloads"] == []
    run = compare(trace, timers=timers[:1], workloads=None, repeats=1)
    assert run.manifest["sources"][0]["timers"] == 2  # no contestant is exact: the starts


def test_each_source_has_the_tick_in_its_unit(tmp_path, compare):
    tape = (0, START, 0, 150_000), (10, START, 1, 250_000)
    us, ms = (trace_of(tmp_path / unit, *tape, unit=unit) for unit in ("us", "ms"))
    timers = ("hashed-wheel", "hashed-wheel/tick=7", "hierarchical-wheel/tick=1ms")
    run = compare(us, ms, timers=timers, repeats=1)
    assert run.manifest["parameters"]["traces"] == [str(trace.path) for trace in (us, ms)]
    bounds = [(entry["lateness_low"], entry["unit"]) for entry in run.manifest["contestants"]]
    # In microseconds the last one may be early, though a millisecond is its unit.
    assert bounds == [(0, "us"), (0, ""), (-999, "us")]
    assert columns(rows(run, "lateness_max"), "subject", "contestant", "value") == [
        (str(us.path), "hashed-wheel", 50_000),
        (str(us.path), "hashed-wheel/tick=7", 5),
        (str(us.path), "hierarchical-wheel/tick=1ms", 0),
        (str(ms.path), "hashed-wheel", 100),
        (str(ms.path), "hashed-wheel/tick=7", 5),
        (str(ms.path), "hierarchical-wheel/tick=1ms", 0),
    ]


def counts_of(*tapes):
    """What a source has to count in its shards."""
    ops, times, ids = (np.concatenate([tape[k] for tape in tapes]) for k in (1, 0, 2))
    return {
        "shards": len(tapes),
        "operations": ops.size,
        **{name: int((ops == op).sum()) for op, name in enumerate(OP_COUNTS)},
        "id_space": ids.max() + 1,
        "span": np.ptp(times),
    }


def test_sources_tell_their_counts(tmp_path):
    longer, other = (make("keepalive", operations=n, seed=n).tape for n in (400, 60))
    assert counts_of(longer)["id_space"] > counts_of(other)["id_space"]
    for number, tapes in enumerate(((longer, other), (other, longer))):
        source = trace_source(write_trace(tmp_path / f"{number}", tapes, unit="ms", source={}))
        assert source.counts == counts_of(*tapes)
        assert source.shards == 2
        for shard, tape in enumerate(tapes):
            loaded, id_space = source.load(shard)
            assert all(map(np.array_equal, loaded, tape))
            assert id_space == tape.id.max() + 1
    workload = workload_source("uniform", 50, 3)
    tape, id_space = workload.load(0)
    assert workload.counts == counts_of(tape) | {"id_space": id_space}
