import json
import os
import shutil
import signal
import subprocess
import sys
import threading
from dataclasses import replace
from importlib import metadata
from pathlib import Path

import click
import pytest

import compare.cli.main
from compare.cli import printing
from compare.cli.commands.compare import sheets_of
from compare.cli.commands.generate import course, summary
from compare.cli.commands.verify import MISMATCHES
from compare.cli.main import BAD_INPUT, COMMANDS, INTERRUPTED, TERMINATED, cli, main
from compare.cli.text import shown
from compare.traffic.tapes.tape import joined
from compare.traffic.tapes.trace import open_trace
from compare.traffic.workloads.catalogue import Plan
from compare.trial.bench.comparison import Comparison
from compare.trial.pipeline.results import open_results
from compare.trial.purgatory.options import QUICK, Experiment
from compare.trial.replay.contestant import PYTHON_LOOP
from compare.trial.results.store import latest_run, read_run
from reports.summary import figures_of
from tests.compare.conftest import NOTICE
from tests.compare.interrupts import interrupt_when_one_has_ended, terminate
from tests.words import tells
from timers.errors import CapacityError
from timers.registry import names

ROOT = Path(__file__).resolve().parents[3]
OWN = "tests.compare.own_timers:"
# With a buffer, as users have it: what could not be written is then still there at the end.
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(ROOT), "COLUMNS": "80", "PYTHONUNBUFFERED": ""}


@pytest.fixture
def trace(here):
    line = "generate lognormal-high --timer-count 300 --seed 4 --out some.trace"
    assert main(line.split()) == 0
    return "some.trace"


def spawn(*arguments, **settings):
    """Runs Python in a process of its own."""
    command = [sys.executable, *map(str, arguments)]
    done = subprocess.run(
        command, **{"env": ENVIRONMENT, "capture_output": True, "text": True, **settings}
    )
    done.stderr = done.stderr.replace(NOTICE, "")
    return done


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
            yield joined([])

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


@pytest.mark.parametrize("command", ["", "ingest requests", "inspect", "report"])
def test_help_imports_nothing_heavy(command):
    heavy = {"numba", "pyarrow", "pyspark", "tqdm", "matplotlib"}
    heavy |= set() if command else {"numpy"}
    probe = (
        f"import sys; from compare.cli.main import main; main({[*command.split(), '--help']});"
        f"sys.exit(' '.join({heavy} & set(sys.modules)) or 0)"
    )
    done = spawn("-c", probe)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("arguments", [["--help"], ["timers", "--json"]], ids=" ".join)
