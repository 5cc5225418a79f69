"""Run the tests of the seeded bugs in one folder: `python -m tests.mutants.hunt_product FOLDER
STEP`, where STEP 3 is every third bug.

One process for each folder imports the libraries, and forks for each bug. Prints one line of JSON
for each bug. That the tests pass without a bug is for the run of the tests themselves to show.
"""

import json
import sys

import tests.conftest  # noqa: F401  # registers the profiles
from tests.mutants.loading import changed_source
from tests.mutants.product import BUGS
from tests.mutants.trial import import_libraries, try_bug


def main(folder: str, step: int) -> None:
    import_libraries()
    bugs = [bug for bug in BUGS[::step] if bug.file.rpartition("/")[0] == folder]
    for bug in bugs:
        verdict = try_bug(bug.file, changed_source(bug.file, bug.old, bug.new), (bug.test,))
        killed_by = None if verdict.passed else verdict.failed
        print(json.dumps({**bug._asdict(), "killed by": killed_by}), flush=True)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
