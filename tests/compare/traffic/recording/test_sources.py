"""What is recorded of each source of timers, in this process."""

# Private members: the file is written between two steps of the program, or fails to be.

import asyncio
import importlib
import os
import sched
import sys
import threading
import zipfile
from contextlib import nullcontext
from datetime import datetime, timedelta
from decimal import Decimal

import numpy as np
import pytest

from compare.traffic.recording import RecordingError, record, recorder
from compare.traffic.tapes.tape import CANCEL, REARM, START
from compare.traffic.tapes.trace import TraceError, open_trace
from tests.compare.trial.pipeline.test_full_disk import full
from timers import CascadingWheel, HierarchicalWheel
from timers.services import AsyncTimer, ManualClock, SystemTimer, pending, wheel_event_loop
from timers.services.async_timer import LoopDriver


@pytest.fixture
def recorded(tmp_path):
    """Records a function; returns the trace's rows as (op, id, delay in us)."""

    def run(function):
        path = tmp_path / f"{len(list(tmp_path.iterdir()))}.trace"
        with record(path):
            function()
        time, op, ids, deadline = open_trace(path).load()
        delay = np.where(op == CANCEL, 0, deadline - time)
        return list(zip(op.tolist(), ids.tolist(), delay.tolist(), strict=True))

    return run


def rows_like(rows, expected):
    """Whether the rows are these, with delays in seconds.

    A delay is shorter by what the machine takes to record it, and longer by a tick at most.
    """
    assert [row[:2] for row in rows] == [row[:2] for row in expected]
    for (_, _, delay), (_, _, *seconds) in zip(rows, expected, strict=True):
        whole = 1e6 * seconds[0] if seconds else 0
        assert whole - 9e6 < delay <= whole + 2e3
    return True


# ---- asyncio

LOOPS = {"asyncio": asyncio.SelectorEventLoop, "wheel": wheel_event_loop()}
try:
    import uvloop
except ImportError:
    pass
else:
    LOOPS |= {"uvloop": uvloop.Loop, "wheel on uvloop": wheel_event_loop(base=uvloop.Loop)}


@pytest.fixture(params=LOOPS)
def run_async(request):
    """Runs a coroutine on each kind of loop."""

    def run(main):
        with asyncio.Runner(loop_factory=LOOPS[request.param]) as runner:
            return runner.run(main)

    return run


@pytest.mark.parametrize("name", LOOPS)
@pytest.mark.parametrize("before", [False, True])
def test_the_kinds_of_loops_are_known_also_of_one_that_was_made_before(tmp_path, name, before):
    async def main(recording):
        with recording:
            await asyncio.sleep(0.001)

    path = tmp_path / "a.trace"
    if before:
        with asyncio.Runner(loop_factory=LOOPS[name]) as runner:
            runner.run(main(record(path)))
    else:
        with record(path), asyncio.Runner(loop_factory=LOOPS[name]) as runner:
            runner.run(main(nullcontext()))
    base = "uvloop" if "uvloop" in name else "asyncio"
    wheel = ["wheel_event_loop"] if "wheel" in name else []
    assert open_trace(path).source["loops"] == [base, *wheel]


def test_a_sleep_that_is_cancelled_a_timeout_and_a_wait_for(recorded, run_async):
    async def main():
        task = asyncio.create_task(asyncio.sleep(100))
        await asyncio.sleep(0)
        task.cancel()
        async with asyncio.timeout(200):
            await asyncio.gather(task, return_exceptions=True)
        await asyncio.wait_for(asyncio.Event().wait(), 0.01)

    def run():
        with pytest.raises(TimeoutError):
            run_async(main())

    expected = [(START, 0, 100), (START, 1, 200), (CANCEL, 0), (CANCEL, 1), (START, 0, 0.01)]
    assert rows_like(recorded(run), expected)


