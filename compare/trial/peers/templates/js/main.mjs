// An adapter for a timer in JavaScript. Put your timer in the place of the set, and call it in these methods.
import { main } from "./peer.mjs";

class Naive {
  constructor(start) {
    this.timers = new Set(); // as they were armed; the clock is at `start`
  }

  start(operation, deadline) {
    const timer = { operation, deadline };
    this.timers.add(timer);
    return timer;
  }

  cancel(timer) {
    this.timers.delete(timer); // it is pending
  }

  // rearm(timer, operation, deadline), if your timer can re-arm in place; it returns the new handle.

  advance(now, fire) {
    const due = [...this.timers].filter((timer) => timer.deadline <= now);
    for (const timer of due) this.timers.delete(timer);
    due.sort((a, b) => a.deadline - b.deadline); // equal ones stay in order
    for (const timer of due) fire(timer.operation, timer.deadline); // when it fires, by your timer
  }

  nextWakeup() {
    let earliest = Infinity; // something is pending
    for (const timer of this.timers) earliest = Math.min(earliest, timer.deadline);
    return earliest;
  }
}

// "order": "unspecified" if equal deadlines may come in any order; other members: docs/peers.md.
const description = {
  protocol: 1, name: "my-timer", language: "JavaScript", scheme: "list",
  rounding: { kind: "exact" }, order: "fifo", limits: { time: Number.MAX_SAFE_INTEGER },
};
main(description, (start) => new Naive(start));
