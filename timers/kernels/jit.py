"""Compilation of the kernels, and the disk cache of compiled code.

`jit` marks a function that other compiled functions call; `entry` marks one that Python calls. Only
entries become machine code and are cached on disk: an entry includes the code of everything it
calls.

Numba's disk cache checks only the file of the cached function. After a change in a kernel, a cached
caller in another file would silently return the old result. So every cached entry is stamped with a
digest of all files that it may be compiled from: the kernels, and the files of its own package that
import from them.
"""

import gc
import hashlib
import logging
import sys
import threading
from collections.abc import Callable
from functools import cache, partial, wraps
from pathlib import Path
from typing import Any

import numpy as np
from numba import njit
from numba.core import caching, config, typed_passes, types, untyped_passes
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import CompilerBase, Flags
from numba.core.compiler_machinery import PassManager, register_pass
from numba.core.registry import CPUDispatcher

from timers.errors import NestedCallError

COMPILING = (
    "compiling once, which can take a minute; later runs use the result (`wheelwork compile` does "
    "it ahead of time)"
)
UNCACHED = (
    "compiled code cannot be cached, so every start compiles it again; set NUMBA_CACHE_DIR to a "
    "writable directory"
)

_log = logging.getLogger(__name__)
"""Reports once that code is compiled because it is not in the disk cache."""

# Kernels allocate nothing, so they need no reference counting (`_nrt`): LLVM would leave calls to
# it inside the hot loops, at ten times the cost of the work itself. The "numpy" error model drops
# the test for division by zero: the constructors refuse a tick or wheel size of zero. The C
# wrappers are unused; skipping them saves an eighth of the compile time.
_OPTIONS: Any = {"_nrt": False, "error_model": "numpy", "no_cfunc_wrapper": True}


class _Library(JITCodeLibrary):
    """The LLVM code of an entry, which is linked once with that of all functions it needs."""

    def finalize(self) -> None:
        needed: dict[Any, None] = {}
        for library in self._linking_libraries:
            # Callers first: LLVM links a function only if what it has linked calls it.
            needed |= dict.fromkeys([library, *library._linking_libraries])
        self._linking_libraries = list(needed)
        self._finish()

    def _finish(self) -> None:
        super().finalize()


class _Part(_Library):
    """The LLVM code of one function that entries need. It is neither linked nor run by itself."""

    def _finish(self) -> None:
        self._finalized = True


@register_pass(mutates_CFG=True, analysis_only=False)
class _Lowering(typed_passes.NativeLowering):
    _name = "entry_lowering"
    library = _Library

    def run_pass(self, state: Any) -> bool:
        state.library = self.library(state.targetctx.codegen(), state.func_id.func_qualname)
        state.library.enable_object_caching()
        return super().run_pass(state)


@register_pass(mutates_CFG=True, analysis_only=False)
class _PartLowering(_Lowering):
    _name = "part_lowering"
    library = _Part

    def run_pass(self, state: Any) -> bool:
        state.flags.no_compile = True
        super().run_pass(state)
        # Numba finds the code by a builtin function, which Python would call. This one is unique.
        never_called: Any = [].append
        state.targetctx.insert_user_function(never_called, state.cr.fndesc, [state.library])
        state.cr = state.cr._replace(cfunc=never_called)
        return True


class _Flags(Flags):
    """Numba's flags, but they can be compared without collecting all their values.

    They are part of the key by which Numba looks up each candidate for each operator. With its own
    flags, that takes a fifth of the time.
    """

    def __hash__(self) -> int:
        return 0  # few flags differ; the types in the same key tell its entries apart

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Flags) and self._values == other._values


class _Compiler(CompilerBase):
    """Numba's compiler with fewer steps. Only entries become machine code.

    By default, Numba does for each function what it does for an entry: it links it with all that it
    calls, optimizes the whole and makes machine code of it. It also has steps for closures, `with`,
    expressions of whole arrays, threads and so on, which compiled code here does without.
    """

    lowering = _Lowering

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.state.flags = _Flags(self.state.flags)

    def define_pipelines(self) -> list[Any]:
        manager = PassManager("kernels")
        for step in (
            untyped_passes.TranslateByteCode,
            untyped_passes.FixupArgs,
            untyped_passes.IRProcessing,
            untyped_passes.DeadBranchPrune,
            untyped_passes.GenericRewrites,
            untyped_passes.ReconstructSSA,
            typed_passes.NopythonTypeInference,
            typed_passes.PreLowerStripPhis,
            typed_passes.InlineOverloads,
            typed_passes.IRLegalization,
            self.lowering,
            typed_passes.NoPythonBackend,
        ):
            manager.add_pass(step, step.__name__)
        manager.finalize()
        return [manager]


class _PartCompiler(_Compiler):
    lowering = _PartLowering


class _Function(CPUDispatcher):
    """A function for other compiled functions; called from Python, it runs as Python.

    It is compiled for int64 alone, whatever the arguments' integer types, and whether or not their
    values are known: LLVM sees both when it inlines the function.
    """

    def __call__(self, *arguments: Any) -> Any:
        return self.py_func(*arguments)

    def get_call_template(self, args: Any, kws: Any) -> Any:
        return super().get_call_template(tuple(map(_widened, args)), kws)


