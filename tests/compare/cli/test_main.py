"""The command: help, commands of others, completion, and small commands."""

import json
import shutil
import signal
import threading
from importlib import metadata

import click
import numpy as np
import pytest

import compare.cli.main
from compare.cli import printing
from compare.cli.commands.compare import sheets_of
from compare.cli.commands.generate import course, summary
from compare.cli.main import BAD_INPUT, COMMANDS, INTERRUPTED, TERMINATED, cli, main
from compare.cli.text import shown
from compare.traffic.tapes.tape import DTYPES, Tape
from compare.traffic.tapes.trace import open_trace
from compare.traffic.workloads.catalogue import Plan
from compare.trial.results.store import latest_run, read_run
from reports.summary import figures_of
from tests.compare.interrupts import interrupt_when_one_has_ended, terminate
from tests.words import tells
from timers.errors import CapacityError
from timers.registry import names

# ---- the command itself


def test_help_names_every_command(said):
    out = said("--help")[1]
    section = out.partition("Commands:\n")[2].partition("\n\n")[0]
    assert [line.split()[0] for line in section.splitlines()][: len(COMMANDS)] == list(COMMANDS)
    assert said() == (0, out, "")


@pytest.mark.parametrize(
    "command", ["", *COMMANDS, "ingest requests", "ingest touches", "ingest kernel"]
)
def test_the_help_has_80_columns_and_examples_that_can_be_run(said, command):
    """As far as the options of the examples go."""
    code, out, err = said(*command.split(), "--help")
    assert (code, err) == (0, "")
    assert max(map(len, out.splitlines())) <= 80
    assert out.startswith(" ".join(["Usage: wheelwork", *command.split(), ""]))
    lines = [line.split() for line in out.replace("\\\n", "").splitlines()]
    examples = [words for words in lines if words[:1] == ["wheelwork"]]
    assert examples or command in ("timers", "ingest")
    for _, *words in examples:
        group, name = cli, "wheelwork"
        while isinstance(group, click.Group) and words:
            group, name = group.get_command(click.Context(group), words[0]), words.pop(0)
        group.make_context(name, words)


def test_the_version_is_the_distributions(said, monkeypatch):
    monkeypatch.setattr(metadata, "version", {"wheelwork": "7.8"}.__getitem__)
    assert said("--version") == (0, "wheelwork 7.8\n", "")


def entry_points(monkeypatch, **targets):
    """Replaces the commands of other distributions."""
    entries = [
        metadata.EntryPoint(name, target, compare.cli.main.GROUP)
        for name, target in targets.items()
    ]

    real = metadata.entry_points

    def select(**which):
        if which.get("group") != compare.cli.main.GROUP:
            return real(**which)
        return [entry for entry in entries if which.get("name", entry.name) == entry.name]

    monkeypatch.setattr(metadata, "entry_points", select)


def test_a_broken_command_of_others_spoils_no_other(said, fails, monkeypatch):
    entry_points(monkeypatch, broken="compare.nowhere", empty="compare.cli.commands")
    code, out, _ = said("--help")
    assert code == 0
    assert out.count("(cannot be loaded)") == 2
    line = fails("broken", "x", "--option")
    assert "the command broken cannot be loaded: No module named 'compare.nowhere'" in line
    assert "compare.cli.commands is not a click command" in fails("empty", "--help")
    assert said("timers")[0] == 0


def test_commands_of_others_come_last_and_replace_none(said, monkeypatch):
    target = "compare.cli.commands.verify:verify"
    entry_points(monkeypatch, zoo=target, replay="no.where", alpha=target, timers="no.where")
    out = said("--help")[1].partition("Commands:\n")[2].partition("\n\n")[0]
    assert [line.split()[0] for line in out.splitlines()] == [*COMMANDS, "alpha", "zoo"]
    assert said("alpha", "--help")[1].startswith("Usage: wheelwork alpha ")
    assert said("timers")[0] == 0


