"""Run a peer: describe it, check it on a tape, and time it. Each failure is one line.

>>> own_peer("delay-queue").describe().rounding.text
'exact'
"""

import ctypes
import os
import selectors
import signal
import stat
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np

from compare.base.files import reason
from compare.base.signals import deferred_signals
from compare.traffic.tapes.flat import write_flat
from compare.traffic.tapes.tape import Tape
from compare.trial.oracle.deliveries import Delivery, Fault, first_fault
from compare.trial.peers.protocol import (
    Description,
    PeerError,
    PeerTimeoutError,
    PhaseTime,
    parse_description,
    parse_times,
)
from compare.trial.peers.threads import Calls
from timers.arrays import Int64s

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
            return Delivery(*self._columns("check", out, tape.time.size))

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

    def threads(
        self,
        tape: Tape,
        id_space: int,
        threads: int,
        *,
        phases: Sequence[int] = (0,),
        rounds: int = 1,
        warm_up: int = 0,
        record: bool = False,
    ) -> tuple[list[PhaseTime], Calls | None]:
        """Let producers do a tape of starts and cancels in real time; a unit is a millisecond.

        With `record`, also returns the calls of the last round, whose times then have two readings
        of the clock in each call. Raises PeerError.
        """
        given = {"--threads": threads, "--rounds": rounds, "--warm-up": warm_up}
        words = [word for name, value in given.items() for word in (name, str(value))]
        with self._tape_file(tape, id_space, "ms", phases) as path:
            out = path.with_name("out")
            words += ["--out", str(out)] if record else []
            text = self._run("threads", str(path), *words)
            calls = Calls(*self._columns("threads", out, tape.time.size)) if record else None
        try:
            return parse_times(text, rounds, len(phases)), calls
        except (ValueError, RecursionError) as error:
            raise self._error(f"threads: {reason(error)}") from None

    def _columns(self, command: str, out: Path, operations: int) -> list[Int64s]:
        """The columns of the rows that the peer wrote."""
        data = self._rows(command, out, operations)
        if len(data) % (8 * _COLUMNS):
            raise self._error(f"{command} wrote {len(data)} bytes, which are not whole rows")
        rows = np.frombuffer(data, "<i8").astype(np.int64).reshape(-1, _COLUMNS)
        return [np.ascontiguousarray(column) for column in rows.T]

    def _rows(self, command: str, out: Path, operations: int) -> bytes:
        """The bytes of the rows, if the peer has left a file of its own in the place of OUT.

        A device or a FIFO would never end, and a link may lead anywhere. What is opened is what is
        looked at and read, whatever a process puts in its place meanwhile.
        """
        most = 8 * _COLUMNS * (2 * operations + MOST_ROWS)
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK
        try:
            if out.is_symlink():
                raise self._error(
                    f"{command} has put a link in the place of OUT; it must write the file"
                )
            with os.fdopen(os.open(out, flags), "rb") as file:
                status = os.fstat(file.fileno())
                if not stat.S_ISREG(status.st_mode) or status.st_uid != os.geteuid():
                    raise self._error(
                        f"{command} has left something else than a file of its own as OUT"
                    )
                if status.st_size > most:
                    raise self._error(
                        f"{command} wrote {status.st_size} bytes for {operations} operations"
                    )
                return file.read(most)
        except OSError as error:
            raise self._error(f"{command} wrote no rows: {reason(error)}") from None

    @contextmanager
    def _tape_file(
        self, tape: Tape, id_space: int, unit: str, phases: Sequence[int]
    ) -> Iterator[Path]:
        # The peer may have made something in it that cannot be removed.
        temporary = tempfile.TemporaryDirectory(prefix="wheelwork-", ignore_cleanup_errors=True)
        with temporary as directory:
            path = Path(directory, "shard.tape")
            write_flat(path, tape, id_space=id_space, unit=unit, phases=phases)
            yield path

    def _run(self, *arguments: str) -> str:
        """Run a command of the peer, and return its standard output."""
        command = arguments[0]
        output, errors = bytearray(), bytearray()
        try:
            with group(
                [*self.command, *arguments],
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env={**os.environ, **self.environment},
            ) as process:
                ended = _read(process, output, errors, self.timeout)
        except OSError as error:
            raise self._error(f"cannot be started: {reason(error)}") from None
        said = _last_lines(errors)
        if len(output) > MOST_OUTPUT:
            raise self._error(f"{command} printed more than {MOST_OUTPUT} bytes{said}")
        if not ended:
            problem = f"{self.label}: {command} did not end in {self.timeout:g} s{said}"
            raise PeerTimeoutError(problem)
        if process.returncode:
            raise self._error(f"{command} {_ending(process.returncode)}{said}")
        try:
            return output.decode()
        except UnicodeDecodeError:
            raise self._error(f"{command} printed bytes that are not UTF-8{said}") from None

    def _error(self, problem: str) -> PeerError:
        return PeerError(f"{self.label}: {problem}")


@contextmanager
def group(command: Sequence[str], **settings: Any) -> "Iterator[subprocess.Popen[bytes]]":
    """Start a program in a process group of its own, which ends with the block.

    So do the processes that it has started, however the block ends. If this process is killed, the
    kernel ends the program. Raises OSError if it cannot be started.
    """
    with deferred_signals() as handle_signals:
        process: subprocess.Popen[bytes] = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            start_new_session=True,
            preexec_fn=partial(_die_with, os.getpid()),
            **settings,
        )
        with process, _killed(process):
            handle_signals()
            yield process


@contextmanager
def _killed(process: "subprocess.Popen[bytes]") -> Iterator[None]:
    """After the block, kill the process and its group."""
    try:
        yield
    finally:
        if process.returncode is None:  # its id is still its own, and that of its group
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)


def has_ended(process: "subprocess.Popen[bytes]") -> bool:
    """Whether a process has ended. It is not reaped, so that its group keeps its id."""
    if not hasattr(os, "waitid"):  # macOS, before Python 3.13
        return process.poll() is not None
    flags = os.WEXITED | os.WNOHANG | os.WNOWAIT
    return os.waitid(os.P_PID, process.pid, flags) is not None


_PR_SET_PDEATHSIG = 1
_LOOK_SECONDS = 0.05  # between two looks whether a process that holds its pipes open has ended

try:
    _prctl: Any = ctypes.CDLL(None).prctl
except (AttributeError, OSError, TypeError):  # only Linux has it
    _prctl = None


def _die_with(parent: int) -> None:
    """Between fork and exec: let the kernel end this process when its parent ends."""
    if _prctl is not None:
        _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:  # it has ended already
            os.kill(os.getpid(), signal.SIGKILL)


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
    until, is_last = time.monotonic() + seconds, False
    with selectors.DefaultSelector() as selector:
        for pipe, kept in ((process.stdout, output), (process.stderr, errors)):
            assert pipe is not None
            selector.register(pipe, selectors.EVENT_READ, kept)
        while selector.get_map() and len(output) <= MOST_OUTPUT:
            ready = selector.select(min(max(until - time.monotonic(), 0.0), _LOOK_SECONDS))
            if not ready and is_last:
                break  # what it has started holds its pipes open
            is_last = not ready and has_ended(process)  # what it printed before is read first
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
    while not has_ended(process):
        if time.monotonic() >= until:
            return False
        time.sleep(_LOOK_SECONDS / 50)
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
