"""What the commands print, to the letter, of figures that all differ."""

import json
from dataclasses import replace
from itertools import count, cycle
from pathlib import Path
from types import SimpleNamespace

import pyarrow as pa
import pytest

from compare.bench.store import MEASURED, SCHEMAS, TOO_LONG, Run
from compare.bench.task import TASKS
from compare.cli.commands import compare, generate, ingest, summarise, timers
from compare.cli.commands import verify as verification
from compare.cli.main import main
from compare.cli.text import table
from compare.oracle.mismatches import Mismatch
from compare.tapes.tape import ARM, CANCEL, REARM, START
from compare.tapes.trace import write_trace
from compare.workloads.catalogue import WORKLOADS
from reports.statistics import Spread
from reports.summary import Cell
from reports.summary import summarise as summarise_run
from tests.compare.small_tapes import tape_of
from timers.rounding import Rounding
from timers.traits import Cost, Load, Parameter, Traits

# ---- compare

SIZES = (15_000, 20_000)
TRACES = ("logs/a-name-that-is-long.trace", "b/")
SOURCES = (*TRACES, "keepalive", "uniform", "constant")
WHO = {
    "delay-queue": ("compiled", True, 0, 0),
    "hashed-wheel/tick=7": ("compiled", False, 0, 7),
    "mine:Own": ("python loop", False, -2, 1),
}
SHAPE = (1.25, 1.0, 1.01)
"""Samples, in the order in which they are taken: the median is not the mean, and not the first."""


def key_of(label):
    name, *settings = label.split("/")
    parameters = {word: int(value) for word, value in (one.split("=") for one in settings)}
    return name, json.dumps(parameters), parameters


def traits(label):
    engine, exact, low, high = WHO[label]
    name, _, parameters = key_of(label)
    found = {"timer": name, "parameters": parameters, "label": label, "engine": engine}
    return found | {"exact": exact, "lateness_low": low, "lateness_high": high, "unit": ""}


def samples(common, level, predicted=None):
    if predicted is not None:
        return [common | {"status": TOO_LONG, "predicted_seconds": predicted}]
    return [
        common | {"status": MEASURED, "repeat": repeat, "ns_per_operation": level * shape}
        for repeat, shape in enumerate(SHAPE)
    ]


@pytest.fixture(scope="module")
def run():
    """Levels are 100, 200, ... in the order of contestants, sizes and tasks, then of sources."""
    level = count(100, 100)
    rows = {name: [] for name in SCHEMAS}
    for label, (engine, exact, low, high) in WHO.items():
        name, parameters, _ = key_of(label)
        who = {"timer": name, "parameters": parameters}
        labels = who | {
            "engine": engine,
            "exact": exact,
            "lateness_low": low,
            "lateness_high": high,
        }
        for size in SIZES:
            for task in TASKS:
                cell = labels | task._asdict() | {"size": size, "operations": size}
                long = (label, task.title) == ("mine:Own", "Hold") and size == SIZES[-1]
                rows["samples"] += samples(cell, next(level), 9.4 if long else None)
            number = len(rows["memory"]) + 1
            memory = {"capacity": size, "nbytes": 7 * size, "nbytes_per_timer": 7.0 * number}
            memory |= {"peak_nbytes": 1, "grown_nbytes": 2, "growth_seconds": []}
            rows["memory"].insert(0, who | memory)
        for source in SOURCES:
            replay = labels | {"source": source, "source_json": "{}", "unit": "ms"}
            long = (label, source) == ("mine:Own", "b/")
            cell = replay | {"operations": 9, "counters": [("looks", 5)]}
            rows["replays"] += samples(cell, next(level), 34.4 if long else None)
    tables = {
        name: pa.Table.from_pylist(
            [{column: row.get(column) for column in schema.names} for row in rows[name]], schema
        )
        for name, schema in SCHEMAS.items()
    }
    manifest = {"traits": [traits(label) for label in WHO], "parameters": {"budget": 1.5}}
    manifest["sources"] = []
    return Run(Path("runs/some"), manifest, **tables)


