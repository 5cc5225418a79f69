"""The tests that a mechanical mutant must get past: `python -m tests.mutants.judge FILE`.

Exit status 0 if nothing was noticed. Quick tests come first. `--serve SOCKET` makes a server that
forks for each request, so that the libraries are imported once and not for each of a thousand
mutants; `ask.py` asks it.
"""

import os
import signal
import socket
import sys
import traceback
import warnings
from collections.abc import Callable
from pathlib import Path

import hypothesis
import pytest
from numba.core import config

import tests.conftest  # noqa: F401  # registers the profiles
from tests.mutants.loading import KERNELS
from tests.mutants.product import TESTED_BY
from tests.mutants.trial import import_libraries, interpret_what_is_compiled, run_tests

ALL = (
    "cascading-wheel",
    "simple-wheel",
    "hashed-wheel",
    "hierarchical-wheel",
    "unordered-list",
    "delay-queue",
)
SHARED = {
    "operations": ALL,
    "pool": ALL,
    "handles": ALL,
    "bitmap": ("cascading-wheel", "simple-wheel", "hashed-wheel"),
}
"""Kernel file -> timers that it is judged by; that of the file's own name where it is not here."""

EXAMPLES = 100  # of the state machine for each geometry
TIME_LIMIT_WITH_TESTS = 300.0  # seconds of CPU time for the tests of a file outside the kernels
# Of a server with a mutant; and three times what the tests took without one.
LEAST_TIME_LIMIT = 20.0
TIME_LIMIT = 8.0  # seconds of CPU time for one tape, geometry or file; a mutant may loop for ever
OTHERS = "place or handle or capacity or growth or grow or buffer"
"""What the boundary cases are chosen by: the rest of them is what the machine does at random."""


def judge(file: str, time_limit: float = TIME_LIMIT_WITH_TESTS) -> None:
    """Raise, or leave the process, if any test fails with a file of the product as it is now."""
    path = Path(file)
    if path.parent == KERNELS:
        config.DISABLE_JIT = True
        judge_kernel(path.stem)
    else:
        interpret_what_is_compiled(path.read_text())
        signal.setitimer(signal.ITIMER_PROF, time_limit)
        verdict = run_tests(TESTED_BY[file])
        if not verdict.passed:
            raise AssertionError(verdict.failed)


def judge_kernel(kernel: str) -> None:
    """Raise, or leave the process, if any test of a kernel fails."""
    timers = SHARED.get(kernel, (kernel.replace("_", "-"),))
    from tests.timers.cases import CASES
    from tests.timers.machine import run_machine
    from tests.timers.test_references import STARTS, twins

    cases = [case for case in CASES if case.name in timers]
    if kernel in SHARED:  # one geometry of each; the others differ in what their own kernels do
        cases = list({case.name: case for case in cases}.values())
    few = hypothesis.settings(hypothesis.settings.get_profile("verdict"), max_examples=EXAMPLES)
    for case in cases:
        for start in STARTS:
            within_time_limit(lambda case=case, start=start: twins(case, start, seed=0).run())
    for case in cases:
        within_time_limit(lambda case=case: run_machine(case, few))
    within_time_limit(lambda: run_pytest("test_check"))
    within_time_limit(
        lambda: run_pytest("test_boundary_cases", "-k", f"({' or '.join(timers)}) and ({OTHERS})")
    )
    for name in ("test_due", "test_partial_advance"):
        within_time_limit(lambda name=name: run_pytest(name, "-k", " or ".join(timers)))
    if kernel in SHARED:
        within_time_limit(lambda: run_pytest("test_handles"))
    if kernel == "delay_queue":
        within_time_limit(lambda: run_pytest("test_delay_queue_entries"))


def run_pytest(name: str, *options: str) -> None:
    path = f"tests/timers/{name}.py"
    quiet = [
        "-x",
        "-q",
        "--no-header",
        "--tb=line",
        "-p",
        "no:cacheprovider",
        "-W",
        "ignore",
        "--hypothesis-profile",
    ]
    status = pytest.main([path, *options, *quiet, "verdict"])
    if status != pytest.ExitCode.OK:
        raise AssertionError(f"{path}: {status!r}")


def within_time_limit(run: Callable[[], object]) -> None:
    """Run it; the timer's signal ends the process if it does not come to an end."""
    signal.setitimer(signal.ITIMER_PROF, TIME_LIMIT)
    run()
    signal.setitimer(signal.ITIMER_PROF, 0)


def serve(path: str) -> None:
    """Fork for each name of a file that comes in on the socket, and answer with the exit status of
    the judgement.
    """
    import_libraries()
    time_limits: dict[str, float] = {}
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(path)
        server.listen()
        while True:
            connection, _ = server.accept()
            with connection:
                file = connection.recv(200).decode()
                child = os.fork()
                if child == 0:
                    os._exit(verdict(file, time_limits.get(file, TIME_LIMIT_WITH_TESTS)))
                _, status, usage = os.wait4(child, 0)
                time_limits.setdefault(file, LEAST_TIME_LIMIT + 3 * usage.ru_utime)
                connection.sendall(b"0" if status == 0 else b"1")


def verdict(file: str, time_limit: float = TIME_LIMIT_WITH_TESTS) -> int:
    warnings.simplefilter("error", RuntimeWarning)  # NumPy's overflow warnings
    try:
        judge(file, time_limit)
    except BaseException:  # whatever a broken file raises
        traceback.print_exc(limit=-3)
        return 1
    return 0


if __name__ == "__main__":
    # Mutants follow each other faster than a file's time of change can tell.
    sys.dont_write_bytecode = True
    sys.path.insert(0, str(Path.cwd()))
    if sys.argv[1] == "--serve":
        serve(sys.argv[2])
    else:
        sys.exit(verdict(sys.argv[1]))
