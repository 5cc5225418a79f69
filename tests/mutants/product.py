"""Seeded bugs in what measures, checks and reports, and the tests that each must fail.

`old` occurs exactly once in the file, and `test` fails when `new` stands there.
"""

from typing import NamedTuple


class SeededBug(NamedTuple):
    file: str  # relative to the project
    old: str
    new: str
    test: str


TESTED_BY = {
    "compare/replay/outcome.py": ("tests/compare/replay/test_outcome.py",),
    "compare/replay/lateness.py": ("tests/compare/replay/test_lateness.py",),
}
"""File -> the tests that judge it, the quickest first."""

BUGS = [
    SeededBug(
        "compare/replay/outcome.py",
        'most_pending: int = field(default=0, metadata={"add": max})',
        "most_pending: int = field(default=0)",
        "tests/compare/replay/test_outcome.py::test_outcomes_add_up",
    ),
    SeededBug(
        "compare/replay/outcome.py",
        'nbytes: int = field(default=0, metadata={"add": max})',
        "nbytes: int = field(default=0)",
        "tests/compare/replay/test_outcome.py::test_outcomes_add_up",
    ),
    SeededBug(
        "compare/replay/outcome.py",
        "self.seconds * 1e9 / max(self.operations, 1)",
        "self.seconds * 1e9 / max(self.scheduled, 1)",
        "tests/compare/replay/test_outcome.py::test_time_per_operation",
    ),
    SeededBug(
        "compare/replay/outcome.py",
        "{name: one[name] + other[name] for name in one}",
        "{name: one[name] for name in one}",
        "tests/compare/replay/test_outcome.py::test_outcomes_add_up",
    ),
    SeededBug(
        "compare/replay/lateness.py",
        "self.counts + other.counts, least, greatest",
        "self.counts, least, greatest",
        "tests/compare/replay/test_lateness.py::test_a_sum_is_the_distribution_of_all",
    ),
    SeededBug(
        "compare/replay/lateness.py",
        "[(up_to[-1] - 1) // 2, up_to[-1] // 2]",
        "[up_to[-1] // 2, up_to[-1] // 2]",
        "tests/compare/replay/test_lateness.py::test_quantiles_are_exact",
    ),
    SeededBug(
        "compare/replay/lateness.py",
        "max(int(np.ceil(share * up_to[-1])), 1)",
        "max(int(share * up_to[-1]), 1)",
        "tests/compare/replay/test_lateness.py::test_quantiles_are_exact",
    ),
]
