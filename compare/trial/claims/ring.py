"""The ring of sets for idle connections, as articles draw it, and as it works.

A pointer goes one slot further each second, and the connections in its slot are closed. A map has
the slot of each connection. Where does a connection go when a packet arrives? Run both answers with
`python -m compare.trial.claims.ring`.
"""

from collections.abc import Callable

PLACES: dict[str, Callable[[int, int], int]] = {
    # "To the slot that will expire in the next tick": there it is closed a second later.
    "as drawn": lambda pointer, slots: (pointer + 1) % slots,
    # The slot that has just expired, behind the pointer: a full turn away.
    "a full turn": lambda pointer, slots: pointer,
}


class Ring:
    """An array of sets of ids, and a map from id to slot; `place` chooses the slot of a touch.

    >>> ring = Ring(30, PLACES["a full turn"])
    >>> ring.touch(7)
    >>> [second for second in range(1, 60) if ring.tick()]
    [30]
    """

    def __init__(self, slots: int, place: Callable[[int, int], int]) -> None:
        self._slots: list[set[int]] = [set() for _ in range(slots)]
        self._slot_of: dict[int, int] = {}
        self._pointer, self._place = 0, place

    def touch(self, connection: int) -> None:
        """A packet arrives: move the connection. O(1)."""
        if connection in self._slot_of:
            self._slots[self._slot_of[connection]].remove(connection)
        slot = self._place(self._pointer, len(self._slots))
        self._slots[slot].add(connection)
        self._slot_of[connection] = slot

    def tick(self) -> set[int]:
        """Move the pointer, and return the connections that have timed out. O(1) and these."""
        self._pointer = (self._pointer + 1) % len(self._slots)
        expired = self._slots[self._pointer]
        self._slots[self._pointer] = set()
        for connection in expired:
            del self._slot_of[connection]
        return expired


if __name__ == "__main__":
    for name, place in PLACES.items():
        ring = Ring(30, place)
        ring.touch(7)
        print(f"{name}: closed after {next(n for n in range(1, 99) if ring.tick())} s of silence")
