"""Summaries of replayed grids as a report."""

import json
import re

import pytest

from compare.base import formats
from compare.cli.main import main
from compare.trial.pipeline.summarise import summary_of
from compare.trial.replay.contestant import contestant
from compare.trial.results.metrics import METRICS
from compare.trial.results.schema import rows_of
from compare.trial.results.store import SUMMARY, contestant_entry, read_run
from reports.catalogue import plots, workloads
from reports.charts import pictures
from reports.method import described
from reports.summary import figures_of
from tests.reports.stored import replay_rows, store, store_grid
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
    "most pending": "most_pending",
    "median lateness": "lateness_median",
    "p99 lateness": "lateness_p99",
    "p99.9 lateness": "lateness_p999",
}
"""Heading -> metric of the figures that only grids have, and some of all."""
ZERO = COUNTERS[-1]
SHARDS = 4
MADE = {
    "created": "2026-01-31T12:00:00+00:00",
    "command": ["wheelwork", "replay"],
    "versions": {"wheelwork": "0.1"},
    "machine": {"cpu": "Some CPU", "cores": 2},
    "parameters": {"expiries": True, "drained": True, "counting": True},
    "agreement": {"checked": "every expiry"},
}


def source_of(workload, **changes):
    details = {"kind": "workload", "workload": workload}
    return {
        "name": workload,
        "unit": "ms",
        "shards": SHARDS,
        "operations": 4000,
        "timers": 2000,
        "span": 0,
        "details": details,
        "description": None,
    } | changes


