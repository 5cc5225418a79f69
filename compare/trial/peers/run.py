"""Run a peer: describe it, check it on a tape, and time it. Each failure is one line.

>>> own_peer("delay-queue").describe().rounding.text
'exact'
"""

import os
import selectors
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

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
MOST_OUTPUT = 1 << 26  # bytes of stdout
MOST_ROWS = 1000  # beyond two for each operation, so that a peer that repeats itself is told so
_KEPT_ERRORS = 1 << 16  # bytes of stderr


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
        except (ValueError, RecursionError) as error:
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
                size, most = out.stat().st_size, 8 * _COLUMNS * (2 * tape.time.size + MOST_ROWS)
                if size > most:
                    raise self._error(f"check wrote {size} bytes for {tape.time.size} operations")
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
        except (ValueError, RecursionError) as error:
            raise self._error(f"time: {reason(error)}") from None
        expired = {line.phase: line.expired for line in times}
        for line in times:
            if line.expired != expired[line.phase]:
                raise self._error(
                    f"time: {line.expired} and {expired[line.phase]} timers expired in different"
                    f" rounds of phase {line.phase}"
                )
            counted = sum(line.histogram)
            if line.phase < len(phases) and counted not in (0, line.operations):
                raise self._error(
                    f"time: the histogram of phase {line.phase} has {counted} times; the phase has"
                    f" {line.operations} operations"
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
        try:
            process = subprocess.Popen(
                [*self.command, *arguments],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env={**os.environ, **self.environment},
                start_new_session=True,  # so that what it starts ends with it
            )
        except OSError as error:
            raise self._error(f"cannot be started: {reason(error)}") from None
        output, errors = bytearray(), bytearray()
        with process:
            try:
                ended = _read(process, output, errors, self.timeout)
            finally:
                if process.returncode is None:  # its id is still its own
                    with suppress(ProcessLookupError):
                        os.killpg(process.pid, signal.SIGKILL)
        said = _last_lines(errors)
        if len(output) > MOST_OUTPUT:
            raise self._error(f"{command} printed more than {MOST_OUTPUT} bytes{said}")
        if not ended:
            raise self._error(f"{command} did not end in {self.timeout:g} s{said}")
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


def _read(
    process: "subprocess.Popen[bytes]", output: bytearray, errors: bytearray, seconds: float
) -> bool:
    """Read what a process prints: all of its output, up to MOST_OUTPUT, and the end of its errors.

    Returns whether it ended in time.
    """
    until = time.monotonic() + seconds
    with selectors.DefaultSelector() as selector:
        for pipe, kept in ((process.stdout, output), (process.stderr, errors)):
            assert pipe is not None
            selector.register(pipe, selectors.EVENT_READ, kept)
        while selector.get_map() and len(output) <= MOST_OUTPUT:
            ready = selector.select(max(until - time.monotonic(), 0.0))
            if not ready and time.monotonic() >= until:
                return False
            for key, _ in ready:
                data = os.read(key.fd, 1 << 16)
                if not data:
                    selector.unregister(key.fileobj)
                key.data.extend(data)
                del errors[:-_KEPT_ERRORS]
            if time.monotonic() >= until:
                return False
    if len(output) > MOST_OUTPUT:
        return False  # it may wait for ever to write more
    try:
        process.wait(max(until - time.monotonic(), 0.0))
    except subprocess.TimeoutExpired:
        return False
    return True


def _ending(code: int) -> str:
    if code > 0:
        return f"exits with code {code}"
    with suppress(ValueError):
        return f"was killed by {signal.Signals(-code).name}"
    return f"was killed by signal {-code}"


def _last_lines(errors: bytearray) -> str:
    """The last lines of stderr, as a part of an error."""
    lines = errors.decode(errors="replace").split("\n")
    said = " | ".join([line.strip() for line in lines if line.strip()][-_LAST_LINES:])
    said = "".join(letter if letter.isprintable() else " " for letter in said)
    if len(said) > _LONGEST:
        said = "..." + said[-_LONGEST:]
    return f": {said}" if said else ""
