from importlib import import_module
from pkgutil import iter_modules
from statistics import median

import pytest

from compare.bench.store import Run, read_run
from compare.bench.task import TASKS
from reports import formats, sections
from reports.sections.answer import at_a_glance
from reports.sections.catalogue import SECTIONS
from reports.sections.catalogue import sections as made
from reports.sections.limits import limits
from reports.sections.method import method, too_long
from reports.sections.schemes import advice, behaviour
from reports.sections.times import times
from reports.sections.work import work
from reports.sections.workloads import replays
from reports.summary import Summary, summarise
from tests.reports.synthetic import WORKLOADS, defaults, entry, write_synthetic


def samples(run: Run, timer, operation, driver, size):
    return [
        row["ns_per_operation"]
        for row in run.samples.to_pylist()
        if (row["timer"], row["operation"], row["driver"], row["size"])
        == (timer, operation, driver, size)
    ]


def test_every_file_of_a_section_is_in_the_table():
    names = [f"reports.sections.{info.name}" for info in iter_modules(sections.__path__)]
    modules = [import_module(name) for name in names]
    found = {module.section for module in modules if hasattr(module, "section")}
    assert found == set(SECTIONS)
    assert len(SECTIONS) == len(found)


def test_sections_without_figures_are_left_out(tmp_path):
    empty = summarise(read_run(write_synthetic(tmp_path, (), sizes=(1000,), workloads=())))
    names = [section.name for section in made(empty)]
    assert names == ["answer", "reading", "schemes", "method", "limits"]


def test_the_terms_of_the_page_are_explained(summary: Summary):
    told = dict(next(section.terms for section in made(summary) if section.name == "reading"))
    assert len(told["Operations"]) == len(TASKS)
    assert any("steady state" in text for text in told["Operations"])
    assert "milliseconds" in told["Unit"][0]
    assert {"N", "Times", "Tick", "Lateness"} <= told.keys()


def test_times_show_median_spread_and_ratio(run: Run, summary: Summary):
    table = times(summary, TASKS[1])
    own, base = (
        samples(run, timer, "cancel", "none", 10_000)
        for timer in ("hierarchical-wheel", "delay-queue")
    )
    found = entry(table, "hierarchical-wheel", formats.size(10_000))
    assert found.text == f"{median(own):.3g} ns"
    assert (
        found.detail
        == f"({formats.time_range(min(own), max(own))}) {median(own) / median(base):.2f}×"
    )
    assert entry(table, "delay-queue", formats.size(10_000)).detail.endswith(" 1.00×")


def test_every_contestant_has_a_row_in_every_table_of_times(summary: Summary):
    for task in TASKS:
        assert [row.timer for row in times(summary, task).rows] == [
            timer for timer, _ in defaults()
        ]


def test_what_was_too_long_says_so_with_its_prediction(summary: Summary):
    found = entry(times(summary, TASKS[3]), "unordered-list", formats.size(1_000_000))
    assert (found.text, found.detail) == ("too long", "10 min predicted")
    found = entry(at_a_glance(summary), "unordered-list", "Expiry, clock-driven")
    assert (found.text, found.detail) == ("too long", "10 min predicted")
    where = "expiry, clock-driven at N = 1\u202f000\u202f000"
    assert f"unordered-list, {where}: too long, 10 min predicted" in too_long(summary)


def test_at_a_glance_marks_the_fastest_exact_timer(summary: Summary):
    table = at_a_glance(summary)
    best = [row.timer for row in table.rows if row.entries[0].best]
    assert best == ["unordered-list"]
    assert entry(table, "hashed-wheel", "fires").text == "0–100 late"
    assert entry(table, "delay-queue", "memory per timer").text == "28.0 B"
    assert all(len(row.entries) == len(table.headings) - 1 for row in table.rows)


def test_work_shows_growth_and_leaves_out_what_is_zero_for_all(summary: Summary):
    table = work(summary, TASKS[4])
    assert table is not None
    assert entry(table, "delay-queue", "comparisons of deadlines").text == "16.9 →\u202f33.9"
    found = entry(table, "unordered-list", "timers looked at")
    assert (found.text, found.detail) == ("500 →\u202f5\u202f000", f"at {formats.size(10_000)}")
    assert "idle calls to advance" not in table.headings
    assert "idle calls to advance" in table.note


def test_replays_show_what_happened(summary: Summary):
    (source, *_) = summary.replays
    table = replays(summary, source)
    assert "20\u202f000 operations" in table.caption
    assert entry(table, "cascading-wheel", "scheduled").text == "10\u202f000"
    late = entry(table, "hashed-wheel", "lateness: least / median / most [ms]").text
    assert late.startswith("1 / ")
    assert late.endswith(" / 100")


def test_traits_are_told_in_full(summary: Summary):
    tables = behaviour(summary), advice(summary)
    for who in summary.contestants:
        rows = [row for table in tables for row in table.rows if row.timer == who.timer]
        text = " ".join(cell.text for row in rows for cell in row.entries)
        for name in ("scheme", "horizon", "jumps", "suits", "drawback", "source"):
            assert who.traits[name] in text
        assert who.traits["due_at"].partition(": ")[2] in text
        for cost in who.traits["costs"] + who.traits["deviations"]:
            assert cost in text


def test_the_method_says_where_and_how(summary: Summary):
    told = dict(method(summary))
    assert told["Command"] == ["wheelwork compare --sizes 1000,10000,100000,1000000"]
    assert told["Code"] == ["commit 0123456789abcdef0123456789abcdef01234567"]
    assert "Example CPU @ 2.60GHz" in told["Machine"]
    assert any("2 cores" in text for text in told["Machine"])
    assert "numba 0.61.0" in told["Versions"]
    assert any(text.startswith("repeats: 5") for text in told["Parameters"])
    assert "checked: every fired row against the oracle" in told["Checks"]
    assert told["Not run"] == too_long(summary)
    assert any("Not compared" in limit for limit in limits(summary))


@pytest.mark.parametrize("repeats", [1, 2, 5])
def test_few_samples_do(tmp_path, repeats):
    summary = summarise(
        read_run(write_synthetic(tmp_path, sizes=(1000,), workloads=WORKLOADS[:1], repeats=repeats))
    )
    found = entry(times(summary, TASKS[0]), "simple-wheel", formats.size(1_000))
    assert found.detail.startswith("(") == (repeats > 1)
