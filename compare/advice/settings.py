"""The result of a search as code: for Python, and for the timers of other systems."""

import re
from typing import TYPE_CHECKING

from compare.replay.contestant import TICK
from compare.tapes.units import EXPONENTS, TAPE_UNITS, duration_text, parse_duration

if TYPE_CHECKING:
    from compare.advice.candidates import Bounds
    from compare.advice.prices import Counted
    from compare.advice.search import Advice

_JAVA = {"us": "MICROSECONDS", "ms": "MILLISECONDS", "s": "SECONDS"}


def python_line(candidate: "Counted", unit: str) -> str:
    """The call that makes the timer.

    A capacity would only save its growth, so it is left out.
    """
    parameters = candidate.contestant.parameters(unit).items()
    arguments = ", ".join(f"{name}={value:_}" for name, value in parameters)
    return f"timers.{candidate.contestant.timer_class.__name__}({arguments})"


def settings(advice: "Advice") -> dict[str, str]:
    """The setting of each system that corresponds to the best of its scheme within the bounds."""
    unit, bounds = advice.unit, advice.grid.bounds
    line = python_line(advice.best, unit)
    if unit not in TAPE_UNITS:
        reason = "its ticks are durations, and the unit of this trace is not"
        loop = f"wheel_event_loop(lambda: {line}, unit_ns=...)"
        return {**dict.fromkeys(("Netty", "Kafka", "tokio"), reason), "asyncio": loop}
    unit_ns = 10 ** (EXPONENTS["ns"] - EXPONENTS[unit])
    return {
        "Netty": _netty(advice.best_of("hashed-wheel"), unit),
        "Kafka": _kafka(advice.best_of("hierarchical-wheel"), unit),
        "tokio": _tokio(bounds, unit),
        "asyncio": f"wheel_event_loop(lambda: {line}, unit_ns={unit_ns:_})",
    }


def _netty(best: "Counted | None", unit: str) -> str:
    tick = best.contestant.parameters(unit)[TICK] if best else 0
    if best is None or not _milliseconds(tick, unit):
        return "fires up to a tick late, and 1 ms is its shortest; --max-late is below that"
    number, symbol = re.findall(r"\d+|\D+", duration_text(tick, unit))
    size = 1 << (best.wheel_size - 1).bit_length()  # Netty rounds up to a power of two
    return f"new HashedWheelTimer({number}, TimeUnit.{_JAVA[symbol]}, {size})"


def _kafka(best: "Counted | None", unit: str) -> str:
    tick = _milliseconds(best.contestant.parameters(unit)[TICK], unit) if best else 0
    if best is None or not tick:
        return "fires up to a tick early, and 1 ms is its shortest; --max-early is below that"
    return f'new SystemTimer("name", {tick}, {best.wheel_size}, Time.SYSTEM.hiResClockMs())'


def _tokio(bounds: "Bounds", unit: str) -> str:
    late = duration_text(bounds.max_late, unit)
    fits = "keeps" if _milliseconds(bounds.max_late, unit) else "does not keep"
    bound = f"--max-late {late}" if bounds.max_late else "--max-late 0"
    return f"nothing to set: 6 levels of 64 slots of 1 ms, up to 1 ms late; {fits} {bound}"


def _milliseconds(units: int, unit: str) -> int:
    """Whole milliseconds; 0 for less than one."""
    return units * parse_duration(f"1{unit}", "us") // parse_duration("1ms", "us")
