"""What the commands print, in 80 columns, of figures that all differ."""

import json
from collections import defaultdict
from dataclasses import replace
from pathlib import Path
from statistics import median
from types import SimpleNamespace

import pytest

from compare.base import formats
from compare.cli import printing
from compare.cli.commands import compare, generate, ingest, timers
from compare.cli.commands import verify as verification
from compare.cli.text import Sheet, shown, table
from compare.traffic.tapes.description import Description
from compare.traffic.tapes.tape import ARM, CANCEL, REARM, START
from compare.traffic.tapes.trace import write_trace
from compare.traffic.workloads.catalogue import WORKLOADS
from compare.trial.bench.callers import METRICS
from compare.trial.bench.constants import Constants, Fit
from compare.trial.bench.costs import ERROR, rows_of_fit
from compare.trial.bench.costs import METRICS as COSTS
from compare.trial.bench.task import TASKS
from compare.trial.oracle.mismatches import KINDS, Mismatch
from compare.trial.pipeline.verify import Verdict, Verification
from compare.trial.results.schema import Row
from compare.trial.results.store import read_run
from reports.summary import figures_of
from tests.compare.small_tapes import tape_of
from tests.reports.stored import caller_rows
from tests.reports.synthetic import write_synthetic
from tests.words import tells
from timers.rounding import Rounding
from timers.traits import Cost, Load, Parameter, Traits


def plain(text):
    """Its words, wherever they stand, if it fits a terminal."""
    assert max(map(len, text.splitlines())) <= 80
    return " ".join(text.split())


# ---- compare

SIZES = (1000, 100_000)
WHO = ("delay-queue", "hashed-wheel/tick=7ms", "unordered-list", "heapq-delay-queue")
SOURCES = ("logs/a-name-that-is-long.trace", "b/", "far/over/there/b", "uniform", "constant")


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """The list is over the budget in the expiry of the larger size."""
    return read_run(write_synthetic(tmp_path_factory.mktemp("runs"), WHO, SIZES, SOURCES))


def medians_of(run, metric):
    """The median by contestant, subject and size; None where it was over budget."""
    samples = defaultdict(list)
    for row in run.rows:
        if row.metric == metric:
            samples[row[:3]].append(row.value)
    return {key: None if None in values else median(values) for key, values in samples.items()}


def told(run):
    """The lines of what `compare` prints, by the first words of their titles."""
    text = shown(compare.sheets_of(figures_of(run)))
    assert max(map(len, text.splitlines())) <= 80
    parts = [part.splitlines() for part in text.split("\n\n")]
    return {part[0].split(":")[0]: part[1:] for part in parts if ":" in part[0]}, parts[-1]


def figures_in(lines, name):
    """The figures of a contestant, which stand in the line of its name or below it."""
    place = next(n for n, line in enumerate(lines) if line.split()[:1] == [name])
    words = lines[place].replace(" *", "").replace(" +", "").split()[1:]
    return words or lines[place + 1].split()


def written(value):
    return "-" if value is None else formats.significant(value).replace(formats.NO_BREAK, ",")


def test_callers_are_told_by_their_medians_and_only_if_there_are_any(run):
    others = [row for row in run.rows if not {row.metric} & {*METRICS, *COSTS, ERROR}]
    run = replace(run, rows=others)
    assert "cost of traffic" not in shown(compare.sheets_of(figures_of(run)))
    fit = Fit(Constants(400, 8, 3, 0, 0, 0, 0), 0.25)
    rows = [
        row
        for size in (1_000, 30_000)
        for row in (
            *rows_of_fit("delay-queue", "python, random", size, fit),
            *caller_rows("asyncio", "asyncio", size, [[2000.0], [1.0], [1.0]]),
        )
    ]
    called = figures_of(replace(run, rows=[*run.rows, *rows]))
    text = shown(compare.sheets_of(called))
    words = plain(text)
    assert "cost of traffic is made of: a Python program, random timeouts, N = 1,000" in words
    assert " delay-queue 400 8.00 3.00 0 " in words and " delay-queue 0 0 0 25%" in words
    part = next(part for part in text.split("\n\n") if part.startswith("Costs of a service"))
    assert plain(part).startswith("Costs of a service or an event loop: an asyncio program, N = 30")
    assert plain(part).endswith(" wake-up [ns] asyncio 2,000 1.00 1.00")
    missing = [Row("uvloop", "asyncio", None, "pair_time", None, None, "is not installed")]
    called = figures_of(replace(run, rows=[*run.rows, *rows, *missing]))
    text = shown(compare.sheets_of(called))
    assert "not measured: uvloop, asyncio: it is not installed" in text