@pytest.mark.parametrize(
    ("error", "code", "says"),
    [
        (KeyboardInterrupt(), INTERRUPTED, "wheelwork: interrupted\n"),
        (
            FileNotFoundError(2, "No such file or directory", "gone"),
            BAD_INPUT,
            "wheelwork: error: gone: No such file or directory\n",
        ),
        (OSError("odd"), BAD_INPUT, "wheelwork: error: odd\n"),
        (MemoryError(), BAD_INPUT, "wheelwork: error: not enough memory: ask for less\n"),
        (CapacityError("two\n lines"), BAD_INPUT, "wheelwork: error: two lines\n"),
    ],
)
def test_what_goes_wrong_is_one_line(said, monkeypatch, error, code, says):
    def fail(name):
        raise error

    monkeypatch.setattr("compare.trial.replay.contestant.contestant", fail)
    assert said("timers") == (code, "", says)


def test_a_termination_leaves_nothing_behind(said, monkeypatch, here):
    first_pieces, begun, handlers = Plan.pieces, threading.Event(), []

    def pieces(plan, number=0):
        if number == 0:
            yield from first_pieces(plan, number)
            return
        begun.set()
        while True:
            yield Tape(*(np.zeros(1 << 17, dtype) for dtype in DTYPES))  # two blocks

    # One shard after the other.
    monkeypatch.setattr("os.sched_getaffinity", lambda pid: {0}, raising=False)
    monkeypatch.setattr("compare.trial.pipeline.generate.make", lambda *_, **__: None)
    monkeypatch.setattr(Plan, "pieces", pieces)
    interrupt_when_one_has_ended(monkeypatch, begun, terminate)
    remove = shutil.rmtree

    def removing(*arguments, **options):
        handlers.append(signal.getsignal(signal.SIGTERM))
        remove(*arguments, **options)

    monkeypatch.setattr("compare.base.files.shutil.rmtree", removing)
    line = "generate uniform --timer-count 5 --shards 2 --out new/t"
    assert said(*line.split()) == (TERMINATED, "", "wheelwork: terminated\n")
    assert list(here.iterdir()) == []
    assert set(handlers) == {signal.SIG_IGN}  # a second one does not stop the cleanup


def test_a_termination_that_a_library_turns_into_an_interrupt_is_one(said, monkeypatch):
    """As a Spark session does, when PySpark fails after an interrupt."""

    def interrupted(*_, **__):
        with pytest.raises(KeyboardInterrupt):
            terminate()
        raise KeyboardInterrupt

    monkeypatch.setattr("compare.trial.pipeline.generate.generate", interrupted)
    line = "generate uniform --timer-count 5 --out new"
    assert said(*line.split()) == (TERMINATED, "", "wheelwork: terminated\n")


def test_missing_packages_are_named_with_their_remedy(fails, monkeypatch):
    missing = "pyspark"

    def fail(name):
        raise ModuleNotFoundError(f"No module named {missing!r}", name=missing)

    monkeypatch.setattr("compare.trial.replay.contestant.contestant", fail)
    installed = {"pyspark": None, "pandas": object()}
    monkeypatch.setattr("compare.spark.session.find_spec", installed.get)
    line = fails("timers")
    assert tells(line, "needs pyspark pip install '.[pipeline]'")
    assert "pandas" not in line
    missing = "a_module_of_another_project"
    with pytest.raises(ModuleNotFoundError):
        main(["timers"])


