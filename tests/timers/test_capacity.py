"""How timers grow: where they are if the system reserves addresses, else by copying."""

import mmap
import subprocess
import sys
from collections.abc import Callable
from importlib.util import find_spec
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import settings
from hypothesis.stateful import run_state_machine_as_test

from tests.timers.cases import DEFAULTS, KERNELS, Case
from tests.timers.machine import OwnTimerMachine
from tests.timers.test_interruptions import SELDOM, interrupt_everywhere
from timers.errors import CapacityError
from timers.kernels import memory, pool

every_kernel = pytest.mark.parametrize("case", KERNELS, ids=str)

SMALL_STEP = 3  # places
HIGHEST_BYTES = 32  # for each pending timer, at the peak of a growth

can_reserve = pytest.mark.skipif(
    memory.reserved(memory.RESERVED_FROM) is None, reason="no addresses can be reserved here"
)


@pytest.fixture
def in_place(monkeypatch: pytest.MonkeyPatch) -> None:
    """The smallest timers grow in place, by few timers at a time."""
    monkeypatch.setattr(memory, "RESERVED_FROM", 1)
    monkeypatch.setattr(pool, "STEP", SMALL_STEP)


def refuse(*arguments: object, **keywords: object) -> None:
    raise OSError(12, "Cannot allocate memory")


@pytest.fixture
def refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """The system reserves no addresses."""
    monkeypatch.setattr(mmap, "mmap", refuse)


# ---- how much room a growth makes


@pytest.mark.parametrize(
    ("capacity", "used", "extra", "grown"),
    [
        *[(4, 3, 1, 4), (4, 4, 1, 8), (4, 4, 5, 16), (1, 0, 0, 1), (10, 9, 2, 20)],
        *[(2**30, 2**30, 1, pool.MAX_PLACES), (1024, 24, pool.MAX_PLACES - 24, pool.MAX_PLACES)],
    ],
)
def test_a_capacity_that_is_copied_doubles(
    capacity: int, used: int, extra: int, grown: int
) -> None:
    assert pool.grown_capacity(capacity, used, extra, in_place=False) == grown


@pytest.mark.parametrize(
    ("capacity", "used", "extra", "grown"),
    [
        *[(10**6, 10**6, 1, 10**6 + pool.STEP), (10**6, 10**6 - 5, 6, 10**6 + pool.STEP)],
        (10**6, 10**6, pool.STEP + 1, 10**6 + pool.STEP + 1),
        *[(2**30, 2**30, 2**30, 2**31 - 2**23), (pool.MAX_PLACES - 1, 7, 8, pool.MAX_PLACES)],
    ],
)
def test_a_capacity_in_place_grows_by_a_step_or_by_what_is_needed(
    capacity: int, used: int, extra: int, grown: int
) -> None:
    if used + extra > pool.MAX_PLACES:
        with pytest.raises(MemoryError):
            pool.grown_capacity(capacity, used, extra, in_place=True)
        return
    assert pool.grown_capacity(capacity, used, extra, in_place=True) == grown


@pytest.mark.parametrize("in_place", [False, True])
def test_capacity_never_grows_past_what_a_handle_can_name(in_place: bool) -> None:
    with pytest.raises(MemoryError):
        pool.grown_capacity(1024, 24, pool.MAX_PLACES - 23, in_place=in_place)
    most_buckets = 2**23  # four levels of 2**20 slots, and as many again
    assert 2**31 - 2 * most_buckets < pool.MAX_PLACES <= 2**31 - most_buckets


# ---- where the rows are afterwards


