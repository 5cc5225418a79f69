"""A score for the noise of a run, and a warning where the machine was busy."""

from collections.abc import Iterable, Mapping
from statistics import median
from typing import Any, NamedTuple

from compare.base import formats
from reports.statistics import Estimate

NOISY = 1.5
MANY = 0.05
"""A run is busy if the slowest sample exceeds the fastest by the factor NOISY in more than the
share MANY of the measurements, or if it had a processor for less than the share IDLE of the time.
Times are of CPU, but other programs use the caches, too.
"""
IDLE = 0.8


class Noise(NamedTuple):
    """How much the samples of a run differ, and how busy the machine was."""

    score: float | None  #: the median of (slowest sample / fastest) - 1; None without samples
    noisy: int  #: measurements whose slowest sample exceeds the fastest by NOISY
    measurements: int  #: that have several samples
    single: int  #: measurements that have one
    share: float | None  #: of its time in which the run had a processor; None if unknown

    @property
    def reasons(self) -> list[str]:
        """Sentences that tell why the machine counts as busy; empty if it was not."""
        texts = []
        if self.noisy > MANY * self.measurements:
            texts.append(
                f"In {self.noisy} of {formats.counted(self.measurements, 'measurement')} the "
                f"slowest sample took more than {NOISY:g} times as long as the fastest."
            )
        if self.share is not None and self.share < IDLE:
            texts.append(f"The run had a processor {formats.share(self.share)} of the time.")
        return texts

    @property
    def text(self) -> str:
        """The score and, where the machine was busy, a warning; empty if nothing is known."""
        texts = self.reasons
        if texts:
            texts += [
                "The machine was busy: do not rely on small differences in time.",
                "The counted work is not affected.",
            ]
        if self.score is not None:
            more = formats.share(self.score)
            texts.insert(
                0,
                f"Noise {more}: typically, the slowest sample took {more} longer than the fastest.",
            )
        elif self.single:
            texts.insert(0, "Noise unknown: each measurement has only one sample.")
        return " ".join(texts)

    def plain(self) -> dict[str, Any]:
        """The score for JSON."""
        return {"score": self.score, "processor_share": self.share, "busy": bool(self.reasons)}


def noise_of(times: Iterable[Estimate], manifest: Mapping[str, Any]) -> Noise:
    """Return the noise of measurements, and of the run's time in its manifest."""
    listed = list(times)
    scatters = [time.scatter for time in listed if time.n > 1]
    seconds = manifest.get("seconds")
    return Noise(
        median(scatters) - 1 if scatters else None,
        sum(scatter > NOISY for scatter in scatters),
        len(scatters),
        len(listed) - len(scatters),
        seconds["cpu"] / seconds["wall"] if seconds and seconds["wall"] else None,
    )
