import dataclasses
import sys
from pathlib import Path

import numpy as np
import pytest
from tqdm import tqdm

from compare.bench.calls import event_loops
from compare.bench.comparison import DEFAULT_WORKLOADS, Comparison, workloads_of
from compare.bench.measure import Bench
from compare.bench.run import ComparisonError, run_comparison
from compare.bench.sources import trace_source, workload_source
from compare.bench.store import latest_run, read_run
from compare.bench.task import TASKS
from compare.bench.work import tapes_of
from compare.oracle.compiled import AgreementError, expect
from compare.replay.contestant import ContestantError, contestant
from compare.replay.profile import Profile
from compare.tapes.tape import ARM, CANCEL, REARM, START
from compare.tapes.trace import TraceError, open_trace, write_trace
from compare.workloads.catalogue import WorkloadError, make
from tests.compare.clocks import FakeClock
from tests.compare.conftest import SMALL as SHORT
from tests.compare.own_timers import Timed
from tests.compare.small_tapes import tape_of
from timers import TimerError
from timers.errors import ParameterError, UnknownTimerError
from timers.registry import names

OWN = "tests.compare.own_timers:"
SMALL = Comparison(sizes=(40,), operations=600, repeats=2, budget=1e9, seed=9)


def shards(tmp_path, name="two.trace"):
    tapes = [make("keepalive", operations=400, seed=1, shard=shard).tape for shard in (0, 1)]
    return write_trace(tmp_path / name, tapes, unit="ms", source={"kind": "test"}).path, tapes


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    store = tmp_path_factory.mktemp("store")
    trace, _ = shards(store)
    options = dataclasses.replace(
        SMALL, traces=(str(trace),), workloads=("lognormal-high",), runs=str(store / "runs")
    )
    path = run_comparison(options)
    assert latest_run(store / "runs") == path
    return read_run(path)


def rows(table, **where):
    return [row for row in table.to_pylist() if where.items() <= row.items()]


@pytest.fixture
def clock(monkeypatch):
    clock = FakeClock()
    monkeypatch.setattr(Timed, "clock", clock)
    monkeypatch.setattr(Timed, "factor", 1)
    monkeypatch.setattr(Timed, "instances", [])
    return clock


def test_every_timer_every_task_every_sample(run):
    samples = run.samples.to_pylist()
    columns = ("operation", "driver", "contestant", "repeat")
    assert [tuple(row[name] for name in columns) for row in samples] == [
        (*task, name, repeat) for task in TASKS for name in names() for repeat in (0, 1)
    ]
    assert all(row["size"] == 40 and row["ns_per_operation"] >= 0 for row in samples)


def test_calls_from_python_are_stored_by_contestant_and_event_loop(run):
    stored = run.calls.to_pylist()
    assert {row["contestant"] for row in stored} == {*names(), None}
    for row in stored:
        assert (row["contestant"] is None) == (row["interface"] in event_loops())
        assert row["ns_per_operation"] > 0
    assert {row["batch"] for row in rows(run.calls, contestant="delay-queue")} == {1, 10, 100}


def test_samples_are_stored_with_their_times_and_in_order(tmp_path, clock):
    options = dataclasses.replace(
        SMALL,
        timers=(OWN + "Timed",),
        sizes=(90, 40),
        workloads=(),
        budget=1e9,
        runs=str(tmp_path / "runs"),
    )
    run = read_run(run_comparison(options, clock=clock))
    stored = run.samples.to_pylist()
    assert [(row["size"], row["operation"], row["driver"], row["repeat"]) for row in stored] == [
        (size, *task, repeat) for size in (40, 90) for task in TASKS for repeat in (0, 1)
    ]
    by_operation = {row["operation"]: row for row in stored}
    assert by_operation["insert"]["ns_per_operation"] == Timed.SCHEDULE * 1e9
    assert by_operation["insert"]["operations"] == 3 * 90
    assert by_operation["cancel"]["ns_per_operation"] == Timed.CANCEL * 1e9
    assert run.memory.to_pylist()[0]["growth_seconds"] == [Timed.SCHEDULE] * 2
    advances = [row for row in run.counters.to_pylist() if row["counter"] == "advances"]
    assert [(row["size"], row["driver"]) for row in advances] == [
        (size, driver) for size in (40, 90) for driver in ("clock", "event")
    ]
    for row in advances:  # as many as take their time
        ns = rows(run.samples, size=row["size"], driver=row["driver"])[0]["ns_per_operation"]
        each = Timed.ADVANCE + Timed.WAKE * (row["driver"] == "event")
        spent = each * row["count"] / row["operations"] + Timed.FIRE
        assert ns == pytest.approx(spent * 1e9)