def test_handles_stay_what_they_are(recorded, run_async):
    async def main():
        loop = asyncio.get_running_loop()
        ran = []
        first = loop.call_later(0.001, ran.append, 1)
        second = loop.call_at(loop.time() + 60, ran.append, 2)
        assert 0 < second.when() - loop.time() <= 60.001
        second.cancel()
        second.cancel()
        await asyncio.sleep(0.05)
        first.cancel()  # too late
        assert (ran, second.cancelled()) == ([1], True)
        with pytest.raises(TypeError):
            loop.call_later("1", print)

    rows = recorded(lambda: run_async(main()))
    assert rows_like(rows, [(START, 0, 0.001), (START, 1, 60), (CANCEL, 1), (START, 1, 0.05)])


def test_a_timer_that_fires_early_is_not_cancelled(recorded):
    early = wheel_event_loop(lambda: HierarchicalWheel(tick=10), unit_ns=10**7)

    def run():
        with asyncio.Runner(loop_factory=early) as runner:
            for _ in range(5):
                runner.run(asyncio.sleep(0.02))

    assert [op for op, _, _ in recorded(run)] == [START] * 5


def test_a_call_that_uvloop_runs_early_is_not_cancelled(recorded):
    """It rounds 1.4 ms to 1 ms."""
    if "uvloop" not in LOOPS:
        pytest.skip("uvloop is not installed")

    def run():
        with asyncio.Runner(loop_factory=LOOPS["uvloop"]) as runner:
            loop, handles = runner.get_loop(), []

            def end(done):
                handles.pop().cancel()
                done.set_result(None)

            for _ in range(20):
                done = loop.create_future()
                handles.append(loop.call_later(0.0014, end, done))
                loop.run_until_complete(done)

    assert [op for op, _, _ in recorded(run)] == [START] * 20


def test_a_context_reaches_the_call(recorded, run_async):
    from contextvars import ContextVar, copy_context

    name, seen = ContextVar("name"), []
    context = copy_context()
    context.run(name.set, "set")

    async def main():
        asyncio.get_running_loop().call_later(0, lambda: seen.append(name.get()), context=context)
        await asyncio.sleep(0.01)

    recorded(lambda: run_async(main()))
    assert seen == ["set"]


# ---- loops whose classes are not asyncio's


def test_rloop(recorded):
    """What is due at once is no timer there."""
    rloop = pytest.importorskip("rloop", reason="rloop is not installed")

    async def main():
        loop, ran = asyncio.get_running_loop(), []
        loop.call_later(0, ran.append, 1)
        late = loop.call_later(60, ran.append, 2)
        loop.call_at(loop.time() + 0.001, ran.append, 3)
        late.cancel()
        late.cancel()
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(asyncio.Event().wait(), 0.05)
        assert (ran, late.cancelled()) == ([1, 3], True)

    def run():
        with asyncio.Runner(loop_factory=rloop.new_event_loop) as runner:
            runner.run(main())

    expected = [(START, 0, 60), (START, 1, 0.001), (CANCEL, 0), (START, 0, 0.05)]
    assert rows_like(recorded(run), expected)


def test_trio_scopes(recorded):
    """A deadline is moved in place; one that is reached, also in virtual time, is no cancel."""
    trio = pytest.importorskip("trio", reason="trio is not installed")
    from trio.testing import MockClock

    async def main():
        with trio.move_on_after(60) as scope:
            scope.deadline += 40
            scope.deadline = trio.current_time() + 70
            scope.deadline = trio.current_time() - 1  # at once
            await trio.sleep(50)
        with trio.CancelScope():
            await trio.sleep(0.001)
        with trio.fail_after(30):
            pass

    expected = [(START, 0, 60), (REARM, 0, 100), (REARM, 0, 70), (REARM, 0, -1)]
    # The sleep is begun, and cancelled by the scope around it.
    expected += [(START, 0, 50), (CANCEL, 0), (START, 0, 0.001), (START, 1, 30), (CANCEL, 1)]
    assert [row[0] for row in recorded(lambda: trio.run(main))] == [row[0] for row in expected]

    async def jumps():
        await trio.sleep(3600)
        await trio.sleep(1800)

    clock = MockClock(autojump_threshold=0)
    rows = recorded(lambda: trio.run(jumps, clock=clock))
    assert rows_like(rows, [(START, 0, 3600), (START, 1, 1800)])