TEXT = """\
ns per operation with 20,000 timers pending
                       insert  cancel    hold    expiry    expiry      bytes
                                               by event  by clock  per timer
delay-queue             606.0   707.0   808.0     1,010     909.0       14.0
hashed-wheel/tick=7 +   2,121   2,222   2,323     2,525     2,424       28.0
mine:Own * +            3,636   3,737  ~9.4 s     4,040     3,939       42.0

ns per operation of a tape, expiries included
                       a-name-that-i~      b  keepalive  uniform
delay-queue                     1,111  1,212      1,313    1,414
hashed-wheel/tick=7 +           2,626  2,727      2,828    2,929
mine:Own * +                    4,141  ~34 s      4,343    4,444

ns per operation of a tape, expiries included
                       constant
delay-queue               1,515
hashed-wheel/tick=7 +     3,030
mine:Own * +              4,545

*  plain Python loop: not comparable with compiled figures
+  hashed-wheel/tick=7 fires up to 7 units late
+  mine:Own fires up to 2 units early and up to 1 unit late
~  predicted time of one run, not run: over the budget of 1.5 s"""


def test_a_comparison_is_told_by_the_medians_of_the_largest_size(run):
    assert compare.text_of(summarise_run(run)) == TEXT


def test_what_was_only_replayed_has_no_measurements(run):
    replayed = replace(run, samples=run.samples.slice(0, 0), memory=run.memory.slice(0, 0))
    assert compare.text_of(summarise_run(replayed)) == TEXT.partition("\n\n")[2]


@pytest.mark.parametrize(
    "predicted, ns, shown",
    [
        (None, 999.94, "999.9"),
        (None, 999.96, "1,000"),
        (9.94, None, "~9.9 s"),
        (9.96, None, "~10 s"),
    ],
)
def test_a_figure_has_a_decimal_if_it_is_short(predicted, ns, shown):
    spread = Spread.of([ns]) if ns else None
    assert compare._figure(Cell(spread, predicted, 1)) == shown


def test_a_comparison_as_json_has_the_median_of_each_sample(run):
    found = compare.medians(run)
    assert (found["run"], found["traits"]) == ("runs/some", run.manifest["traits"])
    assert found["memory"] == run.memory.to_pylist()
    assert len(found["measurements"]) == len(WHO) * len(SIZES) * len(TASKS)
    assert len(found["replays"]) == len(WHO) * len(SOURCES)
    numbers = [2, 8, 17, 28]
    kept = ("timer", "parameters", "size", "operation", "samples", "ns_per_operation")
    assert [[found["measurements"][n][name] for name in kept] for n in numbers] == [
        ["delay-queue", {}, 15_000, "hold", 3, 303.0],
        ["delay-queue", {}, 20_000, "expiry", 3, 909.0],
        ["hashed-wheel", {"tick": 7}, 20_000, "hold", 3, pytest.approx(2323.0)],
        ["mine:Own", {}, 20_000, "expiry", 3, pytest.approx(3939.0)],
    ]
    long = found["measurements"][27]
    assert (long["predicted_seconds"], long["samples"], long["ns_per_operation"]) == (9.4, 0, None)
    replayed = found["replays"][6]
    assert (replayed["source"], replayed["counters"]) == ("b/", {"looks": 5})
    assert replayed["ns_per_operation"] == pytest.approx(2727.0)
    assert not {"repeat", "seconds"} & {name for row in found["replays"] for name in row}


# ---- replay


@pytest.fixture
def replayed(tmp_path, monkeypatch):
    """A trace of two shards, of which a replay takes 3 and 4 us; gives what is printed."""
    one = [(10, START, 0, 15), (10, START, 1, 40), (12, CANCEL, 1, 0), (13, START, 2, 90)]
    two = [(7, START, 0, 30), (8, REARM, 0, 31), (9, ARM, 0, 33), (9, START, 1, 10)]
    tapes = [tape_of(*one), tape_of(*two, (20, ARM, 1, 21), (50, START, 2, 60))]
    write_trace(tmp_path / "t", tapes, unit="us", source={"kind": "test"})
    monkeypatch.chdir(tmp_path)
    seconds = cycle([3e-6, 4e-6])
    monkeypatch.setattr("compare.bench.sources.timed_replay", lambda *_, **__: next(seconds))


def test_a_replay_is_told_in_full(replayed, capsys):
    line = "replay t --timer hierarchical-wheel --tick 5us --wheel-size 8 --no-drain"
    assert main(line.split()) == 0
    lines = capsys.readouterr().out.splitlines()
    counters = [line.split() for line in lines[9:-1]]
    assert lines[:9] == [
        "hierarchical-wheel/tick=5us/wheel-size=8: 10 operations in 2 shards, from t",
        "  scheduled                        7",
        "  cancelled                        1",
        "  rescheduled                      2",
        "  fired                            3  each when the oracle expects it",
        "  pending                          3",
        "  lateness, min                   -3  us",
        "  lateness, median                -1  us",
        "  lateness, max                    0  us",
    ]
    assert lines[-1] == "  ns per operation             700.0  compiled, expiries included"
    for *words, number, each, per, operation in (line for line in counters if line[-1] != "0"):
        assert (per, operation) == ("per", "operation")
        assert float(each) == pytest.approx(int(number.replace(",", "")) / 10), words


