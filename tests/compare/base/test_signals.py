"""Signals wait for the block, once each, and the handlers from before come back."""

import signal
import threading

import pytest

from compare.base.signals import deferred_signals

SIGNALS = (signal.SIGINT, signal.SIGTERM)


@pytest.fixture
def handled():
    """The signals that this test's own handlers have seen."""
    seen = []
    former = {number: signal.signal(number, lambda n, _: seen.append(n)) for number in SIGNALS}
    yield seen
    for number, handler in former.items():
        signal.signal(number, handler)


def test_signals_wait_until_they_are_asked_for(handled):
    with deferred_signals() as handle:
        for number in SIGNALS:
            signal.raise_signal(number)
        assert handled == []
        handle()
        assert sorted(handled) == list(SIGNALS)
        signal.raise_signal(signal.SIGTERM)  # no longer deferred
        assert handled.count(signal.SIGTERM) == 2


@pytest.mark.parametrize("error", [None, OSError])
def test_signals_wait_for_the_end_of_the_block(handled, error):
    with pytest.raises(error) if error else deferred_signals(), deferred_signals():
        signal.raise_signal(signal.SIGTERM)
        assert handled == []
        if error:
            raise error
    assert handled == [signal.SIGTERM]


def test_an_ignored_signal_stays_ignored(handled):
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # as under nohup: a program inherits it
    with deferred_signals():
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
        signal.raise_signal(signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN


def test_another_thread_leaves_the_handlers_alone(handled):
    def look():
        with deferred_signals() as handle:
            handlers.append(signal.getsignal(signal.SIGTERM))
            handle()

    handlers = []
    thread = threading.Thread(target=look)
    thread.start()
    thread.join()
    assert handlers == [signal.getsignal(signal.SIGTERM)]
