"""What several tests of the services are given."""

import pytest

from tests.timers.services.cases import Interposed, SettableClock, manual
from timers import CascadingWheel
from timers.services import Purgatory, SystemTimer


@pytest.fixture
def interposed():
    """The clock, the service, and the timer whose calls the test interrupts."""
    clock = SettableClock()
    timer = Interposed(CascadingWheel())
    return clock, SystemTimer(timer, clock=clock, start=False), timer


@pytest.fixture
def purgatory():
    """A purgatory on a ManualClock, as its attribute `clock`."""
    clock, timer = manual()
    created = Purgatory("test", timer)
    created.clock = clock
    return created
