"""`wheelwork anatomy`: draw the contents of a timer, or a player that steps through time."""

from collections.abc import Iterator
from itertools import islice
from typing import TYPE_CHECKING

import click

from compare.base.arguments import check_integer, integer, moments
from compare.cli import options

if TYPE_CHECKING:
    from compare.traffic.tapes.trace import Trace
    from reports.anatomy.steps import Row

MAX_STEPS = 200
MAX_DEADLINES = 100_000


@options.command("""\b
Examples:
  wheelwork anatomy --timer hierarchical-wheel/wheel-size=10 \\
      --deadlines 9,88,222,520,521,522 --at 200 --out wheels.svg
  wheelwork anatomy --timer delay-queue --deadlines 30,10,20 --animate \\
      --out heap.html
  wheelwork anatomy --timer hashed-wheel/tick=10ms --trace web.trace --at 5s \\
      --out moment.png""")
@options.option("--timer", options.TIMER, "Timer to draw, with its parameters.", required=True)
@options.option(
    "--out", options.Place("file"), "File ending in .svg, .png or .html.", required=True
)
@options.option(
    "--deadlines",
    options.Parsed("n,m,...", moments),
    "Schedule timers for these moments at 0.",
)
@options.option("--trace", options.TRACE, "Run the operations of the first shard of a trace.")
@options.option(
    "--at",
    "TIME",
    "Moment to draw, or to begin at: units or, with a trace, a duration after its first operation.",
)
@options.flag("--animate", "Write a player that steps through time (.html).")
@options.option("--steps", options.INTEGER, "Maximum number of steps in the player. [default: 60]")
def anatomy(
    timer: str,
    out: str,
    deadlines: tuple[int, ...] | None,
    trace: str | None,
    at: str | None,
    animate: bool,
    steps: int | None,
) -> None:
    """Draw the wheels, lists or heap of a timer and the timers that wait in them.

    The drawing shows the real state of the structure. Wheels are rings with slot 0
    on top; an arrow points to the slot of the present moment. Moments are units
    after the first operation. With --animate, the page shows each moment at which
    something happens, until nothing is left or --steps are shown.
    """
    options.refuse_both({"--deadlines": deadlines, "--trace": trace})
    if not (deadlines or trace):
        raise click.UsageError("give --deadlines, or a --trace")
    if steps is not None and not animate:
        raise click.UsageError("--steps needs --animate")

    from compare.traffic.tapes.trace import open_trace
    from compare.trial.replay.contestant import contestant
    from reports.anatomy.page import form_of, write
    from reports.anatomy.steps import AnatomyError, Walk

    form = form_of(out)
    if animate and form != ".html":
        raise AnatomyError(f"--animate writes a page, so {out} must end in .html")
    steps = 60 if steps is None else steps
    check_integer(AnatomyError, "--steps", steps, 1, MAX_STEPS)
    opened = open_trace(trace) if trace else None
    if opened and opened.shards[0].first_time is None:
        raise AnatomyError(f"{trace} has no operations in its first shard")
    if deadlines and len(deadlines) > MAX_DEADLINES:
        raise AnatomyError(f"{len(deadlines):,} deadlines are more than {MAX_DEADLINES:,}")
    unit = opened.unit if opened else "unit"
    origin = opened.shards[0].first_time or 0 if opened else 0
    moment = origin + _after(at, unit)
    drawn = contestant(timer)
    rows = _rows(opened) if opened else ((0, 0, k, due) for k, due in enumerate(deadlines or ()))
    walk = Walk(drawn.new(unit, origin), rows, origin, drawn.label)
    shown = list(islice(walk.steps(moment), steps + 1 if animate else 1))
    more = f"More follows: --steps shows up to {MAX_STEPS}." if len(shown) > steps else ""
    title = drawn.label if opened is None else f"{drawn.label}, {opened.path.name} ({unit})"
    write(shown[:steps], title, out, origin, more)
    click.echo(out)


def _rows(trace: "Trace") -> "Iterator[Row]":
    for piece in trace.pieces():
        yield from zip(*(column.tolist() for column in piece), strict=True)


def _after(text: str | None, unit: str) -> int:
    """Parse a moment as units after the first operation. Raises ParameterError or DurationError."""
    from compare.traffic.tapes.units import TAPE_UNITS, parse_duration
    from timers.errors import ParameterError
    from timers.limits import LIMIT

    if text is None:
        return 0
    if unit in TAPE_UNITS and not text.strip().lstrip("+-").isdigit():
        return parse_duration(text, unit)
    try:
        moment = integer(text)
    except ParameterError:
        rule = "a number of units; a duration needs a --trace with a unit of time"
        raise ParameterError(f"--at must be {rule}, not {text[:40]!r}") from None
    check_integer(ParameterError, "--at", moment, 0, LIMIT)
    return moment
