"""Try mechanical mutants of files: `python -m tests.mutation.hunt FILE ... [--each N]`.

Prints a line for each mutant that no test notices, and for each file how many were noticed. All
mutants of a file are tried or, with --each N, one of N, always the same ones.
"""

import argparse
import hashlib
import shlex
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from tests.mutation.operators import Mutant, mutants_of
from tests.mutation.trial import ROOT, import_libraries, passes

KERNELS = Path("timers", "kernels")
OF_KERNELS = ("test_check", "test_partial_advance", "test_references", "test_state_machine")
SHARED = ("pool", "operations", "handles", "bitmap")
"""Kernel files that several timers share: the references of all of them judge these."""


def tests_of(file: str) -> tuple[str, ...]:
    """The tests that judge the mutants of a file: `-k` limits those of a kernel to its timer."""
    path = Path(file)
    if path.parent == KERNELS:
        names = OF_KERNELS[:-1] if path.stem in SHARED else OF_KERNELS
        which = "" if path.stem in SHARED else f" and [{path.stem.replace('_', '-')}"
        chosen = f"check or partial or ((any_operations or files_each){which})"
        return (*(f"tests/timers/{name}.py" for name in names), "-k", chosen)
    if path.parent == Path("timers", "schemes"):
        return ("tests/timers/test_arguments.py", "tests/timers/test_check.py")
    own = Path("tests", path.parent, f"test_{path.stem}.py")
    return (str(own if (ROOT / own).exists() else own.parent),)


def chosen(file: str, each: int) -> list[Mutant]:
    """One of `each` mutants of a file; an edit elsewhere in the file does not change which."""

    def draw(mutant: Mutant) -> str:
        key = f"{file} {mutant.function} {mutant.change} {mutant.number}"
        return hashlib.sha256(key.encode()).hexdigest()

    mutants = list(mutants_of((ROOT / file).read_text()))
    drawn = set(map(draw, sorted(mutants, key=draw)[: -(-len(mutants) // each)]))
    return [mutant for mutant in mutants if draw(mutant) in drawn]


def survivors(file: str, mutants: list[Mutant]) -> Iterator[Mutant]:
    """Those that the tests of the file do not notice."""
    tests = tests_of(file)
    with tempfile.TemporaryDirectory() as folder:
        output = Path(folder, "output")
        if not passes(file, (ROOT / file).read_text(), tests, output):
            print(output.read_text()[-10_000:], file=sys.stderr)
            sys.exit(f"{file}: its tests fail without a change: pytest {shlex.join(tests)}")
    for mutant in mutants:
        if passes(file, mutant.source(), tests):
            yield mutant


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.mutation.hunt", description=__doc__)
    parser.add_argument("files", nargs="+")
    parser.add_argument("--each", type=int, default=1)
    arguments = parser.parse_args()
    import_libraries()
    for file in arguments.files:
        mutants = chosen(file, arguments.each)
        left = []
        for mutant in survivors(file, mutants):
            left.append(mutant)
            print(f"{file}, {mutant}: not noticed", flush=True)
        print(f"{file}: {len(mutants) - len(left)} of {len(mutants)} noticed", flush=True)


if __name__ == "__main__":
    main()