def test_a_library_of_another_version_is_left_alone(tmp_path, monkeypatch):
    module = "tests.compare.traffic.recording.test_sources"
    patches = {"Nothing.add": None, "rows_like.nothing": None, "nothing": None}
    monkeypatch.setitem(recorder.SOURCES, module, patches)
    assert module in sys.modules
    with record(tmp_path / "a.trace"):
        threading.Timer(None, print).start()
    assert open_trace(tmp_path / "a.trace").totals["starts"] == 0


# ---- the others


def test_timer_threads(recorded):
    def run():
        never, late, early = (threading.Timer(delay, int) for delay in (9, 60, 0.001))
        never.cancel()
        late.start()
        early.start()
        early.join()
        late.cancel()
        late.cancel()
        early.cancel()
        forever = threading.Timer(None, print)
        forever.start()
        forever.cancel()
        with pytest.raises(RuntimeError):
            early.start()

    assert rows_like(recorded(run), [(START, 0, 60), (START, 1, 0.001), (CANCEL, 0)])


def test_sched(recorded):
    def run():
        events = sched.scheduler()
        first = events.enter(50, 1, print)
        second = events.enterabs(events.timefunc() + 20, priority=1, action=print)
        events.cancel(event=first)
        events.cancel(second)
        with pytest.raises(ValueError):
            events.cancel(second)
        dates = sched.scheduler(datetime.now)
        sched.scheduler().enterabs(Decimal("0.5"), 1, print)
        for unit in ("s", "ns"):
            delay = np.timedelta64(1, unit)
            sched.scheduler(lambda: np.datetime64("2026-01-01")).enter(delay, 1, print)
        dates.cancel(dates.enter(timedelta(1), 1, print))

    rows = recorded(run)
    assert rows_like(rows, [(START, 0, 50), (START, 1, 20), (CANCEL, 0), (CANCEL, 1)])


def test_a_periodic_call_is_started_for_each_run(tmp_path):
    clock = ManualClock()
    with record(tmp_path / "a.trace", clock=lambda: clock.now() / 1e9):
        timer = SystemTimer(HierarchicalWheel(), clock=clock)
        call = timer.schedule_every(
            2.0, lambda: call.reschedule_after(0.5) if clock.now() > 5e9 else 0
        )
        clock.advance(6)
        clock.advance(0.25)
        call.cancel()
    time, op, ids, deadline = (
        column.tolist() for column in open_trace(tmp_path / "a.trace").load()
    )
    assert op == [START, START, START, START, CANCEL]
    assert time == [0, 2_000_000, 4_000_000, 6_000_000, 6_250_000]
    assert deadline == [2_000_000, 4_000_000, 6_000_000, 6_500_000, 0]
    assert set(ids) == {0}


def test_a_call_that_ran_early_is_not_cancelled(tmp_path):
    clock = ManualClock()
    with record(tmp_path / "a.trace", clock=lambda: clock.now() / 1e9):
        timer = SystemTimer(HierarchicalWheel(tick=10), clock=clock)
        call = timer.schedule_after(0.018, print)
        clock.advance(0.012)
        assert not call.cancel()
    assert open_trace(tmp_path / "a.trace").load().op.tolist() == [START]


def test_async_timer_without_its_own_alarm(recorded, run_async):
    async def main():
        async with AsyncTimer(CascadingWheel()) as timer:
            timer.schedule_after(0.001, print)
            call = timer.schedule_after(50, print)
            call.cancel()
            assert not call.cancel()
            await asyncio.sleep(0.05)
            call = timer.schedule_after(timedelta(seconds=100), print)
            assert call.reschedule_after(70)

    expected = [(START, 0, 0.001), (START, 1, 50), (CANCEL, 1), (START, 1, 0.05)]
    expected += [(START, 0, 100), (REARM, 0, 70), (CANCEL, 0)]  # closing cancels
    assert rows_like(recorded(lambda: run_async(main())), expected)


