"""`wheelwork record`: programs in processes of their own, and how they end."""

import os
import signal
import subprocess
import sys
import textwrap
from datetime import UTC, datetime
from pathlib import Path

import pytest

from compare.cli.main import BAD_INPUT
from compare.traffic.recording import record, recorder
from compare.traffic.recording.run import RecordingError, record_program
from compare.traffic.tapes.trace import open_trace
from tests.compare.daemons import until
from tests.compare.trial.pipeline.test_full_disk import full
from tests.words import one_line, tells

ROOT = Path(__file__).resolve().parents[4]
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(ROOT)}

SETS_TWO = """
import asyncio, threading
asyncio.run(asyncio.sleep(0.001))
timer = threading.Timer(60, print)
timer.start()
timer.cancel()
"""

WAITS_FOR_FOUR_EVENTS = """
sys.stdout.flush()
while len(open("a.trace/events", "rb").read().partition(b"\\n")[2]) < 4 * 32:
    time.sleep(0.01)
"""

KILLS_ITSELF = """
import asyncio, os, signal, sys, time
signal.alarm(60)  # if nothing is written
if not os.fork():
    os._exit(0)
loop = asyncio.new_event_loop()
file, size = sys.argv[1] + "/events", 0
for _ in range(1000):
    loop.call_later(60, print)
start = os.path.getsize(file)
while os.path.getsize(file) < start + 32 * 1000:
    time.sleep(0.01)
for _ in range(5):
    loop.call_later(60, print)
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.fixture
def run_program(said):
    """Records a program; returns the exit code, stdout, and stderr without the last line."""

    def run(source, *arguments, starts):
        Path("program.py").write_text(textwrap.dedent(source))
        program = ("--", sys.executable, "program.py", *arguments)
        code, printed, err = said("record", "--out", "a.trace", "--force", *program)
        *others, last = err.splitlines()
        assert tells(last, f"recorded {starts} timer a.trace")
        assert ("; warning: only timers of asyncio," in last) == (starts == 0)
        assert open_trace("a.trace").totals["starts"] == starts
        return code, printed, others

    return run


@pytest.mark.parametrize(
    ("end", "code"),
    [
        ("", 0),
        ("raise SystemExit", 0),
        ("sys.exit(3)", 3),
        ("os._exit(200)", 200),
        ("sys.exit(137)", 137),
    ],
)
def test_the_exit_code_and_the_output_are_the_programs(run_program, end, code):
    program = "import os, sys, time\nprint(sys.argv, __name__)\nprint('e', file=sys.stderr)\n"
    waits = WAITS_FOR_FOUR_EVENTS if "_exit" in end else ""
    done = run_program(SETS_TWO + program + waits + end, "--out", "x", starts=2)
    assert done == (code, "['program.py', '--out', 'x'] __main__\n", ["e"])


def test_an_exception_and_an_interrupt(run_program):
    code, _, err = run_program(SETS_TWO + "1/0", starts=2)
    assert (code, err[-1]) == (1, "ZeroDivisionError: division by zero")
    code, _, err = run_program(SETS_TWO + "raise KeyboardInterrupt", starts=2)
    assert (code, err[-1]) == (130, "KeyboardInterrupt")


def test_what_is_set_at_exit_is_recorded(run_program):
    program = "import asyncio, atexit\natexit.register(lambda: asyncio.run(asyncio.sleep(0.001)))"
    assert run_program(program, starts=1) == (0, "", [])


@pytest.mark.cluster
def test_a_program_that_is_killed(said):
    """What it set before the last write is there."""
    Path("program.py").write_text(KILLS_ITSELF)
    command = ("record", "--out", "a.trace", "--", sys.executable, "program.py", "a.trace")
    code, _, err = said(*command)
    starts = open_trace("a.trace").totals["starts"]
    assert code == 128 + signal.SIGKILL
    assert 1000 <= starts <= 1005
    assert tells(err, f"recorded {starts:,} a.trace killed 9 last second may be missing")


@pytest.mark.cluster
def test_everything_is_killed_and_the_first_replay_completes_the_trace(said):
    """Here the block is in the program; `wheelwork record` would leave the same.

    An older trace is there until then.
    """
    with record("a.trace"):
        pass
    Path("program.py").write_text(
        "import sys\nfrom compare.traffic.recording import record\n"
        f"with record(sys.argv[1], force=True):\n{textwrap.indent(KILLS_ITSELF, '    ')}"
    )
    run = [sys.executable, "program.py", "a.trace"]
    assert subprocess.run(run, env=ENVIRONMENT, check=False).returncode == -signal.SIGKILL
    assert open_trace("a.trace").totals["rows"] == 0
    assert Path("a.trace", recorder.FILE).exists()
    code, out, _ = said("replay", "a.trace", "--timers", "delay-queue", "--out", "results")
    assert code == 0
    assert "replayed" in out or "results" in out
    starts = open_trace("a.trace").totals["starts"]
    assert 1000 <= starts <= 1005
    assert [said("verify", "results")[0], said("summarise", "results")[0]] == [0, 0]


def test_report_completes_a_trace(said, monkeypatch):
    """It finds the trace complete when it begins; the comparison itself is tested elsewhere."""
    from compare.trial.bench import run

    directory = Path("a.trace")
    directory.mkdir()
    recorder.Recorder(str(directory)).close()
    seen = []
    monkeypatch.setattr(
        run,
        "run_comparison",
        lambda *given, **_: seen.append(open_trace("a.trace")) or 1 / 0,
    )
    with pytest.raises(ZeroDivisionError):
        said("report", "a.trace")
    assert len(seen) == 1


@pytest.fixture
def begun(here):
    """Records a program in a process of its own; returns that when the program has made a file."""

    def run(source):
        Path("program.py").write_text(source)
        command = [sys.executable, "-m", "compare", "record", "--out", "a.trace"]
        process = subprocess.Popen(
            [*command, "--", sys.executable, "program.py"],
            env=ENVIRONMENT,
            start_new_session=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        until(Path("ready").exists, "the program", process)
        return process

    return run


def test_sigterm_reaches_a_program_that_just_starts(here, monkeypatch):
    class Interrupted(subprocess.Popen):
        def __init__(self, *arguments, **settings):
            super().__init__(*arguments, **settings)
            signal.raise_signal(signal.SIGTERM)

    monkeypatch.setattr(subprocess, "Popen", Interrupted)
    with one_line(RecordingError, "code -15"):
        record_program(["sleep", "1000"], "a.trace")


@pytest.mark.cluster
def test_sigterm_reaches_the_program(begun):
    """Its default handling ends it at once, and leaves the events."""
    # The sleep only keeps the program alive until it is ended.
    process = begun(SETS_TWO + "import time\nopen('ready', 'w').close()\ntime.sleep(100)")
    process.terminate()
    assert process.communicate()[1].startswith("wheelwork: recorded ")
    assert process.returncode == 128 + signal.SIGTERM
    open_trace("a.trace").load()


@pytest.mark.cluster
def test_ctrl_c_reaches_the_program_once(begun):
    """A terminal sends it to both processes; the program goes on, and so does the recording."""
    # A signal just before a long sleep does not end it. The handler is the default one, unless the
    # tests run in the background of a shell, which ignores the signal.
    process = begun(
        "import os, signal, time\nsignal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "try:\n    os.mkdir('ready')\n    while True: time.sleep(0.01)\n"
        "except KeyboardInterrupt:\n    print('interrupted', flush=True)\n" + SETS_TWO
    )
    os.killpg(process.pid, signal.SIGINT)
    out, err = process.communicate()
    assert out == "interrupted\n"
    assert tells(err, "recorded 2 timers a.trace")
    assert process.returncode == 0


def test_the_program_sees_its_own_environment(run_program, monkeypatch):
    shows = """
    import os, sys, threading
    print(os.environ.get("PYTHONPATH"), "WHEELWORK_RECORD" in os.environ)
    print(threading.active_count(), "compare" in sys.modules, "numpy" in sys.modules)
    print("asyncio" in sys.modules, [p for p in sys.path if p.endswith("startup")])
    """
    monkeypatch.delenv("PYTHONPATH", raising=False)
    monkeypatch.setenv("TZ", "XXX9")  # nine hours behind UTC
    before = datetime.now(UTC).isoformat()[: len("2018-03-24T17:15:20")]
    lines = "False\n1 False False\nFalse []\n"
    assert run_program(shows, starts=0) == (0, f"None {lines}", [])
    monkeypatch.setenv("PYTHONPATH", f"a{os.pathsep}b")
    assert run_program(shows, starts=0) == (0, f"a{os.pathsep}b {lines}", [])
    source = open_trace("a.trace").source
    assert source["command"][1:] == ["program.py"]
    assert source["began"] > before


def test_the_programs_own_sitecustomize_is_imported(run_program, monkeypatch, here):
    (here / "site").mkdir()
    (here / "site" / "sitecustomize.py").write_text("import sys\nsys.custom = __file__")
    monkeypatch.setenv("PYTHONPATH", str(here / "site"))
    program = "import sys\nprint(sys.custom, sys.modules['sitecustomize'].__file__)"
    file = here / "site" / "sitecustomize.py"
    assert run_program(program, starts=0) == (0, f"{file} {file}\n", [])


def test_processes_that_the_program_starts_are_not_recorded(run_program):
    """Nor does a warning say that a forking process has a thread (Python 3.12)."""
    program = """
    import asyncio, multiprocessing, os, subprocess, sys, warnings

    def sleep():
        asyncio.run(asyncio.sleep(0.001))

    if __name__ == "__main__":
        warnings.simplefilter("error")
        child = os.fork()
        if not child:
            sleep()
            sys.exit(4)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 4
        for method in ("fork", "spawn"):
            process = multiprocessing.get_context(method).Process(target=sleep)
            process.start()
            process.join()
            assert process.exitcode == 0
        subprocess.run([sys.executable, "-c", "import asyncio; asyncio.run(asyncio.sleep(0.001))"])
        sleep()
    """
    assert run_program(program, starts=1) == (0, "", [])


def test_a_block_in_a_recorded_program_is_refused(run_program):
    program = f"""
    import sys
    sys.path.insert(0, {str(ROOT)!r})
    from compare.traffic.recording import RecordingError, record
    try:
        with record("b.trace"):
            print("twice")
    except RecordingError as error:
        print(str(error).partition(";")[2])
    """
    printed = " a recording cannot contain another one\n"
    assert run_program(program, starts=0) == (0, printed, [])
    assert not Path("b.trace").exists()


def test_modules_scripts_and_wrappers(said, here):
    """What finally runs Python with the environment is recorded, whatever starts it."""
    (here / "mod.py").write_text(SETS_TWO)
    script = here / "script"
    script.write_text(f"#!{sys.executable}\n{SETS_TWO}")
    script.chmod(0o755)
    line = ("record", "--out", "a.trace", "--force", "--")
    python = sys.executable
    for command in (
        [python, "-m", "mod"],
        [python, "-u", "-X", "dev", "mod.py"],
        [python, "-c", SETS_TWO],
        [script],
        ["env", "A=1", script],
        ["sh", "-c", f"{python} mod.py && {python} mod.py"],  # only the first one
    ):
        code, _, err = said(*line, *command)
        assert code == 0, command
        assert tells(err, "recorded 2 timers a.trace"), command


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--out", "a"], "name the program to run, after --: -- python app.py (see"),
        (["--out", "a", "--"], "name the program to run, after --: -- python app.py (see"),
        (["--", sys.executable, "-c", "1"], "missing option '--out'"),
        (["--out", "", "--", "true"], "'' does not name a file or directory"),
        (["--out", "a", "--", "no-such-program"], "'no-such-program' is not a program that can be"),
        (["--out", "a", "--", "./data"], "'./data' is not a program that can be run"),
        (["--out", "a", "--", "./broken"], "./broken cannot be run: No such file or directory"),
        (["--out", "a", "--", "true"], "true has ended with code 0, and nothing was recorded"),
        (["--out", "a", "--", "false"], "false has ended with code 1, and nothing was recorded"),
        (["--out", "a", "--", sys.executable, "-I", "-c", "1"], "with -I, -E or -S"),
        (["--out", "data", "--", "true"], "data exists and is not a trace; choose another path"),
        (["--out", "data/a", "--", "true"], "data is not a directory"),
        (["--out", "old", "--", "true"], "old exists; pass --force"),
        (["--out", "/proc/a", "--", sys.executable, "-c", "1"], "cannot write /proc/a"),
    ],
)
def test_bad_input_is_one_line_and_leaves_nothing(fails, here, arguments, says):
    (here / "data").touch()
    (here / "broken").write_text("#!/no/such/interpreter\n")
    (here / "broken").chmod(0o755)
    (here / "old").mkdir()
    recorder.Recorder(str(here / "old")).close()
    before = sorted(entry.name for entry in here.iterdir())
    assert says in fails("record", *arguments)
    assert sorted(entry.name for entry in here.iterdir()) == before
    assert open_trace("old").totals["rows"] == 0 if "old" in arguments else True


def test_an_older_trace_stays_if_no_event_can_be_written(said, run_program):
    run_program(SETS_TWO, starts=2)
    program = ("--", sys.executable, "-c", "print(5)", "x" * 2000)  # the command is written, too
    with full({}, size=1000):
        code, out, err = said("record", "--out", "a.trace", "--force", *program)
    assert (code, out) == (BAD_INPUT, "5\n")
    assert err.startswith("wheelwork: events cannot be written: File too large\n")
    assert open_trace("a.trace").totals["starts"] == 2


def test_a_recording_that_goes_on_is_not_replayed_or_replaced(fails, here):
    (here / "a.trace").mkdir()
    going_on = recorder.Recorder(str(here / "a.trace"))
    try:
        for line in ("replay a.trace --timers delay-queue", "record --force --out a.trace -- true"):
            assert "a.trace is still being recorded" in fails(*line.split())
    finally:
        going_on.close()
