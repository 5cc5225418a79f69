"""Trials of the enqueue experiment by design and load, as charts and tables show them."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar

from compare.trial.purgatory.figures import DESIGNS, NONE, PURGING, SCANNING, Row

_TIMERS = {PURGING: "hierarchical-wheel", SCANNING: "delay-queue"}


@dataclass(frozen=True)
class Case:
    """A design under a load. Charts and tables name it and colour it as they do a contestant."""

    load: str
    design: str

    remark: ClassVar[str] = ""
    variant: ClassVar[int] = 0

    @property
    def timer(self) -> str:
        """The timer whose colour and marker it has."""
        return _TIMERS[self.design]

    @property
    def dashed(self) -> bool:
        """Whether its lines are dashed."""
        return self.load == "high"

    @property
    def full(self) -> str:
        """Display name."""
        return f"{DESIGNS[self.design]}, load {self.load}"

    short = plain = full


Cases = dict[Case, dict[int, list[Row]]]
"""The trials of each case, by the value of the column that is varied."""


def by_case(rows: Iterable[Row], kind: str, varied: str = "rate") -> Cases:
    """The trials of one kind, without those of the experiment's own threads."""
    cases: Cases = {}
    for row in rows:
        if row["kind"] == kind and row["design"] != NONE:
            of_case = cases.setdefault(Case(row["load"], row["design"]), {})
            of_case.setdefault(row[varied], []).append(row)
    return cases
