"""Data for the page's script: the costs of every timer for every caller, and of each replay.

The script follows the model of `compare.trial.advice.cost` and the rule of
`compare.trial.advice.choice`, and words the answer. A cost is [median, low, high] in nanoseconds,
as in an `Estimate`.
"""

from collections.abc import Mapping
from typing import Any

from compare.trial.advice.choice import ENOUGH, MODELLED, NEAR, USUAL
from compare.trial.advice.cost import BEYOND, STEPS, Setting
from compare.trial.bench import peers
from compare.trial.bench.callers import (
    BATCH,
    BATCHES,
    COMPILED_CODE,
    HOST_OF,
    HOSTS,
    LOOP,
    METRICS,
    OWN_CLOCK,
    PYTHON,
    SERVICE,
    UVLOOP,
)
from compare.trial.bench.work import UNIT
from compare.trial.replay.lateness import lateness_text
from compare.trial.results.schema import MEMORY
from reports import overload
from reports.select import pivot
from reports.statistics import Estimate
from reports.summary import Measured, StoredContestant, StoredPeer, StoredSource, Summary
from timers.limits import LIMIT
from timers.registry import TIMERS

CHEAP = 1e6
"""Nanoseconds of a core in each second of traffic, 0.1 %: below that, speed does not matter."""

RATES = (100, 1_000, 10_000, 100_000, 1_000_000, 10_000_000)
"""Timers started per second, to choose from."""

TIMEOUTS = (10, 100, 1_000, 10_000, 60_000, 600_000)
"""Timeouts in milliseconds, to choose from."""

SHARES = (0.0, 0.5, 0.9, 0.99, 0.999)
"""Shares of cancelled timers to choose from. All are below 1: without expiries, no order is needed.
"""

ANSWERS = (0.01, 0.05, 0.2, 0.5)
"""Times to the answer as shares of the timeout, to choose from."""

TITLES: Mapping[str, tuple[str, str]] = {
    PYTHON: ("a Python program", "It calls schedule, cancel and advance, one timer at a time."),
    BATCHES: (
        "Python, in batches",
        f"It passes about {BATCH} timers to each schedule_many and cancel_many.",
    ),
    SERVICE: ("Python, through a SystemTimer", "A thread of the service runs callbacks."),
    LOOP: (
        "an asyncio program",
        "It uses asyncio's own loop, uvloop, or wheel_event_loop, which keeps calls in a timer.",
    ),
    UVLOOP: (
        "a program on uvloop",
        "It uses uvloop, or wheel_event_loop(base=uvloop.Loop), which keeps calls in a timer.",
    ),
    COMPILED_CODE: ("compiled code", "A compiled loop calls the kernel, as in a simulation."),
}
"""Caller -> its name on the page, and what it means; in order."""

Cost = list[float]


def costs_of(summary: Summary, caller: str) -> dict[int, dict[int, list[Cost]]]:
    """Contestant -> size -> the costs of METRICS; without those that lack one.

    Peers are numbered after the contestants, and hosts after these.
    """
    found = pivot(
        summary.where(subject=caller, metric=METRICS).figures, "contestant", "size", "metric"
    )
    costs: dict[int, dict[int, list[Cost]]] = {}
    for number, timer in enumerate(_everyone(summary)):
        by_size = {
            size: [cost(figures[name]) for name in METRICS]
            for size, figures in found.get(timer.label, {}).items()
            if figures.keys() >= {*METRICS}
        }
        if len(by_size) > 1:
            costs[number] = dict(sorted(by_size.items()))
    return costs


def _everyone(summary: Summary) -> list[StoredContestant | StoredPeer | Measured]:
    """The timers in the order of their numbers."""
    return [*summary.contestants, *summary.peers, *summary.hosts]


def cost(time: Estimate) -> Cost:
    """A cost in the form that the script reads."""
    return [time.value, time.low, time.high]


def competing(summary: Summary) -> dict[int, StoredContestant]:
    """The contestants by number; Python loops only if there are no others."""
    everyone = dict(enumerate(summary.contestants))
    return {number: timer for number, timer in everyone.items() if timer.compiled} or everyone


def data(summary: Summary) -> dict[str, Any]:
    """Everything that the script needs. Numbers of timers: contestants, then peers, then hosts."""
    labels = [timer.label for timer in _everyone(summary)]
    callers = {
        caller: {
            "title": title,
            "meaning": meaning,
            "costs": costs,
            "host": labels.index(host) if (host := HOST_OF.get(caller)) in labels else None,
            "own_clock": caller in OWN_CLOCK,
        }
        for caller, (title, meaning) in TITLES.items()
        if (costs := costs_of(summary, caller))
    }
    callers |= _languages(summary)
    windows = {timer.precision: timer for timer in competing(summary).values()}
    order = sorted(windows.values(), key=lambda timer: max(map(abs, timer.lateness)))
    sources = sorted(summary.sources, key=lambda source: not source.own)
    return {
        "timers": [
            *(_timer(summary, timer) for timer in summary.contestants),
            *(_peer(summary, peer) for peer in summary.peers),
            *(_host(host.name) for host in summary.hosts),
        ],
        "precisions": [summary.contestants.index(timer) for timer in order],
        "callers": callers,
        "rates": RATES,
        "timeouts": TIMEOUTS,
        "shares": SHARES,
        "answers": ANSWERS,
        "cases": [case for source in sources if (case := _case(summary, source))["costs"]],
        "cheap": CHEAP,
        "enough": {"replayed": ENOUGH, "modelled": MODELLED, "host": ENOUGH},
        "near": NEAR,
        "steps": STEPS,
        "beyond": BEYOND,
        "overload": overload.data(summary),
    }


