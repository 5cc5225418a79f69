"""The options of a comparison, for the commands `compare` and `report` and for Python.

>>> from compare.bench.run import run_comparison
>>> options = Comparison(timers=("delay-queue",), sizes=(100,), repeats=1)
>>> run = run_comparison(options)  # doctest: +SKIP
"""

from dataclasses import dataclass, field

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
