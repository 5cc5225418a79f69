"""What an ingestion of many rows takes, and how soon it ends when it is told to.

    python -m tests.bench.bounds [--rows 28e6] [--logs one-time,shuffled] [--moments 8]

Writes logs of short rows: in order, shuffled, all at one time and so pending at once, touches, bad
rows, JSON objects without a value, and requests in two rows. Runs `wheelwork ingest` on each, and
prints its CPU time and the greatest resident memory, which has the shared libraries (Linux). Then
sends SIGTERM or SIGINT at moments spread over the time that it took; prints how long it took to
end at most, and fails if anything is left beside the log.
"""

import argparse
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from itertools import chain, cycle
from pathlib import Path
from typing import NamedTuple

import numpy as np

from compare.base.arguments import count

ROWS = 28_000_000  # of 15 bytes: 400 MiB
_AT_ONCE = 1_000_000
_CHECK = 0.02  # seconds


class Log(NamedTuple):
    """A log: its first line, the lines behind it, and how it is ingested."""

    header: str
    lines: Callable[[int, np.random.Generator], Iterator[str]]  # number of rows, ...
    options: str


def _in_order(rows: int, rng: np.random.Generator) -> Iterator[str]:
    for row in range(rows):
        yield f"{1_700_000_000 + row // 1000},0.{row % 10}\n"


def _shuffled(rows: int, rng: np.random.Generator) -> Iterator[str]:
    for _ in range(0, rows, _AT_ONCE):
        for second in rng.integers(1_700_000_000, 1_700_000_000 + rows, _AT_ONCE).tolist():
            yield f"{second},{second % 9}.5\n"


def _keys(rows: int, rng: np.random.Generator) -> Iterator[str]:
    for row in range(rows):
        yield f"{1_700_000_000 + row // 1000},{row % 997}\n"


def _pairs(rows: int, rng: np.random.Generator) -> Iterator[str]:
    for row in range(rows // 2):
        second = 1_700_000_000 + row // 1000
        yield f"{second},{row},s\n{second + 2},{row},e\n"


def _same(line: str) -> Callable[[int, np.random.Generator], Iterator[str]]:
    return lambda rows, _: (line for _ in range(rows))


_REQUESTS = "requests --time t --duration d --timeout 5s"
LOGS = {
    "in-order": Log("t,d\n", _in_order, _REQUESTS),
    "shuffled": Log("t,d\n", _shuffled, _REQUESTS),
    "one-time": Log("t,d\n", _same("1700000000,0.5\n"), _REQUESTS),
    "touches": Log("t,d\n", _keys, "touches --time t --key d --idle 5s"),
    "bad": Log("t,d\n1700000000,0.5\n", _same("x,y\n"), _REQUESTS),
    "empty": Log('{"t":1700000000,"d":0.5}\n', _same("{}\n"), _REQUESTS),
    "ids": Log(
        "t,i,e\n", _pairs, "requests --time t --id i --event e --starts s --ends e --timeout 5s"
    ),
}


def write(path: Path, log: Log, rows: int) -> None:
    lines = log.lines(rows, np.random.default_rng(0))
    with path.open("w", 1 << 20) as file:
        file.writelines(chain([log.header], lines))


def peak_of(process: int) -> int:
    """The greatest resident memory of a process so far, in KiB; 0 once it has ended."""
    status = Path(f"/proc/{process}/status")
    try:
        lines = dict(line.split(":", 1) for line in status.read_text().splitlines())
        return int(lines["VmHWM"].split()[0])
    except (OSError, KeyError):
        return 0


def command(path: Path, log: Log, out: Path) -> list[str]:
    kind, *options = log.options.split()
    paths = [str(path), *options, "--out", str(out)]
    return [sys.executable, "-m", "compare", "ingest", kind, *paths]


def spent() -> float:
    """The CPU seconds of all processes that have ended."""
    import resource  # not on Windows

    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def measure(call: list[str]) -> tuple[float, float, int]:
    """The wall and the CPU seconds of a process, and its greatest memory in KiB."""
    before, started, peak = spent(), time.perf_counter(), 0
    with subprocess.Popen(call, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as process:
        while process.poll() is None:
            peak = max(peak, peak_of(process.pid))
            time.sleep(_CHECK)
    if process.returncode:
        raise SystemExit(f"{' '.join(call)} ended with {process.returncode}")
    return time.perf_counter() - started, spent() - before, peak


def interrupt(
    call: list[str], out: Path, after: float, number: signal.Signals
) -> tuple[float, float]:
    """The wall and the CPU seconds of a process after a signal; 0 if it has ended before."""
    wall = cpu = 0.0
    before = spent()
    with subprocess.Popen(call, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            process.wait(after)
        except subprocess.TimeoutExpired:
            stat = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
            cpu = -sum(map(int, stat[11:13])) / os.sysconf("SC_CLK_TCK")
            process.send_signal(number)
            started = time.perf_counter()
            process.wait()
            wall = time.perf_counter() - started
            cpu += spent() - before
    if out.exists():  # a trace is there when it is complete
        shutil.rmtree(out)
    if process.returncode not in (0, 128 + number, -number, -signal.SIGINT):
        raise SystemExit(f"{' '.join(call)} ended with {process.returncode} after {number.name}")
    if left := {entry.name for entry in out.parent.iterdir()} - {"log"}:
        raise SystemExit(f"{number.name} after {after:.1f} s has left {left}")
    return wall, cpu


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=count, default=ROWS)
    parser.add_argument("--logs", type=lambda text: text.split(","), default=list(LOGS))
    parser.add_argument("--moments", type=int, default=8, help="signals for each log")
    parser.add_argument("--directory", type=Path, help="parent of the temporary files")
    options = parser.parse_args()
    rows = int(options.rows)
    for name in options.logs:
        log = LOGS[name]
        with tempfile.TemporaryDirectory(dir=options.directory) as directory:
            path, out = Path(directory, "log"), Path(directory, "trace")
            write(path, log, rows)
            call = command(path, log, out)
            wall, cpu, peak = measure(call)
            print(
                f"{name:<9} {rows:>10,} rows: {cpu:5.1f} s of CPU, {peak / 1024:5.0f} MiB", end=""
            )
            shutil.rmtree(out)
            ends, signals = [(0.0, 0.0)], cycle((signal.SIGTERM, signal.SIGINT))
            for moment, number in zip(range(options.moments), signals, strict=False):
                after = wall * (moment + 0.5) / options.moments
                ends.append(interrupt(call, out, after, number))
            longest, most = map(max, zip(*ends, strict=True))
            print(f"; ends within {longest:.2f} s of a signal, {most:.2f} of CPU", flush=True)


if __name__ == "__main__":
    main()
