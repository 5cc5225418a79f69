"""Recording this process, or a program in a process of its own."""

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from compare.base.files import CANNOT_WRITE, errors_as, parents, reason
from compare.traffic.recording import events, recorder
from compare.traffic.tapes.trace import Trace, TraceError, new_target, open_trace
from timers.errors import TimerError

STARTUP = Path(__file__).parent / "startup"
"""The folder of `sitecustomize.py`, which Python imports when it starts."""
DIRECTORY = "WHEELWORK_RECORD"
"""The environment variable by which it is told where to record."""


class RecordingError(TimerError, RuntimeError):
    """A program cannot be recorded."""


@contextmanager
def record(
    path: str | os.PathLike[str],
    *,
    force: bool = False,
    clock: Callable[[], float] = time.monotonic,
) -> Iterator[None]:
    """Record every timer that this process sets in the block as a trace; see docs/recording.md.

    The trace is complete after the block, even if that raises. If the process is killed, the next
    `wheelwork replay` or `report` completes it; in Python, `finish` does. With `force` an
    existing trace is replaced. A forked child is not recorded. `clock` returns seconds.

    Raises RecordingError in a process that is recorded already, and if events could not be written;
    TraceError if the path exists otherwise or cannot be written.
    """
    if recorder.current is not None:
        raise RecordingError(
            f"this process is being recorded in {recorder.current.directory};"
            " a recording cannot contain another one"
        )
    with _directory(path, force) as directory:
        with errors_as(TraceError, f"{CANNOT_WRITE} {path}"):
            recording = recorder.Recorder(str(directory), clock)
        try:
            yield
        finally:
            if recording.close():
                if recording.error is not None:
                    lost = f"{CANNOT_WRITE} all events of {path}: {reason(recording.error)}"
                    raise RecordingError(lost)
                events.finish(directory)


def record_program(
    command: Sequence[str], path: str | os.PathLike[str], *, force: bool = False
) -> tuple[int, Trace]:
    """Run a command, record the first Python process of it, and return its exit code and the trace.

    The code is negative if a signal has ended the program. SIGTERM is passed on to it; SIGINT is
    ignored here, because a terminal sends it to both. In the main thread only. Raises
    RecordingError if the command cannot be run or does not start Python, TraceError as `record`.
    """
    if shutil.which(command[0]) is None:
        raise RecordingError(f"{command[0]!r} is not a program that can be run")
    others = os.environ.get("PYTHONPATH")
    search = str(STARTUP) + (os.pathsep + others if others else "")
    with _directory(path, force) as directory:
        environment = {**os.environ, "PYTHONPATH": search, DIRECTORY: str(directory)}
        with _signals_passed_on() as to:
            try:
                process = subprocess.Popen(command, env=environment)
            except OSError as error:
                raise RecordingError(f"{command[0]} cannot be run: {reason(error)}") from None
            to(process)
            code = process.wait()
        if not (directory / recorder.FILE).exists():
            raise RecordingError(
                f"{command[0]} has ended with code {code}, and nothing was recorded: it is not a"
                " Python program, runs Python with -I, -E or -S, or ended before Python had started"
            )
        events.finish(directory)
    return code, open_trace(path)


@contextmanager
def _directory(path: str | os.PathLike[str], force: bool) -> Iterator[Path]:
    """A directory for a recording, which is removed if nothing is recorded.

    An older recording there is completed first. With `force`, an older trace stays in the directory
    until `finish` replaces it.
    """
    events.finish(path)
    target = new_target(path, force=force)
    with errors_as(TraceError, f"{CANNOT_WRITE} {path}"), parents(target):
        target.mkdir(exist_ok=force)
    try:
        yield target
    finally:
        with suppress(OSError):  # it is not empty
            target.rmdir()


@contextmanager
def _signals_passed_on() -> Iterator[Callable[["subprocess.Popen[bytes]"], None]]:
    """Yield a function that names the process to which SIGTERM is passed on.

    A signal that comes before, while the process starts, is passed on then. SIGINT is ignored.
    """
    programs: list[subprocess.Popen[bytes]] = []
    came: list[int] = []

    def terminate(number: int, _: object) -> None:
        came.append(number)
        for program in programs:
            program.terminate()

    def to(program: "subprocess.Popen[bytes]") -> None:
        programs.append(program)
        if came:
            program.terminate()

    handlers = {
        signal.SIGINT: lambda *_: None,  # not SIG_IGN, which a program that starts would inherit
        signal.SIGTERM: terminate,
    }
    former = {number: signal.signal(number, handler) for number, handler in handlers.items()}
    try:
        yield to
    finally:
        for number, handler in former.items():
            signal.signal(number, handler)