def _timer(summary: Summary, timer: StoredContestant) -> dict[str, Any]:
    low, high = timer.lateness

    def memory(metric: str) -> dict[int, float]:
        return {
            size: each.value for size, each in summary.curves(metric, MEMORY).get(timer, {}).items()
        }

    return {
        "name": timer.plain,
        "code": code_of(timer),
        "fires": timer.precision,
        "exact": timer.exact,
        "default": not timer.settings,
        "usual": timer.timer == USUAL,
        "low": low,
        "high": high,
        "unit": timer.traits["unit"],
        "memory": memory("at_rest"),  # bytes for each timer, by capacity
    }


def _languages(summary: Summary) -> dict[str, Any]:
    """A caller for each language of the peers. Python calls the project's own timers."""
    costs, first = costs_of(summary, peers.CALLER), len(summary.contestants)
    callers: dict[str, Any] = {}
    for number, by_size in costs.items():
        language = summary.peers[number - first].facts["language"]
        if language != "Python":
            meaning = (
                f"It has a timer that is written in {language}, which the run timed as a peer."
            )
            new: dict[str, Any] = {"title": f"a {language} program", "meaning": meaning}
            new |= {"costs": {}, "host": None, "own_clock": False}
            callers.setdefault(f"{peers.CALLER} {language}", new)["costs"][number] = by_size
    return callers


def _peer(summary: Summary, peer: StoredPeer) -> dict[str, Any]:
    low, high = peer.facts.get("lateness") or (0, LIMIT)
    grown = summary.where(contestant=peer.name, metric=peers.MEMORY).figures
    return {
        "name": ", ".join(filter(None, (peer.name, peer.facts["library"]))),
        "code": [],
        "fires": peer.facts["rounding"] or "",
        "exact": low == high == 0,
        "default": True,
        "usual": False,
        "low": low,
        "high": high,
        "unit": UNIT,
        "memory": {key.size: each.value for key, each in grown.items()},
    }


def _host(name: str) -> dict[str, Any]:
    low, high = -HOSTS[name].early, HOSTS[name].late
    return {
        "name": name,
        "code": [],
        "fires": lateness_text(low, high, UNIT),
        "exact": low == high == 0,
        "default": True,
        "usual": False,
        "low": low,
        "high": high,
        "unit": UNIT,
        "memory": {},
    }


def code_of(timer: StoredContestant) -> list[str]:
    """The Python code that makes such a timer, up to the capacity and after it.

    Where its tick is a duration, a unit is 1 ms.
    """
    module, _, name = TIMERS.get(timer.timer, timer.timer).rpartition(":")
    module = "timers" if timer.timer in TIMERS else module
    is_duration = isinstance(timer.traits["tick"], str)
    comment = f"  # one unit is 1 {timer.traits['unit'] or 'ms'}" if is_duration else ""
    arguments = "".join(f"{key}={value}, " for key, value in timer.traits["parameters"].items())
    return [f"from {module} import {name}\ntimer = {name}({arguments}capacity=", f"){comment}"]


def _program(source: StoredSource) -> dict[str, Any] | None:
    """The caller and the traffic of a program that was recorded on an event loop."""
    made, about = source.details.get("details", {}), source.details.get("description")
    loops = made.get("loops") if made.get("kind") == "recording" else None
    if not loops or not about or not source.seconds or not about["armed"]:
        return None
    rate = about["armed"] / source.seconds
    late = (about["armed"] - about["answered"] - about["pending"]) / about["armed"]
    return {
        "caller": UVLOOP if UVLOOP in loops else LOOP,
        "setting": {
            "rate": rate,
            "share": 1 - late,
            "pending": about["waited"] / source.details["span"],
            "steps": Setting(rate, 0.0, 1 - late, 0.0).wakeups,
        },
    }


def _case(summary: Summary, source: StoredSource) -> dict[str, Any]:
    """A replayed source, and the times of its timers per operation."""
    replays = summary.column("replay_time", source.name)
    rivals = {number: timer for number, timer in competing(summary).items() if timer in replays}
    first = next(iter(rivals.values()), None)
    pending = summary.value(first, source, "most_pending") if first else None
    return {
        "name": summary.called(source),
        "program": _program(source),
        "own": source.own and not source.generated,
        "together": source.together,
        "rate": source.rate,
        "started": source.details.get("timers", 0) / source.seconds if source.seconds else 0.0,
        "pending": int(pending or 0),
        "costs": {number: cost(replays[timer]) for number, timer in rivals.items()},
        "missing": [
            timer.plain
            for timer in summary.contestants
            if (timer.label, source.name, "replay_time") in summary.over_budget
        ],
    }
