"""The command as a process of its own: imports, streams, encodings, interrupts."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from compare.cli.main import BAD_INPUT, INTERRUPTED
from compare.trial.replay.contestant import PYTHON_LOOP
from tests.compare.conftest import NOTICE

ROOT = Path(__file__).resolve().parents[3]

# With a buffer, as users have it: what could not be written is then still there at the end.
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(ROOT), "COLUMNS": "80", "PYTHONUNBUFFERED": ""}


def spawn(*arguments, **settings):
    """Runs Python in a process of its own."""
    command = [sys.executable, *map(str, arguments)]
    done = subprocess.run(
        command, **{"env": ENVIRONMENT, "capture_output": True, "text": True, **settings}
    )
    done.stderr = done.stderr.replace(NOTICE, "")
    return done


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


def test_a_timer_of_ones_own_is_found_where_one_stands(trace, here):
    (here / "mine.py").write_text(
        "from timers import HeapqDelayQueue\n\nclass Mine(HeapqDelayQueue):\n    pass\n"
    )
    command = ["-m", "compare", "replay", trace, "--timers", "mine:Mine", "--json"]
    done = spawn(*command, cwd=here)
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout)[0]["engine"] == PYTHON_LOOP
