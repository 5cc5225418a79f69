"""Compare two stored runs: which timers became faster or slower, beyond the noise of the samples.

A figure is the median of the samples of one timer for one task and size, or for one replayed
source. It differs beyond noise if the intervals of the two medians (`reports.statistics`) are at
least APART, because the samples of one run do not show how much runs differ. A figure with fewer
than FEW samples in either run is not judged: their range is too small to tell. With a base, each
sample is first divided by the base's sample of the same repeat. This cancels the speed of the
machine, and its drift during a run.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from compare.trial.results.metrics import TIMED
from compare.trial.results.store import REPLAY, Run, RunError
from reports.noise import Noise, noise_of
from reports.statistics import FEW, Estimate
from timers.errors import unknown_name

YARDSTICK = "delay-queue"
"""The timer that ratios refer to, if it took part: the usual choice without wheels."""

APART = 1.1
"""The least ratio between the nearer ends of two intervals that differ beyond noise."""

_MACHINE = ("cpu", "cores", "memory_bytes")  # its platform changes with every update


class Subject(NamedTuple):
    """A measured task with `size` pending timers, or a replayed source if `size` is None."""

    task: str
    size: int | None
    origin: str = ""  # of a source: two workloads of one name may differ in seed or operations


Samples = Mapping[tuple[Subject, str], Mapping[int, float]]
"""(subject, label of a contestant) -> repeat -> ns per operation, or multiple of the base."""


@dataclass(frozen=True)
class Change:
    """One figure in both runs: nanoseconds per operation, or multiples of the base."""

    subject: Subject
    contestant: str
    before: Estimate
    after: Estimate

    @property
    def ratio(self) -> float:
        """The median of the second run over that of the first."""
        return self.after.value / self.before.value if self.before.value else 1.0

    @property
    def interval(self) -> tuple[float, float]:
        """The least and the greatest ratio of values in the two intervals."""
        before, after = self.before, self.after
        return after.low / (before.high or 1.0), after.high / (before.low or 1.0)

    @property
    def verdict(self) -> str:
        """ "slower", "faster", "same" (within noise) or "few samples"."""
        low, high = self.interval
        if min(self.before.n, self.after.n) < FEW:
            return "few samples"
        return "slower" if low > APART else "faster" if high * APART < 1 else "same"


@dataclass(frozen=True)
class Difference:
    """The figures that both runs have, and the number of those that only one has."""

    base: str | None  # what the samples were divided by
    changes: Sequence[Change]  # the largest ratio first
    paths: tuple[str, str]  # of the runs
    missing: tuple[int, int]  # figures of each run that the other lacks
    noise: tuple[Noise, Noise]

    @property
    def judged(self) -> list[Change]:
        """The changes with enough samples to tell."""
        return [change for change in self.changes if change.verdict != "few samples"]

    def regressions(self, threshold: float) -> list[Change]:
        """Changes slower than `threshold` (0.1 = 10 %) and outside the noise."""
        return [
            change
            for change in self.changes
            if change.verdict == "slower" and change.ratio > 1 + threshold
        ]


def difference(first: Run, second: Run, base: str | None = None) -> Difference:
    """Compare two runs. `base` is the label of a timer; with it, times are divided by its times.

    Runs of different machines are compared in multiples of YARDSTICK, if no base is named. A
    machine is known by its processor, cores and memory.

    Raises:
        RunError: a run lacks the base, or the runs have no figure in common.
    """
    runs, problem = (first, second), ""
    if base is None and not same_machine(first, second):
        base, problem = YARDSTICK, f"{first.path} and {second.path} are of different machines, and "
    samples = [samples_of(run) for run in runs]
    first_noise, second_noise = map(noise_in, runs)
    if base is not None:
        for run, measured in zip(runs, samples, strict=True):
            labels = dict.fromkeys(label for _, label in measured)
            if base not in labels and problem:
                raise RunError(f"{problem}{run.path} has no {base} to compare with; name a base")
            if base not in labels:
                raise RunError(f"{run.path}: {unknown_name('timer', base, labels)}")
        samples = [_multiples(measured, base) for measured in samples]
    before, after = (
        {key: Estimate.of(repeats.values()) for key, repeats in measured.items() if repeats}
        for measured in samples
    )
    both = [key for key in before if key in after]
    if not both:
        raise RunError(f"{first.path} and {second.path} have no figure in common")
    changes = [Change(*key, before[key], after[key]) for key in both]
    return Difference(
        base,
        sorted(changes, key=lambda change: -change.ratio),
        (str(first.path), str(second.path)),
        (len(before) - len(both), len(after) - len(both)),
        (first_noise, second_noise),
    )


def noise_in(run: Run) -> Noise:
    """Return the noise of a run. Samples that are shards differ by nature, and do not count."""
    samples = {} if run.manifest["kind"] == REPLAY else samples_of(run)
    times = [Estimate.of(repeats.values()) for repeats in samples.values()]
    return noise_of(times, run.manifest)


def same_machine(first: Run, second: Run) -> bool:
    """Whether both runs name the same processor, cores and memory, and neither is unknown."""
    machines = [[run.manifest["machine"].get(name) for name in _MACHINE] for run in (first, second)]
    return machines[0] == machines[1] and None not in machines[0]


def origins_of(run: Run) -> dict[str, str]:
    """Return what tells sources of one name apart, such as a seed, by name."""
    return {
        source["name"]: json.dumps(source["details"], sort_keys=True)
        for source in run.manifest["sources"]
    }


def samples_of(run: Run) -> Samples:
    """Return all samples of tasks and of replayed sources."""
    origins = origins_of(run)
    samples: dict[tuple[Subject, str], dict[int, float]] = {}
    for row in run.rows:
        if row.metric in TIMED and row.value is not None and row.repeat is not None:
            origin = origins.get(row.subject, "") if row.size is None else ""
            subject = Subject(row.subject, row.size, origin)
            samples.setdefault((subject, row.contestant), {})[row.repeat] = row.value
    return samples


def _multiples(samples: Samples, base: str) -> Samples:
    """Divide each sample by the base's sample of the same repeat; drop subjects without one."""
    return {
        (subject, label): {
            repeat: ns / yardstick[repeat]
            for repeat, ns in repeats.items()
            if yardstick.get(repeat)
        }
        for (subject, label), repeats in samples.items()
        if label != base and (yardstick := samples.get((subject, base)))
    }
