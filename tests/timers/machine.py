"""The model-based check of this project's timers: what it cannot know of others is added here."""

from hypothesis import strategies as st
from hypothesis.stateful import initialize, invariant, rule

from compare.trial.peers.conformance import MOST_CAPACITY, STARTS, TimerMachine
from tests.timers.cases import age, agree, check_snapshot
from timers.kernels.handles import place_of
from timers.schemes.base import KernelTimer


class OwnTimerMachine(TimerMachine):
    """Also looks at places, at snapshots, and at timers whose places are soon used up."""

    @initialize(
        start=st.sampled_from(STARTS),
        capacity=st.integers(1, MOST_CAPACITY),
        aged=st.integers(0, 3),
    )
    def make(self, start: int, capacity: int, aged: int) -> None:
        super().make(start, capacity)
        if aged == 0 and isinstance(self.timer, KernelTimer):
            age(self.timer, 1)
        self.peak = 0  # most timers ever pending at once

    @rule()
    def snapshot_shows_what_is_pending(self) -> None:
        if hasattr(self.timer, "snapshot"):
            pending = {handle: timer.deadline for handle, timer in self.model.pending.items()}
            check_snapshot(self.timer, pending)

    @invariant()
    def agree(self) -> None:
        agree(self.timer, self.model)

    def remember(self, handles: list[int]) -> None:
        """New handles each have a place of their own, and the places are dense."""
        super().remember(handles)
        self.peak = max(self.peak, len(self.model) + len(handles))
        taken = {place_of(other) for other in self.model.pending}
        for handle in handles:
            assert place_of(handle) not in taken, (
                f"two pending timers are in place {place_of(handle)}"
            )
            assert 0 <= place_of(handle) < 2 * (self.peak + MOST_CAPACITY), (
                "places are neither dense nor used again"
            )
            taken.add(place_of(handle))
