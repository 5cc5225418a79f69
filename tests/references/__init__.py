"""Plain object-based references of the original algorithms, written to be read; they know nothing
of the kernels.

Each does what its original does, with this project's declared deviations, and counts what the
kernels count. Lines that have no counterpart in the original are marked `# ours`: a mark on a
function or a block's first line covers all of it.
"""

from tests.references.cascading_wheel import CascadingWheel
from tests.references.common import Reference
from tests.references.delay_queue import DelayQueue
from tests.references.dense_wheel import DenseWheel
from tests.references.duration_lists import DurationLists
from tests.references.hashed_wheel import HashedWheel
from tests.references.hierarchical_wheel import HierarchicalWheel
from tests.references.linux_wheel import LinuxWheel
from tests.references.ordered_list import OrderedList
from tests.references.simple_wheel import SimpleWheel
from tests.references.sorted_hashed_wheel import SortedHashedWheel
from tests.references.unordered_list import UnorderedList

REFERENCES: dict[str, type[Reference]] = {
    "unordered-list": UnorderedList,
    "delay-queue": DelayQueue,
    "simple-wheel": SimpleWheel,
    "hashed-wheel": HashedWheel,
    "hierarchical-wheel": HierarchicalWheel,
    "cascading-wheel": CascadingWheel,
    "dense-wheel": DenseWheel,
    "linux-wheel": LinuxWheel,
    "duration-lists": DurationLists,
    "ordered-list": OrderedList,
    "sorted-hashed-wheel": SortedHashedWheel,
}
"""Name of a timer -> what it must be."""
