"""Measure the rows of the table on two sides, in turns, within a time."""

import json
import os
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

from .ratios import ABSENT, LEAST, NO_TIME, Result, Turns
from .row import Row

FOLDER = Path(__file__).parents[1]  # the worker runs in it
TURN = 0.01  # seconds of CPU in a turn, at least,
LONGEST = 0.1  # unless it lasts that long, since an operation sleeps
FEWEST, MOST = 2, 21  # turns of each side; there are at least LEAST, unless the time is short
PAIRS = 3  # of processes, until a row is said to be slower
FIRST_LOOK = 0.7  # of the time; the rest is for a second look at rows that seem slower
ANSWER, COMPILING = 60.0, 300.0  # seconds after which a worker is said to hang


class WorkerError(Exception):
    """A side cannot perform an operation; the side's `reason` says why."""


class Turn(NamedTuple):
    """Seconds that a turn took."""

    cpu: float
    duration: float


class Side:
    """One commit: a worker in its environment, which is started when it is needed."""

    def __init__(self, command: Sequence[str], environment: Mapping[str, str]) -> None:
        self._command, self._environment = command, environment
        self._worker: subprocess.Popen[str] | None = None
        self.reason = ""  # why the operation that was opened last cannot be performed

    def where(self) -> str:
        """Return the file that `timers` is imported from."""
        return str(self._ask("where")["where"])

    def open(self, row: Row, size: int, patience: float = ANSWER) -> None:
        """Prepare an operation."""
        self.reason = ""
        self._ask(f"open {row.name}\t{size}", patience)

    def turn(self, count: int, patience: float = ANSWER) -> Turn:
        """Perform it `count` times."""
        return Turn(**self._ask(f"turn {count}", patience))

    def close(self) -> None:
        """Clean up after an operation."""
        self._ask("close")

    def end(self) -> None:
        """End the process; the next operation has another one."""
        worker, self._worker = self._worker, None
        if worker is not None:
            worker.kill()
            worker.communicate()

    def _ask(self, request: str, patience: float = ANSWER) -> Any:
        worker = self._worker = self._worker or subprocess.Popen(
            self._command,
            cwd=FOLDER,
            env=self._environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        assert worker.stdin is not None
        assert worker.stdout is not None
        hung = threading.Event()

        def give_up() -> None:
            hung.set()
            worker.kill()

        guard = threading.Timer(patience, give_up)
        guard.start()
        try:
            with suppress(BrokenPipeError):
                print(request, file=worker.stdin, flush=True)
            line = worker.stdout.readline()
        finally:
            guard.cancel()
        if line:
            answer = json.loads(line)
            self.reason = answer.get("error") or (ABSENT if "absent" in answer else "")
        elif hung.is_set():
            self.reason = f"no answer in {patience:.0f} s"
        else:
            self.reason = f"the process ended with {worker.wait()}"
        if self.reason:
            if self.reason != ABSENT:
                self.end()
            raise WorkerError(self.reason)
        return answer


def side_of(python: str, source: Path | None = None) -> Side:
    """The side of an environment, or of the sources in a folder."""
    kept = {name: text for name, text in os.environ.items() if not name.startswith("PYTHON")}
    # The order of a set of texts is the same on both sides.
    kept |= {"PYTHONHASHSEED": "0"} | ({"PYTHONPATH": str(source)} if source else {})
    return Side([python, "-m", "against.worker"], kept)


class Gate:
    """Measures rows on two sides: that commit and this one."""

    def __init__(
        self,
        there: Side,
        here: Side,
        limit: float,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self._sides = there, here
        self._limit, self._clock = limit, clock
        self._reasons: dict[str, tuple[str, str]] = {}  # of rows that a side cannot perform

    def compile(self, rows: Sequence[Row]) -> Iterator[None]:
        """Perform each row once on each side, which compiles its code and shows what fails."""

        def once(side: Side) -> None:
            side.open(row, row.sizes[0], COMPILING)
            side.turn(1, COMPILING)
            side.close()

        for _, group in groupby(rows, lambda row: row.group):
            for row in group:
                try:
                    self._both(once)
                except WorkerError:
                    self._reasons[row.name] = self._why()
                yield
            self.end()

    def measure(self, rows: Sequence[Row], seconds: float) -> Iterator[Result]:
        """Measure the rows, and then those that seem slower again in other processes.

        Yields each result after its first look, and again if that was not the last. All rows have
        the same share of the time. When those before took longer than theirs, a row has but FEWEST
        turns, so that as many rows as possible are reached. A row that is not reached fails.
        """
        start = self._clock()
        end = start + seconds
        cases = [
            (row, size)
            for row in rows
            for size in (row.sizes[:1] if row.name in self._reasons else row.sizes)
        ]
        left, again = len(cases), []
        for _, group in groupby(cases, lambda case: case[0].group):
            for row, size in group:
                result = Result(row.name, size, row.unit)
                share = (start + FIRST_LOOK * seconds - self._clock()) / left
                left -= 1
                if row.name in self._reasons:
                    result.there, result.here = self._reasons[row.name]
                elif self._clock() < end:
                    self._look(result, row, share)
                else:
                    result.here = NO_TIME
                if result.is_open(self._limit):
                    again.append((row, result))
                yield result
            self.end()
        for place, (row, result) in enumerate(again):
            share = (end - self._clock()) / (len(again) - place)
            for _ in range(PAIRS - 1):
                if result.is_open(self._limit) and self._clock() < end:
                    self._look(result, row, share / 2)
                    self.end()
            yield result

    def _look(self, result: Result, row: Row, share: float) -> None:
        """Add the turns of a pair of processes, or the reasons why there are none."""
        until, turns = self._clock() + share, Turns([], [])
        least = LEAST if share > 0 else FEWEST
        try:
            self._both(lambda side: side.open(row, result.size))
            count = self._count()
            while len(turns.there) < least or (len(turns.there) < MOST and self._clock() < until):
                first = len(turns.there) % 2  # either side is first
                for place in (first, 1 - first):
                    turns[place].append(self._sides[place].turn(count).cpu / count)
            self._both(lambda side: side.close())
        except WorkerError:
            result.there, result.here = self._why()
            self.end()
        else:
            result.pairs.append(turns)

    def _count(self) -> int:
        """How often a turn performs the operation; both have done it as often then."""
        count, there, here = 1, *self._sides
        while True:
            turn = there.turn(count)
            if turn.cpu >= TURN or turn.duration >= LONGEST:
                here.turn(count)
                return count
            growth = min(TURN / max(turn.cpu, 1e-6), LONGEST / max(turn.duration, 1e-6))
            count = max(count + 1, int(count * min(1.1 * growth, 10)))

    def _both(self, ask: Callable[[Side], object]) -> None:
        """Ask both sides at once. Raises WorkerError if one fails, after both have answered."""
        with ThreadPoolExecutor(2) as pool:
            answers = [pool.submit(ask, side) for side in self._sides]
        for answer in answers:
            answer.result()

    def _why(self) -> tuple[str, str]:
        there, here = self._sides
        return there.reason, here.reason

    def end(self) -> None:
        """End the processes."""
        for side in self._sides:
            side.end()
