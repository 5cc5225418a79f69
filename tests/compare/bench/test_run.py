import dataclasses
import json
import re
import sys

import numpy as np
import pytest
from tqdm import tqdm

from compare.bench.comparison import DEFAULT_WORKLOADS, Comparison, workloads_of
from compare.bench.contestant import (
    ContestantError,
    contestant,
    lateness_text,
    parse_contestant,
    parse_setting,
)
from compare.bench.measure import Bench
from compare.bench.run import ComparisonError, run_comparison
from compare.bench.sources import trace_source, workload_source
from compare.bench.store import MEASURED, TOO_LONG, latest_run, read_run, traits_of
from compare.bench.work import plan
from compare.oracle.compiled import AgreementError, expect
from compare.tapes.tape import ARM, CANCEL, REARM, START
from compare.tapes.trace import TraceError, write_trace
from compare.workloads.catalogue import WorkloadError, make
from tests.compare.small_tapes import tape_of
from timers import TimerError
from timers.errors import ParameterError, UnknownTimerError
from timers.registry import names
from timers.rounding import Rounding

OWN = "tests.compare.own_timers:"
SMALL = Comparison(sizes=(40,), operations=600, repeats=2, budget=60.0, seed=9)


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


def test_every_timer_every_task_every_sample(run):
    tasks = [
        ("insert", "none"),
        ("cancel", "none"),
        ("hold", "none"),
        ("expiry", "clock"),
        ("expiry", "event"),
    ]
    for name in names():
        for operation, driver in tasks:
            found = rows(run.samples, timer=name, operation=operation, driver=driver)
            assert [row["repeat"] for row in found] == [0, 1]
            assert {row["status"] for row in found} == {MEASURED}
            assert all(row["size"] == 40 and row["predicted_seconds"] is None for row in found)
    assert run.samples.num_rows == len(names()) * len(tasks) * 2


def test_precision_and_engine_are_told(run):
    for row in [*run.samples.to_pylist(), *run.replays.to_pylist()]:
        assert row["exact"] is (row["timer"] != "hashed-wheel")
        # In microseconds, the finest unit of the sources.
        late = 0 if row["exact"] else 100_000
        assert (row["lateness_low"], row["lateness_high"]) == (0, late)
        assert row["engine"] == (
            "python loop" if row["timer"] == "heapq-delay-queue" else "compiled"
        )


def test_replays_of_exact_timers_agree_in_all_that_is_counted(run):
    for source in ("lognormal-high", run.manifest["sources"][0]["name"]):
        found = rows(run.replays, source=source)
        assert len(found) == len(names()) * 2
        exact = [row for row in found if row["exact"]]
        columns = ("rescheduled", "scheduled", "cancelled", "fired", "pending", "lateness_max")
        counted = {tuple(row[name] for name in columns) for row in exact}
        assert len(counted) == 1
        _, scheduled, cancelled, fired, pending, late = counted.pop()
        assert scheduled == cancelled + fired + pending
        assert (pending, late) == (0, 0)
        assert all(row["idle_wakeups"] <= row["wakeups"] and row["nbytes"] > 0 for row in found)


def test_all_shards_of_a_trace_are_replayed(run):
    source = run.manifest["sources"][0]
    assert (source["shards"], source["operations"], source["unit"]) == (2, 800, "ms")
    assert source["details"] == {"kind": "test"}
    assert {row["operations"] for row in rows(run.replays, source=source["name"])} == {800}
    late = rows(run.lateness, source=source["name"], timer="hashed-wheel")
    fired = rows(run.replays, source=source["name"], timer="hashed-wheel")[0]["fired"]
    assert sum(row["timers"] for row in late) == fired > 0
    assert all(0 < row["lateness"] <= 100 and row["width"] == 1 for row in late)


def test_counters_are_kept_beside_the_times(run):
    assert {row["counter"] for row in rows(run.counters, timer="heapq-delay-queue")} == {
        "advances",
        "idle_advances",
    }
    looks = rows(
        run.counters,
        timer="unordered-list",
        operation="expiry",
        driver="clock",
        counter="timers_touched",
    )
    assert looks[0]["count"] > 40 * 40
    assert looks[0]["operations"] == 40
    for row in run.replays.to_pylist():
        if row["engine"] == "python loop":
            assert row["counters"] is None
        else:
            assert dict(row["counters"]).keys() >= {"comparisons", "clock_visits"}


