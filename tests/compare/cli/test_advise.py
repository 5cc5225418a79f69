"""`wheelwork advise`: what it prints, and what it refuses in one line."""

import json
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from compare.cli.commands.advise import _about
from compare.traffic.tapes.trace import open_trace, write_trace
from compare.traffic.workloads.catalogue import make
from compare.trial.advice import program, search
from compare.trial.advice.candidates import Bounds, Candidate
from compare.trial.advice.replays import sampled
from compare.trial.bench.callers import Costs
from compare.trial.replay.contestant import contestant
from compare.trial.replay.lateness import Lateness
from compare.trial.replay.outcome import Outcome
from reports.charts.pareto import pareto_picture
from tests.compare.trial.advice.conftest import short_search  # noqa: F401  # a fixture


@pytest.fixture(scope="module")
def traces(tmp_path_factory, short_search):  # noqa: F811
    root = tmp_path_factory.mktemp("traces")
    tape = make("lognormal-low", operations=500, seed=5).tape
    nothing = type(tape)(*(column[:0] for column in tape))
    write_trace(root / "us", [tape], unit="us", source={})
    write_trace(root / "unit", [tape], unit="unit", source={})
    write_trace(root / "empty", [nothing], unit="ms", source={})
    return root


COSTS = {
    "asyncio": [Costs(2e6, 0, 0)],
    "uvloop": [Costs(1e6, 0, 0)],
    "cascading-wheel": [Costs(3e6, 0, 0)],
}
"""Loop -> ns of a pair."""


@pytest.fixture(autouse=True)
def quick_loops(monkeypatch):
    """Measures no event loops: what their figures lead to is tested elsewhere."""
    monkeypatch.setattr(program, "measured", lambda caller, *_: COSTS)


@pytest.fixture
def said(said, monkeypatch, traces):
    monkeypatch.chdir(traces)
    return partial(said, "advise")


def recorded(traces, name, **source):
    tape = make("lognormal-low", operations=500, seed=5).tape
    usage = {"kind": "recording", "seconds": 5.0, "cpu_seconds": 0.5, "loops": ["asyncio"]}
    write_trace(traces / name, [tape], unit="us", source=usage | source, force=True)


@pytest.mark.parametrize(
    ("wheel", "words", "setting"),
    [
        (0.25, "the best structure would save nothing loop keep asyncio: no other is cheaper", ""),
        (
            0.194,
            "the best structure would save 1.2%",
            " loop keep asyncio: cascading-wheel would save 0.6% of a core, which is less than 1%"
            " of a core",
        ),
        (
            0.15,
            "the best structure would save 10%",
            " loop wheel_event_loop with cascading-wheel: it saves 5% of a core against asyncio's"
            " own",
        ),
    ],
)
def test_advice_for_a_recorded_program_begins_with_what_its_timers_take(
    said, traces, monkeypatch, wheel, words, setting
):
    """By hand: the loop's timers take 20 % of a core, and all of the program half of one."""
    recorded(traces, "app", cpu_seconds=2.5)
    rates, _ = program.traffic_of(open_trace(traces / "app"))
    shares = {"asyncio": 0.2, "cascading-wheel": wheel, "uvloop": 0.1}
    costs = {name: [Costs(share * 1e9 / rates.pair, 0, 0)] for name, share in shares.items()}
    monkeypatch.setattr(program, "measured", lambda *_: costs)
    code, out, err = said("app")
    assert (code, err) == (0, "") and max(map(len, out.splitlines())) <= 80
    text = " ".join(out.split())
    assert text.startswith(
        "program timers take about 40% of this program's CPU time on asyncio's own"
    )
    assert f"loop; {words}{setting}" in text
    assert "uvloop 10% (up to 2 ms early)" in text
    first = json.loads(said("app", "--json")[1])["program"]
    assert first["timers"] == pytest.approx(shares) and first["share_of_core"] == 0.5
    assert first["use"] == ("cascading-wheel" if wheel == 0.15 else "asyncio")
    assert "| program | timers take about 40%" in said("app", "--markdown")[1]


def test_without_a_figure_of_cpu_the_share_is_not_told_and_of_a_log_nothing_is(said, traces):
    recorded(traces, "old", cpu_seconds=0.0, loops=["asyncio", "wheel_event_loop"])
    assert said("old")[1].startswith("loop          use asyncio's own: no other is cheaper")
    assert said("us")[1].startswith("Noise ")
    assert " asyncio keep asyncio" in " ".join(said("us")[1].split())
    assert json.loads(said("unit", "--json")[1])["program"] is None


