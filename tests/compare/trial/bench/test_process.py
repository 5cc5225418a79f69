"""The growth of processes, beside the bytes that timers say they hold."""

import pytest

from compare.trial.bench import process
from compare.trial.bench.process import (
    ProcessFailedError,
    ProcessMemory,
    in_new_process,
    measured,
)
from compare.trial.replay.contestant import contestant
from compare.trial.results.schema import MEMORY
from tests.words import one_line
from timers.kernels.pool import STEP

pytestmark = pytest.mark.skipif(not process.STATUS.exists(), reason="resident memory is read there")

SIZE = 1 << 21  # enough for huge pages to matter little


def test_a_process_grows_by_what_its_timer_holds():
    """24 bytes for each timer, and when it has grown, for each of a STEP more."""
    growths = measured("cascading-wheel", SIZE)
    for at, places in (("at_rest", SIZE), ("at_peak", SIZE + STEP), ("grown", SIZE + STEP)):
        assert growths[at] == pytest.approx(24 * places, rel=0.15), at


def test_rows_are_per_timer_and_a_process_that_fails_has_a_reason(monkeypatch):
    growths = {"at_rest": 2400, "at_peak": 7200, "grown": 4800}

    def measured(label, size):
        if label == "simple-wheel":
            raise ProcessFailedError("took longer than 120 s")
        assert (label, size) == ("delay-queue", 100)
        return growths

    monkeypatch.setattr(process, "measured", measured)
    timers = [contestant(name) for name in ("delay-queue", "simple-wheel")]
    bench, stored, steps = ProcessMemory(timers, 100), {}, []
    bench.run(steps.append, stored.__setitem__)
    assert len(steps) == bench.steps and [*stored] == bench.tasks
    assert [tuple(row) for row in bench.rows] == [
        ("delay-queue", MEMORY, 100, f"process_{at}", None, grown / 100, None)
        for at, grown in growths.items()
    ] + [("simple-wheel", MEMORY, 100, "process_at_rest", None, None, "took longer than 120 s")]
    assert ProcessMemory([], 0).tasks == []


def test_a_timer_that_cannot_be_made_says_why():
    with one_line(ProcessFailedError, "failed: .*UnknownTimerError: .*no-such-timer"):
        measured("no-such-timer", 10)


@pytest.mark.parametrize(
    ("program", "reason", "timeout"),
    [
        ("import time; time.sleep(60)", "took longer than 0.1 s", 0.1),
        ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", "ended by a signal: Kill", 60),
        ("print('warming up'); print('{}')", "printed no figures", 60),
        ("raise SystemExit(3)", "failed: exit 3", 60),
        ("print('{'); raise OSError('x' * 999)", "failed: OSError: x{180,200}$", 60),
    ],
)
def test_a_process_that_fails_says_why_in_one_line(program, reason, timeout, tmp_path, monkeypatch):
    tmp_path.joinpath("broken.py").write_text(program)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    with one_line(ProcessFailedError, reason):
        in_new_process("broken", timeout=timeout)