def test_a_comparison_is_told_by_the_medians_of_the_largest_size(run):
    parts, footnotes = told(run)
    times = medians_of(run, "time")
    lines = parts["Time per operation"]
    for contestant in WHO:
        shown_times = figures_in(lines, contestant)
        wanted = [written(times.get((contestant, task.name, SIZES[-1]))) for task in TASKS]
        assert shown_times == wanted
    held = medians_of(run, "at_rest")
    memory = parts["Memory for each pending timer, and one timer more than there is room for"]
    for contestant in WHO:
        nbytes = held[contestant, "memory", SIZES[-1]]
        assert figures_in(memory, contestant)[0] == formats.amount(nbytes)
    marks = {line.split()[0]: line.split()[1] for line in lines if len(line.split()) > 1}
    assert (marks["hashed-wheel/tick=7ms"], marks["heapq-delay-queue"]) == ("+", "*")
    for mark, contestant, says in (
        ("*", "", "Python loop"),
        ("+", "hashed-wheel/tick=7ms", "fires up to 7ms late"),
        ("-", "unordered-list", "over budget at 100,000"),
    ):
        assert any(line[0] == mark and contestant in line and says in line for line in footnotes)
    assert {line[0] for line in footnotes} == {"*", "+", "-"}


def test_replays_are_told_by_their_medians(run):
    text = shown(compare.sheets_of(figures_of(run)))
    start = text.index("Replays: time per operation, median [ns]")
    words = plain(text[start : text.index("Memory for")])
    times = medians_of(run, "replay_time")
    for contestant in WHO:
        for source in SOURCES:
            assert written(times[contestant, source, None]) in words


def test_what_was_only_replayed_has_no_measurements(run):
    replayed = replace(run, rows=[row for row in run.rows if row.size is None])
    text = shown(compare.sheets_of(figures_of(replayed)))
    assert text.startswith("Noise ") and "\n\nReplays: time per operation" in text
    assert "pending" not in text


def test_what_is_missing_is_told(run):
    _, footnotes = told(replace(run, missing=["callers", "replay-1"]))
    assert footnotes[-1] == "not finished: callers, replay-1"


def test_a_comparison_as_json_has_the_statistics_of_each_metric(run):
    values = printing.values(figures_of(run), run)
    assert (values["run"], values["missing"]) == (str(run.path), [])
    assert values["contestants"] == run.manifest["contestants"]
    shown_figures = {
        (figure["contestant"], figure["subject"], figure["size"], figure["metric"]): figure
        for figure in json.loads(json.dumps(values))["figures"]
    }
    assert len(shown_figures) == len(values["figures"])
    for metric in ("time", "replay_time", "at_rest", "comparisons", "fired", "pause"):
        for key, wanted in medians_of(run, metric).items():
            assert shown_figures[(*key, metric)]["value"] == wanted
    samples = [row.value for row in run.rows if row[:4] == ("delay-queue", "hold", 1000, "time")]
    time = shown_figures["delay-queue", "hold", 1000, "time"]
    assert (time["n"], time["unit"], time["better"], time["ratio"]) == (5, "ns", "lower", 1.0)
    assert (time["least"], time["greatest"]) == (min(samples), max(samples))
    assert time["p90"] == max(samples)  # of five
    assert time["low"] <= time["median"] == time["value"] <= time["high"]
    over = shown_figures["unordered-list", "expiry-clock", 100_000, "time"]
    assert (over["value"], over["note"]) == (None, "over budget")


