"""Run the tests of seeded bugs: `python -m tests.mutants.hunt_product NUMBER ...`, by their places
in `BUGS`.

One process imports the libraries, and forks for each bug. Prints one line of JSON for each. That
the tests pass without a bug is for the run of the tests themselves to show.
"""

import json
import sys

import tests.conftest  # noqa: F401  # registers the profiles
from tests.mutants.loading import changed_source
from tests.mutants.product import BUGS
from tests.mutants.trial import import_libraries, try_bug


def main(numbers: list[int]) -> None:
    import_libraries()
    for bug in (BUGS[number] for number in numbers):
        verdict = try_bug(bug.file, changed_source(bug.file, bug.old, bug.new), (bug.test,))
        killed_by = None if verdict.passed else verdict.failed
        print(json.dumps({**bug._asdict(), "killed by": killed_by}), flush=True)


if __name__ == "__main__":
    main(list(map(int, sys.argv[1:])))