def test_a_replay_is_timed_over_all_shards(tmp_path, clock, monkeypatch):
    trace, tapes = shards(tmp_path)
    prime = iter([1, 1, 1, 2, 3, 5, 7, 11, 13])  # the first is made to see that it can be
    create = Timed.__init__

    def make(self, **keywords):
        Timed.factor = next(prime)
        create(self, **keywords)

    monkeypatch.setattr(Timed, "__init__", make)
    options = dataclasses.replace(
        SMALL,
        timers=(OWN + "Timed",),
        traces=(str(trace),),
        sizes=(),
        repeats=3,
        budget=1e9,
        runs=str(tmp_path / "runs"),
    )
    replays = read_run(run_comparison(options, clock=clock)).replays.to_pylist()
    _, checked, checked_too, a0, b0, a1, b1, a2, b2 = Timed.instances
    assert [row["repeat"] for row in replays] == [0, 1, 2]
    seconds = [a0.spent + b0.spent, a1.spent + b1.spent, a2.spent + b2.spent]
    assert len(set(seconds)) == 3
    assert [row["seconds"] for row in replays] == seconds
    assert [row["ns_per_operation"] for row in replays] == [1e9 * each / 800 for each in seconds]
    first = replays[0]
    assert checked.spent + checked_too.spent == a0.spent / a0.factor + b0.spent / b0.factor
    assert first["scheduled"] == sum(int((tape.op == START).sum()) for tape in tapes)
    both = checked.spent + checked_too.spent - Timed.FIRE * first["fired"]
    assert both > Timed.SCHEDULE * first["scheduled"] + Timed.CANCEL * first["cancelled"]
    assert first["operations"] == 800
    assert first["wakeups"] > 0


def test_precision_and_engine_are_told(run):
    for traits in run.manifest["traits"]:
        # In microseconds, the finest unit of the sources.
        late = 100_000 if traits["timer"] == "hashed-wheel" else 0
        assert (traits["lateness_low"], traits["lateness_high"]) == (0, late)
        assert traits["engine"] == contestant(traits["timer"]).engine
    assert {traits["engine"] for traits in run.manifest["traits"]} == {"compiled", "python loop"}


def test_replays_of_exact_timers_agree_in_all_that_is_counted(run):
    for source in ("lognormal-high", run.manifest["sources"][0]["name"]):
        replays = rows(run.replays, source=source)
        assert len(replays) == len(names()) * 2
        exact = [row for row in replays if row["contestant"] != "hashed-wheel"]
        columns = ("rescheduled", "scheduled", "cancelled", "fired", "pending", "lateness_max")
        counted = {tuple(row[name] for name in columns) for row in exact}
        assert len(counted) == 1
        _, scheduled, cancelled, fired, pending, late = counted.pop()
        assert scheduled == cancelled + fired + pending
        assert (pending, late) == (0, 0)
        assert all(row["idle_wakeups"] <= row["wakeups"] and row["nbytes"] > 0 for row in replays)


