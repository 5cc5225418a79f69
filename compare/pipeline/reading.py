"""How a log was read: what its times say, and warnings where they look wrong."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from pyspark.sql import DataFrame, Observation
from pyspark.sql import functions as F

from compare.tapes.units import EXPONENTS

_STEPS = {"1ms": 10**3, "10ms": 10**4, "100ms": 10**5, "1s": 10**6, "1m": 60 * 10**6}
"""Steps that timestamps may have, in microseconds. Each divides the next one."""
_YEAR = 366 * 86_400  # seconds


class Times(NamedTuple):
    """What the times of the rows have in common."""

    step: str | None  # the longest of _STEPS that they are multiples of, if it is coarse
    without_zone: int  # how many lack the zone that their format may have
    zones: tuple[int, int] | None  # the least and the largest, in minutes ahead of UTC


NO_TIMES = Times(None, 0, None)


@dataclass(frozen=True)
class Reading:
    """How a log was read, and what came of it."""

    kind: str  # "requests" or "touches"
    unit: str
    timeout: str  # the timeout or the idle period, as given
    time_format: str | None  # None if there is no row
    guessed: bool  # whether the format is that of the first value
    rows: int  # that were used
    first: int  # of the operations, in units; 0 if there are none
    last: int
    timed_out: int
    most_pending: int  # in one shard
    times: Times

    @property
    def seconds(self) -> float:
        """From the first operation to the last."""
        return (self.last - self.first) / float(10 ** EXPONENTS[self.unit])

    @property
    def warnings(self) -> tuple[str, ...]:
        """What looks wrong, a sentence each."""
        if not self.rows:
            return ("The log has no rows.",)
        step, without_zone, zones = self.times
        doubt = f"Are the timeout of {self.timeout} and the unit of the durations right?"
        found = []
        if not self.timed_out:
            found.append(f"No request timed out. {doubt}")
        elif self.timed_out == self.rows and self.kind == "requests":
            found.append(f"Every request timed out. {doubt}")
        elif self.timed_out == self.rows:
            found.append(f"No key was touched again within {self.timeout}.")
        if step is not None:
            found.append(f"All times are multiples of {step}, which is coarse for {self.timeout}.")
        if without_zone:
            found.append(
                f"{without_zone:,} of {self.rows:,} times without a zone were read as UTC."
            )
        if zones is not None and zones[0] != zones[1]:
            found.append(f"The times have different zones, {' to '.join(map(_zone, zones))}.")
        if self.seconds > _YEAR:
            years = f"{self.seconds / _YEAR:,.1f}"
            found.append(f"The log spans {years} years. Are all times in the same format?")
        return tuple(found)


def _zone(minutes: int) -> str:
    return f"{'-' if minutes < 0 else '+'}{abs(minutes) // 60:02}:{abs(minutes) % 60:02}"


def time_text(moment: int, unit: str) -> str:
    """A time as text, as in `2018-03-24 17:15:20.865`."""
    return str(np.array(moment, f"datetime64[{unit}]")).replace("T", " ")


class TimesObserved:
    """Finds out what the times have in common during the pass over the log."""

    def __init__(self, unit: str, timeout: int) -> None:
        self._observation = Observation()
        scale = 10**6 // 10 ** EXPONENTS[unit]  # microseconds
        steps = {name: step // scale for name, step in _STEPS.items()}
        self._steps = {name: step for name, step in steps.items() if step and 10 * step > timeout}

    def observe(self, rows: DataFrame) -> DataFrame:
        """Look at the columns `at` and `time_zone` where `rejected` is null, and drop them."""
        # Each step divides the next one, so most rows are done after one division.
        whens = (f"WHEN at % {step} != 0 THEN {n}" for n, step in enumerate(self._steps.values()))
        cases = " ".join(("WHEN rejected IS NOT NULL THEN NULL", *whens))
        zone = "IF(rejected IS NULL, time_zone, NULL)"
        columns = (
            f"min(CASE {cases} ELSE {len(self._steps)} END) AS level",
            "count_if(rejected IS NULL AND time_zone IS NULL) AS without_zone",
            f"min({zone}) AS least",
            f"max({zone}) AS largest",
        )
        return rows.observe(self._observation, *map(F.expr, columns)).drop("at", "time_zone")

    def results(self) -> Times:
        """What was found. Only after a pass over a log that has rows."""
        seen = self._observation.get
        step = [None, *self._steps][seen["level"] or 0]
        zones = None if seen["least"] is None else (seen["least"], seen["largest"])
        return Times(step, seen["without_zone"], zones)