@pytest.fixture
def found(traces, monkeypatch):
    """Puts candidates in the place of those that a search finds; returns the trace."""
    trace = open_trace(traces / "us")
    late = Outcome(lateness=Lateness.of(np.arange(1, 1001)))

    def put(figures):
        candidates = [
            Candidate(contestant(label), late, times, 40, nbytes, deviation, allowed, allowed)
            for label, (times, nbytes, deviation, allowed) in figures.items()
        ]
        sample, rounds = sampled(trace, 10_000), [(9, 250), (len(figures), 500)]
        advice = search.Advice(trace, Bounds(10_000), "cpu", sample, candidates, [], rounds)
        monkeypatch.setattr(search, "advise", lambda *_: advice)
        return trace

    return put


FIGURES = {
    "hashed-wheel/tick=10ms": ([100.0, 120.0], 5_000_000, 10_000, True),
    "hashed-wheel/tick=50ms": ([50.0, 50.0], 5_000_000, 50_000, False),
    "delay-queue": ([230.0, 322.0], 2_000, 0, True),
}
"""Candidate -> ns per operation in two turns, bytes, deviation, whether it keeps the bounds."""


def test_each_figure_of_the_advice_is_in_its_place(said, found):
    trace = found(FIGURES)
    words = " ".join(said("us")[1].split())
    assert words.startswith(
        "Noise 20%: typically, the slowest sample took 20% longer than the fastest. "
        f"use hashed-wheel/tick=10ms cost {100 * 500 / trace.span:.3g} ms of CPU per second of this"
        " traffic; 100.0 ns of CPU per operation; 5.0 MB"
        " lateness up to 10ms late by its scheme; here p50 500us, p99 990us, at most 1ms"
        " chosen the cheapest within the bounds"
        " runner-up delay-queue: 130% more CPU (noise 40%); 2.0 kB"
        " would change if timers may fire up to 50ms late, hashed-wheel/tick=50ms takes 50% less"
        " CPU;"
        " to save memory, delay-queue takes 2.0 kB"
        " Pareto front ns precision memory bounds hashed-wheel/tick=50ms 50.0 50ms 5.0 MB -"
        " hashed-wheel/tick=10ms 100 10ms 5.0 MB advice delay-queue 230 exact 2.0 kB kept"
        " search 9 candidates on 250 operations, 3 on 500 in 2 turns"
        " Python [us] timers.HashedWheel("
    )


def test_where_noise_decides_no_timer_is_named(said, found, monkeypatch):
    turns = {"delay-queue": [100.0, 220.0], "cascading-wheel": [140.0, 104.0]}
    found({label: (times, 2_000, 0, True) for label, times in turns.items()})
    monkeypatch.setattr(search, "EXPONENTS", {})
    words = " ".join(said("us")[1].split())
    assert " use not decided on this machine now: the noise is 120%" in words
    assert json.loads(said("us", "--json")[1])["decided"] is False


def test_a_precise_timer_that_is_about_as_cheap_is_advised(said, found):
    """At the rate of this trace, 30 ns per operation are less than 1 % of a core."""
    trace = found(FIGURES | {"delay-queue": ([130.0, 182.0], 2_000, 0, True)})
    assert 0.001 < 30e-9 * 500 / (trace.span / 1e6) < 0.01
    words = " ".join(said("us")[1].split())
    assert " use delay-queue cost" in words
    assert (
        " chosen of 2 candidates about as cheap as the cheapest, it is exact"
        " (within the noise or 1% of a core); hashed-wheel/tick=10ms takes 23% less CPU"
        " runner-up hashed-wheel/tick=10ms: 23% less CPU (noise 40%), which is within the noise;"
    ) in words
    advice = json.loads(said("us", "--json")[1])
    assert advice["noise"] == {"score": pytest.approx(0.2), "processor_share": None, "busy": False}
    assert advice["best"]["timer"] == "delay-queue"
    assert advice["chosen"].startswith("of 2 candidates about as cheap")


def test_markdown_has_the_advice_and_the_front_as_tables(said, found):
    found(FIGURES)
    code, out, _ = said("us", "--markdown")
    noise, _, rest = out.partition("\n\n")
    assert code == 0 and noise.startswith("Noise 20%")
    assert rest.startswith("### Timers for us\n\n|  | advice |\n|:--|--:|\n| use | ")
    assert "| hashed-wheel/tick=10ms | 100 | 10ms | 5.0 MB | advice |" in out
    assert "Python [us]: `timers.HashedWheel(" in out
    assert said("us", "--markdown", "--json")[0] == 2


def test_without_another_scheme_there_is_no_runner_up(said, found):
    found({label: FIGURES[label] for label in FIGURES if label != "delay-queue"})
    assert "none: no other scheme keeps the bounds" in said("us")[1]
    assert json.loads(said("us", "--json")[1])["runner_up"] is None


