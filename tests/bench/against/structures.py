"""Operations of the timers themselves, called from Python beside `size` others that are far off."""

import itertools

import numpy as np

from .row import cpu

NEAREST, FARTHEST = 20_000_000, 50_000_000  # of the others, in units; no case reaches them
BATCH = 128  # timers of a call of a batch form, as the services gather


def of_size(scheme, size):
    """A timer with `size` others and their handles."""
    timer = scheme(capacity=2 * size + 50_000)
    dice = np.random.default_rng(size)
    return timer, timer.schedule_many(dice.integers(NEAREST, FARTHEST, size)).tolist()


def deadlines(count):
    return np.random.default_rng(count).integers(NEAREST, FARTHEST, count)


def shuffled(handles):
    return np.random.default_rng(0).permutation(handles)


def schedule(size, scheme, method="schedule"):
    timer, _ = of_size(scheme, size)
    call = getattr(timer, method)

    def turn(count):
        handles, whens = [], deadlines(count).tolist()

        def work():
            for when in whens:
                handles.append(call(when))

        used = cpu(work)
        timer.cancel_many(handles)
        return used

    yield turn


def schedule_after(size, scheme):
    return schedule(size, scheme, "schedule_after")


def cancel(size, scheme):
    timer, _ = of_size(scheme, size)

    def turn(count):
        handles = shuffled(timer.schedule_many(deadlines(count))).tolist()

        def work():
            for handle in handles:
                timer.cancel(handle)

        return cpu(work)

    yield turn


def reschedule(size, scheme):
    timer, handles = of_size(scheme, size)
    following = itertools.cycle(shuffled(handles).tolist())

    def turn(count):
        whens = deadlines(count).tolist()
        chosen = list(zip(itertools.islice(following, count), whens, strict=True))

        def work():
            for handle, deadline in chosen:
                timer.reschedule(handle, deadline)

        return cpu(work)

    yield turn


def schedule_many(size, scheme):
    """An operation is one timer of a batch."""
    timer, _ = of_size(scheme, size)

    def turn(count):
        whens = deadlines(count)
        parts, handles = [whens[first : first + BATCH] for first in range(0, count, BATCH)], []

        def work():
            for part in parts:
                handles.append(timer.schedule_many(part))

        used = cpu(work)
        timer.cancel_many(np.concatenate(handles))
        return used

    yield turn


def cancel_many(size, scheme):
    timer, _ = of_size(scheme, size)

    def turn(count):
        handles = shuffled(timer.schedule_many(deadlines(count)))

        def work():
            for first in range(0, count, BATCH):
                timer.cancel_many(handles[first : first + BATCH])

        return cpu(work)

    yield turn


def reschedule_many(size, scheme):
    timer, handles = of_size(scheme, size)
    handles = shuffled(handles)

    def turn(count):
        whens, chosen = deadlines(count), np.resize(handles, count)

        def work():
            for first in range(0, count, BATCH):
                part = slice(first, first + BATCH)
                timer.reschedule_many(chosen[part], whens[part])

        return cpu(work)

    yield turn


def advance_nothing_due(size, scheme):
    """The clock moves by a unit at a time."""
    timer, _ = of_size(scheme, size)

    def work(count):
        for now in range(timer.now + 1, timer.now + count + 1):
            timer.advance(now)

    yield lambda count: cpu(work, count)


def advance_one_due(size, scheme):
    """Ten units lie between two expiries."""
    timer, _ = of_size(scheme, size)

    def turn(count):
        nows = range(timer.now + 10, timer.now + 10 * count + 1, 10)
        timer.schedule_many(nows)

        def work():
            for now in nows:
                timer.advance(now)

        return cpu(work)

    yield turn


def next_expiry(size, scheme, question="next_expiry"):
    """A timer is armed and fires, and then only those that are far off can answer."""
    timer, _ = of_size(scheme, size)
    ask = getattr(timer, question)

    def work(count):
        for now in range(timer.now + 10, timer.now + 10 * count + 1, 10):
            timer.schedule(now)
            timer.advance(now)
            ask()

    yield lambda count: cpu(work, count)


def next_wakeup(size, scheme):
    return next_expiry(size, scheme, "next_wakeup")


def advance_many_due(size, scheme):
    """A thousand timers fire in an `advance` by a hundred units; an operation is one of them."""
    timer, _ = of_size(scheme, size)

    def turn(count):
        used = 0.0
        for first in range(0, count, 1000):
            now = timer.now
            timer.schedule_many(now + 1 + np.arange(min(1000, count - first)) % 100)
            used += cpu(timer.advance, now + 100)
        return used

    yield turn


def length(size, scheme):
    timer, _ = of_size(scheme, size)

    def work(count):
        for _ in range(count):
            len(timer)

    yield lambda count: cpu(work, count)


def place(size, scheme, place_of):
    _, handles = of_size(scheme, size)
    following = itertools.cycle(handles)

    def work(count):
        for handle in itertools.islice(following, count):
            place_of(handle)

    yield lambda count: cpu(work, count)


def construct(size, scheme):
    """A timer with room for `size`."""

    def work(count):
        for _ in range(count):
            scheme(capacity=size)

    yield lambda count: cpu(work, count)