def test_a_reader_that_has_seen_enough_is_no_error(arguments):
    process = subprocess.Popen(
        [sys.executable, "-m", "compare", *arguments],
        env=ENVIRONMENT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    process.stdout.close()
    assert process.stderr.read() == b""
    process.stderr.close()
    assert process.wait() == 0


@pytest.mark.parametrize(
    ("closed", "line", "says"),
    [
        ("stdin", "ingest touches - --time t --key k --idle 5s --out o", "error: - is empty"),
        ("stdout", "timers delay-queue", ""),
        ("stderr", "timers delay-queue", ""),
    ],
)
def test_a_closed_stream_is_treated_as_an_empty_one(closed, line, says, here):
    number = ["stdin", "stdout", "stderr"].index(closed)
    command = ["-m", "compare", *line.split()]
    done = spawn(*command, preexec_fn=lambda: os.close(number), cwd=here)
    assert done.returncode == (BAD_INPUT if says else 0)
    assert done.stderr == (f"wheelwork: {says}\n" if says else "")
    assert (done.stdout != "") is (closed == "stderr")
    assert list(here.iterdir()) == []


@pytest.mark.parametrize("package", ["timers", "reports"])
def test_a_package_of_another_distribution_is_named(package, here):
    """`python -m` prefers the current folder, as pip prefers what was installed last."""
    other = here / package / "__init__.py"
    other.parent.mkdir()
    other.touch()
    done = spawn("-m", "compare", "report", "--run", "none", cwd=here)
    assert done.returncode == BAD_INPUT
    assert done.stderr.startswith(
        f"wheelwork: error: the package {package} in {other} is not wheelwork's: "
    )
    assert done.stderr.count("\n") == 1


def test_an_interrupt_during_the_imports_is_one_line():
    interrupted = (
        "import sys; sys.meta_path.insert(0, type('', (), {'find_spec': lambda name, *_: "
        "(_ for _ in ()).throw(KeyboardInterrupt) if name == 'click' else None}));"
        "from compare.__main__ import main; sys.exit(main())"
    )
    done = spawn("-c", interrupted)
    assert (done.returncode, done.stderr) == (INTERRUPTED, "wheelwork: interrupted\n")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a full device")
def test_a_full_disk_is_one_line():
    with Path("/dev/full").open("w") as full:
        done = spawn(
            "-m", "compare", "--help", stdout=full, stderr=subprocess.PIPE, capture_output=False
        )
    assert done.returncode == BAD_INPUT
    assert done.stderr == "wheelwork: error: No space left on device\n"


@pytest.mark.parametrize(
    "settings",
    [{"PYTHONIOENCODING": "ascii"}, {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}],
    ids=["ascii", "C"],
)
def test_a_narrow_encoding_needs_no_traceback(here, settings):
    command = ["-m", "compare", "generate", "uniform", "--timer-count", "5", "--out"]
    keywords = {"env": {**ENVIRONMENT, **settings}, "cwd": here}
    done = spawn(*command, "tr\u00e4ce", **keywords)
    if "LC_ALL" in settings:
        assert done.returncode == BAD_INPUT
        assert done.stderr.endswith(
            "'tr\\udcc3\\udca4ce' is not UTF-8 in this locale; set PYTHONUTF8=1 "
            "(see wheelwork generate --help)\n"
        )
        assert list(here.iterdir()) == []
        assert spawn(*command, "trace", **keywords).returncode == 0
    else:
        assert (done.returncode, done.stderr) == (0, "")
        assert [path.name for path in here.iterdir()] == ["tr\u00e4ce"]


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


def test_a_cold_cache_is_announced_once(here):
    command = ["-m", "compare", "generate", "uniform", "--timer-count", "5", "--out", "t"]
    environment = {**ENVIRONMENT, "NUMBA_CACHE_DIR": str(here / "cache")}
    for expected in (NOTICE, ""):
        done = subprocess.run(
            [sys.executable, *command, "--force"],
            env=environment,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert (done.returncode, done.stderr) == (0, expected)


# ---- timers


def test_timers_are_listed_with_their_traits(said):
    code, out, err = said("timers")
    assert (code, err) == (0, "")
    assert max(map(len, out.splitlines())) <= 80
    listed = [line.split()[0] for line in out.splitlines()[1:] if line[:1].isalpha()]
    assert listed[: len(names())] == names()
    assert "exact at tick 1" in out
    assert "0 to 100 late" in out


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


# ---- replay

RIGHT, LATE = OWN + "Right", OWN + "Late"


@pytest.fixture
def replay(said, trace):
    """Replays the trace; returns the exit code, the objects that are printed, and the messages."""

    def run(*arguments):
        code, out, err = said("replay", trace, "--json", *arguments)
        return code, json.loads(out), err

    return run


def test_a_replay_tells_of_each_timer(replay):
    timers = ["hashed-wheel", RIGHT]
    code, printed, err = replay("--timers", ",".join(timers), "--count", "--out", "stored")
    assert (code, err) == (0, "")
    assert [timer["contestant"] for timer in printed] == timers
    wheel, right = printed
    assert wheel["counters"]
    assert 100 < wheel["lateness"]["min"] <= wheel["lateness"]["max"] <= 100_000  # a tick of 100 ms
    assert (right["engine"], right["counters"]) == (PYTHON_LOOP, None)
    assert right["lateness"] == {"min": 0, "median": 0.0, "max": 0}


def test_a_mismatch_is_told_and_is_an_exit_code(said, replay, trace):
    pair = f"delay-queue,{LATE}"
    code, out, err = said("replay", trace, "--timers", pair)
    assert (code, err) == (MISMATCHES, "")
    numbers = {line.split()[0]: line.split()[1:] for line in out.splitlines() if line}
    assert numbers["delay-queue"] == ["166", "166", "0"]  # must fire, fired, mismatches
    assert f"{LATE}: 166 late" in out
    assert out.count("as the oracle expects") == 1
    assert "late shard 0, operation 2 (id 2, deadline 200028): fired at 200029, due at 200028" in (
        " ".join(out.split())
    )
    code, printed, err = replay("--timers", pair)
    assert (code, [timer["fired"] for timer in printed]) == (MISMATCHES, [166, 166])
    assert f"{LATE}: 166 late" in err


def test_summaries_alone_are_not_checked(said, replay, trace):
    code, out, err = said("replay", trace, "--timers", LATE, "--summaries-only")
    assert (code, err) == (0, "")
    assert "166" in out
    assert "oracle" not in out
    assert replay("--timers", LATE, "--summaries-only")[0] == 0


@pytest.mark.parametrize("kept", ["stored", "not stored"])
def test_results_are_stored_where_they_are_asked_for(said, trace, kept):
    timers = f"hashed-wheel/tick=5ms,{LATE}"
    options = ["--summaries-only"] * (kept == "not stored")
    code, out, err = said("replay", trace, "--timers", timers, "--out", "new/results", *options)
    assert (code, err) == (0, "")  # `verify` would find the mismatches
    results = open_results("new/results", allow=[LATE])
    assert ",".join(timer.label for timer in results.contestants) == timers
    fired = sum(outcome.fired for shards in results.outcomes() for outcome in shards)
    assert tells(out, f"new/results 2 timers 1 shard 434 operations {fired} expiries ({kept})")
    assert ("only summaries" in said("verify", "new/results", "--allow", LATE)[2]) is (
        kept == "not stored"
    )


def test_without_out_nothing_is_left(said, trace, here, monkeypatch):
    (here / "temporary").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(here / "temporary"))
    before = sorted(here.rglob("*"))
    for timer, code in (("delay-queue", 0), (LATE, MISMATCHES), (OWN + "Twice", BAD_INPUT)):
        assert said("replay", trace, "--timers", timer)[0] == code
        assert sorted(here.rglob("*")) == before


def test_a_timer_of_ones_own_is_found_where_one_stands(trace, here):
    (here / "mine.py").write_text(
        "from timers import HeapqDelayQueue\n\nclass Mine(HeapqDelayQueue):\n    pass\n"
    )
    command = ["-m", "compare", "replay", trace, "--timers", "mine:Mine", "--json"]
    done = spawn(*command, cwd=here)
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout)[0]["engine"] == PYTHON_LOOP


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


