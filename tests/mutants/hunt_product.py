"""Run the tests of `product.py` on its seeded bugs, and once without: `python -m
tests.mutants.hunt_product FOLDER`.

One process for each folder imports the libraries, and forks for each bug. Prints one line of JSON
for each bug and one for each set of tests.
"""

import json
import sys

import tests.conftest  # noqa: F401  # registers the profiles
from tests.mutants.loading import changed_source
from tests.mutants.product import BUGS, TESTED_BY
from tests.mutants.trial import import_libraries, try_bug


def main(folder: str) -> None:
    import_libraries()
    bugs = [bug for bug in BUGS if bug.file.rpartition("/")[0] == folder]
    for bug in bugs:
        verdict = try_bug(bug.file, changed_source(*bug), TESTED_BY[bug.file])
        killed_by = None if verdict.passed else verdict.failed
        print(json.dumps({**bug._asdict(), "killed by": killed_by}), flush=True)
    for files in dict.fromkeys(TESTED_BY[bug.file] for bug in bugs):
        verdict = try_bug("", None, files)
        failed = None if verdict.passed else verdict.failed
        print(json.dumps({"tests": files, "failed": failed}), flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
