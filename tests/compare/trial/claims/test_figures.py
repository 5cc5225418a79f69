"""What experiments make of a peer's answers: a fake peer with known values, all different."""

from types import SimpleNamespace

import numpy as np
import pytest

from compare.traffic.tapes.tape import START
from compare.trial.claims import base, geometry, lateness, queues, work
from compare.trial.peers.protocol import PhaseTime
from compare.trial.peers.tapes import tape_of

SIZE = 50


class Answering:
    """A peer whose phases take and count so much; other numbers of its lines are wrong."""

    def __init__(self, *phases, rounds=1, expired=(), counts=()):
        self.phases, self.rounds, self.expired, self.counts = phases, rounds, expired, counts

    def time(self, tape, id_space, *, rounds, warm_up, unit="unit", phases=()):
        assert len(phases) in (0, len(self.phases) - 1)
        return [
            PhaseTime(
                *(number, phase, 7, self.expired[phase] if self.expired else 3),
                wall_ns=10**9,
                thread_ns=ns * (number + 1),
                process_ns=10**8,
                counts=self.counts[phase] if self.counts else {},
            )
            for number in range(rounds)
            for phase, ns in enumerate(self.phases)
        ]


def found(rows):
    return {(row.contestant, row.metric, row.size, row.repeat): row.value for row in rows}


@pytest.mark.parametrize("name", [queues.DELAY_QUEUE, queues.TIMER, queues.EXECUTOR])
def test_insert_cancel_and_purge_are_those_of_their_phases(name):
    peer = Answering(100, 20_000, 3_000, 4, expired=(0, 0, 0, 9))
    rows = found(queues._peer_times(name, SIZE, peer))
    for repeat in range(queues.ROUNDS):
        assert rows.pop((name, "insert_time", SIZE, repeat)) == 100 * (repeat + 1) / SIZE
        assert rows.pop((name, "cancel_time", SIZE, repeat)) == 3_000 * (repeat + 1) / SIZE
        if name == queues.TIMER:
            assert rows.pop((name, "purge_time", SIZE, repeat)) == 20_000 * (repeat + 1)
    if name != queues.EXECUTOR:
        assert rows.pop((name, "fired", SIZE, None)) == 9
    assert not rows


def test_a_poll_is_the_share_of_what_expired():
    peer = Answering(100, 6_000, expired=(0, 30))
    rows = found(queues._polls(SIZE, peer))
    assert rows == {
        (queues.DELAY_QUEUE, "poll_time", SIZE, repeat): 6_000 * (repeat + 1) / 30
        for repeat in range(queues.ROUNDS)
    }


@pytest.fixture
def named(monkeypatch):
    """Lets a peer answer in place of every peer; the parameters with which peers were asked for."""
    asked = []

    def answers(peer):
        def entry(name):
            return SimpleNamespace(peer=lambda **given: asked.append((name, given)) or peer)

        monkeypatch.setattr(base, "entry_named", entry)
        return asked

    return answers


TAPE = tape_of([(0, START, 0, 5), (3, START, 1, 9)])
COUNTED = ({}, {"refiled": 1, "wake_ups": 2}, {"refiled": 12, "wake_ups": 700})
"""Counts grow up to the end: the last ones are of the whole tape."""


def test_counts_are_those_of_the_whole_tape_for_each_timer(named):
    named(Answering(1, 2, 3, counts=COUNTED))
    rows = found(work.kafka_counts(TAPE, SIZE, 4, refiled_each="refiled", wake_ups="wake_ups"))
    assert rows == {
        (work.KAFKA, "refiled_each", SIZE, None): 3,
        (work.KAFKA, "wake_ups", SIZE, None): 175,
    }


def test_a_tick_of_netty_is_one_wake_up(named):
    asked = named(Answering(1, 2, 3, counts=COUNTED))
    rows = found(work._idle(quick=True))
    assert rows[work.NETTY, "wake_ups", None, None] == 700 / work.NETTY_TICK
    assert (work.NETTY, {"tick": work.NETTY_TICK}) in asked


def test_the_levels_of_kafka_are_its_wake_ups(named):
    named(Answering(1, 2, 3, counts=COUNTED))
    rows = found(geometry._levels(quick=True))
    for delay in geometry.DELAYS:
        assert rows[geometry.KAFKA, "level", delay, None] == 700


def test_lateness_counts_from_the_deadline_or_from_a_later_start():
    """The first is due at 5 and fires at 7; the second was due before it was started at 3."""
    tape = tape_of([(0, START, 0, 5), (3, START, 1, 1)])
    rows = SimpleNamespace(operation=np.array([0, 1]), clock=np.array([7, 4]))
    peer = SimpleNamespace(check=lambda tape, id_space: rows)
    late = lateness.peer_lateness(peer, tape)
    assert (late.min, late.max) == (1, 2)
