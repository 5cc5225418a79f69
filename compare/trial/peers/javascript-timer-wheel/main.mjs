// timer-wheel, a passive wheel like Caffeine's: it is looked at when something else happens, and its slots
// are 1 024 ms wide. A unit is a millisecond. Its clock, Date.now, is the peer's.
import { TimerWheel } from "timer-wheel";
import { main } from "./peer.mjs";

const TICK = 1024;
let clock = 0;
Date.now = () => clock;

class Wheel {
  constructor(start) {
    clock = this.begin = start;
    this.wheel = new TimerWheel();
    this.last = start; // deadline
  }

  start(operation, deadline) {
    this.last = Math.max(this.last, deadline);
    return this.wheel.schedule(operation, Math.max(deadline - clock, 0));
  }

  cancel(handle) {
    handle.remove();
  }

  advance(now, fire) {
    clock = now;
    for (const operation of this.wheel.advance()) fire(operation, now);
  }

  nextWakeup() {
    return clock > this.last + 2 * TICK ? undefined : clock + 1;
  }
}

main(
  {
    protocol: 1, name: "javascript-timer-wheel", language: "JavaScript", library: "timer-wheel", version: "1.0.0",
    scheme: "passive hierarchical wheel", rounding: { kind: "late", tick: TICK }, drain: "unit",
    rearm: "cancel and start", parameters: { tick: TICK }, limits: { time: 2147483647, step: 1000000 },
  },
  (start) => new Wheel(start),
);
