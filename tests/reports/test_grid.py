"""Replayed grids as a report."""

import json
import re

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from compare.cli.main import main
from compare.trial.pipeline.summarise import ABOUT, SCHEMA, SUMMARY
from compare.trial.replay.contestant import contestant
from reports import formats
from reports.charts.catalogue import pictures
from reports.grid import read_grids
from reports.sections.workloads import described
from reports.sections.workloads import table as table_of
from timers.kernels.counters import COUNTERS

TIMERS = (
    "delay-queue",
    "cascading-wheel",
    "hashed-wheel/tick=10",
    "hashed-wheel",
    "heapq-delay-queue",
    "hierarchical-wheel/tick=8",
)
FIGURES = {
    "fired": "fired",
    "still pending": "pending",
    "most pending": "most_pending",
    "median lateness": "lateness_median",
    "p99 lateness": "lateness_p99",
    "p99.9 lateness": "lateness_p999",
}
"""Heading -> column of the figures that only grids have, and some of all."""
ZERO = COUNTERS[-1]
MADE = {
    "created": "2026-01-31T12:00:00+00:00",
    "command": ["wheelwork", "replay"],
    "commit": None,
    "dirty": None,
    "versions": {"wheelwork": "0.1"},
    "machine": {"cpu": "Some CPU", "cores": 2},
    "asked": {"expiries": True, "drained": True, "counting": True},
}


def row(text: str, number: int, workload: str) -> dict:
    timer = contestant(text)
    low, high = timer.rounding("ms").bounds()
    ns = 20.0 * (number + 1)
    counted = timer.engine == "compiled"
    return dict.fromkeys(SCHEMA.names, 0) | {
        "contestant": timer.label,
        "timer": timer.name,
        "settings": json.dumps(timer.settings),
        "engine": timer.engine,
        "workload": workload,
        "source": json.dumps({"kind": "workload", "workload": workload}),
        "unit": "ms",
        "shards": 4,
        "operations": 4000,
        "scheduled": 2000,
        "fired": 500,
        "shard_ns_per_operation_least": ns - 1,
        "shard_ns_per_operation_median": ns,
        "shard_ns_per_operation_most": ns + 2,
        "ns_per_operation": ns,
        "most_pending": 77,
        "nbytes": 4096,
        "lateness_min": low,
        "lateness_median": (low + high) // 2,
        "lateness_p50": (low + high) // 2,
        "lateness_p99": high,
        "lateness_p999": high,
        "lateness_max": high,
        "counters": {**dict.fromkeys(COUNTERS, 400 * number), ZERO: 0} if counted else None,
    }


def store(path, rows, about=MADE):
    table = pa.Table.from_pylist(rows, schema=SCHEMA)
    pq.write_table(table.replace_schema_metadata({ABOUT: json.dumps(about)}), path)
    return path


def write(path, workload="uniform"):
    return store(path, [row(text, number, workload) for number, text in enumerate(TIMERS)])


def test_a_grid_is_shown_like_a_run(tmp_path):
    summary = read_grids(
        [write(tmp_path / "a.parquet"), write(tmp_path / "b.parquet", "keepalive")]
    )
    assert [source.name for source in summary.replays] == ["uniform", "keepalive"]
    assert [timer.full for timer in summary.contestants] == [
        "delay-queue",
        "cascading-wheel",
        "hashed-wheel (tick=10: 0 to 10 late)",
        "hashed-wheel (0 to 100ms late)",
        "heapq-delay-queue (Python loop)",
        "hierarchical-wheel (tick=8: 0 to 7 early)",
    ]
    first = next(iter(summary.replays))
    assert described(first) == "4\u202f000\xa0operations, 2\u202f000\xa0timers, 4\xa0shards"
    shown = table_of(summary)
    time = shown.entry(summary.contestants[0], ("uniform", "time per operation, median [ns]"))
    assert (time.text, time.detail, time.best) == ("20.0", "(19.0–22.0)", True)
    counted = "uniform", "comparisons per operation"
    texts = [shown.entry(timer, counted).text for timer in summary.contestants]
    # The fifth has no kernel that could count.
    assert texts == ["0", "0.1", "0.2", "0.3", "–", "0.5"]
    assert formats.counter_title(ZERO) not in " ".join(shown.choices["figure"])
    assert [picture.name for picture in pictures(summary)["workloads"]] == ["replays", "trade-off"]


