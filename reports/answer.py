"""Data for the page's script: the costs of every timer for every caller, and of each replay.

The scripts of `reports/templates/page` follow the model of `compare.trial.advice.model`, the rule
of `compare.trial.advice.choice` and the arithmetic of `compare.trial.advice.tuning`, and word the
answer.
"""

import shlex
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from compare.trial.advice import model, tuning
from compare.trial.advice.choice import ENOUGH, MODELLED, MOSTLY, NEAR, USUAL, WORSE
from compare.trial.bench import peers
from compare.trial.bench.callers import (
    HOST_OF,
    LOOP,
    METRICS,
    OWN_CLOCK,
    UVLOOP,
    Costs,
)
from compare.trial.bench.callers import HOSTS as HOSTS_IN_REAL_TIME
from compare.trial.bench.constants import Constants, Fit
from compare.trial.bench.costs import subject_of
from compare.trial.bench.replays import HOSTS, REPLAYS
from compare.trial.bench.steady import IN_TIME, KINDS, RANDOM, TIMEOUTS
from compare.trial.bench.work import LONGEST_DELAY, UNIT
from compare.trial.replay.contestant import contestant
from compare.trial.replay.lateness import lateness_text
from compare.trial.results.schema import MEMORY
from reports import overload
from reports.select import pivot
from reports.statistics import Estimate
from reports.summary import Measured, StoredContestant, StoredPeer, StoredSource, Summary
from reports.titles import TITLES
from timers.limits import LIMIT
from timers.registry import TIMERS

CHEAP = 1e6
"""Nanoseconds of a core in each second of traffic, 0.1 %: below that, speed does not matter."""

USUAL_SIZE = 10_000
"""Timers pending where a peer's cancels and starts are taken from; a million are in no cache."""

TICKING = {family.peer for family in tuning.FAMILIES.values() if family.always}
"""Peers that wake up in each tick, whether something happens or not."""

Fits = dict[int, dict[int, dict[str, Any]]]
"""Number of a timer -> timers pending -> a Fit, as the script reads it."""


def fits_of(summary: Summary, caller: str) -> dict[str, Fits]:
    """Kind of traffic -> the stored constants."""
    found: dict[str, Fits] = {}
    for kind in KINDS:
        by_label = summary.fits.get(subject_of(caller, kind), {})
        fits = {
            number: {size: _plain(fit) for size, fit in sorted(by_label[timer.label].items())}
            for number, timer in enumerate(_everyone(summary))
            if timer.label in by_label
        }
        if fits:
            found[kind] = fits
    return found


def rough_fits_of(summary: Summary, caller: str) -> Fits:
    """The same from pairs, fires and steps, which peers and uvloop have."""
    found = pivot(
        summary.where(subject=caller, metric=METRICS).figures, "contestant", "size", "metric"
    )
    fits: Fits = {}
    for number, timer in enumerate(_everyone(summary)):
        paid = "firing" if caller in OWN_CLOCK else "unit" if timer.label in TICKING else "step"
        by_size = {}
        for size, figures in sorted(found.get(timer.label, {}).items()):
            if figures.keys() >= {*METRICS}:
                costs = Costs(*(figures[name].value for name in METRICS))
                by_size[size] = _plain(model.rough(costs, paid))
        if by_size:
            fits[number] = by_size
    return fits


def _plain(fit: Fit) -> dict[str, Any]:
    return {
        "constants": _short(fit.constants),
        "error": fit.error,
        "rounds": [*map(_short, fit.rounds)],
    }


def _short(constants: Constants) -> list[float]:
    """Six digits of each: a page has thousands of them."""
    return [float(f"{each:.6g}") for each in constants]


def _everyone(summary: Summary) -> list[StoredContestant | StoredPeer | Measured]:
    """The timers in the order of their numbers: contestants, then peers, then hosts."""
    return [*summary.contestants, *summary.peers, *summary.hosts]


def cost(time: Estimate) -> list[float]:
    """A cost in the form that the script reads: the median, and the interval."""
    return [time.value, time.low, time.high]


def competing(summary: Summary) -> dict[int, StoredContestant]:
    """The contestants by number; Python loops only if there are no others."""
    everyone = dict(enumerate(summary.contestants))
    return {number: timer for number, timer in everyone.items() if timer.compiled} or everyone


def data(summary: Summary) -> dict[str, Any]:
    """Everything that the scripts need."""
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
        "callers": _callers(summary) | _languages(summary),
        "advised": [*REPLAYS],
        "kinds": KINDS,
        "cases": [case for source in sources if (case := _case(summary, source))["costs"]],
        "cheap": CHEAP,
        "enough": {"replayed": ENOUGH, "modelled": MODELLED, "host": ENOUGH},
        "near": NEAR,
        "worse": WORSE,
        "mostly": MOSTLY,
        "command": shlex.join(map(str, summary.manifest["command"])),
        "model": {
            "CORE": model.CORE,
            "UNITS": model.UNITS,
            "BEYOND": model.BEYOND,
            "NEAR_SIZE": model.NEAR,
            "FLOOR": model.FLOOR,
            "NINE_OF_TEN": model.NINE_OF_TEN,
            "WIDER": model.WIDER,
            "TIMEOUTS": TIMEOUTS,
        },
        "tuning": {
            "FAMILIES": {
                name: _family(summary, family) for name, family in tuning.FAMILIES.items()
            },
            "PARTS": tuning.PARTS,
            "MANY": tuning.MANY,
            "IN_TIME": IN_TIME,
            "LONGEST": tuning.LONGEST,
            "FIXED": tuning.FIXED,
        },
        "overload": overload.data(summary),
    }


