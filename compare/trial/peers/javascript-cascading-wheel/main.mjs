// The cascading wheel: scheme 7 as in Linux before 4.8. The hand of the finest wheel moves with every tick.
// Each time a wheel has turned once, the next slot of the wheel above it empties into finer slots: a
// cascade. No timer may be further away than the coarsest wheel reaches.
import { main, parameter } from "./peer.mjs";

const tick = parameter("tick", 1), size = parameter("wheel_size", 256), levels = parameter("levels", 4);

class CascadingWheel {
  wheels = Array.from({ length: levels }, (_, level) => ({
    width: size ** level, slots: Array.from({ length: size }, () => new Set()), // the width is in ticks
  }));
  due = new Set(); // was due when it was armed
  pending = 0;
  counts = { slots_visited: 0, empty_slots: 0, refiled: 0 };

  constructor(start) {
    this.now = start;
    this.hand = Math.floor(start / tick);
  }

  get levels() {
    const hand = (width) => Math.floor(this.hand / width) % size;
    return this.wheels.map(({ width, slots }) => ({ tick: tick * width, slots, hand: hand(width) }));
  }

  file(timer) {
    const away = timer.inTick - this.hand;
    const { width, slots } = this.wheels.find((wheel) => away < wheel.width * size);
    timer.slot = slots[Math.floor(timer.inTick / width) % size].add(timer);
  }

  start(operation, deadline) {
    const timer = { operation, deadline, inTick: Math.ceil(deadline / tick), slot: this.due };
    if (deadline > this.now) this.file(timer);
    else this.due.add(timer);
    this.pending++;
    return timer;
  }

  cancel(timer) {
    timer.slot.delete(timer);
    this.pending--;
  }

  advance(now, fire) {
    for (const timer of this.due) this.expire(timer, this.now, fire);
    const end = Math.floor(now / tick);
    while (this.hand < end && this.pending) {
      this.hand++;
      for (const { width, slots } of this.wheels) {
        if (this.hand % width) break; // the wheel below has not turned once
        const slot = slots[(this.hand / width) % size], timers = [...slot];
        slot.clear();
        this.counts.slots_visited++;
        this.counts.empty_slots += !timers.length;
        this.counts.refiled += width > 1 ? timers.length : 0;
        for (const timer of timers) {
          if (timer.inTick === this.hand) this.expire(timer, this.hand * tick, fire);
          else this.file(timer);
        }
      }
    }
    this.hand = end; // without timers, the wheels need not turn
    this.now = now;
  }

  expire(timer, moment, fire) {
    this.cancel(timer);
    fire(timer.operation, moment);
  }

  nextWakeup() {
    return this.due.size ? this.now : this.pending ? (this.hand + 1) * tick : undefined;
  }
}

const description = {
  protocol: 1, name: "javascript-cascading-wheel", language: "JavaScript", scheme: "cascading wheel",
  rounding: { kind: tick > 1 ? "late" : "exact", tick }, drain: "unit", rearm: "cancel and start",
  parameters: { tick, wheel_size: size, levels },
  limits: { time: 2 ** 52, step: 1e6, delay: Math.min(tick * (size ** levels - 2), 2 ** 52) },
};
main(description, (start) => new CascadingWheel(start));
