"""Choosing a tick: how late do timers fire, and what does a finer tick cost?

One workload is replayed through a hashed wheel (as in Netty) with different ticks. A longer tick
makes timers fire later. A shorter tick makes the wheel visit more slots. The figures do not depend
on the machine.
"""

from compare import contestant, make, replay

# Connections with an idle timeout of 30 s. One unit is 1 ms.
workload = make("keepalive", operations=20_000, seed=1)
assert workload.unit == "ms"
tape = workload.tape

print(f"{'tick':>8} {'fired':>6} {'median late':>12} {'most late':>10} {'slots visited':>14}")
most_late = []
for tick in (1, 10, 100, 1000):
    chosen = contestant(f"hashed-wheel/tick={tick}ms")
    timer = chosen.new(workload.unit, start=int(tape.time[0]), counting=True)
    outcome = replay(timer, tape, workload.id_space).outcome
    late, visited = outcome.lateness, outcome.counters["slots_visited"]
    print(f"{tick:5} ms {outcome.fired:6} {late.median:9.0f} ms {late.max:7} ms {visited:14}")
    most_late.append(late.max)

assert all(late <= tick for late, tick in zip(most_late, (1, 10, 100, 1000), strict=True))