@pytest.mark.parametrize("unit", ["us", "unit"])
def test_the_advice_is_the_noise_six_lines_the_front_the_search_and_code_to_paste(said, unit):
    code, out, err = said(unit)
    assert (code, err) == (0, "")
    assert max(map(len, out.splitlines())) <= 80
    noise, answer, front, _, settings = (part.splitlines() for part in out.split("\n\n"))
    assert noise[0].startswith("Noise ")
    [advised] = [line for line in front if line.endswith("advice")]
    assert advised.split()[0] == answer[0].split()[1]
    assert settings[0].startswith(f"Python [{unit}]")
    assert ("ms of CPU per second of this traffic" in out) == (unit == "us")


def test_json_has_every_candidate_and_the_default_is_10_ms_late_and_never_early(said):
    advice = json.loads(said("us", "--json")[1])
    allowed = [candidate for candidate in advice["candidates"] if candidate["allowed"]]
    assert advice["best"] in allowed and advice["runner_up"] in allowed
    assert all(0 == low <= high <= 10_000 for low, high in (x["lateness_bounds"] for x in allowed))
    assert any(candidate["lateness_bounds"][1] == 10_000 for candidate in allowed)
    seconds = 1e-6 * advice["best"]["ns_per_operation"] * 500
    span = json.loads(Path("us", "manifest.json").read_text())["totals"]
    seconds /= (span["last_time"] - span["first_time"]) / 1e6
    assert advice["best"]["cpu_ms_per_second"] == pytest.approx(seconds)


def test_bounds_are_rounded_down_to_units(said):
    for text, late in (("0", 0), ("0.002ms", 2), ("1ms", 1000)):
        candidates = json.loads(said("us", "--max-late", text, "--json")[1])["candidates"]
        highest = max(each["lateness_bounds"][1] for each in candidates if each["allowed"])
        assert highest == late
    advice = json.loads(said("unit", "--max-late", "7", "--max-early", "2", "--json")[1])
    bounds = [each["lateness_bounds"] for each in advice["candidates"] if each["allowed"]]
    assert max(high for _, high in bounds) == 7 and min(low for low, _ in bounds) == -2


@pytest.mark.parametrize("name", ["a.svg", "new/deep.png"])
def test_a_chart_is_drawn(said, name, tmp_path):
    path = tmp_path / name
    code, out, _ = said("us", "--chart", path)
    assert code == 0 and out.splitlines()[-1].startswith("chart ")
    assert path.read_bytes().startswith(b"<?xml" if name.endswith("svg") else b"\x89PNG")
    assert list(path.parent.iterdir()) == [path]


def test_the_chart_shows_cost_precision_memory_and_the_front(found):
    found(FIGURES | {"simple-wheel": ([300.0, 320.0], 4_000, 0, True)})
    picture = pareto_picture(search.advise())
    assert "$" not in picture.svg()  # formulas are not parsed
    [axes] = picture.figure.axes
    dots = [dot for dot in axes.collections if len(dot.get_offsets())]
    shown = [(*dot.get_offsets()[0], len(dot.get_facecolor()) > 0) for dot in dots]
    assert shown == [
        (10_000, 100, True),
        (50_000, 50, True),
        (0, 300, False),
        (0, 230, True),
        (10_000, 100, False),  # the ring of the advice
    ]
    assert [dot.get_sizes()[0] / 14 for dot in dots[:-1]] == [12, 12, 2, 1]


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        (["empty"], "empty has no operations, so there is nothing to advise on"),
        (["nowhere"], "nowhere does not exist"),
        (["us", "--memory", "10B"], "no timer as precise as that fits into 10 bytes"),
        (["us", "--memory", "x"], "'x' is not a size, such as 100MB or 64KiB"),
        (["us", "--max-late", "5"], "--max-late: duration '5' is not a number with a unit"),
        (["us", "--max-early", "-1ms"], "--max-early: duration '-1ms' is not a number"),
        (["unit", "--max-late", "1ms"], "--max-late: '1ms' is not an integer"),
        (["unit", "--max-early", "-3"], "--max-early must not be negative, but is -3"),
        (["us", "--objective", "speed"], "'speed' is not one of"),
        (["us", "--chart", "chart.pdf"], "--chart chart.pdf does not end in .svg or .png"),
        (["us", "--chart", "us/manifest.json/a.svg"], "cannot write us/manifest.json/a.svg"),
    ],
)
def test_bad_input_is_one_line(fails, line, problem):
    assert problem in fails(*line)


@pytest.mark.parametrize(
    ("units", "unit", "text"),
    [
        (9_999_999, "us", "10.0\xa0s"),
        (-9_999_999, "us", "-10.0\xa0s"),
        (10_000_000, "us", "10s"),
        (990, "us", "990us"),
        (123_456_789, "unit", "123456789"),
    ],
)
def test_a_lateness_is_rounded_where_nobody_reads_all_its_digits(units, unit, text):
    assert _about(units, unit) == text
