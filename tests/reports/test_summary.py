import json
from statistics import median

import pytest

from compare.bench.store import Run, RunError, read_run
from compare.bench.task import TASKS, Task
from reports.summary import Cell, Spread, Summary, summarise
from tests.reports.synthetic import SIZES, defaults, write_synthetic


def contestant(summary, timer):
    return next(who for who in summary.contestants if who.timer == timer)


def test_medians_and_spreads_are_those_of_the_samples(run: Run, summary: Summary):
    rows = run.samples.to_pylist()
    for (task, key, size), cell in summary.cells.items():
        samples = sorted(
            row["ns_per_operation"]
            for row in rows
            if (row["operation"], row["driver"], row["timer"], row["parameters"], row["size"])
            == (*task, *key, size)
            and row["status"] == "measured"
        )
        if cell.spread is None:
            assert not samples
        else:
            assert cell.spread == (median(samples), samples[0], samples[-1], len(samples))


def test_every_cell_of_the_run_is_there(summary: Summary):
    assert summary.tasks == TASKS
    assert summary.sizes == SIZES
    assert len(summary.cells) == len(TASKS) * len(SIZES) * len(defaults())


def test_counts_are_per_operation(run: Run, summary: Summary):
    row = next(
        row for row in run.counters.to_pylist() if row["counter"] == "refiled" and row["count"]
    )
    task, key = Task(row["operation"], row["driver"]), (row["timer"], row["parameters"])
    found = summary.counts[task, "refiled", key, row["size"]]
    assert found == row["count"] / row["operations"]


def test_counters_that_are_zero_for_all_are_told_apart(summary: Summary):
    insert = TASKS[0]
    assert summary.counters(insert) == ("comparisons", "queue_offers")
    assert "refiled" in summary.idle_counters(insert)
    assert not set(summary.counters(insert)) & set(summary.idle_counters(insert))


def test_what_was_too_long_carries_its_prediction(summary: Summary):
    found = {(where, who.timer): seconds for where, who, seconds in summary.too_long()}
    where = "expiry, clock-driven at N = 1\u202f000\u202f000"
    assert found[where, "unordered-list"] == pytest.approx(600, rel=0.01)
    cell = summary.cells[TASKS[3], contestant(summary, "unordered-list").key, 1_000_000]
    assert cell.spread is None
    assert cell.level == pytest.approx(600e9 / 1e6, rel=0.01)


def test_the_yardstick_is_the_base(summary: Summary):
    assert summary.base is contestant(summary, "delay-queue")


def test_without_the_yardstick_the_first_compiled_timer_is_the_base(tmp_path):
    chosen = [entry for entry in defaults() if entry[0] != "delay-queue"]
    found = summarise(
        read_run(write_synthetic(tmp_path, [*chosen[1:], chosen[0]], sizes=(1000,)))
    ).base
    assert found is not None
    assert found.timer == "simple-wheel"  # not heapq-delay-queue, which stands before it


def test_leaders_are_exact_compiled_and_level_with_the_fastest(summary: Summary):
    heapq, delay, simple, hashed, cascading = (
        contestant(summary, name)
        for name in (
            "heapq-delay-queue",
            "delay-queue",
            "simple-wheel",
            "hashed-wheel",
            "cascading-wheel",
        )
    )

    def cell(*samples):
        return Cell(Spread.of(samples), None, 1)

    cells = {
        heapq: cell(1.0),
        hashed: cell(2.0),
        delay: cell(30.0, 31.0, 32.0),
        simple: cell(10.0, 11.0, 12.0),
        cascading: cell(9.0, 10.5, 11.5),
    }
    assert summary.leaders(cells) == [cascading, simple]
    assert summary.leaders({heapq: cells[heapq], hashed: cells[hashed]}) == [heapq]
    assert summary.leaders({hashed: cells[hashed]}) == [hashed]
    assert summary.leaders({simple: Cell(None, 3.0, 1)}) == []


def test_contestants_say_what_one_must_know_of_them(tmp_path):
    found = summarise(
        read_run(
            write_synthetic(
                tmp_path,
                [
                    ("hashed-wheel", {"tick": 1, "wheel_size": 64}),
                    ("hashed-wheel", {"tick": 100, "wheel_size": 512}),
                    ("hierarchical-wheel", {"tick": 10, "wheel_size": 20}),
                    ("heapq-delay-queue", {}),
                    ("cascading-wheel", {}),
                ],
                sizes=(1000,),
            )
        )
    )
    assert [who.label.replace("\u202f", " ") for who in found.contestants] == [
        "hashed-wheel (tick 1, wheel size 64: 0–1 late)",
        "hashed-wheel (tick 100, wheel size 512: 0–100 late)",
        "hierarchical-wheel (tick 10: 0–9 early)",
        "heapq-delay-queue (Python loop)",
        "cascading-wheel",
    ]


@pytest.mark.parametrize("damage", ["traits", "sources", "contestant"])
def test_a_damaged_manifest_is_one_line(tmp_path, damage):
    path = write_synthetic(tmp_path, sizes=(1000,))
    manifest = json.loads((path / "manifest.json").read_text())
    if damage == "contestant":
        del manifest["traits"][0]
    else:
        manifest[damage] = [{"nothing": 1}]
    (path / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(RunError) as caught:
        summarise(read_run(path))
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)