def test_memory_and_slots_are_told_for_each_size(run):
    assert [row["timer"] for row in run.memory.to_pylist()] == names()
    for row in run.memory.to_pylist():
        assert row["capacity"] == 40
        assert row["nbytes_per_timer"] == row["nbytes"] / 40
        grows = row["grown_nbytes"] - row["nbytes"]
        assert grows >= 24 * 40 if row["timer"] != "heapq-delay-queue" else grows >= 0, row
        assert row["peak_nbytes"] >= row["grown_nbytes"]
        assert len(row["growth_seconds"]) == 2
    assert rows(run.memory, timer="delay-queue")[0]["nbytes_per_timer"] < 60
    wheels = [name for name in names() if name.endswith("wheel")]
    assert [(row["timer"], row["size"]) for row in run.slots.to_pylist()] == [
        (name, 40) for name in wheels
    ]
    assert all(row["in_slots"] <= row["pending"] <= 40 for row in run.slots.to_pylist())


def test_the_manifest_tells_what_was_run_where(run):
    manifest = run.manifest
    assert manifest["parameters"]["sizes"] == [40]
    assert manifest["parameters"]["workloads"] == ["lognormal-high"]
    assert manifest["parameters"]["timers"] == [
        "hashed-wheel/tick=100ms" if name == "hashed-wheel" else name for name in names()
    ]
    assert manifest["versions"]["numba"]
    assert manifest["machine"]["cores"] >= 1
    assert [traits["timer"] for traits in manifest["traits"]] == names()
    # Of seven timers, filling once and holding twice at one size, and three tapes of two sources.
    assert manifest["agreement"]["tapes"] == 7 * (3 + 3)
    replayed = sum(row["fired"] for row in run.replays.to_pylist() if row["repeat"] == 0)
    tapes = plan(40, SMALL.seed)
    measured = sum(
        expect(tape, 40, contestant(name).rounding).fired
        for name in names()
        for tape in (tapes.filling, tapes.holding, tapes.holding)
    )
    assert manifest["agreement"]["expiries"] == replayed + measured
    assert manifest["parameters"]["pairs_per_unit"] == 100
    assert manifest["sources"][1]["details"]["seed"] == SMALL.seed
    assert (
        manifest["sources"][1]["timers"]
        == rows(run.replays, source="lognormal-high")[0]["scheduled"]
    )


def test_a_replay_that_would_take_too_long_is_predicted(tmp_path):
    options = dataclasses.replace(
        SMALL,
        sizes=(),
        timers=("unordered-list", "delay-queue"),
        workloads=("constant",),
        operations=60_000,
        budget=0.2,
        runs=str(tmp_path / "runs"),
    )
    run = read_run(run_comparison(options))
    (row,) = rows(run.replays, timer="unordered-list")
    assert row["status"] == TOO_LONG
    assert row["predicted_seconds"] > 0.2
    assert row["operations"] == run.manifest["sources"][0]["operations"] == 60_000
    assert row["ns_per_operation"] is row["scheduled"] is row["counters"] is None
    assert rows(run.replays, timer="delay-queue")[0]["status"] == MEASURED
    assert not rows(run.lateness, timer="unordered-list")
    assert run.samples.num_rows == run.memory.num_rows == 0


def test_contestants_may_differ_in_parameters_alone(tmp_path):
    timers = ("hashed-wheel", "hashed-wheel/tick=1/wheel-size=64", OWN + "Right")
    options = dataclasses.replace(
        SMALL, timers=timers, workloads=(), repeats=1, runs=str(tmp_path / "runs")
    )
    run = read_run(run_comparison(options))
    assert [(traits["timer"], traits["parameters"]) for traits in run.manifest["traits"]] == [
        ("hashed-wheel", {"tick": 100, "wheel_size": 512}),
        ("hashed-wheel", {"tick": 1, "wheel_size": 64}),
        (OWN + "Right", {}),
    ]
    assert {row["parameters"] for row in rows(run.samples, timer="hashed-wheel")} == {
        '{"tick": 100, "wheel_size": 512}',
        '{"tick": 1, "wheel_size": 64}',
    }


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
    monkeypatch.setattr("compare.bench.run.tqdm", Recorded)
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
        ({"timers": ("hashed-wheel/tick=0",)}, ParameterError, "tick must lie in"),
        (
            {"timers": ("delay-queue/tick=5",)},
            ParameterError,
            "delay-queue has no parameter 'tick'; it has none",
        ),
        (
            {"timers": ("simple-wheel/tick=5",)},
            ParameterError,
            "simple-wheel has no parameter 'tick'; it has wheel-size",
        ),
        (
            {"timers": ("hashed-wheel/tick",)},
            ParameterError,
            "'tick' is not a parameter and an integer",
        ),
        (
            {"timers": ("hashed-wheel/tick=x",)},
            ParameterError,
            "tick must be a number of units or a duration: duration 'x' is not a number",
        ),
        ({"timers": (OWN + "NoTimer",)}, ContestantError, "it lacks now, parameters"),
        ({"timers": (OWN + "NoStart",)}, ContestantError, "cannot be called with (start=0)"),
        ({"timers": (OWN + "Nix",)}, UnknownTimerError, "has no attribute 'Nix'"),
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