def test_a_bug_is_not_hidden(monkeypatch):
    monkeypatch.setattr("compare.trial.replay.contestant.contestant", lambda name: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        main(["timers"])


@pytest.mark.parametrize(
    ("words", "completed"),
    [
        ("wheelwork su", ["summarise"]),
        ("wheelwork replay t --timers hashed", ["hashed-wheel"]),
        ("wheelwork compare --timers delay-queue,si", ["delay-queue,simple-wheel"]),
        ("wheelwork generate keep", ["keepalive"]),
        ("wheelwork verify --jso", ["--json"]),
        ("wheelwork inspect --log-format sys", ["syslog", "syslog-bsd"]),
        ("wheelwork ingest touches l --time-format epoch-m", ["epoch-ms"]),
    ],
)
def test_shells_complete_names(said, monkeypatch, words, completed):
    monkeypatch.setenv("_WHEELWORK_COMPLETE", "bash_complete")
    monkeypatch.setenv("COMP_WORDS", words)
    monkeypatch.setenv("COMP_CWORD", str(len(words.split()) - 1))
    code, out, err = said()
    assert (code, err) == (0, "")
    assert [line.partition(",")[2] for line in out.splitlines()] == completed


# ---- timers


def test_timers_are_listed_with_their_traits(said):
    code, out, err = said("timers")
    assert (code, err) == (0, "")
    assert max(map(len, out.splitlines())) <= 80
    listed = [line.split()[0] for line in out.splitlines()[1:] if line[:1].isalpha()]
    assert listed[: len(names())] == names()
    assert "exact at tick 1" in out
    assert "up to 100 late" in out


def test_all_is_told_of_the_timers_that_are_named(said):
    code, out, _ = said("timers", *names())
    assert code == 0
    assert max(map(len, out.splitlines())) <= 80
    for name, text in zip(names(), out.split("\n\n"), strict=True):
        title, *lines = text.splitlines()
        assert title == name
        labels = {line.split()[0] for line in lines}
        assert labels >= {"scheme", "fires", "cost", "horizon", "jumps", "suits", "drawback"}


def test_traits_as_json(said):
    objects = json.loads(said("timers", "--json")[1])
    assert [entry["timer"] for entry in objects] == names()
    (late,) = (entry["lateness_high"] for entry in objects if entry["timer"] == "hashed-wheel")
    assert late == 100


# ---- generate


def test_a_generated_trace_is_the_workload_of_its_seed(said, fails, here):
    options = ["--operations", "1e3", "--seed", "9", "--set", "mean=70", "--out", "t"]
    code, out, err = said("generate", "cancel-heavy", *options)
    assert (code, err) == (0, "")
    trace = open_trace("t")
    assert out == f"{summary(trace, course(trace))}\n"
    assert trace.totals["rows"] == 1000
    assert trace.unit == "ms"
    assert trace.source["seed"] == 9
    assert trace.source["parameters"]["mean"] == 70
    assert "--force" in fails("generate", "uniform", "--timer-count", "5", "--out", "t")
    assert said("generate", "uniform", "--timer-count", "5", "--out", "t", "--force")[0] == 0
    assert open_trace("t").totals["rows"] == 5


# ---- compare


def test_compare_stores_a_run_and_shows_it(said, trace):
    timers = ["delay-queue", "hashed-wheel", "heapq-delay-queue"]
    options = ["--sizes", "20,60", "--operations", "300", "--repeats", "1", "--out", "kept"]
    line = ["compare", trace, "--workload", "uniform", *options, "--timers", ",".join(timers)]
    code, out, err = said(*line)
    assert (code, err) == (0, "")
    path = latest_run("kept")
    run = read_run(path)
    assert run.manifest["command"] == ["wheelwork", *line]
    summary = figures_of(run)
    assert [contestant.label for contestant in summary.contestants] == timers
    assert [source.name for source in summary.sources] == [trace, "uniform"]
    assert out == f"{shown(sheets_of(summary))}\n\nstored in {path}\n"
    printed = json.loads(said(*line, "--json")[1])
    run = read_run(latest_run("kept"))
    assert printed == json.loads(json.dumps(printing.values(figures_of(run), run)))
    code, out, _ = said(*line, "--markdown")
    assert code == 0 and "### Replays: uniform\n\n|  | time per operation, median [ns] |" in out


def test_compare_with_peers_names_those_that_are_missing(said, monkeypatch, tmp_path):
    monkeypatch.setenv("WHEELWORK_PEERS", str(tmp_path / "nothing"))
    options = ["--timers", "delay-queue", "--sizes", "20", "--repeats", "1", "--operations", "100"]
    line = ["compare", "--peers", "python-heapq,cpp-wheel", *options, "--workload", "constant"]
    code, out, err = said(*line)
    assert (code, err) == (0, "")
    assert "\nnot timed: cpp-wheel: " in out
    assert max(map(len, out.splitlines()[:-1])) <= 80
    printed = json.loads(said(*line, "--json")[1])
    heapq, wheel = printed["peers"]
    assert (heapq["name"], heapq["rounding"], heapq["problem"]) == ("python-heapq", "exact", None)
    assert wheel["problem"].startswith(("not built", "needs g++"))
    figures = {
        (figure["contestant"], figure["metric"])
        for figure in printed["figures"]
        if figure["subject"] == "peer hold"
    }
    assert {("python-heapq", "peer_time"), ("delay-queue", "peer_time")} <= figures
    assert ("python-heapq", "single_p999") in figures
