"""What a comparison is asked to do: the same options for `compare`, `report` and Python. Cheap to
import.

>>> from compare.bench.comparison import Comparison, run_comparison
>>> run = run_comparison(Comparison(timers=("delay-queue",), sizes=(100,), repeats=1))  # doctest: +SKIP
"""

from dataclasses import dataclass, field
from pathlib import Path

DEFAULT_SIZES = (1_000, 10_000, 100_000, 1_000_000)
DEFAULT_WORKLOADS = ("lognormal-low", "lognormal-high", "keepalive", "cancel-heavy")


@dataclass(frozen=True)
class Comparison:
    """What to compare. The defaults are those of the command line."""

    traces: tuple[str, ...] = ()  # directories
    workloads: tuple[str, ...] | None = (
        None  # names; None: the default ones, or none where there are traces
    )
    timers: tuple[
        str, ...
    ] = ()  # NAME[/parameter=value...] or module:Class; empty: all that are registered
    sizes: tuple[int, ...] = DEFAULT_SIZES  # pending timers; empty: only sources
    operations: int = 100_000  # of each workload
    repeats: int = 5  # at most; fewer for what takes long
    budget: float = 1.5  # seconds for one repeat; what would take longer is predicted instead
    seed: int = 0
    runs: str = "runs"  # the store
    command: tuple[str, ...] = field(default=("run_comparison",))  # for the manifest


def workloads_of(options: Comparison) -> tuple[str, ...]:
    """The workloads that are replayed: those given, or the default ones where nothing is given."""
    if options.workloads is not None:
        return options.workloads
    return () if options.traces else DEFAULT_WORKLOADS


def run_comparison(options: Comparison) -> Path:
    """Measure, replay, store; returns the stored run's path. A progress bar runs where stderr is a
    terminal.

    Everything given is checked before anything is measured, and nothing is stored of a comparison
    that fails. Raises TimerError: ComparisonError, UnknownTimerError, ParameterError, TraceError,
    WorkloadError, RunError, and AgreementError for a timer that does not do what its traits
    declare.
    """
    # Brings Numba and Arrow, for which a command line that only asks for help need not wait.
    from compare.bench.run import hold

    return hold(options)