def _widened(type_: Any) -> Any:
    """Return int64 for a type of smaller integers or of a known one, else the type."""
    type_ = types.unliteral(type_)
    fits = isinstance(type_, types.Integer) and type_ != types.uint64
    return types.int64 if fits else type_


_PART_OPTIONS: Any = {"no_cpython_wrapper": True, **_OPTIONS}

FORCE_INLINE: Any = {
    "forceinline": True,
    "pipeline_class": _PartCompiler,
    **_PART_OPTIONS,
}
"""Options for functions that LLVM inlines into every caller."""


def jit(function: Callable[..., Any], **options: Any) -> Any:
    """Compile a function for use inside other compiled functions."""
    if config.DISABLE_JIT:
        return function
    options |= {"nopython": True, "boundscheck": None, **_PART_OPTIONS}
    return _Function(function, targetoptions=options, pipeline_class=_PartCompiler)


def inlined(function: Callable[..., Any]) -> Any:
    """Compile a short function that is inlined into every caller.

    LLVM alone would not inline it everywhere, and a call passes each array as seven words on the
    stack.
    """
    return jit(function, forceinline=True)


def entry(function: Callable[..., Any], *, nogil: bool = False) -> Any:
    """Compile a function that Python calls, and cache its machine code on disk."""
    if config.DISABLE_JIT:
        return _boxing(function)
    compiled = njit(**_OPTIONS, nogil=nogil, pipeline_class=_Compiler)(function)
    try:
        compiled._cache = _StampedCache(function)
    except RuntimeError:  # neither the installation nor the user's cache directory can be written
        _warn_once(UNCACHED)
    compiled.compile = partial(_undisturbed, compiled.compile)
    return compiled


def long_entry(function: Callable[..., Any]) -> Any:
    """`entry` for a long-running function: it releases the GIL.

    Nothing else may use its arrays meanwhile. A call takes a few hundred nanoseconds more.
    """
    return entry(function, nogil=True)


def specialised(function: Callable[..., Any], signature: tuple[Any, ...]) -> Any:
    """`entry` for one signature: the compiled function itself, without type dispatch."""
    compiled = entry(function)
    return compiled if config.DISABLE_JIT else compiled.compile(signature)


def _undisturbed(compile_: Callable[..., Any], signature: tuple[Any, ...]) -> Any:
    """Compile on a separate thread, since signal handlers run only on the main thread.

    A handler that interrupts Numba and calls it would abort the process. The thread itself may run
    finalizers; a finalizer that needs other compiled code raises NestedCallError.
    """
    if isinstance(threading.current_thread(), _Compilation):
        raise NestedCallError("a finalizer used a timer whose code is not compiled yet")
    compilation = _Compilation(compile_, signature)
    collecting = gc.isenabled()
    gc.disable()  # Numba makes many objects and little garbage: an eighth of the time
    try:
        compilation.start()
    except RuntimeError:  # no threads can be started, e.g. while the interpreter exits
        compilation.run()
    else:
        compilation.join()
    finally:
        if collecting:
            gc.enable()
    if compilation.error is not None:
        raise compilation.error
    return compilation.result


class _Compilation(threading.Thread):
    """The thread that compiles one function."""

    error: BaseException | None = None

    def __init__(self, compile_: Callable[..., Any], signature: tuple[Any, ...]) -> None:
        super().__init__(name="compilation", daemon=True)
        self._work = partial(compile_, signature)

    def run(self) -> None:
        try:
            self.result = self._work()
        except BaseException as error:
            self.error = error


_warned: set[str] = set()


def _warn_once(message: str) -> None:
    if message not in _warned:
        _warned.add(message)
        _log.warning(message)


def can_cache() -> bool:
    """Return whether compiled code is kept on disk, once a module with an `entry` is imported."""
    return UNCACHED not in _warned


def _boxing(function: Callable[..., Any]) -> Callable[..., Any]:
    """Convert integer results to int, as a compiled function does."""

    @wraps(function)
    def call(*arguments: Any) -> Any:
        result = function(*arguments)
        return int(result) if isinstance(result, np.integer) else result

    return call


@cache
def source_digest(package: str) -> str:
    """Return a digest of the files from which the code of an import package may be compiled.

    These are the kernels and the package's files that import from `timers.kernels`. Compiled
    functions, and the constants that they use, must not come from any other file.
    """
    kernels = Path(__file__).parent
    files = {*kernels.glob("*.py"), kernels.parent / "limits.py"}
    root = getattr(sys.modules.get(package), "__file__", None) or ""
    if Path(root).name == "__init__.py":
        for path in Path(root).parent.rglob("*.py"):
            if b"from timers.kernels" in path.read_bytes():
                files.add(path)
    digest = hashlib.sha256()
    for path in sorted(files):
        digest.update(path.name.encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()


class _Stamped:
    @classmethod
    def from_function(cls, function: Any, file: str) -> Any:
        locator = super().from_function(function, file)  # a mixin
        if locator is not None:
            locator.package = function.__module__.partition(".")[0]
        return locator

    def get_source_stamp(self) -> tuple[Any, str]:
        return super().get_source_stamp(), source_digest(self.package)


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

    def load_overload(self, *signature: Any) -> Any:
        cached = super().load_overload(*signature)
        if cached is None:
            _warn_once(COMPILING)
        return cached
