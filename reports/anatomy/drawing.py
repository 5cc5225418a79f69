"""A picture of a structure: wheels as rings, the heap as a tree, lists as lists, and the clock."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from math import ceil, cos, pi, sin, sqrt
from textwrap import wrap
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Arc, Circle, FancyArrowPatch, FancyBboxPatch, Wedge

from reports.anatomy.steps import LONG, AnatomyError, Step, bucket_text, number, place_text
from reports.charts.pictures import SETTINGS, Picture
from reports.palette import FAINT, INK, PAPER
from timers.snapshot import Queued, Ring, Snapshot, Timers, Waiting

MAX_LEVELS, MAX_SLOTS = 9, 1024

WIDTH, EDGE = 9.0, 0.15  # inches, as are all lengths below
HELD, CLOCK, ON_HELD = "#0072b2", "#d55e00", "#fefefe"  # timers; the clock and what moves
_TITLE, _LINE, _ROW = 0.42, 0.2, 0.5
_QUEUE_WIDTH, _QUEUE_ROW = 2.2, 0.25
_RING, _LARGE_RING = 2.55, 3.4  # the square of a ring; of one that stands alone
_LABELS = 0.47  # around a ring
_BOX, _STEP = 0.48, 0.66  # a timer in a list, and the distance to the next
_ACROSS = 16  # entries of the lowest level of the heap that is drawn, at most
_CLOCK = 0.85
_NUMBERED, _SEPARATED = 24, 64  # slots of a ring, each with its number; with a line around it
_APART = 20  # degrees between the labels of a ring
_LINES = (3, 3, 3, 3, 3, 2, 2, 2, 1)  # of each label, by the number of labels
_OF_LINE = 12  # degrees that each line of a label takes up
_CHARACTER, _HEIGHT = 0.078, 0.15  # of a label
_NUDGE, _NUDGES = 0.04, 20  # by which a label moves away from another, and how often

LABEL = 6
"""The order in which labels around the rings are drawn: after arrows."""

Position = tuple[float, float]
Box = tuple[float, float, float, float]  # left, bottom, right, top


@dataclass(frozen=True)
class Layout:
    """Fixed layout shared by all frames."""

    rings: int
    lists: tuple[str, ...]
    arity: int  # of the heap
    depth: int  # levels of the heap
    queued: int | None  # buckets in the queue; None without a queue
    lines: int  # of text

    @classmethod
    def for_steps(cls, steps: Sequence[Step], *, with_text: bool) -> "Layout":
        """The layout that fits every step. Raises AnatomyError for a state that cannot be drawn."""
        snapshots = [step.after for step in steps]
        rings = max(len(snapshot.rings) for snapshot in snapshots)
        slots = max((ring.size for snapshot in snapshots for ring in snapshot.rings), default=0)
        for count, limit, what in ((rings, MAX_LEVELS, "levels"), (slots, MAX_SLOTS, "slots")):
            if count > limit:
                raise AnatomyError(f"the wheel has {count:,} {what}; a drawing shows up to {limit}")
        lists = dict.fromkeys(
            name
            for snapshot in snapshots
            for name, timers in snapshot.lists.items()
            if timers or not (snapshot.rings or snapshot.heap is not None)
        )
        heaps = [snapshot.heap for snapshot in snapshots if snapshot.heap is not None]
        arity = snapshots[0].arity
        deepest = max((1 + _level(len(heap) - 1, arity)[0] for heap in heaps), default=0)
        drawn = max(depth for depth in range(1, 6) if arity ** (depth - 1) <= _ACROSS)
        queues = [snapshot.queue for snapshot in snapshots if snapshot.queue is not None]
        lines = max(len(_lines(step)) for step in steps) if with_text else 0
        queued = max(map(len, queues), default=None)
        return cls(rings, tuple(lists), arity, min(deepest, drawn), queued, lines)

    @property
    def across(self) -> int:
        """The number of rings in a row: as few as possible without adding a row."""
        return ceil(self.rings / ceil(self.rings / 3)) if self.rings else 1

    @property
    def ring(self) -> float:
        """The side of the square that holds one ring."""
        return min(_LARGE_RING if self.rings == 1 else _RING, self.room / self.across)

    @property
    def room(self) -> float:
        """The width for rings, beside the queue."""
        return WIDTH - (0.0 if self.queued is None else _QUEUE_WIDTH)

    @property
    def wheels(self) -> float:
        """The height of all rings and of the queue beside them."""
        rows = min(self.queued or 0, 8) + 2.5
        queue = 0.0 if self.queued is None else rows * _QUEUE_ROW
        return max(ceil(self.rings / self.across) * self.ring, queue)

    @property
    def height(self) -> float:
        """The height of the whole picture."""
        tree = (self.depth + 0.6) * _ROW if self.depth else 0.0
        text = self.lines * _LINE
        return _TITLE + text + self.wheels + tree + len(self.lists) * _ROW + _CLOCK


def picture(step: Step, title: str, layout: Layout, origin: int = 0) -> Picture:
    """Draw one step below `title`; moments are shown as units after `origin`."""
    with mpl.rc_context(SETTINGS):
        figure = Figure(figsize=(WIDTH, layout.height))
        axes = figure.add_axes((0, 0, 1, 1))
        axes.set_xlim(0, WIDTH)
        axes.set_ylim(0, layout.height)
        axes.axis("off")
        _Drawing(axes, step.after, layout, origin).draw(step, title)
    return Picture("anatomy", step.text, figure)


def _lines(step: Step) -> list[str]:
    return wrap(step.text, 124)


@dataclass
class _Drawing:
    axes: Axes
    snapshot: Snapshot
    layout: Layout
    origin: int
    positions: dict[str, Position] = field(default_factory=dict)  # of each place, in words
    labels: list[Box] = field(default_factory=list)  # around the rings so far

    def draw(self, step: Step, title: str) -> None:
        top = self.layout.height - 0.27
        y = top / self.layout.height
        self.axes.figure.suptitle(title, x=EDGE / WIDTH, y=y, ha="left", va="center", size=11)
        now = f"now {self.snapshot.now - self.origin}"
        self.text(WIDTH - EDGE, top, now, size=11, weight="bold", ha="right")
        for k, line in enumerate(_lines(step)[: self.layout.lines]):
            self.text(EDGE, top - 0.26 - k * _LINE, line, ha="left")
        top = self.layout.height - _TITLE - self.layout.lines * _LINE
        self.rings(top)
        if self.snapshot.queue is not None:
            self.queue(self.snapshot.queue, top)
        top -= self.layout.wheels
        if self.layout.depth:
            self.heap(self.snapshot.heap or (), top)
            top -= (self.layout.depth + 0.6) * _ROW
        for name in self.layout.lists:
            self.list(name, self.snapshot.lists.get(name, ()), top - _ROW / 2)
            top -= _ROW
        self.clock(step.visited)
        moves = ((place_text(source), place_text(target)) for source, target in step.moved.values())
        for source, target in dict.fromkeys(moves):
            if source in self.positions and target in self.positions and source != target:
                start, end = self.positions[source], self.positions[target]
                bow = f"arc3,rad={0.4 if end[0] < start[0] else -0.4}"
                style: dict[str, Any] = {"shrinkA": 7, "shrinkB": 4, "connectionstyle": bow}
                self.arrow(start, end, mutation_scale=13, lw=1.8, zorder=5, **style)

    # ---- wheels

    def rings(self, top: float) -> None:
        side, across = self.layout.ring, self.layout.across
        left = (self.layout.room - across * side) / 2
        for k, ring in enumerate(self.snapshot.rings):
            row, column = divmod(k, across)
            centre = left + (column + 0.5) * side, top - (row + 0.5) * side
            self.ring(ring, centre, side / 2 - _LABELS)

    def ring(self, ring: Ring, centre: Position, radius: float) -> None:
        inner, width = radius * 0.68, radius * 0.32
        self.axes.add_patch(Circle(centre, radius, fill=False, ec=INK, lw=0.8))
        self.axes.add_patch(Circle(centre, inner, fill=False, ec=INK, lw=0.8))
        if 1 < ring.size <= _SEPARATED:
            for slot in range(ring.size):
                ends = [self.on(centre, r, slot - 0.5, ring.size) for r in (inner, radius)]
                self.axes.plot(*zip(*ends, strict=True), color=FAINT, lw=0.8)
        level = {} if ring.level is None else {"level": ring.level}
        for slot in range(ring.size):
            middle = self.on(centre, (inner + radius) / 2, slot, ring.size)
            self.positions[place_text({**level, "slot": slot})] = middle
            timers = ring.slots.get(slot, ())
            if timers:
                half = max(180 / ring.size, 0.8 / sqrt(radius))  # degrees, enough to be seen
                angle = 90 - 360 * slot / ring.size
                wedge = Wedge(centre, radius, angle - half, angle + half, width=width)
                wedge.set(fc=HELD, lw=0)
                self.axes.add_patch(wedge)
            if ring.size <= _NUMBERED or slot % ceil(ring.size / 4) == 0:
                self.text(*middle, str(slot), size=8.5, color=ON_HELD if timers else INK)
        groups = _neighbours(ring)
        middles = [(slots[0] + slots[-1]) / 2 * 360 / ring.size for slots in groups]
        around = [*middles, *(middle + 360 for middle in middles[:1])]
        nearest = min((later - earlier for earlier, later in pairwise(around)), default=360)
        most = min(_LINES[min(len(groups), len(_LINES)) - 1], max(int(nearest / _OF_LINE), 1))
        for slots in groups:
            self.deadlines(ring, slots, most, centre, radius)
        tip = self.on(centre, inner * 0.98, ring.current, ring.size)
        base = self.on(centre, inner * 0.78, ring.current, ring.size)
        self.arrow(base, tip, mutation_scale=11, lw=1.6)
        held = sum(map(len, ring.slots.values()))
        name = "" if ring.level is None else f"level {ring.level}"
        lines = [name, f"tick {number(ring.tick)}", f"{held:,} waiting"]
        shown = [line for line in lines if line]
        for k, line in enumerate(shown):
            y = centre[1] + ((len(shown) - 1) / 2 - k) * 0.15
            self.text(centre[0], y, line, size=8.5, weight="bold" if line == name else "normal")

    def deadlines(
        self, ring: Ring, slots: Sequence[int], lines: int, centre: Position, radius: float
    ) -> None:
        """The deadlines of the timers in neighbouring slots, outside the ring."""
        timers = [timer for slot in slots for timer in ring.slots[slot]]
        labels = [self.label(timer) for timer in timers[:lines]]
        if (rest := len(timers) - lines) > 0:
            more = f"+{rest + (lines > 1):,}"
            labels[-1] = more if lines > 1 else f"{labels[-1]} {more}"
        slot = (slots[0] + slots[-1]) / 2
        x, y = self.on(centre, radius + 0.07, slot, ring.size)
        across, up = (x - centre[0]) / radius, (y - centre[1]) / radius
        ha = "center" if abs(across) < 0.25 else "left" if across > 0 else "right"
        va = "center" if abs(up) < 0.5 else "bottom" if up > 0 else "top"
        y = self.apart(x, y, labels, ha, va, 1 if up >= 0 else -1)
        paper = {"fc": PAPER, "ec": "none", "pad": 0.8}  # an arrow passes behind it
        style: dict[str, Any] = {"ha": ha, "va": va, "linespacing": 1.05, "bbox": paper}
        self.text(x, y, "\n".join(labels), size=8.5, zorder=LABEL, **style)

    def apart(self, x: float, y: float, lines: Sequence[str], ha: str, va: str, away: int) -> float:
        """Move a label up (`away` is 1) or down (-1) until it covers no other; return its y."""
        width, height = _CHARACTER * max(map(len, lines)), _HEIGHT * len(lines)
        left = x - {"left": 0.0, "center": 0.5, "right": 1.0}[ha] * width
        below = {"bottom": 0.0, "center": 0.5, "top": 1.0}[va] * height
        for nudge in range(_NUDGES):
            bottom = y + away * nudge * _NUDGE - below
            box = left, bottom, left + width, bottom + height
            if not any(_overlap(box, other) for other in self.labels):
                break
        self.labels.append(box)
        return box[1] + below

    @staticmethod
    def on(centre: Position, radius: float, slot: float, size: int) -> Position:
        """The middle of a slot at a distance from the centre: slot 0 at the top, then clockwise."""
        angle = pi / 2 - 2 * pi * slot / size
        return centre[0] + radius * cos(angle), centre[1] + radius * sin(angle)

    # ---- the queue, the heap, the lists, the clock

    def queue(self, queue: Sequence[Queued], top: float) -> None:
        left, rows = WIDTH - _QUEUE_WIDTH + 0.1, int(self.layout.wheels / _QUEUE_ROW - 2.5)
        self.text(left, top - _QUEUE_ROW * 0.6, "queue of buckets", ha="left", weight="bold")
        held = {(ring.level, slot) for ring in self.snapshot.rings for slot in ring.slots}
        for k, bucket in enumerate(sorted(queue)[:rows]):
            y = top - (k + 1.6) * _QUEUE_ROW
            empty = "" if (bucket.level, bucket.slot) in held else ", empty"
            moment = number(bucket.expiration - self.origin)
            weight = "normal" if k else "bold"
            self.text(left + 0.5, y, moment, size=8, ha="right", weight=weight)
            self.text(left + 0.6, y, f"{bucket_text(bucket)}{empty}", size=8, ha="left")
        if len(queue) > rows:
            y = top - (rows + 1.6) * _QUEUE_ROW
            self.text(left + 0.6, y, f"and {len(queue) - rows:,} more", size=8, ha="left")
        elif not queue:
            self.text(left, top - 1.6 * _QUEUE_ROW, "empty", size=8.5, ha="left")

    def heap(self, heap: Timers, top: float) -> None:
        arity, depth = self.layout.arity, self.layout.depth
        drawn = heap[: sum(arity**level for level in range(depth))]
        spots = [_node(k, arity, top - _ROW / 2) for k in range(len(drawn))]
        for k, spot in enumerate(spots[1:], 1):
            ends = zip(spots[(k - 1) // arity], spot, strict=True)
            self.axes.plot(*ends, color=INK, lw=0.8, zorder=1)
        for k, (spot, timer) in enumerate(zip(spots, drawn, strict=True)):
            self.positions[place_text({"index": k})] = spot
            self.box(spot, timer)
        rest = len(heap) - len(drawn)
        stale = sum(not timer.pending for timer in heap)
        notes = [f"{rest:,} more entries below"] * bool(rest)
        notes += [f"{stale:,} cancelled, not removed yet (dashed)"] * bool(stale)
        y = top - (depth + 0.3) * _ROW
        self.text(EDGE, y, "; ".join(notes) or f"heap of {len(heap):,}", size=8.5, ha="left")

    def list(self, name: str, timers: Timers, y: float) -> None:
        self.text(EDGE, y, f"{name} ({len(timers):,})", ha="left", weight="bold")
        left = EDGE + 1.45
        room = int((WIDTH - left - 0.8) / _STEP)
        self.positions[place_text({"bucket": name})] = left + _BOX / 2, y
        for k, timer in enumerate(timers[:room]):
            x = left + k * _STEP + _BOX / 2
            if k:
                self.axes.plot([x - _STEP + _BOX / 2, x - _BOX / 2], [y, y], color=INK, lw=0.8)
            self.box((x, y), timer)
        if len(timers) > room:
            x = left + room * _STEP
            self.text(x, y, f"{len(timers) - room:,} more", size=8.5, ha="left")

    def box(self, spot: Position, timer: Waiting) -> None:
        x, y = spot[0] - _BOX / 2, spot[1] - 0.13
        style: dict[str, Any] = {"fc": HELD, "ec": HELD}
        if not timer.pending:
            style = {"fc": PAPER, "ec": INK, "ls": "--"}
        shape = FancyBboxPatch((x, y), _BOX, 0.26, boxstyle="round,pad=0,rounding_size=0.06")
        shape.set(**style, zorder=2)
        self.axes.add_patch(shape)
        label = self.label(timer)
        size = 8.5 if len(label) < 7 else 6.8
        self.text(*spot, label, size=size, color=ON_HELD if timer.pending else INK, zorder=3)

    def clock(self, visited: Sequence[int]) -> None:
        """The last moments with events, evenly spaced, and the jumps between them."""
        y, left = 0.3, EDGE + 0.75
        self.text(EDGE, y, "clock", ha="left", weight="bold")
        step = (WIDTH - left - 0.4) / 11
        for k, moment in enumerate(visited):
            last = k == len(visited) - 1
            x = left + k * step
            self.axes.plot([x], [y], marker="o", ms=5, color=CLOCK if last else INK)
            weight = "bold" if last else "normal"
            self.text(x, y - 0.17, number(moment - self.origin), size=8.5, weight=weight)
        for k, (earlier, later) in enumerate(pairwise(visited)):
            x, last = left + (k + 0.5) * step, k == len(visited) - 2
            colour, width = (CLOCK, 1.6) if last else (INK, 0.8)
            bow = Arc((x, y), step * 0.86, 0.36, theta1=0, theta2=180, color=colour, lw=width)
            self.axes.add_patch(bow)
            self.text(x, y + 0.29, f"+{number(later - earlier)}", size=8)

    # ---- parts

    def label(self, timer: Waiting) -> str:
        """The deadline, or the time until then if that is shorter."""
        rounds = f" ({timer.rounds})" if timer.rounds else ""
        shown, left = timer.deadline - self.origin, timer.deadline - self.snapshot.now
        text = f"+{left}" if shown >= LONG and 0 <= left < LONG // 10 else number(shown)
        return text + rounds

    def text(self, x: float, y: float, text: str, **style: Any) -> None:
        """Draw a text, centred unless the style says otherwise."""
        settings = {"size": 9, "ha": "center", "va": "center", "color": INK, **style}
        self.axes.text(x, y, text, **settings)

    def arrow(self, start: Position, end: Position, **style: Any) -> None:
        settings = {"arrowstyle": "-|>", "color": CLOCK, "shrinkA": 0, "shrinkB": 0, **style}
        self.axes.add_patch(FancyArrowPatch(start, end, **settings))


def _overlap(one: Box, other: Box) -> bool:
    """Whether two boxes have a point in common.

    >>> _overlap((0, 0, 2, 1), (1, 0, 3, 1)), _overlap((0, 0, 2, 1), (2, 0, 3, 1))
    (True, False)
    """
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]


def _neighbours(ring: Ring) -> list[list[int]]:
    """The occupied slots, in groups that share a label because they are close together.

    >>> _neighbours(Ring(None, 1, 256, 0, {5: (), 6: (), 30: ()}))
    [[5, 6], [30]]
    """
    apart = 1 if ring.size <= _NUMBERED else ring.size * _APART / 360
    groups: list[list[int]] = []
    for slot in sorted(ring.slots):
        if groups and slot - groups[-1][0] < apart:
            groups[-1].append(slot)
        else:
            groups.append([slot])
    return groups


def _level(index: int, arity: int) -> tuple[int, int]:
    """The level of an entry of the heap, and the index of the first entry of that level.

    >>> _level(0, 4), _level(4, 4), _level(5, 4)
    ((0, 0), (1, 1), (2, 5))
    """
    level = first = 0
    while index >= first + arity**level:
        first += arity**level
        level += 1
    return level, first


def _node(index: int, arity: int, top: float) -> Position:
    """The position of an entry of the heap.

    >>> _node(0, 2, 4.0), _node(2, 2, 4.0)
    ((4.5, 4.0), (6.75, 3.5))
    """
    level, first = _level(index, arity)
    return WIDTH * (index - first + 0.5) / arity**level, top - level * _ROW
