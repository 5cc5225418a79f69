"""Turn touches of keys, in the order of time, into a tape and the late touches that it lacks."""

# ruff: noqa: ANN001, ANN202  # compiled functions are typed by their arguments
# mypy: disable-error-code="no-untyped-def, no-untyped-call"
import numpy as np

from compare.traffic.tapes.description import Late
from compare.traffic.tapes.tape import ARM, START, Tape
from timers.arrays import Int32s, Int64s
from timers.kernels.jit import long_entry
from timers.kernels.operations import NONE

_ENDS = 0
"""The node that joins the ends of the list. Its id would be -1."""
_NODE = np.dtype(
    [("time", np.int64), *((name, np.int32) for name in ("key", "before", "behind"))], align=True
)
"""An id: its last touch, the key that had it then, and its neighbours in a list of all ids in the
order of their last touches. So the first ones are free.
"""


class TouchTape:
    """The tape of touches: each row re-arms the timer of its key.

    A key keeps its id until it has been silent for two idle periods. The first one ends at the
    deadline. In the second one, a timer that fires late may still be pending, and a touch must find
    it under the same id. The id then goes to the next new key. The first touch of that key is a
    start instead of an arm, because it must not re-arm the timer of the former holder.
    """

    def __init__(self, idle: int) -> None:
        self._idle = idle
        self._nodes = np.zeros(1, _NODE)
        self._nodes["key"][_ENDS] = -1
        self._node_of = np.empty(0, np.int32)  # key -> node, or _ENDS
        self._seen = np.empty(0, np.int64)  # key -> its last touch when it lost its id, or NONE
        self._id_space = 0

    def add(self, time: Int64s, keys: Int32s) -> tuple[Tape, Late]:
        """Add rows in the order of time; return one operation for each. O(n).

        A touch is late, and not shown as such by its operation, if its key has lost its id. A key
        is a small number. Memory: 36 bytes for each number up to the largest one.
        """
        known, space = len(self._node_of), int(keys.max(initial=-1)) + 1
        if space > known:
            more = max(space, 2 * known) - known
            self._nodes = np.concatenate([self._nodes, np.zeros(more, _NODE)])
            self._node_of = np.concatenate([self._node_of, np.zeros(more, np.int32)])
            self._seen = np.concatenate([self._seen, np.full(more, NONE)])
        ids, ops = np.empty(len(time), np.int32), np.empty(len(time), np.int8)
        waits = np.empty(len(time), np.int64)
        state = self._nodes, self._node_of, self._seen, self._id_space
        self._id_space, late = _fold(time, keys, self._idle, *state, ids, ops, waits)
        until = int(time[-1]) if len(time) else 0
        return Tape(time, ops, ids, time + self._idle), Late(waits[:late], until)


@long_entry
def _fold(time, keys, idle, nodes, node_of, seen, id_space, ids, ops, waits):
    """Fill in ids, operations and late touches; return the numbers of ids and of late touches."""
    late = 0
    for row in range(time.size):
        now, key = time[row], keys[row]
        nodes[_ENDS]["time"] = now  # so that it is not free
        # A key keeps its id for a period of silence after its timer has fired. Then another key may
        # take the id, and its operation is a start.
        node, ops[row] = node_of[key], ARM
        silence, is_own = now - nodes[node]["time"], nodes[node]["key"] == key
        if not is_own or silence - idle >= idle:
            last = now - silence if is_own else seen[key]
            if last != NONE:
                waits[late] = now - last
                late += 1
            node = nodes[_ENDS]["behind"]
            if now - nodes[node]["time"] - idle >= idle:
                ops[row] = START
                seen[nodes[node]["key"]] = nodes[node]["time"]
            else:
                id_space += 1
                node = np.int32(id_space)
                nodes[node]["before"] = nodes[node]["behind"] = node
            nodes[node]["key"], node_of[key] = key, node
        # The node moves to the end of the list.
        before, behind = nodes[node]["before"], nodes[node]["behind"]
        nodes[before]["behind"], nodes[behind]["before"] = behind, before
        last = nodes[_ENDS]["before"]
        nodes[last]["behind"] = nodes[_ENDS]["before"] = node
        nodes[node]["before"], nodes[node]["behind"], nodes[node]["time"] = last, _ENDS, now
        ids[row] = node - 1
    return id_space, late