def test_a_comparison_in_markdown_has_all_statistics(run):
    text = shown(compare.sheets_of(figures_of(run), whole=True), as_markdown=True)
    hold = text[text.index("### Time per operation: Cancel and insert, N = 100,000") :].splitlines()
    statistics = ["median", "least", "p90", "greatest"]
    headings = [*(f"{name} [ns]" for name in statistics), "ratio to delay-queue"]
    assert hold[2] == f"|  | {' | '.join(headings)} |"
    assert hold[3] == "|:--|--:|--:|--:|--:|--:|"
    assert hold[4].startswith("| delay-queue | ")
    clock = text[text.index("### Time per operation: Expiry, clock-driven") :].splitlines()
    assert "| over budget at 100,000 |" in next(
        line for line in clock if line.startswith("| unordered")
    )


# ---- replay


def test_a_replay_is_told_in_full(said):
    first = [(10, START, 0, 15), (10, START, 1, 40), (12, CANCEL, 1, 0), (13, START, 2, 90)]
    two = [(7, START, 0, 30), (8, REARM, 0, 31), (9, ARM, 0, 33), (9, START, 1, 10)]
    tapes = [tape_of(*first), tape_of(*two, (20, ARM, 1, 21), (50, START, 2, 60))]
    write_trace("t", tapes, unit="us", source={"kind": "test"})
    timer = "hierarchical-wheel/tick=5us/wheel-size=8"
    command = ("replay", "t", "--timers", timer, "--no-drain")
    code, text, _ = said(*command, "--count")
    assert code == 0
    lines = [" ".join(line.split()) for line in text.splitlines()]
    plain(text.partition("\n")[2])  # the first line has a path
    assert lines[0].startswith(f"{timer}: 10 operations in 2 shards, from ")
    for line in (
        *("scheduled 7", "cancelled 1", "rescheduled 2", "pending 3"),
        "fired 3 as the oracle expects",
        "most pending 2 in one shard",
        *("lateness, min -3 us", "lateness, median -1 us", "lateness, max 0 us"),
    ):
        assert line in lines
    counted = [line.split()[-4:] for line in lines if line.endswith(" per operation")]
    assert len(counted) > 2
    assert all(float(each) == pytest.approx(int(number) / 10) for number, each, *_ in counted)
    assert lines[-1].startswith("ns per operation ")
    assert lines[-1].endswith(" compiled, expiries included")
    assert len(said(*command)[1].splitlines()) < len(lines)


def test_a_replay_of_nothing_has_no_lateness_and_no_time_per_operation(said):
    write_trace("t", [tape_of()], unit="us", source={})
    line = ("replay", "t", "--timers", "delay-queue")
    out = said(*line)[1]
    assert "nothing fired" in out
    assert "ns per operation" not in out
    assert "in one shard" not in out
    (printed,) = json.loads(said(*line, "--json")[1])
    assert printed["ns_per_operation"] is printed["lateness"]["max"] is None


# ---- traces

TOTALS = {"rows": 12_345, "starts": 3001, "cancels": 2003, "rearms": 1009, "arms": 5011}


def trace(*id_spaces, **totals):
    return SimpleNamespace(
        place="some.trace",
        rejected=Path("some.trace/run-0/rejected"),
        unit="us",
        totals=TOTALS | totals | {"shards": len(id_spaces), "id_space": max(id_spaces)},
        span=16_000_000,
        description=Description(4000, 3930, 8_000_000.0, {"p50": 10, "p99": 20, "max": 5_000_000}),
    )