# ---- bad input

NO_COUNT = "is not a positive whole number, such as 5000 or 1e6"
NO_COUNTS = ("0", "1.5", "nan", "inf", "x", "1e-3", "1.23e1", "1e999", "0x10", "1e", "+", "_1")
NONSENSE = {
    "": {
        "replya": "no command is called 'replya'; did you mean 'replay'? (see wheelwork --help)",
        "xyz": "no command is called 'xyz'; there are timers, generate, inspect, ingest, record,",
        "--jsno": "no such option",
        "ingest": "missing command (see wheelwork ingest --help)",
    },
    "timers": {
        "--jsno": "--json",
        "--js": "no such option",
        "HashedWheel": "no timer is called 'HashedWheel'; did you mean 'hashed-wheel'?",
        "os:path": "'os:path' is not a class",
        ":": "cannot import ':'",
    },
    "generate": {
        "unifrom": "no workload is called 'unifrom'; did you mean 'uniform'?",
    },
    "generate uniform": {
        "--timer-count 5": "name the trace to write: --out TRACE",
        "--out new": "specify --timer-count N or --operations N",
    },
    "generate uniform --out new": {
        "--timer-count 5 --operations 5": "--timer-count and --operations cannot be used together",
        **{
            f"--timer-count {bad}": f"invalid value for '--timer-count': '{bad}' {NO_COUNT}"
            for bad in NO_COUNTS
        },
        "--timer-count=": f"invalid value for '--timer-count': '' {NO_COUNT}",
        "--timer-count=-3": f"invalid value for '--timer-count': '-3' {NO_COUNT}",
        f"--timer-count {'9' * 400}": NO_COUNT,
        "--timer-count 1e10": "timers must lie in [1, 2147483647], not 10000000000",
        "--timer-count 5 --seed -1": "seed must lie in [0, 18446744073709551615], not -1",
        "--timer-count 5 --seed 1.0": "invalid value for '--seed': '1.0' is not an integer",
        "--timer-count 5 --set rate": "'rate' is not a parameter and an integer, such as rate=5",
    },
    "generate uniform --timer-count 5 --out": {
        "a-file": "a-file exists and is not a trace",
        "a-file/below": "cannot write a-file/below",
    },
    "replay": {
        "": "missing argument 'TRACE' (see wheelwork replay --help)",
        "some.trace": "missing option '--timers' (see wheelwork replay --help)",
        "some.trace --timer delay-queue": "no such option",
        "some.trace --timers delay-queue,,": "has an empty name",
        "some.trace --timers delay-queue --out=": "'' does not name a file or directory",
        "some.trace --timers delay-queue --out a-file": "a-file is not a stored replay",
        "some.trace --timers delay-queue --master local": "--master needs --out, a directory",
        "nowhere --timers delay-queue": "nowhere does not exist",
        "a-file --timers delay-queue": "a-file is not a trace",
        ". --timers delay-queue": "is not a trace: it has no manifest.json",
    },
    "replay some.trace --timers": {
        "delay-queue,delay-queue": "timer delay-queue is given 2 times",
        OWN + "Twice": "Twice fired handle",
        OWN + "Asleep": "Asleep has",
    },
    "advise some.trace": {f"--memory {'9' * 400}": "is not a size, such as 100MB or 64KiB"},
    "compare": {
        "nowhere": "nowhere does not exist",
        "--timers delay-queue,": "has an empty name",
        "--sizes 1e3,x": f"'x' {NO_COUNT}",
        "--repeats 0": f"invalid value for '--repeats': '0' {NO_COUNT}",
        **{
            f"--budget={bad}": f"'--budget': '{bad}' is not a positive number of seconds"
            for bad in ("0", "-1", "nan", "inf", "x")
        },
        "--out a-file": "cannot store runs in a-file: a-file is not a directory",
        "--out a-file/runs": "cannot store runs in a-file/runs: a-file is not a directory",
    },
    "purgatory --quick": {
        "--rates 5": "rate must lie in [100, 10000000], not 5",
        "--rates fast": NO_COUNT,
        "--timer no-such": "no timer is called 'no-such'",
        "--refinements -1": "refinements must lie in [0, 10], not -1",
    },
}
"""Command line, its last words -> what the error says."""


