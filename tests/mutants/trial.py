"""Run tests in a forked child, so that what they import and break ends with it."""

import gc
import importlib
import json
import os
import signal
import sys
from pathlib import Path
from typing import NamedTuple

import pytest
from numba.core import config
from numba.core.registry import cpu_target

from tests.mutants.loading import Finder

TIME_LIMIT = 60.0  # seconds of CPU time for one trial, which may compile; a bug may loop for ever
QUIET = (
    *("-x", "-q", "--no-header", "--tb=no", "-o", "addopts="),
    *("-p", "no:cacheprovider", "-p", "no:xdist", "-W", "ignore", "--assert=plain"),
)
NORMAL = ("-m", "not slow and not cluster and not spark", "--hypothesis-profile", "verdict")


LIBRARIES = (
    "numba.extending",
    "numba.typed",
    "pyarrow.parquet",
    "pandas",
    "matplotlib.figure",
    "matplotlib.backends.backend_agg",
    "jinja2",
    "click.testing",
    "tqdm",
)
"""Imported before the first fork. Nothing of the project is, since a bug may be in any part."""


def import_libraries() -> None:
    """Import what the tests of the product import, for all children at once."""
    for library in LIBRARIES:
        importlib.import_module(library)
    cpu_target.typing_context.refresh()  # Numba's own, of what compiled code may call
    cpu_target.target_context.refresh()
    gc.freeze()  # pytest collects garbage twice as it ends


class Verdict(NamedTuple):
    """What a run of tests came to."""

    passed: bool
    failed: str  # the first test that failed, or what ended the run


class FirstFailure:
    """A pytest plugin that keeps the name of the first test, or file of tests, that failed."""

    def __init__(self) -> None:
        self.name = ""

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self.name = self.name or report.nodeid

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self.name = self.name or f"{report.nodeid} (collecting)"


def interpret_what_is_compiled(source: str) -> None:
    """Turn the JIT off if a changed source is compiled.

    The cache could give the sound function, and compiling takes longer than the tests.
    """
    config.DISABLE_JIT = "from timers.kernels" in source


def run_tests(files: tuple[str, ...]) -> Verdict:
    """Run files of tests in this process."""
    first = FirstFailure()
    status = pytest.main([*files, *QUIET, *NORMAL], plugins=[first])
    return Verdict(status == pytest.ExitCode.OK, first.name or str(status))


def try_bug(file: str, source: str, tests: tuple[str, ...]) -> Verdict:
    """Run tests in a child with the source of one file changed."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        signal.setitimer(signal.ITIMER_PROF, TIME_LIMIT)  # its signal ends the child
        with Path(os.devnull).open("w") as nowhere:
            os.dup2(nowhere.fileno(), 1)
            os.dup2(nowhere.fileno(), 2)
        interpret_what_is_compiled(source)
        sys.meta_path.insert(0, Finder(file, source))
        try:
            verdict = run_tests(tests)
        except BaseException as error:  # whatever a broken module raises
            verdict = Verdict(False, repr(error))
        os.write(writing, json.dumps(verdict).encode())
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as answer:
        text = answer.read()
    os.waitpid(child, 0)
    return Verdict(*json.loads(text)) if text else Verdict(False, "it did not come to an end")
