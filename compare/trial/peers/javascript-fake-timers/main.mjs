// setTimeout of @sinonjs/fake-timers, the clock that users of Sinon and Jest advance by hand. A unit is a
// millisecond. A setTimeout of 0 means 1 in some versions, so what is due when it is armed waits here.
import FakeTimers from "@sinonjs/fake-timers";
import { main } from "./peer.mjs";

class Timeouts {
  constructor(start) {
    this.clock = FakeTimers.createClock(0, Infinity);
    this.now = start;
    this.due = new Map(); // armed for the present: operation -> its moment
    this.fired = [];
  }

  start(operation, deadline) {
    if (deadline <= this.now) {
      this.due.set(operation, this.now);
      return { operation };
    }
    const timeout = this.clock.setTimeout(() => this.fired.push(operation, deadline), deadline - this.now);
    return { operation, timeout };
  }

  cancel({ operation, timeout }) {
    if (timeout === undefined) this.due.delete(operation);
    else this.clock.clearTimeout(timeout);
  }

  advance(now, fire) {
    for (const [operation, moment] of this.due) fire(operation, moment);
    this.due.clear();
    this.clock.tick(now - this.now);
    this.now = now;
    for (let k = 0; k < this.fired.length; k += 2) fire(this.fired[k], this.fired[k + 1]);
    this.fired.length = 0;
  }

  nextWakeup() {
    return this.now + (this.due.size ? 0 : 1);
  }
}

main(
  {
    protocol: 1, name: "javascript-fake-timers", language: "JavaScript", library: "@sinonjs/fake-timers",
    version: "15.5.0", scheme: "fake clock (setTimeout)", drain: "unit", rearm: "cancel and start",
    limits: { time: Number.MAX_SAFE_INTEGER, delay: 2147483647, step: 1000000, equal: 10000 },
  },
  (start) => new Timeouts(start),
);