def _callers(summary: Summary) -> dict[str, Any]:
    """The ways of calling this project's timers, and the timers that such a program has today."""
    labels = [timer.label for timer in _everyone(summary)]
    callers = {}
    for caller, (title, meaning) in TITLES.items():
        fits = fits_of(summary, caller)
        rough = {RANDOM: each} if not fits and (each := rough_fits_of(summary, caller)) else {}
        names = [
            *HOSTS.get(caller, ()),
            *([HOST_OF[caller]] if rough and caller in HOST_OF else []),
        ]
        host = next((labels.index(name) for name in names if name in labels), None)
        if fits or rough:
            callers[caller] = _caller(title, meaning, fits or rough, host=host, rough=bool(rough))
    return callers


def _caller(
    title: str, meaning: str, fits: Mapping[str, Fits], *, host: int | None = None, rough: bool
) -> dict[str, Any]:
    return {"title": title, "meaning": meaning, "fits": fits, "host": host, "rough": rough}


def _languages(summary: Summary) -> dict[str, Any]:
    """A caller for each language of the peers. Python calls the project's own timers."""
    first, callers = len(summary.contestants), dict[str, Any]()
    for number, by_size in rough_fits_of(summary, peers.CALLER).items():
        language = summary.peers[number - first].facts["language"]
        if language != "Python":
            meaning = f"It calls a timer written in {language}, which this run timed as a peer."
            new = _caller(f"a {language} program", meaning, {RANDOM: {}}, rough=True)
            fits = callers.setdefault(f"{peers.CALLER} {language}", new)["fits"]
            fits[RANDOM][number] = by_size
    return callers


def _family(summary: Summary, family: tuning.Family) -> dict[str, Any]:
    """A timer with parameters: what it is, and what the run knows about it."""
    about = asdict(family) | {"memory": None, "paid": paid_of(summary, family)}
    if family.timer:
        return about | {"memory": memory_of(family.timer)}
    grown = summary.where(contestant=family.peer, metric=peers.MEMORY).figures
    if grown:
        size = max(key.size or 0 for key in grown)
        [most] = [each.value for key, each in grown.items() if key.size == size]
        slots = family.per_slot * family.measured_slots
        timer = max(most - slots / max(size, 1), 0.0)
        about["memory"] = {"fixed": 0, "timer": timer, "slot": family.per_slot}
    return about


def paid_of(summary: Summary, family: tuning.Family) -> dict[str, float] | None:
    """What a peer pays for a cancel and a start, for a start, for each look at a timer, and for a
    tick; in ns. None if it was not timed with two numbers of timers.

    In the task of expiry all timers fire, after random delays up to LONGEST_DELAY, while the clock
    moves tick by tick. A wheel with rounds looks at a timer in each rotation, and when it fires.
    """
    times = {
        (key.subject, key.size or 0): each.value
        for key, each in summary.where(contestant=family.peer, metric=peers.METRIC).figures.items()
    }
    sizes = sorted(size for subject, size in times if subject == "peer expiry")
    if not family.peer or len(sizes) < 2:
        return None
    small, large = sizes[0], sizes[-1]
    usual = max((size for size in sizes if size <= USUAL_SIZE), default=small)
    few, many = (times["peer expiry", size] for size in (small, large))
    tick = max(few - many, 0.0) / (LONGEST_DELAY / small - LONGEST_DELAY / large)
    looks = 1.0
    if family.kind == tuning.ROUNDS:
        looks += LONGEST_DELAY / 2 / family.measured_slots
    return {
        "pair": times["peer hold", usual],
        "start": times["peer insert", usual],
        "visit": max(many - LONGEST_DELAY / large * tick, 0.0) / looks,
        "tick": tick,
    }


def memory_of(timer: str) -> dict[str, float]:
    """Bytes of one of this project's timers: fixed, for each timer and for each slot."""

    def nbytes(capacity: int, slots: int) -> int:
        made = contestant(f"{timer}/wheel-size={slots}")
        return int(made.new(UNIT, 0, capacity).nbytes)

    least, more, wider = nbytes(1_000, 512), nbytes(2_000, 512), nbytes(1_000, 1_024)
    each, slot = (more - least) / 1_000, (wider - least) / 512
    return {"fixed": least - 1_000 * each - 512 * slot, "timer": each, "slot": slot}


def _timer(summary: Summary, timer: StoredContestant) -> dict[str, Any]:
    low, high = timer.lateness

    def memory(metric: str) -> dict[int, float]:
        return {
            size: each.value for size, each in summary.curves(metric, MEMORY).get(timer, {}).items()
        }

    return {
        "name": timer.plain,
        "timer": timer.timer,
        "parameters": timer.traits["parameters"],
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


def _peer(summary: Summary, peer: StoredPeer) -> dict[str, Any]:
    low, high = peer.facts.get("lateness") or (0, LIMIT)
    grown = summary.where(contestant=peer.name, metric=peers.MEMORY).figures
    return {
        "name": ", ".join(filter(None, (peer.name, peer.facts["library"]))),
        "timer": "",
        "parameters": {},
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
    host = HOSTS_IN_REAL_TIME.get(name)
    low, high = (-host.early, host.late) if host else (0, 0)
    return {
        "name": name,
        "timer": "",
        "parameters": {},
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
    pending = about["waited"] / source.details["span"]
    return {
        "caller": UVLOOP if UVLOOP in loops else LOOP,
        "traffic": {
            "rate": rate,
            "timeout": 0.0,
            "cancelled": 1 - late,
            "answer": 1_000 * pending / rate,  # as long as any timer is pending, on average
            "kind": RANDOM,
            "step": 1,
            "pending": pending,
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