def test_what_the_recorder_knows_of_the_services():
    assert recorder._PENDING == pending.PENDING
    assert LoopDriver._turn.__qualname__ == "LoopDriver._turn"  # as `_is_alarm` expects


# ---- the recording


def patched():
    return [
        name
        for module, functions in recorder.SOURCES.items()
        if module in sys.modules
        for name in functions
        if hasattr(attribute_of(module, name), "__wrapped__")
    ]


def attribute_of(module, name):
    value = sys.modules[module]
    for part in name.split("."):
        value = getattr(value, part)
    return value


def test_patches_are_undone(tmp_path):
    before = dict(vars(threading.Timer)), list(sys.meta_path)
    call_at = asyncio.BaseEventLoop.call_at
    with record(tmp_path / "a.trace"):
        assert len(patched()) >= 13
        assert len(sys.meta_path) == len(before[1]) + 1
    assert patched() == []
    assert (dict(vars(threading.Timer)), list(sys.meta_path)) == before
    assert asyncio.BaseEventLoop.call_at is call_at
    with pytest.raises(ZeroDivisionError), record(tmp_path / "b.trace"):
        threading.Timer(1, print).cancel()
        raise ZeroDivisionError
    assert patched() == []
    assert open_trace(tmp_path / "b.trace").totals["rows"] == 0


def test_a_patched_method_that_is_kept_does_nothing_afterwards(tmp_path):
    loop = asyncio.new_event_loop()
    with record(tmp_path / "a.trace"):
        call_at, recording = loop.call_at, recorder.current
        call_at(loop.time() + 9, print)
    call_at(loop.time() + 9, print).cancel()
    assert recording._events == []
    assert open_trace(tmp_path / "a.trace").totals["rows"] == 1
    loop.close()


def test_modules_that_are_imported_later_are_patched(tmp_path, monkeypatch):
    """Here from a zip file, all of whose modules have one loader."""
    with zipfile.ZipFile(tmp_path / "modules.zip", "w") as modules:
        modules.write(sched.__file__, "sched.py")
        modules.writestr("other.py", "")
    monkeypatch.syspath_prepend(tmp_path / "modules.zip")
    monkeypatch.delitem(sys.modules, "sched")
    with record(tmp_path / "a.trace"):
        again, _ = importlib.import_module("sched"), importlib.import_module("other")
        assert again is not sched
        queue = again.scheduler()
        queue.cancel(queue.enter(5, 1, print))
    assert not hasattr(again.scheduler.cancel, "__wrapped__")
    totals = open_trace(tmp_path / "a.trace").totals
    assert (totals["starts"], totals["cancels"]) == (1, 1)


def test_a_recording_within_a_recording_is_refused(tmp_path):
    with record(tmp_path / "a.trace"):
        refused = pytest.raises(RecordingError, match=r"recorded in .*a\.trace; .* cannot contain")
        with refused, record(tmp_path / "b.trace"):
            pass
        assert not (tmp_path / "b.trace").exists()
        threading.Timer(1, print).cancel()
    assert open_trace(tmp_path / "a.trace").totals["rows"] == 0


def test_only_a_trace_is_replaced(tmp_path):
    path = tmp_path / "a.trace"
    with record(path):
        asyncio.run(asyncio.sleep(0))
    [run] = path.glob("run-*")
    (run / "rejected").mkdir()  # as of a log
    with record(path, force=True):
        asyncio.run(asyncio.sleep(0.001))
        assert open_trace(path).totals["rows"] == 0  # the old trace stays until the end
    assert open_trace(path).totals["rows"] == 1
    assert sorted(file.name for file in path.iterdir()) == ["manifest.json", open_trace(path).run]
    assert not run.exists()
    (tmp_path / "b.trace").mkdir()
    refused = pytest.raises(TraceError, match="is not a trace; choose another")
    with refused, record(tmp_path / "b.trace", force=True):
        pass
    assert patched() == []


