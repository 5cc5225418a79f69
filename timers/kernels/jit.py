"""How the kernels are compiled, and where compiled code is kept between processes.

`jit` marks a function that other compiled functions call; `entry` marks one that Python calls. Only
entries are cached on disk: a cached entry holds the machine code of all that it calls.

Numba's disk cache looks at the file of the cached function alone, so after a change in a kernel a
cached caller in another file would silently return the old answer. Here every cached entry is
stamped with a digest of all the kernel sources as well.
"""

import hashlib
from collections.abc import Callable
from functools import cache, wraps
from pathlib import Path
from typing import Any

import numpy as np
from numba import njit
from numba.core import caching, config

# Kernels allocate nothing, so they need no reference counting (`_nrt`): with it, LLVM leaves calls
# to it inside the hot loops, ten times the cost of the work itself. The "numpy" error model drops
# the test for division by zero: a tick or wheel size of zero is refused by the constructors.
_OPTIONS: dict[str, Any] = {"_nrt": False, "error_model": "numpy"}


def jit(function: Callable[..., Any]) -> Any:
    """Compile a function for use inside other compiled functions."""
    return njit(**_OPTIONS)(function)


def inlined(function: Callable[..., Any]) -> Any:
    """Compile a function into each of its callers: for the few lines that every operation runs
    through.

    Left to itself LLVM sometimes calls them, and a call passes each array as seven words on the
    stack.
    """
    return njit(forceinline=True, **_OPTIONS)(function)


def entry(function: Callable[..., Any]) -> Any:
    """Compile a function that Python calls, and keep its machine code on disk."""
    if config.DISABLE_JIT:
        return _boxing(function)
    compiled = njit(**_OPTIONS)(function)
    compiled._cache = _StampedCache(function)
    return compiled


def _boxing(function: Callable[..., Any]) -> Callable[..., Any]:
    """What a compiled function does when it returns to Python: an integer becomes an int."""

    @wraps(function)
    def call(*arguments: Any) -> Any:
        result = function(*arguments)
        return int(result) if isinstance(result, np.integer) else result

    return call


@cache
def kernel_digest() -> str:
    """Digest of every kernel source in this folder: changes when any kernel does."""
    digest = hashlib.sha256()
    for path in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(path.name.encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()


class _Stamped:
    def get_source_stamp(self) -> tuple[Any, str]:
        return super().get_source_stamp(), kernel_digest()  # a mixin


class _StampedImplementation(caching.CompileResultCacheImpl):
    _locator_classes = [  # noqa: RUF012  # as the base class declares it
        type(f"Stamped{locator.__name__}", (_Stamped, locator), {})
        for locator in (
            caching.UserProvidedCacheLocator,
            caching.InTreeCacheLocator,
            caching.UserWideCacheLocator,
        )
    ]


class _StampedCache(caching.FunctionCache):
    _impl_class = _StampedImplementation
