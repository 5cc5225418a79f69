import json
from statistics import median

import pytest

from compare.bench.store import Run, RunError, parameters_json, read_run
from compare.bench.task import TASKS, Task
from reports.statistics import Spread
from reports.summary import Cell, Summary, leaders, summarise
from tests.reports.synthetic import SIZES, contestant_of, defaults, write_synthetic


def key(who):
    return who.timer, parameters_json(who.parameters)


def test_medians_and_spreads_are_those_of_the_samples(run: Run, summary: Summary):
    rows = run.samples.to_pylist()
    cells = [
        (task, who, size, cell)
        for task, by_contestant in summary.cells.items()
        for who, by_size in by_contestant.items()
        for size, cell in by_size.items()
    ]
    for task, who, size, cell in cells:
        samples = sorted(
            row["ns_per_operation"]
            for row in rows
            if (row["operation"], row["driver"], row["timer"], row["parameters"], row["size"])
            == (*task, *key(who), size)
            and row["status"] == "measured"
        )
        if cell.spread is None:
            assert not samples
        else:
            assert cell.spread == (median(samples), samples[0], samples[-1], len(samples))


def test_every_cell_of_the_run_is_there(summary: Summary):
    assert tuple(summary.cells) == TASKS
    assert summary.sizes == SIZES
    for cells in summary.cells.values():
        assert tuple(cells) == summary.contestants
        assert all(tuple(by_size) == SIZES for by_size in cells.values())


def test_counts_are_per_operation(run: Run, summary: Summary):
    row = next(
        row for row in run.counters.to_pylist() if row["counter"] == "refiled" and row["count"]
    )
    counts = summary.counts[Task(row["operation"], row["driver"])]["refiled"]
    found = counts[contestant_of(summary, row["timer"])][row["size"]]
    assert found == row["count"] / row["operations"]


def test_counters_that_are_zero_for_all_are_kept_apart(summary: Summary):
    insert = TASKS[0]
    assert summary.counters(insert) == ["comparisons", "queue_offers"]
    idle = summary.counters(insert, idle=True)
    assert "refiled" in idle
    assert not set(summary.counters(insert)) & set(idle)


def test_what_was_too_long_carries_its_prediction(summary: Summary):
    found = {(where, who.timer): seconds for where, who, seconds in summary.too_long()}
    where = "expiry, clock-driven at N = 1\u202f000\u202f000"
    assert found[where, "unordered-list"] == pytest.approx(600, rel=0.01)
    cell = summary.cells[TASKS[3]][contestant_of(summary, "unordered-list")][1_000_000]
    assert cell.spread is None
    assert cell.level == pytest.approx(600e9 / 1e6, rel=0.01)


def test_the_yardstick_is_the_base(summary: Summary):
    assert summary.base is contestant_of(summary, "delay-queue")


def test_without_the_yardstick_the_first_compiled_timer_is_the_base(tmp_path):
    chosen = [entry for entry in defaults() if entry[0] != "delay-queue"]
    found = summarise(
        read_run(write_synthetic(tmp_path, [*chosen[1:], chosen[0]], sizes=(1000,)))
    ).base
    assert found is not None
    assert found.timer == "simple-wheel"  # not heapq-delay-queue, which stands before it


def test_leaders_are_exact_compiled_and_tied_with_the_fastest(summary: Summary):
    heapq, delay, simple, hashed, cascading = (
        contestant_of(summary, name)
        for name in (
            "heapq-delay-queue",
            "delay-queue",
            "simple-wheel",
            "hashed-wheel",
            "cascading-wheel",
        )
    )

    def cell(*samples):
        return Cell(Spread.of(samples), 0.0, 1)

    cells = {
        heapq: cell(1.0),
        hashed: cell(2.0),
        delay: cell(30.0, 31.0, 32.0),
        simple: cell(10.0, 11.0, 12.0),
        cascading: cell(9.0, 10.5, 11.5),
    }
    assert leaders(cells) == [cascading, simple]
    assert leaders({heapq: cells[heapq], hashed: cells[hashed]}) == [heapq]
    assert leaders({hashed: cells[hashed]}) == [hashed]
    assert leaders({simple: Cell(None, 3.0, 1)}) == []


def test_contestants_say_their_settings_precision_and_engine(tmp_path):
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
    assert [who.full for who in found.contestants] == [
        "hashed-wheel (tick=1, wheel-size=64: 0–1 late)",
        "hashed-wheel (0–100 late)",
        "hierarchical-wheel (tick=10: 0–9 early)",
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