def test_threads_share_one_shard_in_order_of_time(tmp_path):
    """`load` checks that times do not decrease."""
    calls = 2000

    def work():
        loop = asyncio.new_event_loop()
        for _ in range(calls):
            loop.call_later(50, print).cancel()
        loop.close()

    with record(tmp_path / "a.trace"), SystemTimer(CascadingWheel()) as timer:
        threads = [threading.Thread(target=work) for _ in range(3)]
        for thread in threads:
            thread.start()
        for _ in range(calls):
            timer.schedule_after(50, print).cancel()
        for thread in threads:
            thread.join()
    trace = open_trace(tmp_path / "a.trace")
    trace.load()
    totals = {"rows": 8 * calls, "starts": 4 * calls, "cancels": 4 * calls, "rearms": 0, "arms": 0}
    assert trace.totals.items() >= totals.items()
    assert len(trace.shards) == 1
    assert trace.shards[0].id_space <= 4


def test_a_forked_child_does_not_record(tmp_path):
    def cancel(number):
        loop = asyncio.new_event_loop()
        for _ in range(number):
            loop.call_later(5, print).cancel()
        loop.close()

    with record(tmp_path / "a.trace"):
        cancel(3)
        child = os.fork()
        if not child:
            code = 1
            try:
                cancel(5)
                code = 0 if recorder.current is None and not patched() else 2
            finally:
                os._exit(code)
        assert os.waitpid(child, 0)[1] == 0
        cancel(4)
    assert open_trace(tmp_path / "a.trace").totals["starts"] == 7


def test_the_block_ends_in_a_forked_child_without_a_trace(tmp_path):
    manifest = tmp_path / "a.trace" / "manifest.json"
    child, code = None, 1
    try:
        with record(tmp_path / "a.trace"):
            child = os.fork()
            if child:  # before the trace is made
                assert os.waitpid(child, 0)[1] == 0
        code = 0 if child or not manifest.exists() else 2
    finally:
        if child == 0:
            os._exit(code)
    assert manifest.exists()


def test_the_block_ends_while_a_child_has_the_file_open(tmp_path, monkeypatch):
    """As one that is forked at that moment."""
    monkeypatch.setattr(recorder.Recorder, "_abandon", recorder.Recorder._unpatch)
    reading, writing = os.pipe()
    try:
        with record(tmp_path / "a.trace"):
            child = os.fork()
            if not child:
                os.read(reading, 1)
                os._exit(0)
    finally:
        os.write(writing, b"x")
        assert os.waitpid(child, 0)[1] == 0
    assert open_trace(tmp_path / "a.trace").totals["rows"] == 0


@pytest.mark.parametrize("force", [False, True])
def test_nothing_is_left_if_no_event_can_be_written(tmp_path, force):
    path = tmp_path / "a.trace"
    if force:  # an older trace, which stays
        with record(path):
            pass
    before = sorted(tmp_path.rglob("*"))
    too_large = pytest.raises(TraceError, match="cannot write .*: File too large")
    with full({}, size=9), too_large, record(path, force=force):
        pass
    assert sorted(tmp_path.rglob("*")) == before


def test_the_disk_is_full(tmp_path, monkeypatch):
    """Nothing is written after that: a part of the events may have been."""
    write, refused = recorder.Recorder._write, []

    def full(self, data):
        if data[:1] == b"{":
            return write(self, data)
        refused.append(data)
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(recorder.Recorder, "_write", full)
    lost = pytest.raises(RecordingError, match="cannot write all events of .*: No space left")
    with lost, record(tmp_path / "a.trace"):
        for _ in range(3):
            asyncio.run(asyncio.sleep(0.001))
            recorder.current._drain()
    assert len(refused) == 1
    assert patched() == []
