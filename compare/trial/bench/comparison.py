"""The options of a comparison, for the commands `compare` and `report` and for Python.

>>> from compare.trial.bench.run import run_comparison
>>> options = Comparison(timers=("delay-queue",), sizes=(100,), repeats=1)
>>> run = run_comparison(options)  # doctest: +SKIP
"""

from dataclasses import dataclass

DEFAULT_SIZES = (1_000, 10_000, 100_000, 1_000_000)
DEFAULT_WORKLOADS = ("lognormal-low", "lognormal-high", "keepalive", "cancel-heavy")

NO_TAILS, QUICK_TAILS, ALL_TAILS = "none", "quick", "all"
"""Tails are measured nowhere; at one size and on traces; or at all sizes and on all sources."""


@dataclass(frozen=True)
class Comparison:
    """The options of a comparison. The defaults are those of the command line."""

    traces: tuple[str, ...] = ()  #: directories
    #: names; None: the default workloads, or none if there are traces
    workloads: tuple[str, ...] | None = None
    #: NAME, NAME/parameter=value/... or module:Class; empty: all registered timers
    timers: tuple[str, ...] = ()
    #: numbers of pending timers; empty: only replay traces and workloads, and measure no calls
    sizes: tuple[int, ...] = DEFAULT_SIZES
    peers: tuple[str, ...] = ()  #: names or groups of `compare.trial.peers.catalogue`
    threads: bool = False  #: also let several threads use the peers that are made for it
    timeout: float = 60.0  #: seconds for a command of a peer; one that takes longer is left out
    #: where to measure the latency of each operation: NO_TAILS, QUICK_TAILS or ALL_TAILS
    tails: str = NO_TAILS
    operations: int = 100_000  #: of each workload
    repeats: int = 5  #: samples of each measurement; fewer if they take long
    #: also measure costs for delays other than the usual, random ones: see KINDS of
    #: `compare.trial.bench.steady`
    all_delays: bool = False
    #: seconds for all samples of a timer at one size; see `compare.trial.bench.measure`
    budget: float = 1.0
    seed: int = 0  #: of the workloads
    runs: str = "runs"  #: the directory in which the run is stored
    command: tuple[str, ...] = ("run_comparison",)  #: the command line in the manifest


def workloads_of(options: Comparison) -> tuple[str, ...]:
    """Return the workloads given or, without workloads and traces, the default ones."""
    if options.workloads is not None:
        return options.workloads
    return () if options.traces else DEFAULT_WORKLOADS