def test_a_replay_as_json_has_the_same_figures(replayed, capsys):
    line = "replay t --timer hierarchical-wheel --tick 5us --no-drain --json"
    assert main(line.split()) == 0
    found = json.loads(capsys.readouterr().out)
    assert len(found.pop("counters")) > 3
    assert found.pop("nbytes") > 0
    assert found == {
        "operations": 10,
        "scheduled": 7,
        "cancelled": 1,
        "rescheduled": 2,
        "fired": 3,
        "pending": 3,
        "most_pending": 2,
        "wakeups": 0,
        "idle_wakeups": 0,
        "seconds": pytest.approx(7e-6),
        "ns_per_operation": pytest.approx(700.0),
        "lateness": {"min": -3, "median": -1.0, "max": 0},
        "engine": "compiled",
    }


# ---- traces

TOTALS = {"rows": 12_345, "starts": 3001, "cancels": 2003, "rearms": 1009, "arms": 5011}


def trace(*id_spaces, **totals):
    return SimpleNamespace(
        path=Path("some.trace"),
        unit="us",
        totals=TOTALS | totals,
        shards=[SimpleNamespace(id_space=space) for space in id_spaces],
    )


@pytest.mark.parametrize(
    ("id_spaces", "one", "where"),
    [([4001], "", ""), ([17, 4001, 19], " in one shard", " in 3 shards")],
)
def test_a_generated_trace_is_told_in_full(id_spaces, one, where):
    assert generate.summary(trace(*id_spaces)).splitlines() == [
        "operations  12,345: 3,001 starts, 2,003 cancels, 1,009 re-arms, 5,011 arms",
        "times       in us",
        f"pending     at most 4,001 at once{one}",
        f"trace       some.trace{where}",
    ]


def test_workloads_are_listed_with_their_defaults():
    lines = generate.listing().splitlines()
    for workload in WORKLOADS.values():
        first = lines.index(f"{workload.name}, in {workload.unit}")
        for name, value in workload.defaults.items():
            assert any(line.split()[0] == f"{name}={value}" for line in lines[first + 2 :])


READING = {
    "kind": "requests",
    "unit": "ms",
    "timeout": "5s",
    "time_format": "iso",
    "guessed": True,
    "rows": 4000,
    "first": 1_500_000_000_000,
    "last": 1_500_000_016_000,
    "seconds": 16.0,
    "timed_out": 70,
    "most_pending": 1013,
    "warnings": ("All is well.",),
}


def ingested(id_spaces=(1,), **changes):
    numbers = {"unreadable": 1, "duplicate": 0, "late": 4, "examples": ("line 7: x", "line 8: y")}
    reading = SimpleNamespace(**READING | {k: v for k, v in changes.items() if k in READING})
    found = SimpleNamespace(trace=trace(*id_spaces, arms=0), rows=4005, reading=reading)
    vars(found).update(numbers | {k: v for k, v in changes.items() if k in numbers})
    return ingest.summary(found).splitlines()


def test_how_a_log_was_read_is_told():
    pytest.importorskip("pyspark", reason="logs are read on Spark")
    assert ingested() == [
        "rows        4,005, of which 1 unreadable, 4 late left out (in rejected.parquet)",
        "            line 7: x",
        "            line 8: y",
        "            ... and 3 more",
        "operations  12,345: 3,001 starts, 2,003 cancels, 1,009 re-arms",
        "times       iso (guessed), in ms",
        "            from 2017-07-14 02:40:00.000 UTC",
        "            to   2017-07-14 02:40:16.000 UTC",
        "rate        250 rows a second",
        "timed out   70 (1.8%), after 5s",
        "pending     at most 1,013 at once",
        "trace       some.trace",
        "warning     All is well.",
    ]
    shards = ingested(
        (1, 2),
        kind="touches",
        guessed=False,
        rows=8,
        timed_out=3,
        late=0,
        unreadable=0,
        warnings=(),
    )
    assert [line for line in shards if line not in ingested()] == [
        "rows        4,005",
        "times       iso, in ms",
        "rate        0.5 rows a second",
        "fell idle   3 (37.5%), after 5s",
        "pending     at most 1,013 at once in one shard",
        "trace       some.trace in 2 shards",
    ]
    assert ingested(rows=0, warnings=())[5:] == ["trace       some.trace"]


# ---- replays on Spark

