"""Run tests in a forked child with the source of one file changed. Nothing on disk changes."""

import gc
import importlib
import os
import signal
import sys
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, SourceFileLoader
from importlib.util import spec_from_file_location
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

import pytest
from numba.core import config
from numba.core.registry import cpu_target

ROOT = Path(__file__).parents[2]
TIME_LIMIT = 40.0  # seconds of CPU time for one trial: a bug may loop for ever
OPTIONS = (
    *("-x", "-q", "--no-header", "--tb=short", "--assert=plain", "-o", "addopts=", "-W", "ignore"),
    *("-p", "no:cacheprovider", "-p", "no:xdist", "--hypothesis-profile", "verdict"),
    *("-m", "not slow and not cluster and not spark"),
)
LIBRARIES = (
    *("numba.extending", "numba.typed", "pyarrow.parquet", "matplotlib.figure", "click.testing"),
    *("matplotlib.backends.backend_agg", "jinja2", "tqdm", "asyncio"),
)
"""Imported before the first fork. Nothing of the project is, since a bug may be in any part."""


def import_libraries() -> None:
    """Import what the tests import of other projects, for all children at once."""
    for library in LIBRARIES:
        importlib.import_module(library)
    cpu_target.typing_context.refresh()  # Numba's own, of what compiled code may call
    cpu_target.target_context.refresh()
    gc.freeze()


class ChangedSource(SourceFileLoader):
    def __init__(self, fullname: str, path: str, source: str) -> None:
        super().__init__(fullname, path)
        self.source = source

    def get_code(self, fullname: str) -> CodeType:
        return compile(self.source, self.path, "exec")  # no .pyc is read or written


class Finder(MetaPathFinder):
    """Finds one file of the project, with another source."""

    def __init__(self, file: str, source: str) -> None:
        self.module = ".".join(Path(file).with_suffix("").parts).removesuffix(".__init__")
        self.path, self.source = str(ROOT / file), source

    def find_spec(
        self, fullname: str, path: Any, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname != self.module:
            return None
        loader = ChangedSource(fullname, self.path, self.source)
        return spec_from_file_location(fullname, self.path, loader=loader)


def passes(file: str, source: str, tests: tuple[str, ...], output: Path = Path(os.devnull)) -> bool:
    """Whether tests pass in a child with the source of one file changed; pytest writes `output`.

    What is compiled runs interpreted: the cache could give the sound function, and compiling takes
    longer than the tests.
    """
    child = os.fork()
    if child == 0:
        signal.setitimer(signal.ITIMER_PROF, TIME_LIMIT)  # its signal ends the child
        with output.open("w") as stream:
            os.dup2(stream.fileno(), 1)
            os.dup2(stream.fileno(), 2)
        config.DISABLE_JIT = "from timers.kernels" in source or "timers/kernels" in file
        sys.meta_path.insert(0, Finder(file, source))
        outcome = 1  # unless pytest says otherwise: a broken module may raise anything
        try:
            outcome = int(pytest.main([*tests, *OPTIONS]))
        finally:
            os._exit(outcome)
    _, status = os.waitpid(child, 0)
    return status == 0
