"""Run a peer: describe it, check it on a tape, and time it. Each failure is one line.

>>> own_peer("delay-queue").describe().rounding.text
'exact'
"""

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import IO

import numpy as np

from compare.base.files import reason
from compare.traffic.tapes.flat import write_flat
from compare.traffic.tapes.tape import Tape
from compare.trial.oracle.deliveries import Delivery, Fault, first_fault
from compare.trial.peers.protocol import (
    Description,
    PeerError,
    PhaseTime,
    parse_description,
    parse_times,
)

DEFAULT_TIMEOUT = 60.0  # seconds for one command of a peer
ROUNDS, WARM_UP = 7, 5
_LAST_LINES = 3  # of stderr, in an error
_LONGEST = 300  # characters of these
_COLUMNS = len(Delivery._fields)


@dataclass(frozen=True)
class Peer:
    """A program that speaks the protocol: its command, and the name in messages."""

    command: tuple[str, ...]
    name: str = ""  # by default, the command
    timeout: float = DEFAULT_TIMEOUT  # seconds for one command
    environment: Mapping[str, str] = field(default_factory=dict)  # added to this process's

    @property
    def label(self) -> str:
        """The name in messages."""
        return self.name or " ".join(self.command)

    def describe(self) -> Description:
        """Ask the peer to describe itself. Raises PeerError."""
        text = self._run("describe")
        try:
            return parse_description(text)
        except ValueError as error:
            raise self._error(f"describe: {reason(error)}") from None

    @cached_property
    def description(self) -> Description:
        """The description, asked for once."""
        return self.describe()

    def check(self, tape: Tape, id_space: int, *, unit: str = "unit") -> Delivery:
        """Let the peer do a tape, and return its expiries. Raises PeerError."""
        with self._tape_file(tape, id_space, unit, (0,)) as path:
            out = path.with_name("out")
            self._run("check", str(path), str(out))
            try:
                data = out.read_bytes()
            except OSError as error:
                raise self._error(f"check wrote no rows: {reason(error)}") from None
        if len(data) % (8 * _COLUMNS):
            raise self._error(f"check wrote {len(data)} bytes, which are not whole rows")
        rows = np.frombuffer(data, "<i8").astype(np.int64).reshape(-1, _COLUMNS)
        return Delivery(*(np.ascontiguousarray(column) for column in rows.T))

    def first_fault(self, tape: Tape, id_space: int) -> Fault | None:
        """Check the peer on a tape; return its first fault, or None. Raises PeerError."""
        rows = self.check(tape, id_space)
        description = self.description
        bounds = description.rounding.bounds(tape)
        return first_fault(tape, id_space, bounds, rows, fifo=description.order == "fifo")

    def time(
        self,
        tape: Tape,
        id_space: int,
        *,
        unit: str = "unit",
        phases: Sequence[int] = (0,),
        rounds: int = ROUNDS,
        warm_up: int = WARM_UP,
        histogram: bool = False,
    ) -> list[PhaseTime]:
        """Time the peer: a row per round and phase, in order; the last phase is the drain.

        With `histogram`, single operations are timed, by a peer that can. Reading the tape is not
        timed. The expiries are counted, and must be as many in each round;
        check the peer on the same tape first. Raises PeerError.
        """
        options = ["--rounds", str(rounds), "--warm-up", str(warm_up)]
        if histogram:
            options += ["--histogram", "1"]
        with self._tape_file(tape, id_space, unit, phases) as path:
            text = self._run("time", str(path), *options)
        try:
            times = parse_times(text, rounds, len(phases))
        except ValueError as error:
            raise self._error(f"time: {reason(error)}") from None
        expired = {line.phase: line.expired for line in times}
        for line in times:
            if line.expired != expired[line.phase]:
                raise self._error(
                    f"time: {line.expired} and {expired[line.phase]} timers expired in different"
                    f" rounds of phase {line.phase}"
                )
        return times

    @contextmanager
    def _tape_file(
        self, tape: Tape, id_space: int, unit: str, phases: Sequence[int]
    ) -> Iterator[Path]:
        with tempfile.TemporaryDirectory(prefix="wheelwork-") as directory:
            path = Path(directory, "shard.tape")
            write_flat(path, tape, id_space=id_space, unit=unit, phases=phases)
            yield path

    def _run(self, *arguments: str) -> str:
        """Run a command of the peer, and return its standard output."""
        command = arguments[0]
        with tempfile.TemporaryFile() as errors:
            try:
                process = subprocess.Popen(
                    [*self.command, *arguments],
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.PIPE,
                    stderr=errors,
                    env={**os.environ, **self.environment},
                    start_new_session=True,  # so that what it starts ends with it
                )
            except OSError as error:
                raise self._error(f"cannot be started: {reason(error)}") from None
            try:
                output, _ = process.communicate(timeout=self.timeout)
            except subprocess.TimeoutExpired:
                _kill(process)
                said = _last_lines(errors)
                raise self._error(f"{command} did not end in {self.timeout:g} s{said}") from None
            except BaseException:
                _kill(process)
                raise
            said = _last_lines(errors)
        if process.returncode:
            raise self._error(f"{command} {_ending(process.returncode)}{said}")
        try:
            return output.decode()
        except UnicodeDecodeError:
            raise self._error(f"{command} printed bytes that are not UTF-8{said}") from None

    def _error(self, problem: str) -> PeerError:
        return PeerError(f"{self.label}: {problem}")


def own_peer(contestant: str, timeout: float = DEFAULT_TIMEOUT) -> Peer:
    """One of the project's own timers as a peer; see `compare.trial.peers.wheelwork`."""
    command = (sys.executable, "-m", "compare.trial.peers.wheelwork", contestant)
    return Peer(command, contestant, timeout)


def _kill(process: "subprocess.Popen[bytes]") -> None:
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.communicate()


def _ending(code: int) -> str:
    if code > 0:
        return f"exits with code {code}"
    with suppress(ValueError):
        return f"was killed by {signal.Signals(-code).name}"
    return f"was killed by signal {-code}"


def _last_lines(errors: IO[bytes]) -> str:
    """The last lines of stderr, as a part of an error."""
    errors.seek(0)
    lines = errors.read()[-(1 << 16) :].decode(errors="replace").split("\n")
    said = " | ".join([line.strip() for line in lines if line.strip()][-_LAST_LINES:])
    if len(said) > _LONGEST:
        said = "..." + said[-_LONGEST:]
    return f": {said}" if said else ""
