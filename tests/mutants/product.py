"""Seeded bugs in what measures, checks and reports, and the tests that each must fail.

`old` occurs exactly once in the file.
"""

from typing import NamedTuple


class SeededBug(NamedTuple):
    file: str  # relative to the project
    old: str
    new: str


TESTED_BY = {
    "compare/replay/lateness.py": ("tests/compare/replay/test_lateness.py",),
    "reports/findings.py": ("tests/reports/test_findings.py",),
}
"""File -> the tests that judge it, the quickest first."""

BUGS = [
    SeededBug(
        "compare/replay/lateness.py",
        "self.counts + other.counts, least, greatest",
        "self.counts, least, greatest",
    ),
]
