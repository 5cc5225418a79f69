// The ring of sets, which closes idle connections: a slot for each tick of one turn, and a set of timers in
// each. A connection that is used moves to the slot that the hand has just left, a full turn ahead. No timer
// may be further away than a turn. A timer fires in the tick at or after its deadline.
import { main, parameter } from "./peer.mjs";

const tick = parameter("tick", 1), size = parameter("wheel_size", 4096);

class Ring {
  slots = Array.from({ length: size }, () => new Set());
  pending = 0;
  counts = { slots_visited: 0, empty_slots: 0 };

  constructor(start) {
    this.hand = Math.floor(start / tick);
  }

  get levels() {
    return [{ tick, slots: this.slots, hand: this.hand % size }];
  }

  start(operation, deadline) {
    const slot = this.slots[Math.max(Math.ceil(deadline / tick), this.hand + 1) % size];
    const timer = { operation, deadline, slot };
    slot.add(timer);
    this.pending++;
    return timer;
  }

  cancel(timer) {
    timer.slot.delete(timer);
    this.pending--;
  }

  rearm(timer, operation, deadline) { // the touch of an idle connection
    this.cancel(timer);
    return this.start(operation, deadline);
  }

  advance(now, fire) {
    const end = Math.floor(now / tick);
    while (this.hand < end && this.pending) {
      this.hand++;
      const slot = this.slots[this.hand % size];
      this.counts.slots_visited++;
      this.counts.empty_slots += !slot.size;
      for (const timer of slot) {
        this.cancel(timer);
        fire(timer.operation, this.hand * tick);
      }
    }
    this.hand = end; // without timers, the hand need not move
  }

  nextWakeup() {
    return this.pending ? (this.hand + 1) * tick : undefined;
  }
}

main(
  {
    protocol: 1, name: "javascript-ring", language: "JavaScript", scheme: "ring of sets",
    rounding: { kind: "late", tick }, drain: "unit", rearm: "in place", parameters: { tick, wheel_size: size },
    limits: { time: 2 ** 52, step: 1e6, delay: tick * (size - 1) + 1 },
  },
  (start) => new Ring(start),
);