@pytest.mark.parametrize(
    ("line", "says"),
    [(f"{start} {end}", says) for start, ends in NONSENSE.items() for end, says in ends.items()],
)
def test_nonsense_is_one_line_and_leaves_nothing(fails, trace, here, line, says):
    (here / "a-file").write_text("mine")
    before = sorted(here.rglob("*"))
    assert says in fails(*line.split())
    assert sorted(here.rglob("*")) == before
    assert (here / "a-file").read_text() == "mine"


# ---- options


GENERATE = "compare.trial.pipeline.generate.generate"
REPLAY = "compare.trial.pipeline.replay.replay_trace"
VERIFY = "compare.trial.pipeline.verify.verify"
SUMMARISE = "compare.trial.pipeline.summarise.summarise"
COMPARE = "compare.trial.bench.run.run_comparison"
PURGATORY = "compare.trial.purgatory.experiment.run_experiment"
REQUESTS = "compare.traffic.logs.ingest.ingest_requests"
TOUCHES = "compare.traffic.logs.ingest.ingest_touches"
GENERATED = {"timers": None, "operations": None, "shards": 1, "seed": 0, "parameters": {}}
WRITTEN = {"force": False, "master": None}
REPLAYED = {"expiries": True, "drained": True, "counting": False, "check": False} | WRITTEN
LOG = "log.csv --time t --out o"
READ = {"time": "t"}
READ_ALL = (
    "--force --shards 3 --log-format tsv --time-format iso --unit us --strict"
    " --master local[2] --delimiter ; --columns a,b"
    " --where a=1 --where b<2 --limit 7 --time-zone Asia/Tokyo"
)
ALL_READ = {
    "time": "t",
    "unit": "us",
    "format": "tsv",
    "delimiter": ";",
    "columns": ("a", "b"),
    "time_format": "iso",
    "shards": 3,
    "strict": True,
    "where": ("a=1", "b<2"),
    "time_zone": "Asia/Tokyo",
    "limit": 7,
    "force": True,
    "master": "local[2]",
}
NO_ID = dict.fromkeys(("id", "event", "starts", "ends"))
ASKED = {"duration": "d", "end": None, "timeout": "5s"} | NO_ID
CALLS = [
    ("generate uniform --timer-count 60 --out o", GENERATE, ("uniform", "o"), {"timers": 60}),
    (
        "generate uniform --operations 90 --shards 3 --seed 4 --set rate=70 --set longest=80"
        " --out o --force --master local[2]",
        GENERATE,
        ("uniform", "o"),
        {"operations": 90, "shards": 3, "seed": 4, "parameters": {"rate": 70, "longest": 80}}
        | {"force": True, "master": "local[2]"},
    ),
    ("replay t --timers a,b --out o", REPLAY, ("t", ("a", "b"), "o"), {}),
    *(
        (f"replay t --timers a --out o {option}", REPLAY, ("t", ("a",), "o"), change)
        for option, change in {
            "--force": {"force": True},
            "--count": {"counting": True},
            "--no-drain": {"drained": False},
            "--summaries-only": {"expiries": False},
            "--master local": {"master": "local"},
        }.items()
    ),
    (
        "verify r",
        VERIFY,
        ("r",),
        {"method": "compiled", "examples": 5, "allow": (), "master": None},
    ),
    (
        "verify r --method sql --examples 7 --master local",
        VERIFY,
        ("r",),
        {"method": "sql", "examples": 7, "allow": (), "master": "local"},
    ),
    ("summarise r", SUMMARISE, ("r", None), {"allow": ()}),
    ("summarise r --out o", SUMMARISE, ("r", "o"), {"allow": ()}),
    ("compare", COMPARE, {}, {}),
    ("compare t", COMPARE, {"traces": ("t",)}, {}),
    ("compare --tails", COMPARE, {"tails": "all"}, {}),
    (
        "compare t u --workload uniform --workload constant --timers a,b --sizes 7,8"
        " --operations 9 --repeats 3 --budget 0.5 --seed 4 --out o",
        COMPARE,
        {
            "traces": ("t", "u"),
            "workloads": ("uniform", "constant"),
            "timers": ("a", "b"),
            "sizes": (7, 8),
            "operations": 9,
            "repeats": 3,
            "budget": 0.5,
            "seed": 4,
            "runs": "o",
        },
        {},
    ),
    ("purgatory", PURGATORY, {}, {}),
    ("purgatory --quick", PURGATORY, {}, {}),
    *(
        (
            f"purgatory{quick} --rates 300,500 --seconds 0.5 --refinements 4 --limits 5000"
            " --memory 7 --repeats 2 --timer delay-queue --seed 9 --out there",
            PURGATORY,
            {
                "rates": (300, 500),
                "seconds": 0.5,
                "refinements": 4,
                "limits": (5000,),
                "memory_mib": 7,
                "repeats": 2,
                "timer": "delay-queue",
                "seed": 9,
                "runs": "there",
            },
            {},
        )
        for quick in ("", " --quick")
    ),
    (
        f"ingest requests {LOG} --duration d --timeout 5s",
        REQUESTS,
        READ,
        ASKED | {"duration_unit": "s", "time_is": "start"},
    ),
    (
        f"ingest requests {LOG} --duration d --timeout 5s --duration-unit ms --time-is end"
        f" {READ_ALL}",
        REQUESTS,
        ALL_READ,
        ASKED | {"duration_unit": "ms", "time_is": "end"},
    ),
    (
        f"ingest requests {LOG} --end e --timeout 5s --pattern x --time-format %d",
        REQUESTS,
        READ | {"pattern": "x", "time_format": "%d"},
        ASKED | {"duration": None, "end": "e", "duration_unit": "s", "time_is": "start"},
    ),
    (
        f"ingest requests {LOG} --id i --event v --starts a --ends z --timeout 5s",
        REQUESTS,
        READ,
        {"duration": None, "end": None, "timeout": "5s", "duration_unit": "s", "time_is": "start"}
        | {"id": "i", "event": "v", "starts": "a", "ends": "z"},
    ),
    (f"ingest touches {LOG} --key k --idle 6s", TOUCHES, READ, {"key": "k", "idle": "6s"}),
]
"""Command line, the function that it calls, and what it hands to it."""


