// The hierarchical wheel with a queue of buckets: scheme 7 as in Kafka. A slot of a level is as wide as the
// level below is around. The queue holds the buckets by the moment at which their slots begin, and moves
// the clock from one to the next. A bucket of an upper level is then filed again, into finer slots.
import { main, parameter } from "./peer.mjs";

const tick = parameter("tick", 1), size = parameter("wheel_size", 20);

class HierarchicalWheel {
  wheels = []; // from the finest; one is made when a deadline needs it
  queue = []; // of buckets, the next one last
  due = new Set(); // fires in the next advance
  counts = { queue_polls: 0, empty_polls: 0, refiled: 0 };

  constructor(start) {
    this.now = start;
    this.clock = start - (start % tick);
    this.wheel(0);
  }

  wheel(level) {
    const bucket = () => Object.assign(new Set(), { level, begins: null }); // null: it is not in the queue
    return (this.wheels[level] ??= { tick: tick * size ** level, slots: Array.from({ length: size }, bucket) });
  }

  get levels() {
    return this.wheels.map((wheel) => ({ ...wheel, hand: Math.floor(this.clock / wheel.tick) % size }));
  }

  file(timer) {
    timer.bucket = this.due;
    for (let level = 0; timer.deadline >= this.clock + tick; level++) {
      const wheel = this.wheel(level), slot = Math.floor(timer.deadline / wheel.tick);
      if (slot - Math.floor(this.clock / wheel.tick) >= size) continue; // too far for this wheel
      timer.bucket = wheel.slots[slot % size];
      if (timer.bucket.begins === null) this.enqueue(timer.bucket, slot * wheel.tick);
      break;
    }
    timer.bucket.add(timer);
    return timer;
  }

  enqueue(bucket, begins) {
    let place = this.queue.length;
    while (place && this.queue[place - 1].begins < begins) place--;
    this.queue.splice(place, 0, Object.assign(bucket, { begins }));
  }

  start(operation, deadline) {
    return this.file({ operation, deadline, firesAt: Math.max(this.now, deadline - (deadline % tick)) });
  }

  cancel(timer) {
    timer.bucket.delete(timer); // an emptied bucket stays in the queue
  }

  advance(now, fire) {
    for (;;) {
      for (const timer of this.due) fire(timer.operation, timer.firesAt);
      this.due.clear();
      if (!(this.queue.at(-1)?.begins <= now)) break;
      const bucket = this.queue.pop(), timers = [...bucket];
      this.clock = bucket.begins;
      bucket.begins = null;
      bucket.clear();
      this.counts.queue_polls++;
      this.counts.empty_polls += !timers.length;
      this.counts.refiled += bucket.level ? timers.length : 0;
      for (const timer of timers) this.file(timer);
    }
    this.now = now;
    this.clock = now - (now % tick);
  }

  nextWakeup() {
    return this.due.size ? this.now : this.queue.at(-1)?.begins;
  }
}

const description = {
  protocol: 1, name: "javascript-hierarchical-wheel", language: "JavaScript", rearm: "cancel and start",
  scheme: "hierarchical wheel with a queue of buckets", rounding: { kind: tick > 1 ? "down" : "exact", tick },
  parameters: { tick, wheel_size: size }, limits: { time: Number.MAX_SAFE_INTEGER },
};
main(description, (start) => new HierarchicalWheel(start));
