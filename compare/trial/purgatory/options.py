"""The options of the enqueue experiment, for the command `purgatory` and for Python.

>>> from compare import run_experiment
>>> path = run_experiment(QUICK)  # doctest: +SKIP
"""

from dataclasses import dataclass

from compare.trial.purgatory.figures import NONE, PURGING, SCANNING

INTERVALS = {PURGING: 1000, SCANNING: 10_000, NONE: 0}
"""The default purge interval of the new design and limit of the old one."""


@dataclass(frozen=True)
class Experiment:
    """The options of the experiment. The defaults are those of the command line."""

    rates: tuple[int, ...] = (10_000, 20_000, 40_000, 80_000, 160_000, 320_000)
    seconds: float = 3.0  #: duration of the arrivals in a trial
    refinements: int = 2  #: further rates between the last sustained and the next
    limits: tuple[int, ...] = (1_000, 10_000, 100_000, 1_000_000)  #: of the old design's reaper
    memory_mib: int = 8  #: available in the trials with little memory
    repeats: int = 3  #: of each trial; medians are shown
    timer: str = "hierarchical-wheel"  #: of the new design
    seed: int = 0
    runs: str = "runs"  #: the directory in which the run is stored
    command: tuple[str, ...] = ("run_experiment",)  #: stored in the manifest


QUICK = Experiment(
    rates=(10_000, 40_000),
    seconds=0.2,
    refinements=0,
    limits=(1_000, 1_000_000),
    repeats=1,
)
"""Options of a short run, which shows that everything works but compares no figures."""