def test_all_shards_of_a_trace_are_replayed(run):
    source = run.manifest["sources"][0]
    assert (source["shards"], source["operations"], source["unit"]) == (2, 800, "ms")
    assert source["details"] == {"kind": "test"}
    assert source["profile"].keys() == {*Profile._fields}
    assert run.manifest["sources"][1]["profile"] is None  # a workload
    assert {row["operations"] for row in rows(run.replays, source=source["name"])} == {800}
    late = rows(run.lateness, source=source["name"], contestant="hashed-wheel")
    fired = rows(run.replays, source=source["name"], contestant="hashed-wheel")[0]["fired"]
    assert sum(row["timers"] for row in late) == fired > 0
    assert all(0 < row["lateness"] <= 100 and row["width"] == 1 for row in late)


def test_counters_are_kept_beside_the_times(run):
    assert {row["counter"] for row in rows(run.counters, contestant="heapq-delay-queue")} == {
        "advances",
        "idle_advances",
    }
    looks = rows(
        run.counters,
        contestant="unordered-list",
        operation="expiry",
        driver="clock",
        counter="timers_touched",
    )
    assert looks[0]["count"] > 40 * 40
    assert looks[0]["operations"] == 40
    for row in run.replays.to_pylist():
        if contestant(row["contestant"]).engine == "python loop":
            assert row["counters"] is None
        else:
            assert dict(row["counters"]).keys() >= {"comparisons", "clock_visits"}


def test_memory_and_slots_are_told_for_each_size(run):
    assert run.memory["contestant"].to_pylist() == names()
    for row in run.memory.to_pylist():
        assert row["capacity"] == 40
        assert row["nbytes_per_timer"] == row["nbytes"] / 40
        grows = row["grown_nbytes"] - row["nbytes"]
        assert grows >= 24 * 40 if row["contestant"] != "heapq-delay-queue" else grows >= 0
        assert row["peak_nbytes"] >= row["grown_nbytes"]
        assert len(row["growth_seconds"]) == 2
    assert rows(run.memory, contestant="delay-queue")[0]["nbytes_per_timer"] < 60
    wheels = [name for name in names() if name.endswith("wheel")]
    assert run.slots["contestant"].to_pylist() == wheels
    assert all(row["in_slots"] <= row["pending"] <= 40 for row in run.slots.to_pylist())


def test_the_manifest_tells_what_was_run_where(run):
    manifest = run.manifest
    assert manifest["parameters"]["sizes"] == [40]
    assert manifest["parameters"]["workloads"] == ["lognormal-high"]
    assert manifest["parameters"]["timers"] == names()
    assert manifest["versions"]["numba"]
    assert manifest["machine"]["cores"] >= 1
    assert [traits["timer"] for traits in manifest["traits"]] == names()
    # Of each timer, filling once and holding twice at one size, and three tapes of two sources.
    assert manifest["agreement"]["tapes"] == len(names()) * (3 + 3)
    replayed = sum(row["fired"] for row in run.replays.to_pylist() if row["repeat"] == 0)
    tapes = tapes_of(40, SMALL.seed)
    measured = sum(
        expect(tape, 40, contestant(name).rounding("ms")).fired
        for name in names()
        for tape in (tapes.filling, tapes.holding, tapes.holding)
    )
    assert manifest["agreement"]["expiries"] == replayed + measured
    for name, value in SHORT.items():
        assert manifest["parameters"][name.lower()] == value
    assert manifest["parameters"]["pairs_per_unit"] == 100
    assert manifest["sources"][1]["details"]["seed"] == SMALL.seed
    assert (
        manifest["sources"][1]["timers"]
        == rows(run.replays, source="lognormal-high")[0]["scheduled"]
    )


