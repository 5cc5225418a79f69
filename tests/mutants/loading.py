"""Import the project with the source of one file changed. Nothing on disk changes."""

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

ROOT = Path(__file__).parents[2]
KERNELS = Path("timers", "kernels")
RELOADED = ("timers", "tests.model", "tests.timers")


def changed_source(file: str | Path, old: str, new: str) -> str:
    """The source of a file with one text replaced.

    Refuses a text that does not occur exactly once.
    """
    source = (ROOT / file).read_text()
    if source.count(old) != 1:
        raise LookupError(f"{source.count(old)} times in {file}, not once: {old!r}")
    return source.replace(old, new)


class ChangedSource(SourceFileLoader):
    def __init__(self, fullname: str, path: str, source: str) -> None:
        super().__init__(fullname, path)
        self.source = source

    def get_code(self, fullname: str) -> CodeType:
        return compile(self.source, self.path, "exec")  # no .pyc is read or written


class Finder(MetaPathFinder):
    """Finds one file of the project, with another source."""

    def __init__(self, file: str | Path, source: str) -> None:
        self.module = ".".join(Path(file).with_suffix("").parts)
        self.path = str(ROOT / file)
        self.source = source

    def find_spec(
        self, fullname: str, path: Any, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname != self.module:
            return None
        return spec_from_file_location(
            fullname, self.path, loader=ChangedSource(fullname, self.path, self.source)
        )


def mutated_source(mutant: Mutant) -> str:
    """The source of a kernel with the mutant's bug in it."""
    return changed_source(KERNELS / mutant.file, mutant.old, mutant.new)


@contextmanager
def fresh_timers(mutant: Mutant | None = None) -> Iterator[ModuleType]:
    """`tests.timers.machine`, and all that it tests, imported anew; with the mutant's bug if there
    is one.
    """
    _forget()
    finders = [Finder(KERNELS / mutant.file, mutated_source(mutant))] if mutant else []
    sys.meta_path[:0] = finders
    try:
        yield importlib.import_module("tests.timers.machine")
    finally:
        for finder in finders:
            sys.meta_path.remove(finder)
        _forget()


def _forget() -> None:
    """Let the next import read the project again. What holds a module keeps it."""
    for name in [name for name in sys.modules if name.startswith(RELOADED)]:
        del sys.modules[name]
