"""`import timers` is cheap: what is heavy is imported by those who use it."""

import subprocess
import sys

HEAVY = ("numba", "pyspark", "matplotlib", "pyarrow")


def in_a_fresh_process(statement: str) -> str:
    run = subprocess.run(
        [sys.executable, "-c", statement], capture_output=True, text=True, check=True
    )
    return run.stdout.strip()


def test_import_lists_the_classes_and_brings_nothing_heavy() -> None:
    listed, loaded = in_a_fresh_process(
        "import sys, timers; print(*dir(timers)); print(*sys.modules)"
    ).splitlines()
    assert {"HashedWheel", "HeapqDelayQueue", "Timer", "place_of"} <= set(listed.split())
    assert "timers" in loaded.split()
    assert not {name.partition(".")[0] for name in loaded.split()} & set(HEAVY)


def test_classes_come_on_first_use() -> None:
    loaded = in_a_fresh_process(
        "import sys; from timers import HeapqDelayQueue, HashedWheel, place_of; print(*sys.modules)"
    ).split()
    assert "timers.schemes.hashed_wheel" in loaded
    assert "timers.schemes.simple_wheel" not in loaded
