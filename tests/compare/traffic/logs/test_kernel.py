"""Timer events of a Linux kernel become a trace: simulated kernels, and texts of both tools."""

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compare.traffic.logs.formats.kernel import KernelTraceError, read_kernel_trace
from compare.traffic.tapes.tape import CANCEL, REARM, START

# The hrtimer and the first timer have the same address, as one behind the other may.
TRACE_CMD = """\
cpus=2
          <idle>-0     [001] d.h2  1000.000100: hrtimer_expire_entry: hrtimer=0xffff8880041 \
function=tick_sched_timer now=500000100000
          <idle>-0     [001] d.h2  1000.000050: hrtimer_cancel:       hrtimer=0xffff8880041
          <idle>-0     [001] d.h2  1000.000120: hrtimer_start:        hrtimer=0xffff8880041 \
function=tick_sched_timer expires=500004000000 softexpires=500004000000 mode=ABS
            sshd-901   [000] d.s.  1000.001000: timer_start:          timer=0xffff8880041 \
function=tcp_write_timer expires=4295000200 [timeout=50] bucket_expiry=4295000200 cpu=0 idx=50
            sshd-901   [000] d.s.  1000.051000: timer_cancel:         timer=0xffff8880041
            sshd-901   [000] d.s.  1000.051002: timer_start:          timer=0xffff8880041 \
function=tcp_write_timer expires=4295000213 [timeout=51] bucket_expiry=4295000200 cpu=0 idx=50
            sshd-901   [000] d.s.  1000.061000: timer_start:          timer=0xffff8880099 \
function=delayed_work_timer_fn expires=4295000415 [timeout=250] cpu=0 idx=50 flags=D|I
CPU:1 [LOST 7 EVENTS]
CPU:0 [LOST 5 EVENTS]
          <idle>-0     [000] ..s.  1000.259000: timer_cancel:         timer=0xffff8880041
          <idle>-0     [000] ..s.  1000.259001: timer_expire_entry:   timer=0xffff8880041 \
function=tcp_write_timer now=4295000214 baseclk=4295000213
            sshd-901   [000] ..s.  1000.300000: timer_cancel:         timer=0xffff8880099
"""
PERF = re.sub(
    r"^ +(\S+)-(\d+) +(\[\d+\]) +\S+ +([\d.]+): (h?r?timer_\w+): +(.*)$",
    r"\1 \2 \3 \4:  timer:\5: \6",
    TRACE_CMD,
    flags=re.MULTILINE,
)
# At 250 Hz; the jiffies of the timer that is moved show best how far the clocks are apart.
OPERATIONS = [
    (70, START, 0, 3950),
    (950, START, 1, 200_950),
    (50_952, REARM, 1, 252_950),
    (60_950, START, 0, 1_060_950),
    (299_950, CANCEL, 0, 0),
]


def rows(trace):
    return [tuple(int(value) for value in row) for row in zip(*trace.load(), strict=True)]


@pytest.mark.parametrize("text", [TRACE_CMD, PERF], ids=["trace-cmd", "perf"])
def test_the_text_of_both_tools_is_read(tmp_path, text):
    log = tmp_path / "kernel.txt"
    log.write_text(text)
    trace, events, hz, lost, uncancelled = read_kernel_trace(log, tmp_path / "a.trace")
    assert (events, hz, lost, uncancelled) == (10, 250, 12, ())
    assert rows(trace) == OPERATIONS


def read(tmp_path, *lines):
    log = tmp_path / "kernel.txt"
    log.write_text("\n".join(lines))
    return read_kernel_trace(log, tmp_path / "a.trace", force=True)


def start(second, kind="timer", timer="0x1"):
    """A start of a timer for 10 seconds, in a kernel with 100 jiffies per second."""
    event = f"a-1 [000] d.s. {100 + second}.000000: {kind}_start: {kind}={timer} function=f"
    if kind == "timer":
        return f"{event} expires={second * 100 + 1000} [timeout=1000] cpu=0"
    return f"{event} expires={(100 + second + 10) * 10**9} softexpires=0"


@pytest.mark.parametrize("kind", ["timer", "hrtimer"])
def test_a_timer_that_is_started_while_pending_is_moved(tmp_path, kind):
    """2 starts and 5 re-arms, though there is no cancel event."""
    lines = [start(second, kind) for second in (0, 1, 2, 3)]
    lines += [start(second, kind, "0x2") for second in (0, 4, 5)]
    read_ = read(tmp_path, *lines)
    assert read_.uncancelled == (f"{kind}_cancel",)
    (warning,) = read_.warnings
    assert warning.startswith(f"There is no {kind}_cancel event.")
    totals = read_.trace.totals
    assert (totals["starts"], totals["rearms"]) == (2, 5)
    assert read_.trace.description.pending == 2
    # 12 s later it has fired, so that another start is one.
    totals = read(tmp_path, *lines, start(17, kind, "0x2")).trace.totals
    assert (totals["starts"], totals["rearms"]) == (3, 5)


