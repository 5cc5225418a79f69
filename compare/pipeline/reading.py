"""How a log was read, with warnings about anything that looks wrong."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from pyspark.sql import DataFrame, Observation
from pyspark.sql import functions as F

from compare.tapes.units import EXPONENTS

_STEPS = {"1ms": 10**3, "10ms": 10**4, "100ms": 10**5, "1s": 10**6, "1m": 60 * 10**6}
"""Step of timestamps -> microseconds. Each step divides the next one."""
_YEAR = 366 * 86_400  # seconds


class Times(NamedTuple):
    """Properties of the times in a log."""

    step: str | None  # the longest of _STEPS that divides all times, if it is coarse
    without_zone: int  # times without a time zone, if the format allows one
    zones: tuple[int, int] | None  # minimum and maximum, in minutes ahead of UTC


NO_TIMES = Times(None, 0, None)


@dataclass(frozen=True)
class Reading:
    """How a log was read, and the result."""

    kind: str  # "requests" or "touches"
    unit: str
    timeout: str  # the timeout or the idle period, as given
    time_format: str | None  # None if there are no rows
    guessed: bool  # whether the format was guessed from the first value
    rows: int  # without the rejected ones
    first: int  # time of the first operation, in units; 0 if there are none
    last: int
    timed_out: int
    most_pending: int  # in one shard
    times: Times

    @property
    def seconds(self) -> float:
        """The time from the first operation to the last."""
        return (self.last - self.first) / float(10 ** EXPONENTS[self.unit])

    @property
    def warnings(self) -> tuple[str, ...]:
        """Sentences about what looks wrong."""
        if not self.rows:
            return ("The log has no rows.",)
        step, without_zone, zones = self.times
        doubt = f"Are the timeout of {self.timeout} and the unit of the durations right?"
        texts = []
        if not self.timed_out:
            texts.append(f"No request timed out. {doubt}")
        elif self.timed_out == self.rows and self.kind == "requests":
            texts.append(f"Every request timed out. {doubt}")
        elif self.timed_out == self.rows:
            texts.append(f"No key was touched again within {self.timeout}.")
        if step is not None:
            texts.append(f"All times are multiples of {step}, which is coarse for {self.timeout}.")
        if without_zone:
            texts.append(
                f"{without_zone:,} of {self.rows:,} times without a zone were read as UTC."
            )
        if zones is not None and zones[0] != zones[1]:
            texts.append(f"The times have different zones, {' to '.join(map(_zone, zones))}.")
        if self.seconds > _YEAR:
            years = f"{self.seconds / _YEAR:,.1f}"
            texts.append(f"The log spans {years} years. Are all times in the same format?")
        return tuple(texts)


def _zone(minutes: int) -> str:
    return f"{'-' if minutes < 0 else '+'}{abs(minutes) // 60:02}:{abs(minutes) % 60:02}"


def time_text(moment: int, unit: str) -> str:
    """Return a time as text, such as `2018-03-24 17:15:20.865`."""
    return str(np.array(moment, f"datetime64[{unit}]")).replace("T", " ")


class TimesObserved:
    """Observes the times during the pass over the log."""

    def __init__(self, unit: str, timeout: int) -> None:
        self._observation = Observation()
        scale = 10**6 // 10 ** EXPONENTS[unit]  # microseconds
        steps = {name: step // scale for name, step in _STEPS.items()}
        self._steps = {name: step for name, step in steps.items() if step and 10 * step > timeout}

    def observe(self, rows: DataFrame) -> DataFrame:
        """Observe `at` and `time_zone` of the rows that are not rejected, and drop both columns."""
        # Each step divides the next one, so most rows are done after one division.
        whens = (f"WHEN at % {step} != 0 THEN {n}" for n, step in enumerate(self._steps.values()))
        cases = " ".join(("WHEN rejected IS NOT NULL THEN NULL", *whens))
        zone = "IF(rejected IS NULL, time_zone, NULL)"
        columns = (
            f"min(CASE {cases} ELSE {len(self._steps)} END) AS level",
            "count_if(rejected IS NULL AND time_zone IS NULL) AS without_zone",
            f"min({zone}) AS min_zone",
            f"max({zone}) AS max_zone",
        )
        return rows.observe(self._observation, *map(F.expr, columns)).drop("at", "time_zone")

    def results(self) -> Times:
        """Return what was observed. Call this only after a pass over a log that has rows."""
        observed = self._observation.get
        step = [None, *self._steps][observed["level"] or 0]
        zones = observed["min_zone"], observed["max_zone"]
        return Times(step, observed["without_zone"], None if zones[0] is None else zones)
