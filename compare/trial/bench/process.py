"""Measure how much a process grows by its timers, beside the bytes that a timer says it holds.

Each timer is filled in a new process, `python -m compare.trial.bench.process LABEL SIZE`, which
prints the growth of its resident memory in bytes: when all room is used, at most while the timer
grows for one more, and after that. Linux only: elsewhere, nothing is measured.
"""

import json
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from compare.trial.bench.measure import Progress, Store
from compare.trial.bench.work import LONGEST_DELAY, UNIT
from compare.trial.replay.contestant import Contestant, contestant
from compare.trial.results.schema import MEMORY, Row, rows_of
from timers.errors import TimerError

STATUS = Path("/proc/self/status")
_CHUNK = 4096  # timers started at a time, so that their deadlines hardly take memory
_SAID = 200  # characters of an error


def resident(field_name: str) -> int:
    """The resident memory in bytes: now ("VmRSS"), or at most so far ("VmHWM")."""
    lines = STATUS.read_text(encoding="ascii").splitlines()
    [line] = [line for line in lines if line.startswith(f"{field_name}:")]
    return int(line.split()[1]) * 1024


def growth_by(label: str, size: int) -> dict[str, int]:
    """Fill a timer in this process, let it grow, and return the growths of the process."""
    kind = contestant(label)
    first = kind.new(UNIT, 0, 1)  # kept, so that the other takes no memory that it leaves
    fill(first, 2 * _CHUNK)  # it has grown
    first.schedule(LONGEST_DELAY)  # like `fill`, it may compile, which takes memory
    before = resident("VmRSS")
    timer = kind.new(UNIT, 0, size)
    fill(timer, size)
    full = resident("VmRSS")
    with suppress(OSError):  # from now on, the peak is that of the growth
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
    timer.schedule(LONGEST_DELAY)
    peak, grown = resident("VmHWM"), resident("VmRSS")
    return {"at_rest": full - before, "at_peak": peak - before, "grown": grown - before}


def fill(timer: Any, size: int) -> None:
    """Start timers with random deadlines."""
    rng = np.random.default_rng(0)
    for first in range(0, size, _CHUNK):
        deadlines = rng.integers(1, LONGEST_DELAY, min(_CHUNK, size - first), dtype=np.int64)
        if hasattr(timer, "schedule_many"):
            timer.schedule_many(deadlines)
        else:
            for deadline in deadlines.tolist():
                timer.schedule(deadline)


def measured(label: str, size: int) -> Mapping[str, int]:
    """`growth_by` in a new process. Raises ProcessFailedError."""
    growths: Mapping[str, int] = in_new_process(__name__, label, size)
    return growths


class ProcessFailedError(TimerError, RuntimeError):
    """A new process took too long, ended with an error or printed no figures. Says which."""


def in_new_process(module: str, *arguments: object, timeout: float = 120.0) -> Any:
    """The JSON that a module prints in a new process. Raises ProcessFailedError."""
    command = [sys.executable, "-m", module, *map(str, arguments)]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, errors="replace", timeout=timeout, check=False
        )
        if done.returncode == 0:
            return json.loads(done.stdout)
    except subprocess.TimeoutExpired:
        raise ProcessFailedError(f"took longer than {timeout:g} s") from None
    except ValueError:
        raise ProcessFailedError("printed no figures") from None
    except OSError as error:
        raise ProcessFailedError(f"could not be started: {error.strerror}") from None
    said = [line.strip() for line in done.stderr.splitlines() if line.strip()]
    if done.returncode < 0:
        raise ProcessFailedError(f"was ended by a signal: {signal.strsignal(-done.returncode)}")
    raise ProcessFailedError(f"failed: {said[-1][:_SAID] if said else f'exit {done.returncode}'}")


@dataclass
class ProcessMemory:
    """Measure the processes of all contestants, and collect rows of the table of results."""

    contestants: Sequence[Contestant]
    size: int  # timers; 0 to measure nothing
    rows: list[Row] = field(default_factory=list, init=False)

    @property
    def steps(self) -> int:
        """The number of calls of `progress` by `run`."""
        return len(self.contestants) if self.size else 0

    @property
    def tasks(self) -> list[str]:
        """The name with which `run` stores rows."""
        return ["process"] if self.size and STATUS.exists() else []

    def run(
        self, progress: Progress = lambda step: None, store: Store = lambda name, rows: None
    ) -> None:
        """Measure."""
        for each in self.contestants:
            progress(f"a process with {each.name}")
            try:
                growths = measured(each.label, self.size)
            except ProcessFailedError as error:
                self.rows.append(
                    Row(each.label, MEMORY, self.size, "process_at_rest", None, None, str(error))
                )
                continue
            figures = {f"process_{at}": grown / self.size for at, grown in growths.items()}
            self.rows += rows_of(each.label, MEMORY, figures, self.size)
        store(self.tasks[0], self.rows)


if __name__ == "__main__":
    print(json.dumps(growth_by(sys.argv[1], int(sys.argv[2]))))