def test_a_replay_over_budget_is_not_timed(tmp_path, clock):
    """The first shard is within the budget, and both together are not."""
    trace, _ = shards(tmp_path)
    options = dataclasses.replace(
        SMALL,
        sizes=(),
        timers=(OWN + "Timed", OWN + "Right"),
        traces=(str(trace),),
        budget=1e9,
        runs=str(tmp_path / "runs"),
    )
    all_of_it = read_run(run_comparison(options, clock=clock))
    seconds = rows(all_of_it.replays, contestant=OWN + "Timed")[0]["seconds"]
    run = read_run(run_comparison(dataclasses.replace(options, budget=seconds * 0.9), clock=clock))
    (row,) = rows(run.replays, contestant=OWN + "Timed")
    assert row["operations"] == run.manifest["sources"][0]["operations"] == 800
    assert row["ns_per_operation"] is row["repeat"] is row["scheduled"] is row["counters"] is None
    assert len(rows(run.replays, contestant=OWN + "Right")) == 2
    assert {row["contestant"] for row in run.lateness.to_pylist()} == {OWN + "Right"}
    assert run.manifest["agreement"]["tapes"] == 2
    assert run.samples.num_rows == run.memory.num_rows == 0


@pytest.mark.parametrize(("share", "repeats"), [(1.0, 1), (1.9, 1), (2.0, 2), (9.0, 3)])
def test_replays_are_repeated_within_the_budget(tmp_path, clock, share, repeats):
    options = dataclasses.replace(
        SMALL,
        sizes=(),
        timers=(OWN + "Timed",),
        workloads=("constant",),
        repeats=3,
        budget=1e9,
        runs=str(tmp_path / "runs"),
    )
    seconds = read_run(run_comparison(options, clock=clock)).replays["seconds"][0].as_py()
    run = read_run(
        run_comparison(dataclasses.replace(options, budget=seconds * share), clock=clock)
    )
    assert run.replays["repeat"].to_pylist() == list(range(repeats))


def test_contestants_may_differ_in_parameters_alone(tmp_path):
    timers = ("hashed-wheel", "hashed-wheel/tick=1/wheel-size=64", OWN + "Right")
    options = dataclasses.replace(
        SMALL, timers=timers, workloads=(), repeats=1, runs=str(tmp_path / "runs")
    )
    run = read_run(run_comparison(options))
    described = [(traits["timer"], traits["settings"]) for traits in run.manifest["traits"]]
    assert described == [
        ("hashed-wheel", {}),
        ("hashed-wheel", {"tick": 1, "wheel_size": 64}),
        (OWN + "Right", {}),
    ]
    assert set(run.samples["contestant"].to_pylist()) == set(timers)


@pytest.mark.parametrize("name", ["Late", "Moody"])
def test_nothing_is_stored_of_a_timer_that_disagrees(tmp_path, name):
    options = dataclasses.replace(
        SMALL,
        timers=(OWN + name,),
        workloads=("constant",),
        operations=5000,
        runs=str(tmp_path / "runs"),
    )
    with pytest.raises(AgreementError):
        run_comparison(options)
    assert not list(tmp_path.iterdir())