def test_a_timer_that_has_expired_is_not_pending(tmp_path):
    """By its slack, a high-resolution timer may expire before its deadline."""
    expired = "a-1 [000] d.s. 105.000000: hrtimer_expire_entry: hrtimer=0x1 function=f now=105"
    lines = [start(0, "hrtimer"), expired, start(6, "hrtimer")]
    assert read(tmp_path, *lines).trace.totals["starts"] == 2


@pytest.mark.parametrize("word", [2**32, 2**40])
def test_jiffies_of_32_bits_wrap(tmp_path, word):
    """They begin 300 s before 2**32, and the clock of the text at 0. 64 bits do not wrap."""
    lines, expected = [], []
    for second in (1, 290, 299, 301, 700):
        jiffies = 2**32 + (second - 300) * 100
        for timer, timeout in ((f"0x{second}", 50), (f"0x{second}f", 2000)):
            lines.append(
                f"a-1 [000] d.s. {second}.000000: timer_start: timer={timer} function=f"
                f" expires={(jiffies + timeout) % word} [timeout={timeout}] cpu=0"
            )
            expected.append((second - 1) * 10**6 + timeout * 10**4)
        lines.append(
            f"a-1 [000] d.s. {second}.500000: timer_expire_entry: timer=0x{second} function=f"
            f" now={(jiffies + 50) % word} baseclk=1"
        )
    read_ = read(tmp_path, *lines)
    assert read_.hz == 100
    assert [row[3] for row in rows(read_.trace)] == expected