def rows_for(text, number, workload):
    """The time of all shards together is not their median."""
    timer = contestant(text)
    low, high = timer.rounding("ms").bounds()
    ns = 20.0 * (number + 1)
    figures = {"scheduled": 2000, "fired": 500, "pending": 3, "most_pending": 77, "nbytes": 4096}
    figures |= {"lateness_min": low, "lateness_median": (low + high) // 2, "lateness_max": high}
    figures |= {"lateness_p99": high, "lateness_p999": high + 1}
    if timer.engine == "compiled":
        figures |= dict.fromkeys(COUNTERS, number / 10) | {ZERO: 0}
    yield from replay_rows(timer.label, workload, [ns - 1, ns + 1, ns + 1, ns + 2], **figures)
    yield from rows_of(timer.label, workload, {"replay_time": ns})


def write(path, workload="uniform", **manifest):
    rows = [row for n, text in enumerate(TIMERS) for row in rows_for(text, n, workload)]
    entries = [contestant_entry(contestant(text), ["ms"]) for text in TIMERS]
    given = {"contestants": entries, "sources": [source_of(workload)], **MADE, **manifest}
    return store_grid(path, rows, **given)


def read(*paths):
    return figures_of(*map(read_run, paths))


def test_a_grid_is_shown_like_a_run(tmp_path):
    summary = read(write(tmp_path / "a"), write(tmp_path / "b", "keepalive"))
    assert [source.name for source in summary.sources] == ["uniform", "keepalive"]
    assert [timer.full for timer in summary.contestants] == [
        "delay-queue",
        "cascading-wheel",
        "hashed-wheel (tick=10: up to 10 late)",
        "hashed-wheel (up to 100ms late)",
        "heapq-delay-queue (Python loop)",
        "hierarchical-wheel (tick=8: up to 7 early)",
    ]
    first = summary.sources[0]
    assert described(first) == "4\u202f000\xa0operations, 2\u202f000\xa0timers, 4\xa0shards"
    shown = workloads(summary)
    time = shown.entry(summary.contestants[0], ("uniform", "time per operation, median [ns]"))
    assert (time.text, time.detail, time.best) == ("20.0", "(19.0–22.0)", True)
    counted = "uniform", "comparisons per operation"
    texts = [shown.entry(timer, counted).text for timer in summary.contestants]
    # The fifth has no kernel that could count.
    assert texts == ["0", "0.1", "0.2", "0.3", "–", "0.5"]
    assert METRICS[ZERO].title not in " ".join(shown.choices["figure"])
    drawn = pictures(plots(summary))["workloads"]
    assert [picture.name for picture in drawn] == ["replays", "trade-off"]


def test_each_figure_of_a_grid_is_in_its_place(tmp_path):
    path = write(tmp_path / "a", sources=[source_of("uniform", span=4000)])
    summary = read(path)
    assert (summary.of_shards, summary.manifest["machine"]) == (True, MADE["machine"])
    assert summary.manifest["parameters"] == {"results 1": MADE["parameters"]}
    [source] = summary.sources
    assert (source.unit, source.own, source.rate) == ("ms", True, 1000.0)
    table = workloads(summary)
    for number, (text, timer) in enumerate(zip(TIMERS, summary.contestants, strict=True)):
        stored = {row.metric: row.value for row in rows_for(text, number, "") if row.repeat is None}
        shown = {figure: entry.text for (_, figure), entry in table.rows[timer].items()}
        assert {heading: shown[heading] for heading in FIGURES} == {
            heading: formats.count(stored[name]) for heading, name in FIGURES.items()
        }
        assert shown["memory"] == formats.data_size(4096)
        # 1000 operations a second
        assert shown["cost of a second [ms]"] == formats.significant(stored["replay_time"] / 1000)


def test_several_grids_say_how_each_was_made(tmp_path):
    other = {"command": ["wheelwork", "b c"], "parameters": {"drained": False}}
    paths = write(tmp_path / "a"), write(tmp_path / "b", "keepalive", **other)
    parameters = read(*paths).manifest["parameters"]
    assert parameters["results 1"]["command"] == "wheelwork replay"
    made = {"created": MADE["created"], "command": "wheelwork 'b c'", "drained": False}
    assert parameters["results 2"] == made
    assert read(*paths).manifest["agreement"] == MADE["agreement"]
    unchecked = write(tmp_path / "c", "cancel-heavy", agreement={"checked": "not"})
    agreement = read(paths[0], unchecked).manifest["agreement"]
    assert agreement == {"results 1": MADE["agreement"], "results 2": {"checked": "not"}}


def test_bounds_hold_for_the_units_of_all_grids(tmp_path):
    """In microseconds, a tick of 1 ms is not exact."""
    paths = []
    for unit in ("ms", "us"):
        timer = contestant("hierarchical-wheel/tick=1ms")
        paths.append(
            store_grid(
                tmp_path / unit,
                rows_of(timer.label, unit, {"replay_time": 1.0}),
                **MADE | {"contestants": [contestant_entry(timer, [unit])]},
                sources=[source_of(unit, unit=unit)],
            )
        )
    assert [read(path).contestants[0].lateness for path in paths] == [(0, 0), (-999, 0)]
    assert read(*paths).contestants[0].lateness == (-999, 0)


def test_the_trade_off_stands_where_the_figures_say(tmp_path):
    summary = read(write(tmp_path / "a"))
    _, picture = pictures(plots(summary))["workloads"]
    texts = {mark.who.full: mark.text for mark in picture.marks.values() if mark.text}
    assert texts["cascading-wheel"].startswith("at most 0 ms off: 40.0\xa0ns")
    assert texts["hashed-wheel (up to 100ms late)"].startswith("at most 100 ms off: 80.0\xa0ns")
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
    paths = [write(tmp_path / name / SUMMARY) for name in "ab"]
    summary = read(*paths)
    assert [source.name for source in summary.sources] == [
        f"uniform, {path.parent}" for path in paths
    ]
    assert all(len(summary.column("replay_time", s.name)) == 6 for s in summary.sources)


def test_a_directory_of_results_has_its_summary(tmp_path):
    run = summary_of(write(tmp_path / "results" / SUMMARY))
    assert summary_of(tmp_path / "results").rows == run.rows


def test_the_page(tmp_path, capsys):
    grids = [str(write(tmp_path / name)) for name in "ba"]
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
        (["text"], r"text is not a stored replay: it is not a directory"),
        (["empty"], r"empty is not a stored replay: it has no manifest\.json"),
        (["older"], r"has version 5, of an older release; this release reads 6"),
        (["runs/{}"], r"is not a summary of replayed results; show it with --run"),
        (["good", "--run", "runs"], r"cannot be used together"),
        (["good", "--workload", "uniform"], r"--workload is not used"),
    ],
)
def test_nonsense_is_one_line(tmp_path, monkeypatch, capsys, arguments, said):
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "good")
    (tmp_path / "text").write_text("x")
    manifest = write(tmp_path / "older") / "manifest.json"
    manifest.write_text(json.dumps(json.loads(manifest.read_text()) | {"version": 5}))
    (tmp_path / "empty").mkdir()
    run = store(tmp_path / "runs", []).name
    before = sorted(tmp_path.rglob("*"))
    assert main(["report", "--replayed", *(text.format(run) for text in arguments)]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert re.fullmatch(rf"wheelwork: error: [^\n]*{said}[^\n]*\n", err), err
    assert sorted(tmp_path.rglob("*")) == before