def test_a_progress_bar_is_for_terminals(tmp_path, monkeypatch, capsys):
    options = dataclasses.replace(
        SMALL,
        timers=("delay-queue",),
        workloads=("constant",),
        repeats=1,
        runs=str(tmp_path / "runs"),
    )
    run_comparison(options)
    assert capsys.readouterr() == ("", "")
    bars = []

    class Recorded(tqdm):
        def __init__(self, *arguments, **options):
            super().__init__(*arguments, **options)
            bars.append(self)

    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.setattr("compare.progress.tqdm", Recorded)
    run_comparison(options)
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
        (
            {"timers": ("delay-queue", "delay-queue")},
            ComparisonError,
            "timer delay-queue is given 2 times",
        ),
        (
            {"timers": ("delay-queue/tick=5",)},
            ParameterError,
            "delay-queue has no parameter 'tick'",
        ),
        ({"timers": (OWN + "NoTimer",)}, ContestantError, "it lacks now, parameters"),
        ({"timers": ("hashed-wheel/tick=1us",)}, ParameterError, "is not a whole number of ms"),
        ({"workloads": ("nix",)}, WorkloadError, "no workload is called 'nix'"),
        ({"workloads": ("uniform", "uniform")}, ComparisonError, "source uniform is given 2 times"),
        ({"traces": ("nowhere",)}, TraceError, "nowhere does not exist"),
        ({"sizes": (0,)}, ComparisonError, "size must lie in [1, 10000000], not 0"),
        (
            {"sizes": (10**8,)},
            ComparisonError,
            "size must lie in [1, 10000000], not 100000000",
        ),
        ({"sizes": (1.5,)}, ComparisonError, "not 1.5"),
        ({"sizes": (5, 5)}, ComparisonError, "size 5 is given 2 times"),
        ({"sizes": (), "workloads": ()}, ComparisonError, "there is nothing to compare"),
        ({"operations": 0}, ComparisonError, "operations must lie in"),
        ({"repeats": 0}, ComparisonError, "repeats must lie in"),
        ({"repeats": True}, ComparisonError, "repeats must be an integer, not True"),
        ({"seed": -1}, ComparisonError, "seed must lie in"),
        (
            {"budget": float("nan")},
            ComparisonError,
            "budget must be a positive number of seconds, not nan",
        ),
        ({"budget": "2"}, ComparisonError, "budget must be a positive number of seconds, not '2'"),
        ({"budget": 0}, ComparisonError, "budget must be a positive number of seconds, not 0"),
    ],
)
def test_nonsense_is_refused_before_anything_is_measured(
    tmp_path, monkeypatch, changes, error, says
):
    monkeypatch.setattr(Bench, "run", lambda *_: pytest.fail("measured"))
    with pytest.raises(error) as raised:
        run_comparison(dataclasses.replace(SMALL, runs=str(tmp_path / "runs"), **changes))
    assert isinstance(raised.value, TimerError)
    assert says in str(raised.value)
    assert "\n" not in str(raised.value)
    assert not list(tmp_path.iterdir())


# ---- parts


def test_a_source_has_the_timers_that_exact_contestants_schedule(tmp_path):
    """The first timer has fired when its id is armed again, but not in a coarse wheel."""
    tape = tape_of((0, START, 0, 10), (12, ARM, 0, 30), (13, START, 1, 99), (14, CANCEL, 1, 0))
    trace = str(write_trace(tmp_path / "t", [tape], unit="ms", source={}).path)
    timers = ("hashed-wheel/tick=100", "delay-queue")
    options = Comparison(
        traces=(trace,), timers=timers, sizes=(), repeats=1, runs=f"{tmp_path}/runs"
    )
    run = read_run(run_comparison(options))
    assert [row["scheduled"] for row in run.replays.to_pylist()] == [2, 3]
    (source,) = run.manifest["sources"]
    assert (source["timers"], source["starts"], source["arms"]) == (3, 2, 1)
    assert run.manifest["agreement"]["expiries"] == 1 + 2  # one timer was cancelled
    assert run.manifest["parameters"]["workloads"] == []


def test_where_lateness_scatters_its_bins_are_wider(tmp_path, monkeypatch):
    monkeypatch.setattr("compare.replay.lateness.MAX_BINS", 4)
    tape = tape_of(*((0, START, k, 1 + k) for k in range(90)))
    trace = str(write_trace(tmp_path / "t", [tape], unit="ms", source={}).path)
    timers = ("delay-queue", "hashed-wheel/tick=100")
    options = Comparison(
        traces=(trace,), timers=timers, sizes=(), repeats=1, runs=f"{tmp_path}/runs"
    )
    stored = read_run(run_comparison(options)).lateness.to_pylist()
    columns = ("contestant", "lateness", "width", "timers")
    assert [[row[name] for name in columns] for row in stored] == [
        ["delay-queue", 0, 1, 90],
        ["hashed-wheel/tick=100", 10, 23, 23],
        ["hashed-wheel/tick=100", 33, 23, 23],
        ["hashed-wheel/tick=100", 56, 23, 23],
        ["hashed-wheel/tick=100", 79, 23, 21],
    ]


