"""SIGTERM and SIGINT end an ingestion soon, wherever it is, and nothing half-done is left.

The logs have no end, or so many shards that the rest of the work would take far longer than the
command may go on.
"""

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="needs Linux")

ROOT = Path(__file__).parents[4]
OPTIONS = ("--time", "t", "--duration", "d", "--timeout", "5s", "--out", "out/trace")
HEADER, ROWS = b"t,d\n", b"1,1\n" * (1 << 16)
SECONDS = 2.0
"""CPU time of a command that goes on after a signal, at most."""
SHARDS = 20_000
PATIENCE = 120.0
"""Seconds until a command is killed that reaches no moment, or does not end."""
MOMENTS = ("opening", "reading", "setting aside", "writing")
CODES = {signal.SIGINT: (130, "interrupted"), signal.SIGTERM: (143, "terminated")}


class Command:
    """A running `wheelwork ingest` in a directory of its own."""

    def __init__(self, directory, log, *options):
        call = [sys.executable, "-m", "compare", "ingest", "requests", str(log), *OPTIONS, *options]
        self.process = subprocess.Popen(
            call,
            cwd=directory,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            stderr=subprocess.PIPE,
            text=True,
        )
        self._killer = threading.Timer(PATIENCE, self.process.kill)

    def __enter__(self):
        self._killer.start()
        return self

    def __exit__(self, *_):
        self._killer.cancel()
        self.process.kill()
        self.process.communicate()

    def until(self, is_reached):
        """Wait for a moment in another process, for which there is no manual clock."""
        while not is_reached():
            assert self.process.poll() is None, self.process.stderr.read()
            time.sleep(0.005)

    def end(self, number):
        """Send a signal; return the exit code, what was said, and the CPU seconds that it took."""
        self.process.send_signal(number)
        before = cpu_of(self.process.pid)
        # The state and the times of a process that has ended can be read until it is waited for.
        os.waitid(os.P_PID, self.process.pid, os.WEXITED | os.WNOWAIT)
        after = cpu_of(self.process.pid)
        complaints = self.process.stderr.read()
        return self.process.wait(), complaints, after - before


def cpu_of(process):
    """The CPU seconds of a process so far."""
    stat = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return sum(map(int, stat[11:13])) / os.sysconf("SC_CLK_TCK")


class Endless:
    """A named pipe whose reader finds more rows at any time."""

    def __init__(self, path):
        os.mkfifo(path)
        self.path, self.rows, self._file, self._feeder = path, 0, None, None

    def is_open(self):
        """Whether the command has opened it for reading."""
        try:
            self._file = os.fdopen(os.open(self.path, os.O_WRONLY | os.O_NONBLOCK), "wb", 0)
        except OSError:  # no reader
            return False
        os.set_blocking(self._file.fileno(), True)
        return True

    def feed(self):
        """Write rows until there is no reader, on a thread."""

        def write():
            try:
                self._file.write(HEADER)
                while True:
                    self._file.write(ROWS)
                    self.rows += 1 << 16
            except BrokenPipeError:
                pass

        self._feeder = threading.Thread(target=write)
        self._feeder.start()

    def close(self):
        """The reader has ended."""
        if self._feeder is not None:
            self._feeder.join()
        self._file.close()


def holds_a_nameless_file(process):
    """Whether rows wait in a temporary file."""
    targets = []
    for link in Path(f"/proc/{process.pid}/fd").iterdir():
        try:
            targets.append(link.readlink())
        except OSError:  # closed meanwhile
            continue
    return any("/out/" in target and target.endswith("(deleted)") for target in map(str, targets))


@pytest.mark.parametrize("number", CODES, ids=lambda number: number.name)
@pytest.mark.parametrize("moment", MOMENTS)
def test_a_signal_ends_an_ingestion_soon(tmp_path, moment, number):
    log = tmp_path / "log"
    if moment == "writing":
        log.write_bytes(HEADER + ROWS[: 4 * SHARDS])
        with Command(tmp_path, log, "--shards", str(SHARDS)) as command:
            command.until(lambda: list(tmp_path.glob("out/.*/run-*/blocks/part-*")))
            code, said, cpu = command.end(number)
    else:
        pipe = Endless(log)
        with Command(tmp_path, log) as command:
            command.until(pipe.is_open)
            if moment == "reading":
                pipe.feed()
                command.until(lambda: pipe.rows > 1 << 20)
            elif moment == "setting aside":
                pipe.feed()
                command.until(lambda: holds_a_nameless_file(command.process))
            code, said, cpu = command.end(number)
        pipe.close()
    wanted, word = CODES[number]
    assert (code, said.splitlines()[-1:]) == (wanted, [f"wheelwork: {word}"])
    assert cpu < SECONDS
    assert [entry.name for entry in tmp_path.iterdir()] == ["log"]  # `out` is gone, too
