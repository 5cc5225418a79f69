from statistics import median

import pytest

from compare.bench.store import Run, read_run
from compare.bench.task import TASKS
from reports import style
from reports.findings import answer
from reports.sections import tables
from reports.sections.method import limits, method, too_long
from reports.summary import Summary, summarise
from tests.reports.synthetic import WORKLOADS, defaults, write_synthetic


def samples(run: Run, timer, operation, driver, size):
    return [
        row["ns_per_operation"]
        for row in run.samples.to_pylist()
        if (row["timer"], row["operation"], row["driver"], row["size"])
        == (timer, operation, driver, size)
    ]


def entry(table, timer, column):
    row = next(row for row in table.rows if row.timer == timer)
    return row.entries[list(table.headings).index(column) - 1]


def test_times_show_median_spread_and_ratio(run: Run, summary: Summary):
    table = tables.times(summary, TASKS[1])
    own, base = (
        samples(run, timer, "cancel", "none", 10_000)
        for timer in ("hierarchical-wheel", "delay-queue")
    )
    found = entry(table, "hierarchical-wheel", style.size(10_000))
    assert found.text == f"{median(own):.3g} ns"
    assert (
        found.detail
        == f"({style.short_range(min(own), max(own))}) {median(own) / median(base):.2f}×"
    )
    assert entry(table, "delay-queue", style.size(10_000)).detail.endswith(" 1.00×")


def test_every_contestant_has_a_row_in_every_table_of_times(summary: Summary):
    for task in TASKS:
        assert [row.timer for row in tables.times(summary, task).rows] == [
            timer for timer, _ in defaults()
        ]


def test_what_was_too_long_says_so_with_its_prediction(summary: Summary):
    found = entry(tables.times(summary, TASKS[3]), "unordered-list", style.size(1_000_000))
    assert (found.text, found.detail) == ("too long", "predicted 10 min")
    found = entry(tables.at_a_glance(summary), "unordered-list", "Expiry, clock-driven")
    assert (found.text, found.detail) == ("too long", "predicted 10 min")
    where = "expiry, clock-driven at N = 1\u202f000\u202f000"
    assert f"unordered-list, {where}: too long, predicted 10 min" in too_long(summary)


def test_at_a_glance_marks_the_fastest_exact_timer(summary: Summary):
    table = tables.at_a_glance(summary)
    best = [row.timer for row in table.rows if row.entries[0].best]
    assert best == ["unordered-list"]
    assert entry(table, "hashed-wheel", "fires").text == "0–100 late"
    assert entry(table, "delay-queue", "memory per timer").text == "28.0 B"
    assert all(len(row.entries) == len(table.headings) - 1 for row in table.rows)


def test_work_shows_growth_and_leaves_out_what_is_zero_for_all(summary: Summary):
    table = tables.work(summary, TASKS[4])
    assert table is not None
    assert entry(table, "delay-queue", "comparisons of deadlines").text == "16.9 →\u202f33.9"
    found = entry(table, "unordered-list", "timers looked at")
    assert (found.text, found.detail) == ("500 →\u202f5\u202f000", "at N = 10\u202f000")
    assert "idle calls to advance" not in table.headings
    assert "idle calls to advance" in table.note


def test_replays_show_what_happened(summary: Summary):
    (source, *_) = summary.sources
    table = tables.replays(summary, source)
    assert "20\u202f000 operations" in table.caption
    assert entry(table, "cascading-wheel", "scheduled").text == "10\u202f000"
    late = entry(table, "hashed-wheel", "lateness: least / median / most [ms]").text
    assert late.startswith("1 / ")
    assert late.endswith(" / 100")


def test_traits_are_told_in_full(summary: Summary):
    behaviour, advice = tables.behaviour(summary), tables.advice(summary)
    for who in summary.contestants:
        rows = [row for row in (*behaviour.rows, *advice.rows) if row.timer == who.timer]
        text = " ".join(cell.text for row in rows for cell in row.entries)
        for name in ("scheme", "horizon", "jumps", "suits", "drawback", "source"):
            assert who.traits[name] in text
        assert who.traits["due_at"].partition(": ")[2] in text
        for cost in who.traits["costs"] + who.traits["deviations"]:
            assert cost in text


def test_the_answer_follows_from_the_figures(summary: Summary):
    found = answer(summary)
    assert found.headline.startswith("cascading-wheel is the best all-rounder")
    topics = dict(found.findings)
    assert topics["With 1\u202f000\u202f000 timers pending"][0].startswith(
        "Insert: unordered-list, "
    )
    assert (
        "less precise: hashed-wheel (tick" in topics["With 1\u202f000\u202f000 timers pending"][3]
    )
    assert any(
        text.startswith("unordered-list: expiry, clock-driven takes 9")
        for text in topics["Grows with N"]
    )
    assert any("1–100 ms late on uniform" in text for text in topics["Precision"])


def test_another_run_has_another_answer(tmp_path):
    chosen = [
        (name, parameters)
        for name, parameters in defaults()
        if name in ("delay-queue", "hierarchical-wheel")
    ]
    found = answer(summarise(read_run(write_synthetic(tmp_path, chosen, sizes=(1000,)))))
    assert found.headline.startswith("hierarchical-wheel is the best all-rounder")
    assert "cascading" not in str(found)
    assert "Not run" not in dict(found.findings)


def test_a_single_timer_and_no_workloads_have_an_answer(tmp_path):
    chosen = [("hashed-wheel", {"tick": 100, "wheel_size": 512})]
    summary = summarise(read_run(write_synthetic(tmp_path, chosen, sizes=(1000,), workloads=())))
    assert answer(summary).headline.startswith(
        "hashed-wheel (tick\u202f100: 0–100 late) is the only timer"
    )


def test_an_empty_run_has_an_answer(tmp_path):
    summary = summarise(read_run(write_synthetic(tmp_path, (), sizes=(1000,), workloads=())))
    assert answer(summary).headline == "This run compared nothing."


def test_the_method_says_where_and_how(summary: Summary):
    told = dict(method(summary))
    assert told["Command"] == ["wheelwork compare --sizes 1000,10000,100000,1000000"]
    assert told["Code"] == ["commit 0123456789abcdef0123456789abcdef01234567"]
    assert "Example CPU @ 2.60GHz" in told["Machine"]
    assert any("2 cores" in text for text in told["Machine"])
    assert "numba 0.61.0" in told["Versions"]
    assert any(text.startswith("repeats: 5") for text in told["Chosen"])
    assert len(told["Drivers"]) == len(TASKS)
    assert "checked: every fired row against the oracle" in told["Agreement"]
    assert told["Not run"] == too_long(summary)
    assert any("Not among the rivals" in limit for limit in limits(summary))


@pytest.mark.parametrize("repeats", [1, 2, 5])
def test_few_samples_do(tmp_path, repeats):
    summary = summarise(
        read_run(write_synthetic(tmp_path, sizes=(1000,), workloads=WORKLOADS[:1], repeats=repeats))
    )
    found = entry(tables.times(summary, TASKS[0]), "simple-wheel", style.size(1_000))
    assert found.detail.startswith("(") == (repeats > 1)
