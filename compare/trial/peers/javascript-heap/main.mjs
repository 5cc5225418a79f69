// A binary heap whose timers know their positions, so that any of them can be removed.
import { main } from "./peer.mjs";

class Heap {
  heap = [];
  counts = { comparisons: 0 };

  isBefore(a, b) {
    this.counts.comparisons++;
    return a.deadline < b.deadline || (a.deadline === b.deadline && a.operation < b.operation);
  }

  put(position, timer) {
    this.heap[position] = timer;
    timer.position = position;
  }

  up(position, timer) {
    while (position) {
      const parent = (position - 1) >> 1;
      if (!this.isBefore(timer, this.heap[parent])) break;
      this.put(position, this.heap[parent]);
      position = parent;
    }
    this.put(position, timer);
  }

  down(position, timer) {
    for (let child; (child = 2 * position + 1) < this.heap.length; position = child) {
      if (child + 1 < this.heap.length && this.isBefore(this.heap[child + 1], this.heap[child])) child++;
      if (!this.isBefore(this.heap[child], timer)) break;
      this.put(position, this.heap[child]);
    }
    this.put(position, timer);
  }

  move(position, timer) {
    if (position && this.isBefore(timer, this.heap[(position - 1) >> 1])) this.up(position, timer);
    else this.down(position, timer);
  }

  start(operation, deadline) {
    const timer = { deadline, operation, position: 0 };
    this.heap.push(timer);
    this.up(this.heap.length - 1, timer);
    return timer;
  }

  cancel(timer) {
    const last = this.heap.pop();
    if (last !== timer) this.move(timer.position, last);
  }

  rearm(timer, operation, deadline) {
    timer.deadline = deadline;
    timer.operation = operation;
    this.move(timer.position, timer);
    return timer;
  }

  advance(now, fire) {
    while (this.heap.length && this.heap[0].deadline <= now) {
      const timer = this.heap[0];
      this.cancel(timer);
      fire(timer.operation, timer.deadline);
    }
  }

  nextWakeup() {
    return this.heap[0]?.deadline;
  }
}

main(
  {
    protocol: 1, name: "javascript-heap", language: "JavaScript", scheme: "binary heap with positions", order: "fifo",
    rearm: "in place", limits: { time: Number.MAX_SAFE_INTEGER }, notes: { memory: "an object for each timer" },
  },
  () => new Heap(),
);
