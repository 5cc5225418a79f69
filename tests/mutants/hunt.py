"""Run the state machine on the mutants of one timer, then on the timer as it is: `python -m
tests.mutants.hunt TIMER`.

One process for each timer, without the JIT (NUMBA_DISABLE_JIT=1), so that nothing is compiled.
Prints one line of JSON for each mutant and one for each control run.
"""

import _thread
import json
import sys
import threading
import traceback
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

from hypothesis import settings
from numba.core import config

import tests.conftest  # noqa: F401  # registers the profiles
from tests.mutants.loading import fresh_timers
from tests.mutants.mutants import MUTANTS, Mutant

TIME_LIMIT = 20.0  # seconds for one run; a bug can make the kernel loop for ever
FIRST = {"simple-wheel": "simple-wheel(8)"}  # the geometry to try first, where that is faster
CONTROL_EXAMPLES = 20  # tests/timers/test_state_machine.py runs them all


def killed_by(run: Callable[[], object]) -> str | None:
    """What went wrong in a run, in one line; None if nothing did."""
    ended = threading.Event()
    watchdog = threading.Thread(target=_interrupt, args=(ended,), daemon=True)
    watchdog.start()
    try:
        run()
    except KeyboardInterrupt:
        return f"nothing: it did not come to an end within {TIME_LIMIT:.0f} s"
    except Exception as error:  # whatever a broken kernel raises is a kill
        frames = traceback.extract_tb(error.__traceback__)
        inside = [frame.name for frame in frames if Path(frame.filename).stem == "machine"]
        rules = [name for name in inside if not name.startswith("run_")]
        message = str(error).partition("\n")[0][:160]
        return f"{rules[0] if rules else 'importing'}: {type(error).__name__}: {message}"
    finally:
        ended.set()
        watchdog.join()
    return None


def _interrupt(ended: threading.Event) -> None:
    """After some time, interrupt the main thread until it has heard it: a handler may swallow
    one.
    """
    if not ended.wait(TIME_LIMIT):
        _thread.interrupt_main()
        while not ended.wait(1.0):
            _thread.interrupt_main()


def hunt(
    timer: str,
    mutant: Mutant | None,
    profile: settings,
    only: set[str] | None = None,
) -> tuple[str | None, str | None]:
    """(geometry, what killed it) of the first run that fails on a timer's geometries, or (None,
    None).
    """
    with fresh_timers(mutant) as machine:
        cases = sys.modules["tests.timers.cases"].CASES
        for case in sorted(cases, key=lambda case: str(case) != FIRST.get(timer)):
            if case.name == timer and (only is None or str(case) in only):
                cause = killed_by(lambda case=case: machine.run_machine(case, profile))
                if cause:
                    return str(case), cause
    return None, None


def main(timer: str) -> None:
    if not config.DISABLE_JIT:
        raise SystemExit("set NUMBA_DISABLE_JIT=1")
    warnings.simplefilter("error", RuntimeWarning)  # NumPy's overflow warnings
    report: dict[str, Any]
    verdict = settings.get_profile("verdict")
    needed = set()
    for mutant in MUTANTS:
        if mutant.timer == timer:
            geometry, cause = hunt(timer, mutant, verdict)
            needed.add(geometry or "")
            report = {
                "bug": mutant.bug,
                "file": mutant.file,
                "geometry": geometry,
                "killed by": cause,
            }
            print(json.dumps(report), flush=True)
    few = settings(verdict, max_examples=CONTROL_EXAMPLES)
    geometry, cause = hunt(timer, None, few, only=needed)
    print(json.dumps({"bug": None, "geometry": geometry, "killed by": cause}), flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