def test_a_module_that_is_no_python_is_named(tmp_path, monkeypatch):
    (tmp_path / "broken_timer.py").write_text("class Timer:\n    def (\n")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(
        UnknownTimerError, match=r"cannot import 'broken_timer:Timer': .*broken_timer.py, line 2"
    ):
        contestant("broken_timer:Timer")


@pytest.mark.parametrize("name", names())
def test_a_new_timer_stands_at_its_start_with_its_parameters(name):
    made = contestant(name)
    timer = made.new(7, 5, counting=True)
    assert (timer.now, dict(timer.parameters)) == (7, made.parameters)
    if made.engine == "compiled":
        assert made.new(7, 1).nbytes < made.new(7, 5).nbytes < made.new(7).nbytes
        assert timer.counters and made.new().counters is None


def test_settings_and_labels():
    assert parse_setting("wheel-size=64") == ("wheel_size", 64)
    assert contestant("hashed-wheel").label == "hashed-wheel"
    assert (
        parse_contestant("hashed-wheel/wheel-size=64/tick=100").label
        == "hashed-wheel/wheel-size=64/tick=100"
    )


@pytest.mark.parametrize(
    ("text", "units", "ticks", "label"),
    [
        ("hashed-wheel", ["ms"], 100, "/tick=100ms"),
        ("hashed-wheel", ["us"], 100_000, "/tick=100ms"),
        ("hashed-wheel", ["us", "ms"], 100_000, "/tick=100ms"),
        ("hashed-wheel", ["s"], 1, "/tick=1"),
        ("hashed-wheel", ["ms", "s"], 1, "/tick=1"),
        ("hashed-wheel", ["unit"], 1, "/tick=1"),
        ("hashed-wheel/tick=100", ["us"], 100, "/tick=100"),
        ("hashed-wheel/tick=100", ["us", "ms"], 100, "/tick=100"),
        ("hashed-wheel/tick=100", ["unit"], 100, "/tick=100"),
        ("hashed-wheel/tick=5", ["us"], 5, "/tick=5"),
        ("hashed-wheel/tick=0.25s", ["ms"], 250, "/tick=250ms"),
        ("hashed-wheel/tick=2s", ["s"], 2, "/tick=2s"),
        ("hierarchical-wheel", ["us"], 1, ""),
        ("hierarchical-wheel/tick=1ms", ["us"], 1000, "/tick=1ms"),
    ],
)
def test_a_tick_is_a_duration_in_the_unit_of_the_trace(text, units, ticks, label):
    found = parse_contestant(text, units)
    assert found.parameters["tick"] == ticks
    assert found.label == text.partition("/")[0] + label
    again = parse_contestant(found.label, units)
    assert again == found
    if label.endswith("s"):
        of_seconds = {"us": 10**6, "ms": 10**3, "s": 1}
        for unit in units:
            other = found.in_unit(unit)
            assert other.label == found.label
            assert other.parameters["tick"] * of_seconds[units[0]] == ticks * of_seconds[unit]
    else:
        assert found.in_unit("us") is found


@pytest.mark.parametrize(
    ("text", "units", "says"),
    [
        ("hashed-wheel/tick=100ms", ["s"], "'100ms' is not a positive multiple of 1 s"),
        ("hashed-wheel/tick=100us", ["us", "ms"], "'100us' is not a positive multiple of 1 ms"),
        ("hashed-wheel/tick=0ms", ["ms"], "'0ms' is not a positive multiple of 1 ms"),
        ("hashed-wheel/tick=100ms", ["unit"], "tick '100ms' needs a trace whose unit is a dur"),
        ("hashed-wheel/tick=fast", ["ms"], "tick must be a number of units or a duration: "),
        ("hashed-wheel/tick=", ["ms"], "tick must be a number of units or a duration: "),
        ("delay-queue/tick=100ms", ["ms"], "delay-queue has no parameter 'tick'; it has none"),
        (
            "hashed-wheel/tack=1ms",
            ["ms"],
            "hashed-wheel has no parameter 'tack'; it has tick, wheel-size",
        ),
        ("hashed-wheel/=1ms", ["ms"], "'=1ms' is not a parameter and an integer"),
        ("hashed-wheel/wheel-size=1s", ["ms"], "'wheel-size=1s' is not a parameter and an int"),
    ],
)
def test_a_tick_that_is_not_a_whole_number_of_units_is_one_clear_error(text, units, says):
    with pytest.raises(ParameterError, match=re.escape(says)):
        parse_contestant(text, units)