NUMBERS = {"operations": 70_001, "scheduled": 601, "fired": 4001, "pending": 503}
NUMBERS |= {"most_pending": 2003, "shards": 3, "shard_operations_median": 1.0}


@pytest.mark.parametrize(
    ("options", "asked", "kept"),
    [
        ((), {"expiries": True, "drained": True, "counting": False, "force": False}, "kept"),
        (("--summaries-only", "--count"), {"expiries": False, "counting": True}, "not kept"),
        (("--no-drain", "--force", "--master", "m"), {"drained": False, "master": "m"}, "kept"),
    ],
)
def test_a_replay_of_several_is_asked_for_and_told(monkeypatch, capsys, options, asked, kept):
    pipeline = pytest.importorskip("compare.pipeline.replay", reason="replays run on Spark")
    outcomes = {"operations": [101, 103, 1007, 1009], "fired": [11, 13, 1017, 1019]}
    calls = []

    def replay_trace(*given, **settings):
        calls.append((given, settings))
        return SimpleNamespace(
            read_outcomes=lambda: pa.table(outcomes),
            contestants=[1, 2, 3],
            trace=SimpleNamespace(shards=[1]),
            manifest={"expiries": settings["expiries"]},
        )

    monkeypatch.setattr(pipeline, "replay_trace", replay_trace)
    line = ("replay", "t", "--timers", "delay-queue,hashed-wheel/tick=5ms", "--out", "results")
    assert main([*line, *options]) == 0
    ((given, settings),) = calls
    assert given == ("t", ("delay-queue", "hashed-wheel/tick=5ms"), "results")
    assert settings.items() >= asked.items()
    assert capsys.readouterr().out == (
        f"results: 3 timers x 1 shard, 2,220 operations, 2,060 expiries ({kept})\n"
    )


def test_a_summary_shows_each_figure_in_its_column():
    late = {"min": -3, "p50": 5, "p90": 7, "p99": 1100, "p999": 13, "max": 17_000, "median": 6.5}
    row = {
        "label": "hashed-wheel/tick=7",
        "workload": "keepalive",
        "unit": "ms",
        "ns_per_operation": 12.34,
        "shard_ns_per_operation_median": 99.9,
        **NUMBERS,
        **{f"lateness_{name}": value for name, value in late.items()},
    }
    silent = row | {f"lateness_{name}": None for name in late} | {"label": "other", "fired": 0}
    assert summarise.text_of([row, silent]).splitlines()[:5] == [
        "keepalive: 70,001 operations in 3 shards; times in ms",
        "",
        "                       ns  fired  most pending  late p50    p99     max",
        "hashed-wheel/tick=7  12.3  4,001         2,003         5  1,100  17,000",
        "other                12.3      0         2,003         -      -       -",
    ]


def test_a_verification_tells_of_each_timer_and_each_kind():
    verify = pytest.importorskip("compare.pipeline.verify", reason="results are read on Spark")
    kinds = ("missing", "spurious", "early", "late", "double", "altered")
    examples = [
        Mismatch(kind, n, 10 + n, 20 + n, 30 + n, 40 + n, 50 + n, 60 + n)
        for n, kind in enumerate(kinds)
    ]
    counts = {kind: 100 + n for n, kind in enumerate(kinds)}
    wrong = verify.Verdict(7001, 7003, counts, tuple(examples), "simple-wheel")
    right = verify.Verdict(5003, 5003, dict.fromkeys(kinds, 0), (), "delay-queue")
    found = verify.Verification(Path("out"), "sql", "us", 90_001, 6, (right, wrong))
    assert verification.text_of(found).splitlines() == [
        "out: 2 timers x 6 shards, 90,001 operations",
        "              must fire  fired  mismatches",
        "delay-queue       5,003  5,003           0",
        "simple-wheel      7,001  7,003         615",
        "",
        "simple-wheel: 100 missing, 101 spurious, 102 early, 103 late, 104 double, 105",
        "altered",
        "  missing   shard 0, operation 10 (id 20, deadline 30): due at 40",
        "  spurious  shard 1, operation 11 (id 21, deadline 31): fired at 51",
        "  early     shard 2, operation 12 (id 22, deadline 32): fired at 52, due at 42",
        "  late      shard 3, operation 13 (id 23, deadline 33): fired at 53, due at 43",
        "  double    shard 4, operation 14 (id 24, deadline 34): fired again at 54, due",
        "            at 44",
        "  altered   shard 5, operation 15 (id 25, deadline 35): fired with deadline 65",
    ]
    assert replace(found, timers=(right, right)).passed
    assert not any(replace(found, timers=pair).passed for pair in ((wrong, right), (right, wrong)))


