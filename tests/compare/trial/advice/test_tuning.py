"""The work of a wheel by its setting, beside what timers count in replays."""

import math

import numpy as np
import pytest

from compare.trial.advice.tuning import (
    FAMILIES,
    default,
    idle,
    longest,
    recommended,
    work,
)
from compare.trial.bench.steady import FEW, KEEPALIVE, ONE, PERIODIC, RANDOM, Traffic, steady
from compare.trial.bench.work import UNIT
from compare.trial.peers.catalogue import HERE
from compare.trial.replay.contestant import contestant
from compare.trial.replay.engine import Buffers, loop_for, operations_of
from compare.trial.replay.wakeups import drive

NETTY, KAFKA, AGRONA, TOKIO = (FAMILIES[name] for name in ("netty", "kafka", "agrona", "tokio"))

TRAFFIC = [
    Traffic(2_000, 3_000, 0.0, 0.0, ONE),
    Traffic(2_000, 3_000, 0.9, 600.0, ONE),
    Traffic(2_000, 3_000, 0.9, 150.0, RANDOM),
    Traffic(2_000, 3_000, 0.5, 150.0, FEW),
    Traffic(2_000, 3_000, 0.99, 300.0, KEEPALIVE),
    Traffic(2_000, 3_000, 0.0, 0.0, PERIODIC),
]


def counts(label, traffic, tick):
    """What a timer of this project counts in a second of the traffic, after as much time."""
    made = steady(traffic, round(traffic.rate * 4 * max(traffic.timeout, 1_000) / 1_000), seed=3)
    timer = contestant(label).new(UNIT, 0, made.tape.time.size, counting=True)
    loop = loop_for(timer, Buffers(made.ids, made.ids), lambda rows: None)
    rows = operations_of(made.tape)
    half = int(np.searchsorted(rows["time"], rows["time"][-1] // 2))
    loop.run(rows[:half])
    before, seconds = dict(timer.counters), (rows["time"][-1] - rows["time"][half]) / 1_000
    loop.run(rows[half:])
    found = {name: (count - before[name]) / seconds for name, count in timer.counters.items()}
    # What fires is looked at then, and what starts when its tick is over, if it has not ended.
    share, answer = traffic.cancelled, max(traffic.answer, 1e-9)
    ended = share * (1 - answer / tick * -math.expm1(-tick / answer))
    other = traffic.rate * (1 - share + 1 - ended)
    return found | {"early": found["timers_touched"] - other}


@pytest.mark.parametrize("traffic", TRAFFIC, ids=str)
@pytest.mark.parametrize(("tick", "slots"), [(10, 32), (10, 512), (100, 8)])
def test_timers_that_a_wheel_with_rounds_looks_at_too_early(traffic, tick, slots):
    found = counts(f"hashed-wheel/tick={tick}ms/wheel-size={slots}", traffic, tick)
    stated = work(FAMILIES["hashed-wheel"], traffic, tick, slots)
    assert stated.visits == pytest.approx(found["early"], rel=0.15, abs=0.05 * traffic.rate)
    assert stated.visits == work(NETTY, traffic, tick, slots).visits
    if tick * slots > longest(traffic):
        assert stated.visits == 0


@pytest.mark.parametrize("traffic", TRAFFIC, ids=str)
@pytest.mark.parametrize(("tick", "slots"), [(1, 20), (10, 64), (10, 4_096)])
def test_timers_that_are_moved_down(traffic, tick, slots):
    found = counts(f"hierarchical-wheel/tick={tick}ms/wheel-size={slots}", traffic, tick)
    stated = work(KAFKA, traffic, tick, slots)
    assert stated.moves == pytest.approx(found["refiled"], rel=0.25, abs=0.05 * traffic.rate)
    assert stated.wakeups == pytest.approx(found["queue_polls"], rel=0.25, abs=20)


@pytest.mark.parametrize("traffic", TRAFFIC[:3], ids=str)
@pytest.mark.parametrize(
    ("family", "label", "tick", "slots"),
    [
        ("hashed-wheel", "hashed-wheel/tick={}ms/wheel-size={}", 10, 512),
        ("hierarchical-wheel", "hierarchical-wheel/tick={}ms/wheel-size={}", 10, 64),
    ],
)
def test_wakeups_are_those_of_a_driver(traffic, family, label, tick, slots):
    made = steady(traffic, round(traffic.rate * 12), seed=3)
    timer = contestant(label.format(tick, slots)).new(UNIT, 0, made.tape.time.size)
    last = int(made.tape.time[-1])
    woken = drive(timer, made.tape, made.ids, last)
    stated = work(FAMILIES[family], traffic, tick, slots)
    assert stated.wakeups == pytest.approx(1_000 * woken.wakeups / last, rel=0.3)


def test_netty_wakes_up_in_each_tick_whatever_happens():
    """By hand: 300 000 connections with a timeout of 60 s, and Netty's own setting, whose rotation
    takes 51.2 s. Each timer that is not touched is looked at once before it fires.
    """
    quiet = idle(Traffic(25_000, 60_000, 0.99, 11_500, KEEPALIVE))
    pending = quiet.pending
    assert default(NETTY) == (100, 512)
    stated = work(NETTY, quiet, *default(NETTY))
    assert stated.wakeups == 10
    assert stated.visits == pytest.approx(pending / 60)
    assert recommended(NETTY, quiet, 500) == (500, 128)
    assert work(NETTY, quiet, 500, 128) == (2, 0, 0)
    assert NETTY.lateness(500) == (0, 500) and KAFKA.lateness(500) == (-499, 0)


@pytest.mark.parametrize(
    ("family", "off", "setting"),
    [
        (NETTY, 99, (50, 2_048)),
        (NETTY, 0, (1, 65_536)),
        (AGRONA, 99, (64, 1_024)),
        (KAFKA, 99, (100, 1_024)),
        (KAFKA, 0, (1, 65_536)),
        (TOKIO, 99, (1, 64)),
        (FAMILIES["simple-wheel"], 99, (1, 65_536)),
    ],
)
def test_a_recommended_setting_keeps_its_bound_and_covers_all_delays(family, off, setting):
    traffic = Traffic(100, 60_000, 0.0, 0.0, ONE)
    tick, slots = recommended(family, traffic, off)
    assert (tick, slots) == setting
    if family.slots:
        assert tick * slots > longest(traffic)
        assert not any(work(family, traffic, tick, slots)[1:])
    assert max(map(abs, family.lateness(tick))) <= max(off, 1)


def test_emptied_buckets_wake_up_a_driver_only_where_they_linger():
    traffic = Traffic(1_000, 10_000, 1.0, 50.0, ONE)
    assert work(KAFKA, traffic, 1, 20).wakeups > 0.1
    assert work(TOKIO, traffic, 1, 64).wakeups < 0.01


def test_few_rotations_are_counted_and_many_estimated():
    traffic = Traffic(100, 1_000.5, 0.5, 200.0, ONE)
    few, many = work(NETTY, traffic, 1, 2), work(NETTY, traffic, 1, 1)
    assert many.visits == pytest.approx(2 * few.visits, rel=0.01)


@pytest.mark.parametrize("family", [NETTY, KAFKA, AGRONA], ids=lambda family: family.name)
def test_the_slots_of_a_peer_are_those_that_are_measured(family):
    source = (HERE / family.peer / "Main.java").read_text()
    assert f'Peer.parameter("wheel_size", {family.measured_slots})' in source
