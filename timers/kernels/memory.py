"""Arrays that can become longer where they are.

A long array starts a range of addresses that is reserved for all it may ever need. The system
provides a page of memory when it is first used, so the rest of the range costs nothing. Such an
array grows without a copy: the longer array has the same memory. Where a reservation costs
something, because addresses are limited (`ulimit -v` or `-d`) or count as memory
(`vm.overcommit_memory=2`), and on Windows, arrays are copied when they grow.
"""

import mmap
import os
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from timers.kernels.jit import inlined

RESERVED_FROM = 1 << 20
"""Bytes from which an array has a range reserved: a copy of fewer takes little time."""

MOST = 1 << 36
"""Bytes of addresses that are reserved at most: more than 2**31 places of any timer need."""

HUGE_FROM = 1 << 22
"""Bytes from which an array is given huge pages, as by NumPy: fewer would waste too much."""

OVERCOMMIT = Path("/proc/sys/vm/overcommit_memory")
NEVER = "2"  # the kernel then promises no more memory than there is

LINE = 64  # bytes of a cache line

Array = np.ndarray[Any, Any]


def zeros(length: int, dtype: Any) -> Array:
    """Return an array of zeros that starts a cache line. Raises MemoryError."""
    dtype = np.dtype(dtype)
    nbytes = length * dtype.itemsize
    if nbytes >= RESERVED_FROM and (memory := reserved(nbytes)) is not None:
        return lengthened(np.frombuffer(memory, dtype, 0), length)
    memory = np.zeros(nbytes + LINE, np.uint8)
    first = -memory.ctypes.data % LINE
    return memory[first : first + nbytes].view(dtype)


def reserved(nbytes: int) -> Any:
    """Reserve addresses for as many bytes as the machine has memory, up to MOST; None if that costs
    something, is refused, or is less than `nbytes`.
    """
    if not is_free():
        return None
    try:
        size = min(os.sysconf("SC_PHYS_PAGES") * mmap.PAGESIZE, MOST)
        if size < nbytes:
            return None
        return mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    except (OSError, OverflowError, ValueError):
        return None


def is_free() -> bool:
    """Return whether reserved addresses cost nothing before they are used."""
    if sys.platform == "win32":
        return False
    import resource  # not on Windows

    with suppress(OSError):  # not on macOS
        if OVERCOMMIT.read_text(encoding="ascii").strip() == NEVER:
            return False
    limits = resource.RLIMIT_AS, resource.RLIMIT_DATA  # both count what is reserved
    return all(resource.getrlimit(limit)[0] == resource.RLIM_INFINITY for limit in limits)


def is_reserved(array: Array) -> bool:
    """Return whether an array from `zeros` can grow without a copy."""
    return isinstance(array.base, memoryview)


def lengthened(array: Array, length: int) -> Array:
    """Return a longer array with the same memory, or else new zeros. Raises MemoryError."""
    memory, nbytes = array.base, length * array.dtype.itemsize
    if not isinstance(memory, memoryview) or nbytes > memory.nbytes:
        return zeros(length, array.dtype)
    if nbytes >= HUGE_FROM and isinstance(memory.obj, mmap.mmap):
        with suppress(AttributeError, OSError):  # not every system has huge pages
            memory.obj.madvise(mmap.MADV_HUGEPAGE)
    return np.frombuffer(memory, array.dtype, length)


@inlined
def is_same(array, other):
    """Return whether two arrays have the same memory."""
    return array.ctypes.data == other.ctypes.data
