"""Import the timers, and the tests' machinery on top of them, with one kernel's source changed.

Nothing on disk changes. What was imported before stays with whoever holds it.
"""

import importlib
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, SourceFileLoader
from importlib.util import spec_from_file_location
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

from tests.mutants.mutants import Mutant

KERNELS = Path(__file__).parents[2] / "timers" / "kernels"
RELOADED = ("timers", "tests.model", "tests.timers")


def mutated_source(mutant: Mutant) -> str:
    """The kernel's source with the bug in it; refuses a text that is not there exactly once."""
    source = (KERNELS / mutant.file).read_text()
    if source.count(mutant.old) != 1:
        raise LookupError(
            f"{source.count(mutant.old)} times in {mutant.file}, not once: {mutant.old!r}"
        )
    return source.replace(mutant.old, mutant.new)


class ChangedSource(SourceFileLoader):
    def __init__(self, fullname: str, path: str, source: str) -> None:
        super().__init__(fullname, path)
        self.source = source

    def get_code(self, fullname: str) -> CodeType:
        return compile(self.source, self.path, "exec")  # no .pyc is read or written


class Finder(MetaPathFinder):
    def __init__(self, file: str, source: str) -> None:
        self.module, self.path, self.source = (
            f"timers.kernels.{Path(file).stem}",
            str(KERNELS / file),
            source,
        )

    def find_spec(
        self, fullname: str, path: Any, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname != self.module:
            return None
        return spec_from_file_location(
            fullname, self.path, loader=ChangedSource(fullname, self.path, self.source)
        )


@contextmanager
def fresh_timers(mutant: Mutant | None = None) -> Iterator[ModuleType]:
    """`tests.timers.machine`, and all that it tests, imported anew; with the mutant's bug if there
    is one.
    """
    _forget()
    finders = [Finder(mutant.file, mutated_source(mutant))] if mutant else []
    sys.meta_path[:0] = finders
    try:
        yield importlib.import_module("tests.timers.machine")
    finally:
        for finder in finders:
            sys.meta_path.remove(finder)
        _forget()


def _forget() -> None:
    for name in [name for name in sys.modules if name.startswith(RELOADED)]:
        del sys.modules[name]
