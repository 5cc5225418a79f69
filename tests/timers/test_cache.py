"""Machine code kept on disk is never older than its sources, and never another scheme's."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from numba.core import config

import timers
from tests.mutation.operators import mutants_of
from timers.errors import NestedCallError
from timers.kernels import jit

PACKAGE = Path(timers.__file__).parent


def run(script, folder, **more):
    """What a script prints in a fresh process with `folder` first on the path and a cache of its
    own.
    """
    environment = (
        os.environ | {"PYTHONPATH": str(folder), "NUMBA_CACHE_DIR": str(folder / "cache")} | more
    )
    command = [sys.executable, "-c", script]
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=True
    )
    return done.stdout.splitlines()


def test_a_changed_kernel_is_compiled_again(tmp_path):
    shutil.copytree(PACKAGE, tmp_path / "timers", ignore=shutil.ignore_patterns("__pycache__"))
    script = (
        "import timers; t = timers.UnorderedList(); h = t.schedule(9);"
        " print(timers.__file__, t.cancel(h))"
    )
    assert run(script, tmp_path) == [f"{tmp_path / 'timers' / '__init__.py'} True"]
    kernel = tmp_path / "timers" / "kernels" / "operations.py"
    mutants = mutants_of(kernel.read_text())
    [changed] = [mutant for mutant in mutants if str(mutant).endswith("cancel: True to False")]
    kernel.write_text(changed.source())  # the cached entry is in another file, dispatch.py
    assert run(script, tmp_path)[0].endswith("False")


OWN = """
from timers.kernels.jit import jit
ANSWER = 1
@jit
def answer(x):
    return x + ANSWER
"""
CALLER = """
from timers.kernels.jit import entry
from own.deep.part import answer
@entry
def call(x):
    return answer(x)
"""


def test_a_changed_function_in_another_file_of_the_package_is_compiled_again(tmp_path):
    (tmp_path / "timers").symlink_to(PACKAGE)
    part = tmp_path / "own" / "deep" / "part.py"
    part.parent.mkdir(parents=True)
    (tmp_path / "own" / "__init__.py").touch()
    (tmp_path / "own" / "caller.py").write_text(CALLER)
    part.write_text(OWN)
    script = "from own.caller import call; print(call(1), sum(call.stats.cache_hits.values()))"
    assert run(script, tmp_path) == ["2 0"]
    assert run(script, tmp_path) == ["2 1"]
    # Of another length: Python compares no more than that within a second.
    part.write_text(OWN.replace("ANSWER = 1", "ANSWER = 70"))
    assert run(script, tmp_path) == ["71 0"]


def test_schemes_of_one_layout_do_not_share_machine_code(tmp_path):
    """The arrays' types are the same for several schemes; only the names of their States tell them
    apart.

    Another scheme's machine code would be a wrong result without a word. Numba numbers functions in
    each process anew, so each scheme is compiled in a process of its own.
    """
    script = """
import timers
for name in {}:
    timer = timers.timer_class(name)()
    timer.schedule(450)
    print(name, timer.state.cells.tolist())
"""
    (tmp_path / "timers").symlink_to(PACKAGE)
    names = ("unordered-list", "simple-wheel")
    interpreted = run(script.format(names), tmp_path, NUMBA_DISABLE_JIT="1")
    for name in names:
        run(script.format([name]), tmp_path)
    assert run(script.format(names), tmp_path) == interpreted


def test_timers_work_where_nothing_can_be_kept_on_disk(tmp_path):
    """As with an installation and a home that cannot be written."""
    script = """
import logging, sys
from numba.core import caching
def fail(self):
    raise OSError
caching._CacheLocator.ensure_cache_path = fail
logging.basicConfig(stream=sys.stdout, format="%(message)s")
import timers
timer = timers.UnorderedList()
print(timer.cancel(timer.schedule(9)), timers.kernels.jit.can_cache())
"""
    (tmp_path / "timers").symlink_to(PACKAGE)
    warning, answer = run(script, tmp_path)
    assert "set NUMBA_CACHE_DIR to a writable directory" in warning
    assert answer == "True False"


@pytest.mark.cluster
def test_a_timer_may_first_be_used_in_a_handler_that_interrupts_its_first_use(tmp_path):
    """Worth its seconds: Numba cannot be re-entered, and would abort the process."""
    script = """
import signal, time
import timers
timer, handles = timers.UnorderedList(), []
def handler(*_):
    handles.extend([timer.schedule(5), *timer.schedule_many([3, 4])])
signal.signal(signal.SIGALRM, handler)
signal.setitimer(signal.ITIMER_REAL, 0.1)
timer.schedule(9)
while not handles:
    time.sleep(0.01)
print(len(timer))
"""
    (tmp_path / "timers").symlink_to(PACKAGE)
    assert run(script, tmp_path) == ["4"]


COUNTING = """
from collections import Counter
from numba.core import event
from numba.core.targetconfig import TargetConfig
from timers import CascadingWheel
compiled, hashes = Counter(), []
hash_of = TargetConfig.__hash__
TargetConfig.__hash__ = lambda flags: hashes.append(flags) or hash_of(flags)
class Counted(event.Listener):
    def on_start(self, started):
        compiled[started.data["dispatcher"].py_func] += 1
    def on_end(self, ended):
        pass
event.register("numba:compile", Counted())
wheel = CascadingWheel()
wheel.advance(1)
wheel.next_expiry()
ours = {f.__name__: n for f, n in compiled.items() if f.__module__.startswith("timers")}
print("deliver" in ours, "schedule" in ours, {name for name, n in ours.items() if n > 1})
print([f.__name__ for f in compiled if f.__name__ not in ours], len(hashes))
"""


@pytest.mark.skipif(config.DISABLE_JIT, reason="interpreted, nothing is compiled")
def test_what_is_called_is_compiled_once_and_nothing_else(tmp_path):
    (tmp_path / "timers").symlink_to(PACKAGE)
    of_ours, of_numba = run(COUNTING, tmp_path)
    assert of_ours == "True False set()"
    # Numba's own functions are compiled by all its steps, and its flags are hashed slowly.
    assert of_numba == "[] 0"


def test_a_finalizer_that_needs_other_code_while_some_is_compiled_is_refused():
    # Private: no test can let a finalizer run while the public functions compile.
    def compile_(signature):
        return jit._undisturbed(print, signature)

    with pytest.raises(NestedCallError, match="a timer whose code is not compiled yet"):
        jit._undisturbed(compile_, ())
    assert jit._undisturbed(str, 5) == "5"


@pytest.mark.skipif(config.DISABLE_JIT, reason="interpreted, nothing releases the GIL")
def test_a_long_entry_releases_the_gil_and_a_short_one_does_not():
    """Parts of a comparison run on threads; a call that takes no time would take twice as long."""
    entries = jit.long_entry(lambda: None), jit.entry(lambda: None)
    assert [entry.targetoptions["nogil"] for entry in entries] == [True, False]