def test_each_figure_of_a_grid_is_in_its_place(tmp_path):
    numbers = [name for name in SCHEMA.names if pa.types.is_primitive(SCHEMA.field(name).type)]
    rows = [
        row(text, 0, "uniform")
        | {name: place + 100 * number for place, name in enumerate(numbers, 1)}
        | {"shards": 4, "span": 7, "operations": 9, "counters": None}
        | {"source": json.dumps({"timeout": "3s", "examples": ["left out"]})}
        for number, text in enumerate(TIMERS)
    ]
    summary = read_grids([store(tmp_path / "a", rows, {**MADE, "asked": {"drained": True}})])
    assert (summary.of_shards, summary.manifest["machine"]) == (True, MADE["machine"])
    assert summary.manifest["parameters"] == {"results 1": {"drained": True}}
    another = store(tmp_path / "b", rows, {**MADE, "command": ["wheelwork", "b c"], "asked": {}})
    both = read_grids([tmp_path / "a", another]).manifest["parameters"]
    assert both["results 1"]["command"] == "wheelwork replay"
    assert both["results 2"] == {"created": MADE["created"], "command": "wheelwork 'b c'"}
    [(source, replays)] = summary.replays.items()
    assert (source.unit, source.own, source.details) == (
        "ms",
        True,
        {"operations": 9, "timers": rows[0]["scheduled"], "shards": 4, "span": 7}
        | {"details": {"timeout": "3s"}},
    )
    for stored, replayed in zip(rows, replays.values(), strict=True):
        names = (
            "ns_per_operation",
            *(f"shard_ns_per_operation_{end}" for end in ("least", "most")),
        )
        assert replayed.time[:4] == (*(stored[name] for name in names), 4)
        assert replayed.row == stored
    table = table_of(summary)
    for stored, timer in zip(rows, summary.contestants, strict=True):
        shown = {figure: entry.text for (_, figure), entry in table.rows[timer].items()}
        assert {heading: shown[heading] for heading in FIGURES} == {
            heading: formats.count(stored[name]) for heading, name in FIGURES.items()
        }
        assert shown["memory"] == formats.data_size(stored["nbytes"])


def test_the_trade_off_stands_where_the_figures_say(tmp_path):
    summary = read_grids([write(tmp_path / "a.parquet")])
    _, picture = pictures(summary)["workloads"]
    texts = {mark.who.full: mark.text for mark in picture.marks.values() if mark.text}
    assert texts["cascading-wheel"].startswith("at most 0 ms off: 40.0\xa0ns")
    assert texts["hashed-wheel (0 to 100ms late)"].startswith("at most 100 ms off: 80.0\xa0ns")
    [axes] = picture.figure.axes
    low, high = axes.get_xlim()
    marked = [
        tuple(line.get_xydata()[0])
        for line in axes.lines
        if line.get_marker() not in ("None", "", None)
    ]
    assert sorted(y for _, y in marked) == [20, 40, 60, 80, 100, 120]
    exact = [x for x, _ in marked if abs(x) < 1]
    assert len(set(exact)) == 3  # beside each other
    assert {x for x, _ in marked} - set(exact) == {7, 10, 100}
    assert all(low < x < high for x, _ in marked)


def test_grids_of_one_workload_are_told_apart(tmp_path):
    paths = [write(tmp_path / f"{name}.parquet") for name in "ab"]
    assert [source.name for source in read_grids(paths).replays] == [
        f"uniform, {path}" for path in paths
    ]


def test_a_directory_of_results_has_its_table(tmp_path):
    write(tmp_path / SUMMARY)
    assert len(read_grids([tmp_path]).contestants) == len(TIMERS)


def test_the_page(tmp_path, capsys):
    grids = [str(write(tmp_path / f"{name}.parquet")) for name in "ba"]
    command = ["report", "--replayed", *grids, "--out", str(tmp_path / "page")]
    assert main(command) == 0
    assert capsys.readouterr().out == f"{tmp_path}/page/index.html\n"
    text = (tmp_path / "page" / "index.html").read_text()
    assert json.loads((tmp_path / "page" / "report.json").read_text())["run"] == ", ".join(grids)
    assert (
        "Time per operation against precision" in text
        and "of all shards together" in text
        and "Each timer replays each shard once." in text
    )
    assert "before anything is timed" not in text  # that is true of comparisons alone
    assert main(command) == 0  # replaced


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["nowhere"], r"nowhere does not exist"),
        (["text"], r"text is not a readable Parquet file: "),
        (
            ["foreign"],
            r"foreign is not a table of replayed results; `wheelwork summarise RESULTS` makes one",
        ),
        (["no-rows"], r"no-rows has no rows"),
        (["stranger"], r"no timer is called 'nobody'"),
        (["empty"], r"empty is not a stored replay: it has no manifest\.json"),
        (["good", "--run", "runs"], r"cannot be used together"),
        (["good", "--workload", "uniform"], r"--workload is not used"),
    ],
)
def test_nonsense_is_one_line(tmp_path, monkeypatch, capsys, arguments, said):
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "good")
    (tmp_path / "text").write_text("x")
    pq.write_table(pa.table({"a": [1]}), tmp_path / "foreign")
    table = pq.read_table(write(tmp_path / "stranger"))
    pq.write_table(table.slice(0, 0), tmp_path / "no-rows")
    names = pa.array(["nobody"] * table.num_rows)
    place = table.schema.get_field_index("timer")
    table = table.set_column(place, table.schema.field(place), names)
    pq.write_table(table, tmp_path / "stranger")
    (tmp_path / "empty").mkdir()
    before = sorted(tmp_path.rglob("*"))
    assert main(["report", "--replayed", *arguments]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert re.fullmatch(rf"wheelwork: error: [^\n]*{said}[^\n]*\n", err), err
    assert sorted(tmp_path.rglob("*")) == before