@pytest.mark.parametrize(("line", "target", "given", "named"), CALLS, ids=[c[0] for c in CALLS])
def test_each_option_is_handed_on_as_its_own_argument(
    said, monkeypatch, line, target, given, named
):
    if "ingest" in line:
        from compare.traffic.logs.ingest import LogOptions

        given = (("log.csv",), "o", LogOptions(**given))
    elif target == GENERATE:
        named = GENERATED | WRITTEN | named
    elif target == REPLAY:
        named = REPLAYED | named
    elif target == COMPARE:
        given = (Comparison(**given, command=("wheelwork", *line.split())),)
    elif target == PURGATORY:
        default = QUICK if "--quick" in line else Experiment()
        given = (replace(default, **given, command=("wheelwork", *line.split())),)
    calls = []

    def record(*arguments, **keywords):
        calls.append((arguments, keywords))
        raise KeyboardInterrupt

    monkeypatch.setattr(target, record)
    assert said(*line.split())[0] == INTERRUPTED
    assert calls == [(given, named)]


def test_the_help_of_a_comparison_has_its_defaults(said):
    text = " ".join(said("compare", "--help")[1].split())
    default = Comparison()
    for value in (default.budget, default.repeats, default.operations, default.runs):
        assert f"[default: {value}]" in text