def test_lateness_is_a_duration_where_the_tick_is():
    def lateness(text, units, also=()):
        return lateness_text(traits_of(parse_contestant(text, units), also))

    assert lateness("hashed-wheel", ["us"]) == "up to 100ms late"
    assert lateness("hashed-wheel/tick=5", ["us"]) == "up to 5 units late"
    assert lateness("hierarchical-wheel/tick=1s", ["ms"]) == "up to 999ms early"
    assert lateness("hierarchical-wheel", ["ms"]) == "exact"
    assert lateness("hierarchical-wheel/tick=1ms", ["ms"]) == "exact"
    assert lateness("hierarchical-wheel/tick=1ms", ["ms", "us"], ["us", "ms"]) == (
        "up to 999us early"
    )
    assert lateness("hierarchical-wheel/tick=1ms", ["us", "ms"], ["ms"]) == "up to 999us early"
    assert lateness("hierarchical-wheel/tick=1s", ["ms", "s"], ["s"]) == "up to 999ms early"
    assert lateness("hashed-wheel/tick=1ms", ["ms", "us"], ["us"]) == "up to 1ms late"
    assert lateness("hierarchical-wheel/tick=5", ["ms", "us"], ["us"]) == "up to 4 units early"
    assert lateness("hierarchical-wheel/tick=2", ["ms"]) == "up to 1 unit early"


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
    monkeypatch.setattr("compare.replay.lateness.MOST_BINS", 4)
    tape = tape_of(*((0, START, k, 1 + k) for k in range(90)))
    trace = str(write_trace(tmp_path / "t", [tape], unit="ms", source={}).path)
    timers = ("delay-queue", "hashed-wheel/tick=100")
    options = Comparison(
        traces=(trace,), timers=timers, sizes=(), repeats=1, runs=f"{tmp_path}/runs"
    )
    found = read_run(run_comparison(options)).lateness.to_pylist()
    assert [[row[name] for name in ("timer", "lateness", "width", "timers")] for row in found] == [
        ["delay-queue", 0, 1, 90],
        ["hashed-wheel", 10, 23, 23],
        ["hashed-wheel", 33, 23, 23],
        ["hashed-wheel", 56, 23, 23],
        ["hashed-wheel", 79, 23, 21],
    ]


def test_each_source_has_the_tick_in_its_unit(tmp_path, monkeypatch):
    tape = tape_of((0, START, 0, 150_000), (10, START, 1, 250_000))
    traces = [
        str(write_trace(tmp_path / unit, [tape], unit=unit, source={}).path)
        for unit in ("us", "ms")
    ]
    timers = ("hashed-wheel", "hashed-wheel/tick=7", "hierarchical-wheel/tick=1ms")
    path = run_comparison(
        Comparison(
            traces=tuple(traces), timers=timers, sizes=(), repeats=1, runs=f"{tmp_path}/runs"
        )
    )
    run = read_run(path)
    assert [entry["label"] for entry in run.manifest["traits"]] == [
        "hashed-wheel/tick=100ms",
        "hashed-wheel/tick=7",
        "hierarchical-wheel/tick=1ms",
    ]
    # In microseconds the last one may be early, though a millisecond is its unit.
    assert [entry["exact"] for entry in run.manifest["traits"]] == [False] * 3
    assert {row["exact"] for row in run.replays.to_pylist()} == {False}
    late = {
        (row["source"], *json.loads(row["parameters"]).values()): row["lateness_max"]
        for row in run.replays.to_pylist()
    }
    assert late == {
        (traces[0], 100, 512): 50_000,
        (traces[0], 7, 512): 5,
        (traces[0], 1, 20): 0,
        (traces[1], 100, 512): 100,
        (traces[1], 7, 512): 5,
        (traces[1], 1, 20): 0,
    }


def test_contestants_that_fire_alike_share_a_rounding():
    forms = [
        parse_contestant(text).rounding
        for text in ("delay-queue", "simple-wheel/wheel-size=7", "hierarchical-wheel")
    ]
    assert forms == [Rounding("exact")] * 3
    coarse = [parse_contestant(f"hierarchical-wheel/tick={tick}").rounding for tick in (5, 6, 5)]
    assert coarse[0] == coarse[2] != coarse[1]


def test_sources_tell_their_counts(tmp_path):
    path, tapes = shards(tmp_path)
    source = trace_source(path)
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
    one, other = (make("constant", operations=n, seed=1).tape for n in (300, 60))
    for order in ((one, other), (other, one)):
        path = tmp_path / f"{len(list(tmp_path.iterdir()))}.trace"
        write_trace(path, order, unit="ms", source={})
        assert trace_source(path).counts["id_space"] == one.id.max() + 1 > other.id.max() + 1
    made = workload_source("uniform", 50, 3)
    assert made.counts == {
        "shards": 1,
        "operations": 50,
        "starts": 50,
        "cancels": 0,
        "rearms": 0,
        "arms": 0,
        "id_space": made.load(0)[1],
        "span": int(np.ptp(made.load(0)[0].time)),
    }