def grow(case: Case, size: int, batch: int) -> tuple[Any, int, float]:
    """A timer with `size` pending timers, started in batches; the number of rows that were copied;
    and the most bytes per pending timer, of old and new arrays, during a growth of more than STEP.
    """
    timer: Any = case()
    copied, most_bytes, before = 0, 0.0, timer.state
    for first in range(0, size, batch):
        timer.schedule_many(np.arange(first, first + batch) % 1000 + 1)
        after = timer.state
        if after.nodes.size == before.nodes.size:
            continue
        held = timer.nbytes
        if not np.shares_memory(before.nodes, after.nodes):
            copied += before.nodes.size
            held += before.nodes.nbytes
        if not np.shares_memory(before.cells, after.cells):
            held += before.cells.nbytes
        if first > 4 * pool.STEP:
            most_bytes = max(most_bytes, held / first)
        before = after
    return timer, copied, most_bytes


def is_large(case: Case) -> bool:
    """Whether half a million timers take seconds, and no memory for each delay."""
    costs = case.traits.costs
    return all(cost.variable != "delays" for cost in costs) and all(
        cost.growth != "linear" for cost in costs if cost.operation == "schedule"
    )


@can_reserve
@pytest.mark.parametrize("case", list(filter(is_large, KERNELS)), ids=str)
def test_a_large_timer_grows_without_a_copy(case: Case) -> None:
    timer, copied, most_bytes = grow(case, 8 * pool.STEP, 1 << 12)
    buckets = timer.state.nodes.size - pool.STEP * 8
    assert copied <= 2 * (memory.RESERVED_FROM // timer.state.nodes.itemsize + buckets)
    assert 0 < most_bytes <= HIGHEST_BYTES
    assert timer.advance(timer.now + 4000).handles.size == 8 * pool.STEP


@every_kernel
def test_a_timer_that_is_copied_copies_no_more_rows_than_twice_what_it_holds(
    case: Case, refused: None
) -> None:
    size = 1 << 14
    timer, copied, _ = grow(case, size, 1 << 9)
    assert not memory.is_reserved(timer.state.nodes)
    growths, buckets = 4, int(timer.state.cells[pool.BASE])
    assert size / 2 < copied <= size + growths * buckets
    timer.check()


@can_reserve
@every_kernel
def test_places_and_lines_stay_where_they_are(case: Case, in_place: None) -> None:
    timer: Any = case(capacity=2)
    first = timer.state
    handles = [timer.schedule(k + 1) for k in range(50)]
    timer.check()
    assert np.shares_memory(first.nodes, timer.state.nodes)
    assert np.shares_memory(first.cells, timer.state.cells)
    assert len(timer) == 50
    assert [timer.cancel(handle) for handle in handles[::2]] == [True] * 25
    assert sorted(timer.advance(1000).handles.tolist()) == sorted(handles[1::2])


@can_reserve
@every_kernel
def test_a_timer_that_grows_in_place_agrees_with_the_model(case: Case, in_place: None) -> None:
    profile = settings(max_examples=settings().max_examples // 4)
    machine = type("Machine", (OwnTimerMachine,), {"factory": staticmethod(case)})
    run_state_machine_as_test(machine, settings=profile)


@can_reserve
@pytest.mark.parametrize("event", ["raise_", "collect"])
@every_kernel
def test_a_growth_in_place_can_be_interrupted(
    case: Case, event: str, in_place: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pool, "STEP", 40)  # room for what is started in the interruption, too
    every = 3 if case.name == "delay-queue" else SELDOM
    for method in ("schedule", "schedule_many", "reserve"):
        interrupt_everywhere(case, method, event, len(case.name + method + event) % every, every)


@can_reserve
def test_a_reservation_that_is_used_up_is_copied_to_a_larger_one(
    monkeypatch: pytest.MonkeyPatch, in_place: None
) -> None:
    monkeypatch.setattr(mmap, "PAGESIZE", 1)  # the machine has as many bytes as pages
    monkeypatch.setattr("os.sysconf", lambda name: 24 * 20)
    [case] = [case for case in DEFAULTS if case.name == "unordered-list"]
    timer: Any = case(capacity=2)
    assert memory.is_reserved(timer.state.nodes)
    timer.schedule_many(np.arange(1, 100))
    assert not memory.is_reserved(timer.state.nodes)
    timer.check()
    assert timer.advance(100).handles.size == 99


# ---- where the system refuses


@can_reserve
@pytest.mark.parametrize(("mode", "is_free"), [("0", True), ("1", True), ("2", False)])
def test_nothing_is_reserved_where_addresses_count_as_memory(
    mode: str, is_free: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(memory, "OVERCOMMIT", tmp_path / "overcommit_memory")
    memory.OVERCOMMIT.write_text(f"{mode}\n")
    assert memory.is_reserved(memory.zeros(memory.RESERVED_FROM, np.uint8)) == is_free


@can_reserve
@pytest.mark.parametrize("limited", ["RLIMIT_AS", "RLIMIT_DATA"])
def test_nothing_is_reserved_where_addresses_are_limited(
    limited: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A reservation would leave the rest of the program what the limit has beyond it."""
    resource = pytest.importorskip("resource")
    limits = {getattr(resource, limited): 1 << 40}
    infinite = resource.RLIM_INFINITY
    monkeypatch.setattr(
        resource, "getrlimit", lambda which: (limits.get(which, infinite), infinite)
    )
    assert not memory.is_reserved(memory.zeros(memory.RESERVED_FROM, np.uint8))


LIMITED = """
import resource, numpy as np
from timers import CascadingWheel
from timers.errors import CapacityError
small = CascadingWheel()
small.schedule_many(np.arange(5000))
most = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize() + (200 << 20)
unlimited = resource.getrlimit(resource.RLIMIT_AS)
resource.setrlimit(resource.RLIMIT_AS, (most, unlimited[1]))
timer = CascadingWheel()
try:
    while True:
        timer.schedule_many(np.arange(50_000))
except CapacityError as error:
    print(str(error).startswith("no memory for 50000 more timers besides the"))
resource.setrlimit(resource.RLIMIT_AS, unlimited)
held = len(timer)
print(held >= 10**6, timer.advance(60_000).handles.size == held)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="addresses are limited there")
def test_where_addresses_are_limited_timers_are_copied_until_memory_ends() -> None:
    done = subprocess.run(
        [sys.executable, "-c", LIMITED], capture_output=True, text=True, check=False
    )
    assert done.stdout.split() == ["True", "True", "True"], done.stderr


@can_reserve
def test_no_memory_at_all_is_an_error_and_loses_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    [case] = [case for case in DEFAULTS if case.name == "cascading-wheel"]
    timer: Any = case(capacity=4)
    timer.schedule_many([1, 2, 3, 4])

    def none(*arguments: object) -> None:
        raise MemoryError

    monkeypatch.setattr(np, "zeros", none)
    with pytest.raises(CapacityError, match="no memory for 1 more timers besides the 4 pending"):
        timer.schedule(5)
    monkeypatch.undo()
    timer.check()
    assert timer.advance(5).deadlines.tolist() == [1, 2, 3, 4]


@pytest.mark.skipif(not find_spec("_testcapi"), reason="this Python has no _testcapi")
@every_kernel
def test_without_memory_for_a_result_nothing_has_changed(case: Case) -> None:
    """Also not if the memory is missing after the structure has changed, for the handle."""
    import _testcapi

    timer = case()
    handles = timer.schedule_many(np.arange(300) + 10_000)
    batches: list[Callable[[], object]] = [
        lambda: timer.schedule(5_000),
        lambda: timer.schedule_many(deadlines),
        lambda: timer.cancel_many(handles),
    ]
    deadlines = np.arange(300) + 20_000
    for run, change in zip(batches, (1, 300, -300), strict=True):
        before = len(timer)
        for number in count():
            _testcapi.set_nomemory(number, number + 1)
            try:
                run()
                break
            except (MemoryError, SystemError):  # the latter is what a ufunc of NumPy raises
                pass
            finally:
                _testcapi.remove_mem_hooks()
            assert len(timer) == before
        assert number > 0
        assert len(timer) == before + change
        timer.check()
