"""The result of a search as code: for Python, and for the timers of other systems."""

import re
from typing import TYPE_CHECKING

from compare.traffic.tapes.units import TAPE_UNITS, duration_text, parse_duration
from compare.trial.advice.tuning import FAMILIES
from compare.trial.bench.callers import HOSTS
from compare.trial.replay.contestant import TICK, contestant

if TYPE_CHECKING:
    from compare.trial.advice.candidates import Bounds, Candidate
    from compare.trial.advice.program import Program
    from compare.trial.advice.search import Advice

NO_WHEEL = "no wheel of its scheme keeps the bounds"
_JAVA = {"ns": "NANOSECONDS", "us": "MICROSECONDS", "ms": "MILLISECONDS", "s": "SECONDS"}


def python_line(candidate: "Candidate", unit: str) -> str:
    """The call that makes the timer, with room for the most timers that were pending at once."""
    parameters = candidate.contestant.parameters(unit) | {"capacity": max(candidate.pending, 1)}
    arguments = ", ".join(f"{name}={value:_}" for name, value in parameters.items())
    return f"timers.{candidate.contestant.timer_class.__name__}({arguments})"


def settings(advice: "Advice") -> dict[str, str]:
    """The setting of each system that corresponds to the best of its scheme within the bounds."""
    unit, bounds = advice.unit, advice.bounds
    if unit not in TAPE_UNITS:
        reason = "its times are durations, and the unit of this trace is not"
        return dict.fromkeys(("Netty", "Kafka", "tokio", "asyncio"), reason)
    return {
        "Netty": _netty(advice.best_of("hashed-wheel"), bounds, unit),
        "Kafka": _kafka(advice.best_of("hierarchical-wheel"), bounds, unit),
        "tokio": _tokio(bounds, unit),
        "asyncio": _asyncio(advice.program),
    }


def _asyncio(program: "Program | None") -> str:
    if program is None:
        return "nothing was measured: the trace has no time between its operations"
    if program.keeps or program.best in HOSTS:
        return f"{'keep ' * program.keeps}{program.best}"
    timer = contestant(program.best).timer_class.__name__
    base = "" if program.host == "asyncio" else ", base=uvloop.Loop"
    return f"wheel_event_loop(timers.{timer}, unit_ns=1_000_000{base})"


def _netty(best: "Candidate | None", bounds: "Bounds", unit: str) -> str:
    if not _milliseconds(bounds.max_late, unit):
        bound = _given("--max-late", bounds.max_late, unit)
        return f"fires up to a tick late, and {bound} does not allow its shortest, 1 ms"
    if best is None:
        return NO_WHEEL
    parameters = best.contestant.parameters(unit)
    tick, wheel_size = parameters[TICK], parameters["wheel_size"]
    text = duration_text(tick, unit) if _milliseconds(tick, unit) else "1ms"
    number, symbol = re.findall(r"\d+|\D+", text)
    size = 1 << (wheel_size - 1).bit_length()  # Netty rounds up to a power of two
    code = FAMILIES["netty"].code.format(tick=number, slots=size)
    return code.replace(_JAVA["ms"], _JAVA[symbol])


def _kafka(best: "Candidate | None", bounds: "Bounds", unit: str) -> str:
    longest = _milliseconds(bounds.max_early + 1, unit)  # a tick of n units is up to n - 1 early
    if not longest:
        bound = _given("--max-early", bounds.max_early, unit)
        return f"fires up to a tick early, and {bound} does not allow its shortest, 1 ms"
    if best is None:
        return NO_WHEEL
    parameters = best.contestant.parameters(unit)
    tick, wheel_size = max(_milliseconds(parameters[TICK], unit), 1), parameters["wheel_size"]
    return FAMILIES["kafka"].code.format(tick=tick, slots=wheel_size)


def _tokio(bounds: "Bounds", unit: str) -> str:
    fits = "keeps" if _milliseconds(bounds.max_late, unit) else "does not keep"
    late = _given("--max-late", bounds.max_late, unit)
    return f"nothing to set: 6 levels of 64 slots of 1 ms, up to 1 ms late; {fits} {late}"


def _given(option: str, bound: int, unit: str) -> str:
    return f"{option} {duration_text(bound, unit) if bound else 0}"


def _milliseconds(units: int, unit: str) -> int:
    """Whole milliseconds; 0 for less than one."""
    return units * parse_duration(f"1{unit}", "ns") // parse_duration("1ms", "ns")