def test_a_generated_trace_is_told_in_full():
    facts = "12,345 3,001 starts 2,003 cancels 1,009 re-arms 5,011 arms us 4,001"
    assert tells(
        plain(generate.summary(trace(4001), {"shares": "7% cancels"})),
        f"{facts} 7% cancels some.trace",
    )
    several = plain(generate.summary(trace(17, 4001, 19), {}))
    assert tells(several, f"{facts} in one shard some.trace 3 shards")


def test_workloads_are_listed_with_their_defaults(said):
    lines = said("generate")[1].splitlines()
    assert max(map(len, lines)) <= 80
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
    "warnings": ("All is well.",),
}


def ingested(id_spaces=(1,), **changes):
    numbers = {
        "unreadable": 1,
        "unmatched": 4,
        "other_lines": 0,
        "examples": ("line 7: x", "line 8: y"),
    }
    reading = SimpleNamespace(**READING | {k: v for k, v in changes.items() if k in READING})
    summary = SimpleNamespace(trace=trace(*id_spaces, arms=0), rows=4005, reading=reading)
    vars(summary).update(numbers | {k: v for k, v in changes.items() if k in numbers})
    return plain(ingest.summary(summary))


def test_how_a_log_was_read_is_told():
    said = ingested()
    for part in (
        "4,005; skipped 1 unreadable, 4 unmatched (in some.trace/run-0/rejected)",
        "line 7: x line 8: y ... and 3 more",
        "iso (guessed), in ms from 2017-07-14 02:40:00.000 UTC to 2017-07-14 02:40:16.000 UTC",
        "operations 12,345: 3,001 starts, 2,003 cancels, 1,009 re-arms rate 250 timers armed per",
        "second pending 0.5 timers on average timed out 70 of 4,000 timers armed (1.75%)",
        "delay p50 10us, p99 20us, greatest 5s trace some.trace",
    ):
        assert part in said
    assert said.endswith("warning All is well.")
    right = {"unmatched": 0, "unreadable": 0, "examples": (), "warnings": ()}
    said = ingested((1, 2), kind="touches", guessed=False, rows=8, timed_out=3, **right)
    for part in (
        "rows 4,005 times iso, in ms",
        "pending 0.5 timers on average in all shards",
    ):
        assert part in said
    assert said.endswith("some.trace in 2 shards")
    assert ingested(rows=0, **right).startswith("rows 4,005 operations")


# ---- verify


def test_a_verification_tells_of_each_timer_and_each_kind():
    examples = [
        Mismatch(kind, n, 10 + n, 5 - n, 30 + n, 40 + n, 50 + n, 60 + n)
        for n, kind in enumerate(KINDS)
    ]
    counts = {kind: 100 + n for n, kind in enumerate(KINDS)}
    wrong = Verdict(7001, 7003, counts, tuple(examples), "simple-wheel")
    right = Verdict(5003, 5003, dict.fromkeys(KINDS, 0), (), "delay-queue")
    result = Verification("out", "us", 90_001, 6, (right, wrong))
    assert tells(
        plain(verification.text_of(result)),
        "out 2 timers 6 shards 90,001 operations must fire fired mismatches"
        " delay-queue 5,003 5,003 0 simple-wheel 7,001 7,003 615"
        " simple-wheel 100 missing 101 spurious 102 early 103 late 104 double 105 altered"
        " missing shard 0 operation 10 id 5 deadline 30 due 40"
        " spurious shard 1 operation 11 id 4 deadline 31 fired 51"
        " early shard 2 operation 12 id 3 deadline 32 fired 52 due 42"
        " late shard 3 operation 13 id 2 deadline 33 fired 53 due 43"
        " double shard 4 operation 14 id 1 deadline 34 fired again 54 due 44"
        " altered shard 5 operation 15 id 0 deadline 35 fired deadline 65",
    )
    assert replace(result, timers=(right, right)).passed
    assert not any(replace(result, timers=pair).passed for pair in ((wrong, right), (right, wrong)))


