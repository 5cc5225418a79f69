"""Time timers that several threads use at once: peers in real time, and SystemTimer beside them.

Producers divide a tape by id (`compare.trial.peers.tapes.racing`), and start and cancel as fast as
they can, while the timer's own thread drives it. Each timer is first judged, with the interval of
each call; a faulty one is not timed. Then all take turns. A turn is a new process for each number
of producers.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from compare.traffic.tapes.tape import Tape, id_space_of
from compare.trial.bench.machine import machine
from compare.trial.bench.measure import Progress, Store, another_fits
from compare.trial.peers.catalogue import PYTHON, Entry
from compare.trial.peers.protocol import PeerError
from compare.trial.peers.run import DEFAULT_TIMEOUT, Peer, own_peer
from compare.trial.peers.tapes import racing
from compare.trial.peers.threads import judge
from compare.trial.results.schema import THREADS, Row, rows_of

COUNTS = (1, 2, 4)
MOST_PENDING = 100_000
PAIRS = 200_000  # of a cancel and a start
OWN = "SystemTimer"
_OWN_TIMER = "cascading-wheel"
_PAIRS_PHASE = 1
COST = "threads_cpu"


class SystemTimer(Entry):
    """The project's own service, as if it were a peer."""

    is_ready = True

    def peer(self, timeout: float = DEFAULT_TIMEOUT, **parameters: int) -> Peer:
        """The service with a cascading wheel."""
        return own_peer(_OWN_TIMER, timeout)


def subject_of(count: int) -> str:
    """The subject of the rows: how many producers there are, and if they are more than the cores.

    >>> subject_of(10**6)
    'threads 1000000, oversubscribed'
    """
    over = ", oversubscribed" * (count > (machine()["cores"] or 1))
    return f"{THREADS}{count}{over}"


@dataclass
class ThreadsBench:
    """Judge and time the peers that are for threads, and SystemTimer. See `PeerBench`."""

    peers: Sequence[Entry]
    size: int  # timers pending
    repeats: int
    budget: float
    seed: int
    timeout: float = DEFAULT_TIMEOUT
    pairs: int = PAIRS
    rows: list[Row] = field(default_factory=list, init=False)
    tasks: list[str] = field(default_factory=lambda: ["threads"], init=False)

    @property
    def steps(self) -> int:
        """The most calls of `progress` by `run`; peers that are not for threads make none."""
        return (len(self.peers) + 1) * (1 + self.repeats)

    def run(
        self, progress: Progress = lambda step: None, store: Store = lambda name, rows: None
    ) -> None:
        """Judge, then time in turns."""
        tape, first = racing(self.size, self.pairs, self.seed)
        kept: dict[str, tuple[Entry, Peer]] = {}
        for entry in (SystemTimer(OWN, PYTHON), *self.peers):
            try:
                if not (entry.is_ready and entry.peer(self.timeout).description.threads):
                    continue
                progress(f"threads of {entry.name}")
                peer = entry.peer(self.timeout)
                if all(self._judge(entry.name, peer, count, tape, first) for count in COUNTS):
                    kept[entry.name] = entry, peer
            except PeerError as error:
                self._fail(entry.name, COUNTS[0], str(error).removeprefix(f"{entry.name}: "))
        spent: dict[str, list[float]] = {name: [] for name in kept}
        for repeat in range(self.repeats):
            for name, (entry, peer) in [*kept.items()]:
                progress(f"timing threads of {name}")
                if another_fits(spent[name], self.budget):
                    started = time.perf_counter()
                    try:
                        self._time(entry, peer, tape, first, repeat)
                    except PeerError as error:
                        self._fail(name, COUNTS[0], str(error).removeprefix(f"{name}: "))
                        del kept[name]
                    spent[name].append(time.perf_counter() - started)
        store(self.tasks[0], self.rows)

    def _judge(self, name: str, peer: Peer, count: int, tape: Tape, first: Sequence[int]) -> bool:
        """Store what a recorded run shows, and say whether it is right."""
        _, calls = peer.threads(tape, id_space_of(tape), count, phases=first, record=True)
        assert calls is not None
        described = peer.description
        found = judge(tape, calls, described.threads, described.rounding.tick)
        values: dict[str, float | None] = {
            "threads_lost": found.lost,
            "threads_doubled": found.doubled,
        }
        if found.start_ns.size:
            values["threads_start_p99"] = float(np.quantile(found.start_ns, 0.99))
        if found.late_ns.size:
            values["threads_late_p99"] = float(np.quantile(found.late_ns, 0.99)) / 1e6
        self.rows += rows_of(name, subject_of(count), values, self.size)
        if found.fault is not None:
            self._fail(name, count, found.fault.text)
        return found.fault is None

    def _time(
        self, entry: Entry, peer: Peer, tape: Tape, first: Sequence[int], repeat: int
    ) -> None:
        warm_up = -(-entry.language.warm_up // tape.time.size)
        for count in COUNTS:
            lines, _ = peer.threads(tape, id_space_of(tape), count, phases=first, warm_up=warm_up)
            pairs = lines[_PAIRS_PHASE]
            times = {COST: pairs.cpu_ns, "threads_wall": pairs.wall_ns}
            each = {name: ns / pairs.operations for name, ns in times.items()}
            self.rows += rows_of(entry.name, subject_of(count), each, self.size, repeat)

    def _fail(self, name: str, count: int, problem: str) -> None:
        self.rows.append(
            Row(name, subject_of(count), self.size, COST, None, None, f"failed: {problem}")
        )
