// The hashed wheel with rounds: Varghese and Lauck's scheme 6, and Netty's HashedWheelTimer. A timer waits
// in the slot of its tick, whatever its round is. The hand looks at all timers of a slot, and leaves those
// whose round is still to come. A timer fires when its tick is over, so it is late by 1 to a whole tick.
import { main, parameter } from "./peer.mjs";

const tick = parameter("tick", 1), size = parameter("wheel_size", 512);

class HashedWheel {
  slots = Array.from({ length: size }, () => new Set());
  pending = 0;
  counts = { slots_visited: 0, empty_slots: 0, timers_touched: 0 };

  constructor(start) {
    this.over = Math.floor(start / tick); // the ticks that are over; the hand is in the next one's slot
  }

  get levels() {
    return [{ tick, slots: this.slots, hand: this.over % size }];
  }

  start(operation, deadline) {
    const inTick = Math.max(Math.floor(deadline / tick), this.over);
    const slot = this.slots[inTick % size], timer = { operation, deadline, inTick, slot };
    slot.add(timer);
    this.pending++;
    return timer;
  }

  cancel(timer) {
    timer.slot.delete(timer);
    this.pending--;
  }

  advance(now, fire) {
    const end = Math.floor(now / tick);
    while (this.over < end && this.pending) {
      const slot = this.slots[this.over % size];
      this.counts.slots_visited++;
      this.counts.empty_slots += !slot.size;
      for (const timer of slot) {
        this.counts.timers_touched++;
        if (timer.inTick > this.over) continue; // its round is still to come
        this.cancel(timer);
        fire(timer.operation, (this.over + 1) * tick);
      }
      this.over++;
    }
    this.over = end; // a wheel without timers need not turn
  }

  nextWakeup() {
    return this.pending ? (this.over + 1) * tick : undefined; // every tick, whether a timer is due or not
  }
}

main(
  {
    protocol: 1, name: "javascript-hashed-wheel", language: "JavaScript", scheme: "hashed wheel with rounds",
    rounding: { kind: "up", tick }, drain: "unit", rearm: "cancel and start",
    parameters: { tick, wheel_size: size }, limits: { time: 2 ** 52, step: 1e6 },
  },
  (start) => new HashedWheel(start),
);
