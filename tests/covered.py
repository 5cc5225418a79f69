"""Which lines of `compare` and `reports` their tests run: a table at the end of `nox -s tests`.

Only what runs in the tests' own processes is seen, not what Spark's workers do. Compiled functions
are left out; the kernels are measured without the JIT, by tests/timers/test_no_jit.py.
"""

import json
import os
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from coverage import Coverage

FOLDER = os.environ.get("COVERAGE_FOLDER", "")
"""Where each process leaves what it has seen; nothing is measured unless it is given."""

KERNELS = "timers-kernels.json"
"""In that folder, the kernels' lines: [run, all]."""

MEASURED = ("tests/compare/", "tests/reports/", "tests/test_", "compare/", "reports/")
"""The tests that are measured. Tracing slows the others down for nothing."""

COMPILED = r"@(entry|jit|inlined)\b"


def new(**options: Any) -> Coverage:
    file = str(Path(FOLDER, "data"))
    return Coverage(file, source=["compare", "reports"], config_file=False, **options)


@contextmanager
def unseen() -> Iterator[None]:
    """Do something without being traced."""
    tracer = sys.gettrace()
    sys.settrace(None)
    try:
        yield
    finally:
        sys.settrace(tracer)


def leave_out_compiling() -> None:
    """Numba compiles, and reads and writes its cache, half as slow again when it is traced."""
    from numba.core.dispatcher import Dispatcher

    traced = Dispatcher.compile

    def compile(self: Any, signature: Any) -> Any:
        with unseen():
            return traced(self, signature)

    Dispatcher.compile = compile


class Covered:
    """What a process that runs tests needs."""

    def __init__(self) -> None:
        self.coverage = new(data_suffix=True)
        self.coverage.start()
        leave_out_compiling()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        # Hypothesis's tests take four times as long, and run the same lines again and again.
        by_hypothesis = getattr(getattr(item, "obj", None), "is_hypothesis_test", False)
        if item.nodeid.startswith(MEASURED) and not by_hypothesis:
            return (yield)
        with unseen():
            return (yield)

    def pytest_sessionfinish(self) -> None:
        self.coverage.stop()
        self.coverage.save()


class Table:
    """What prints the table, after all processes have ended."""

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        run, lines = counted()
        terminalreporter.section("lines that the tests run")
        for folder in sorted(lines):
            share = 100 * run[folder] / lines[folder]
            terminalreporter.write_line(f"{folder:<20} {lines[folder]:>6}  {share:5.1f} %")


def counted() -> tuple[Counter[str], Counter[str]]:
    """The lines that were run, and all lines, by folder."""
    coverage, report = new(), Path(FOLDER, "report.json")
    coverage.exclude(COMPILED)
    coverage.combine([FOLDER])
    coverage.json_report(outfile=str(report))
    run: Counter[str] = Counter()
    lines: Counter[str] = Counter()
    for name, file in json.loads(report.read_text())["files"].items():
        for folder in {str(Path(name).parent), Path(name).parts[0]}:
            run[folder] += file["summary"]["covered_lines"]
            lines[folder] += file["summary"]["num_statements"]
    kernels = Path(FOLDER, KERNELS)
    if kernels.exists():
        run["timers/kernels"], lines["timers/kernels"] = json.loads(kernels.read_text())
    return run, lines