class Kernel:
    """A kernel with one clock for its text and its jiffies, `ahead` seconds apart."""

    def __init__(self, hz, ahead):
        self.hz, self.ahead = hz, ahead
        self.now, self.lines, self.due, self.operations = 0, [], {}, []

    def event(self, name, timer, rest=""):
        time = self.ahead + self.now / 10**6
        self.now += 1
        self.lines.append(f"task-1 [000] d.s. {time:.6f}: timer_{name}: timer=0x{timer} {rest}")

    @property
    def jiffies(self):
        return self.now * self.hz // 10**6

    def start(self, timer, timeout):
        if timer in self.due:  # mod_timer
            self.event("cancel", timer)
        self.operations.append((self.now, REARM if timer in self.due else START, timer, timeout))
        self.due[timer] = expires = self.jiffies + timeout
        self.event("start", timer, f"function=f expires={expires} [timeout={timeout}] cpu=0")
        self.now += 20  # it does not cancel the timer at once

    def cancel(self, timer):
        if self.due.pop(timer, None) is not None:
            self.event("cancel", timer)
            self.operations.append((self.now - 1, CANCEL, timer, 0))
            self.now += 20  # nor start it again

    def wait(self, jiffies):
        for _ in range(jiffies):
            self.now = -(-(self.jiffies + 1) * 10**6 // self.hz)  # the next tick
            for timer in [timer for timer, due in self.due.items() if due <= self.jiffies]:
                del self.due[timer]
                self.event("cancel", timer)
                self.event("expire_entry", timer, f"function=f now={self.jiffies} baseclk=7")
        self.now += 100  # within the jiffy


RATES = (100, 250, 300, 1000)
PROGRAMS = st.lists(
    st.one_of(
        st.tuples(st.just("start"), st.integers(1, 3), st.integers(1, 9)),
        st.tuples(st.just("cancel"), st.integers(1, 3)),
        st.tuples(st.just("wait"), st.integers(1, 4)),
    ),
    max_size=30,
)


@given(program=PROGRAMS, hz=st.sampled_from(RATES), ahead=st.sampled_from([0, 12345]))
def test_what_a_kernel_did_is_what_the_trace_says(tmp_path_factory, program, hz, ahead):
    """A deadline is at most one jiffy off; a timer has an id of its own while it is pending."""
    kernel = Kernel(hz, ahead)
    # It lasts long enough for the rate to be found.
    for call in [("start", 9, 1), ("wait", 2), *program, ("start", 9, 20), ("wait", 21)]:
        getattr(kernel, call[0])(*call[1:])
    folder = tmp_path_factory.mktemp("kernel")
    # Of two processors, whose events need not be printed in the order of their times.
    Path(folder, "k.txt").write_text("\n".join([*kernel.lines[1::2], *kernel.lines[::2]]))
    trace, _, found, *_ = read_kernel_trace(folder / "k.txt", folder / "a.trace")
    assert found == hz
    ids = {}
    operations = rows(trace)
    assert len(operations) == len(kernel.operations)
    for (time, op, id_, deadline), (then, kind, timer, timeout) in zip(
        operations, kernel.operations, strict=True
    ):
        assert op == kind
        assert 0 <= time - then <= 1
        if op == START:
            ids[timer] = id_
        assert ids[timer] == id_
        if op != CANCEL:
            assert abs(deadline - time - timeout * 10**6 / hz) <= 10**6 / hz + 3


def test_what_cannot_be_read_is_refused_in_one_line(here, fails, said):
    log, out = Path("k.txt"), Path("a.trace")
    log.write_text("a 1 [0] 5.0: timer_start: timer=0x1 function=f expires=7 cpu=0\n" + 99 * "x")
    assert "pass --hz, the kernel's CONFIG_HZ" in fails("ingest", "kernel", log, "--out", out)
    assert "1, 250 jiffies" in said("ingest", "kernel", log, "--out", "b.trace", "--hz", "250")[1]
    log.write_text("root:x:0:0" + 999 * "x")
    with pytest.raises(KernelTraceError, match=r"has no timer events .* is 'root:x:0:0x{70}'$"):
        read_kernel_trace(log, out)
    log.write_text("")
    with pytest.raises(KernelTraceError, match=r"perf script`$"):
        read_kernel_trace(log, out)
    with pytest.raises(KernelTraceError, match="cannot read"):
        read_kernel_trace(here / "none", out)
    assert not out.exists()


def test_the_command_says_what_was_read(said):
    Path("k.txt").write_text(TRACE_CMD)
    command = ("ingest", "kernel", "k.txt", "--out", "a.trace")
    code, out, err = said(*command)
    assert (code, err) == (0, "")
    assert "--force" in said(*command)[2]
    assert said(*command, "--force")[0] == 0
    lines = out.splitlines()
    assert lines[0] == "events      10, 250 jiffies a second"
    assert lines[1].startswith("operations  5: 3 starts, 1 cancel, 1 re-arm")
    assert lines[-1] == "warning     The kernel has lost 12 events."
    assert max(map(len, lines)) <= 80


SAMPLES = Path(__file__).parent / "samples"


def operations_in(text):
    """How many starts and cancels a text has: a reference that knows neither clocks nor tapes."""
    events = re.findall(
        r"([0-9.]+): +(?:timer:)?h?r?timer_(start|cancel|expire_entry): +(\S+)", text
    )
    events.sort(key=lambda event: float(event[0]))
    counts = {"start": 0, "cancel": 0}
    last = {}  # timer -> whether it is pending, and the time of a cancel that may be none
    for time, action, timer in events:
        pending, cancelled = last.get(timer, (False, None))
        if cancelled is not None and not (
            action == "expire_entry" or (action == "start" and float(time) - cancelled <= 10e-6)
        ):
            counts["cancel"] += 1
        counts["start"] += action == "start"
        is_cancel = action == "cancel" and pending
        last[timer] = (action == "start", float(time) if is_cancel else None)
    counts["cancel"] += sum(cancelled is not None for _, cancelled in last.values())
    return counts


@pytest.mark.parametrize("name", ["perf.txt", "bpftrace.txt"])
def test_what_the_documented_commands_print_is_read(tmp_path, name):
    """Parts of what perf and bpftrace 0.17 printed on Linux 6.18, at 250 Hz."""
    read = read_kernel_trace(SAMPLES / name, tmp_path / "a.trace")
    op = read.trace.load().op.tolist()
    expected = operations_in((SAMPLES / name).read_text())
    assert op.count(START) + op.count(REARM) == expected["start"]
    # A cancel that comes at the deadline is none, and many wait for one jiffy.
    assert expected["cancel"] * 0.8 < op.count(CANCEL) <= expected["cancel"]
    assert (read.hz, read.lost, read.warnings) == (250, 0, ())


def test_events_that_bpftrace_has_lost_are_counted(tmp_path):
    assert read(tmp_path, "Attaching 3 probes...", start(0), start(1), "Lost 41 events").lost == 41


def test_the_documented_script_prints_what_is_read():
    docs = (Path(__file__).parents[4] / "docs" / "logs.md").read_text()
    script = docs.partition("bpftrace -e")[2].partition("```")[0]
    for line in (SAMPLES / "bpftrace.txt").read_text().splitlines()[1:]:
        printed = re.sub("0x[0-9a-f]+", "%p", line)
        printed = re.sub(r" [0-9]+\.[0-9]{9}", " %llu.%09llu", printed)
        printed = re.sub(r"=-?[0-9]+\]", "=%ld]", printed)
        assert re.sub("=[0-9]+", "=%lu", printed) in script