def test_each_source_has_the_tick_in_its_unit(tmp_path):
    tape = tape_of((0, START, 0, 150_000), (10, START, 1, 250_000))
    traces = [write_trace(tmp_path / unit, [tape], unit=unit, source={}) for unit in ("us", "ms")]
    timers = ("hashed-wheel", "hashed-wheel/tick=7", "hierarchical-wheel/tick=1ms")
    options = Comparison(
        traces=(str(traces[1].path),), timers=timers, sizes=(), repeats=1, runs=f"{tmp_path}/runs"
    )
    run = read_run(run_comparison(options, traces[:1]))
    assert run.manifest["parameters"]["traces"] == [str(trace.path) for trace in traces]
    assert [entry["label"] for entry in run.manifest["traits"]] == list(timers)
    bounds = [(entry["lateness_low"], entry["unit"]) for entry in run.manifest["traits"]]
    # In microseconds the last one may be early, though a millisecond is its unit.
    assert bounds == [(0, "us"), (0, ""), (-999, "us")]
    late = {
        (Path(row["source"]).name, row["contestant"]): row["lateness_max"]
        for row in run.replays.to_pylist()
    }
    assert late == {
        ("us", "hashed-wheel"): 50_000,
        ("us", "hashed-wheel/tick=7"): 5,
        ("us", "hierarchical-wheel/tick=1ms"): 0,
        ("ms", "hashed-wheel"): 100,
        ("ms", "hashed-wheel/tick=7"): 5,
        ("ms", "hierarchical-wheel/tick=1ms"): 0,
    }


def test_a_trace_that_is_open_is_not_opened_again(tmp_path, monkeypatch):
    trace = write_trace(tmp_path / "t", [tape_of((0, START, 0, 5))], unit="ms", source={})
    monkeypatch.setattr("compare.bench.run.open_trace", lambda path: pytest.fail("opened"))
    options = Comparison(timers=("delay-queue",), sizes=(), runs=f"{tmp_path}/runs")
    run = read_run(run_comparison(options, [trace]))
    assert run.manifest["parameters"]["traces"] == [str(trace.path)]
    assert run.manifest["parameters"]["workloads"] == []


def test_sources_tell_their_counts(tmp_path):
    path, tapes = shards(tmp_path)
    source = trace_source(open_trace(path))
    assert source.counts["shards"] == source.shards == 2
    assert source.counts["operations"] == 800
    assert source.counts["id_space"] == max(int(tape.id.max()) + 1 for tape in tapes)
    for shard, tape in enumerate(tapes):
        loaded, id_space = source.load(shard)
        assert all(map(np.array_equal, loaded, tape))
        assert id_space == int(tape.id.max()) + 1
    assert {name: source.counts[name] for name in ("starts", "cancels", "rearms", "arms")} == {
        name: sum(int((tape.op == op).sum()) for tape in tapes)
        for name, op in {"starts": START, "cancels": CANCEL, "rearms": REARM, "arms": ARM}.items()
    }
    times = np.concatenate([tape.time for tape in tapes])
    assert source.counts["span"] == np.ptp(times) > 0  # of all shards, not of one
    longer, other = (make("constant", operations=n, seed=1).tape for n in (300, 60))
    for order in ((longer, other), (other, longer)):
        path = tmp_path / f"{len(list(tmp_path.iterdir()))}.trace"
        write_trace(path, order, unit="ms", source={})
        assert (
            trace_source(open_trace(path)).counts["id_space"]
            == longer.id.max() + 1
            > other.id.max() + 1
        )
    loaded = workload_source("uniform", 50, 3)
    assert loaded.counts == {
        "shards": 1,
        "operations": 50,
        "starts": 50,
        "cancels": 0,
        "rearms": 0,
        "arms": 0,
        "id_space": loaded.load(0)[1],
        "span": int(np.ptp(loaded.load(0)[0].time)),
    }
