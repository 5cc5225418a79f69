"""A timer with a parameter of its own, as one that is added to the registry."""

import dataclasses

from timers.schemes.base import DEFAULT_CAPACITY
from timers.schemes.unordered_list import UnorderedList
from timers.traits import Parameter


class AddedTimer(UnorderedList):
    """A scheme and a parameter by other names, with a kernel like all others."""

    traits = dataclasses.replace(
        UnorderedList.traits,
        name="added-timer",
        parameters={"levels": Parameter(4, 1, 8, grid=lambda *_: range(2, 20, 2))},
    )

    def __init__(
        self,
        levels: int = 4,
        *,
        start: int = 0,
        capacity: int = DEFAULT_CAPACITY,
        counting: bool = False,
    ) -> None:
        super().__init__(levels=levels, start=start, capacity=capacity, counting=counting)

    @property
    def nbytes(self) -> int:
        """The more levels, the more bytes."""
        return super().nbytes + 1000 * self.parameters["levels"]
