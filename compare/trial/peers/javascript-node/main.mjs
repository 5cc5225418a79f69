// setTimeout of Node on the fake clock of its test runner (node:test), which users advance by hand. A
// unit is a millisecond. A setTimeout of 0 means 1 there, so what is due when it is armed waits here.
import { mock } from "node:test";
import { main } from "./peer.mjs";

class Timeouts {
  constructor(start) {
    mock.timers.reset();
    mock.timers.enable({ apis: ["setTimeout"] });
    this.start_ = this.now = start;
    this.due = new Map(); // armed for the present: operation -> its moment
    this.fired = [];
  }

  start(operation, deadline) {
    if (deadline <= this.now) {
      this.due.set(operation, this.now);
      return { operation };
    }
    return { operation, timeout: setTimeout(() => this.fired.push(operation, deadline), deadline - this.now) };
  }

  cancel({ operation, timeout }) {
    if (timeout === undefined) this.due.delete(operation);
    else clearTimeout(timeout);
  }

  advance(now, fire) {
    for (const [operation, moment] of this.due) fire(operation, moment);
    this.due.clear();
    if (now > this.now) mock.timers.tick(now - this.now);
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
    protocol: 1, name: "javascript-node", language: "JavaScript", library: "node:test mock.timers", version: process.version,
    scheme: "priority queue (setTimeout on a fake clock)", drain: "unit", rearm: "cancel and start",
    limits: { time: Number.MAX_SAFE_INTEGER, delay: 2147483647, step: 1000000 },
    notes: { clock: "its moves are timed too" },
  },
  (start) => new Timeouts(start),
);
