"""The services when an allocation fails: each method of `test_interruptions` runs again and again,
until each of its allocations has failed once. Prints the names of the methods that allocate.
"""

import _testcapi  # of CPython's own tests

from tests.timers.services.test_interruptions import REPEATABLE, settings


def run_without(number, run, _):
    """Run a method without the memory for one of its allocations; False if it did not notice."""
    _testcapi.set_nomemory(number + 1, number + 2)
    try:
        run()
    except (MemoryError, SystemError):  # the latter is what a ufunc of NumPy raises
        return True
    finally:
        _testcapi.remove_mem_hooks()
    return False


if __name__ == "__main__":
    for method in REPEATABLE:
        if settings(method, run_without, patience=20):  # a method may survive a failed one
            print(method)
