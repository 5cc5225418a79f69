"""What several tests of the services are given."""

import pytest

from tests.timers.services.cases import MS, Interposed, caller_driven, new_purgatory
from timers import CascadingWheel
from timers.services import ManualClock, SystemTimer


@pytest.fixture(params=["caller", "clock"])
def driven(request):
    """A service without a thread, its timer, whose calls the test interrupts, and a function that
    moves its time by some seconds and runs what is due.
    """
    timer = Interposed(CascadingWheel())
    if request.param == "clock":
        clock = ManualClock()
        return SystemTimer(timer, clock=clock), timer, clock.advance
    clock, service = caller_driven(timer)

    def drive(seconds):
        clock.value += seconds * 1000 * MS
        service.advance_clock()

    return service, timer, drive


@pytest.fixture
def purgatory():
    """A purgatory on a ManualClock, as its attribute `clock`."""
    return new_purgatory()