@pytest.mark.parametrize(("mismatches", "code"), [(0, 0), (3, verification.MISMATCHES)])
def test_a_mismatch_is_an_exit_code(monkeypatch, capsys, mismatches, code):
    verify = pytest.importorskip("compare.pipeline.verify", reason="results are read on Spark")
    verdict = verify.Verdict(7, 8, {"late": mismatches}, (), "simple-wheel")
    found = verify.Verification(Path("out"), "sql", "us", 90_001, 6, (verdict,))
    monkeypatch.setattr(verify, "verify", lambda results, **settings: found)
    assert main(["verify", "out", "--json"]) == code
    assert json.loads(capsys.readouterr().out) == {
        "results": "out",
        "method": "sql",
        "unit": "us",
        "operations": 90_001,
        "shards": 6,
        "passed": not mismatches,
        "timers": [
            {
                "timer": "simple-wheel",
                "expected": 7,
                "fired": 8,
                "mismatches": mismatches,
                "counts": {"late": mismatches},
                "examples": [],
            }
        ],
    }


# ---- timers

DECLARED = Traits(
    name="made-up",
    scheme="the scheme",
    summary="the summary",
    rounding=lambda parameters: Rounding("up", parameters["tick"]),
    order="fifo",
    parameters={"tick": Parameter(7), "wheel_size": Parameter(64)},
    exact_next_expiry=False,
    costs=(
        Cost("schedule", "N", "1", Load.ANY, "comparisons"),
        Cost("tick", "wheel_size", "linear", Load.UNIFORM_DELAYS, "slots_visited"),
        Cost("tick", "N", "log", Load.FULL_SLOT, "refiled"),
    ),
    horizon="the horizon",
    jumps="the jumps",
    suits="what it suits",
    drawback="the drawback",
    source="the source",
    deviations=("this", "that"),
)


def test_traits_stand_beside_their_names():
    assert timers.summary("made-up", DECLARED).splitlines() == [
        "made-up             tick 7, wheel-size 64     0 to 7 late     first armed, first",
        "  costs schedule O(1); tick O(wheel_size), O(log N)",
        "  suits what it suits",
        "  but   the drawback",
    ]
    rounding = Rounding("up", 7)
    assert timers.details("made-up", DECLARED).splitlines() == [
        "made-up",
        "    scheme      the scheme",
        "    summary     the summary",
        "    parameters  tick 7, wheel-size 64",
        f"    fires       0 to 7 late: {rounding}",
        "    same unit   first armed, first delivered",
        "    next_expiry a lower bound",
        "    cost        schedule: O(1); any; counted by comparisons",
        "                tick: O(wheel_size); uniform delays; counted by slots_visited",
        "                tick: O(log N); the worst tick: all timers in one upper slot;",
        "                counted by refiled",
        "    horizon     the horizon",
        "    jumps       the jumps",
        "    suits       what it suits",
        "    drawback    the drawback",
        "    deviation   this",
        "                that",
        "    source      the source",
    ]


@pytest.mark.parametrize(
    ("direction", "tick", "fires"),
    [("down", 9, "8 early to 0 late"), ("down", 1, "exact at tick 1"), ("exact", 9, "exact")],
)
def test_the_other_traits_have_their_words_too(direction, tick, fires):
    other = replace(
        DECLARED,
        rounding=lambda parameters: Rounding(direction, parameters["tick"]),
        order="unspecified",
        parameters={"tick": Parameter(tick)},
        exact_next_expiry=True,
    )
    assert timers.summary("x", other).splitlines()[0].split(None, 3) == [
        "x",
        "tick",
        str(tick),
        f"{fires:<16}any order",
    ]
    lines = timers.details("x", other).splitlines()
    assert lines[4] == f"    fires       {fires}: {other.rounding(other.defaults)}"
    assert lines[5:7] == ["    same unit   any order", "    next_expiry exact"]


# ---- tables


def test_a_table_uses_all_80_columns_before_it_is_broken():
    rows = [["a" * 30, "b" * 26, "7"], ["x", "9", "c" * 20]]
    assert table(rows) == [
        "a" * 30 + "  " + "b" * 26 + " " * 21 + "7",
        "x" + " " * 56 + "9  " + "c" * 20,
    ]
    wide = [["a" * 31, *rows[0][1:]], rows[1]]
    assert table(wide) == [
        "a" * 31,
        "  " + "b" * 26 + " " * 21 + "7",
        "x",
        " " * 27 + "9  " + "c" * 20,
    ]