@pytest.mark.parametrize(("mismatches", "code"), [(0, 0), (3, verification.MISMATCHES)])
def test_a_mismatch_is_an_exit_code(said, monkeypatch, mismatches, code):
    example = Mismatch("late", 1, 2, 3, 4, 5, 6, 7)
    verdict = Verdict(7, 8, {"late": mismatches}, (example,), "simple-wheel")
    result = Verification("out", "us", 90_001, 6, (verdict,))
    monkeypatch.setattr("compare.trial.pipeline.verify.verify", lambda results, **settings: result)
    ended, out, _ = said("verify", "out", "--json")
    assert ended == code
    timer = {"timer": "simple-wheel", "expected": 7, "fired": 8, "mismatches": mismatches}
    assert json.loads(out) == {
        "results": "out",
        "unit": "us",
        "operations": 90_001,
        "shards": 6,
        "passed": not mismatches,
        "timers": [timer | {"counts": {"late": mismatches}, "examples": [vars(example)]}],
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
    assert tells(
        plain(timers.summary("made-up", DECLARED)),
        "made-up tick 7 wheel-size 64 up to 7 late arming order schedule O(1) tick O(wheel_size)"
        " or O(log N) what it suits the drawback",
    )
    said = plain(timers.details("made-up", DECLARED))
    assert said.startswith(
        "made-up scheme the scheme summary the summary parameters tick 7, wheel-"
    )
    for part in (
        f"fires up to 7 late: {Rounding('up', 7)} same unit in arming order",
        "next_expiry a lower bound",
        "cost schedule: O(1); any; adds to comparisons",
        "tick: O(wheel_size); uniform delays; adds to slots_visited",
        "tick: O(log N); the worst tick: all timers in one upper slot; adds to refiled",
        "horizon the horizon jumps the jumps suits what it suits drawback the drawback",
    ):
        assert part in said
    assert said.endswith("deviation this that source the source")


@pytest.mark.parametrize(
    ("direction", "tick", "fires"),
    [
        ("down", 9, "up to 8 early"),
        ("down", 1, "exact at tick 1"),
        ("exact", 9, "exact"),
        ("levels", 9, "up to 8/63 late"),
    ],
)
def test_the_other_traits_have_their_words_too(direction, tick, fires):
    other = replace(
        DECLARED,
        rounding=lambda parameters: Rounding(direction, parameters["tick"]),
        order="unspecified",
        parameters={"tick": Parameter(tick)},
        exact_next_expiry=True,
    )
    assert plain(timers.summary("x", other)).startswith(f"x tick {tick} {fires} in any order costs")
    said = plain(timers.details("x", other))
    assert f"fires {fires}: {other.rounding(other.defaults)} same unit in any order" in said
    assert "next_expiry exact" in said


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


def test_headings_are_wrapped_before_names_stand_alone():
    rows = [["", *["a long heading"] * 5], ["name", *["7"] * 4, "1,234,567,890,123"]]
    first, second, figures = table(rows)
    assert first.split() == ["a", "long"] * 4
    assert second.split() == [*["heading"] * 4, "a", "long", "heading"]
    assert figures.split() == rows[1]
    assert max(map(len, (first, second, figures))) <= 80


def test_columns_that_do_not_fit_are_divided():
    rows = [["", *(f"{n}" * 20 for n in range(6))], ["name", *"abcdef"]]
    lines = table(rows)
    assert max(map(len, lines)) <= 80
    named = [line.split() for line in lines if "name" in line]
    assert named == [["name", *"abc"], ["name", *"def"]]


def test_a_sheet_in_markdown_escapes_what_has_a_meaning():
    assert Sheet(notes=["+  a", "", "-  b"]).markdown() == "\\+  a\n\n\\-  b"
    sheet = Sheet("a_b *", [["", "x|y"], ["<i>", "1"]], ["`note`"])
    assert sheet.markdown() == ("### a_b *\n\n|  | x\\|y |\n|:--|--:|\n| \\<i> | 1 |\n\n\\`note\\`")
    assert sheet.text() == "a_b *\n     x|y\n<i>    1\n`note`"
