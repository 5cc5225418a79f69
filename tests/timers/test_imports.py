"""`import timers` is cheap: what is heavy is imported by those who use it."""

import statistics
import subprocess
import sys

HEAVY = ("numba", "pyspark", "matplotlib", "pyarrow")
MOST_SECONDS = 1.0


def in_a_fresh_process(statement: str) -> str:
    run = subprocess.run(
        [sys.executable, "-c", statement], capture_output=True, text=True, check=True
    )
    return run.stdout.strip()


def seconds_to_import(module: str) -> float:
    timed = f"import time; t = time.perf_counter(); import {module}; print(time.perf_counter() - t)"
    return statistics.median(float(in_a_fresh_process(timed)) for _ in range(3))


def test_import_takes_less_than_a_second() -> None:
    # On a machine so busy that NumPy alone takes its time, beyond what NumPy takes.
    assert seconds_to_import("timers") < MOST_SECONDS + max(
        0, seconds_to_import("numpy") - MOST_SECONDS / 2
    )


def test_import_brings_nothing_heavy() -> None:
    loaded = in_a_fresh_process("import sys, timers; print(*sys.modules)").split()
    assert "timers" in loaded
    assert not {name.partition(".")[0] for name in loaded} & set(HEAVY)


def test_classes_come_on_first_use() -> None:
    loaded = in_a_fresh_process(
        "import sys; from timers import HeapqDelayQueue, HashedWheel, place_of; print(*sys.modules)"
    ).split()
    assert "timers.schemes.hashed_wheel" in loaded
    assert "timers.schemes.simple_wheel" not in loaded


def test_classes_are_listed_before_they_are_imported() -> None:
    listed = in_a_fresh_process("import timers; print(*dir(timers))").split()
    assert {"HashedWheel", "HeapqDelayQueue", "Timer", "place_of"} <= set(listed)
